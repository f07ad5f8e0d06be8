"""A training ledger as terminal text, top to bottom in the order in which questions come up."""

from collections import Counter
from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.padding import Padding
from rich.text import Text

from goodput.report.terminal.incidents import attempt_lines, incident_lines
from goodput.report.terminal.screen import Screen, clean, cut, heading, to_text
from goodput.report.terminal.tables import Column, table
from goodput.report.terminal.waterfall import waterfall_lines
from goodput.report.units import count, duration, percent, period, scale_for

if TYPE_CHECKING:
    from rich.console import RenderableType

    from goodput.core.notes import Note
    from goodput.training.measure.ledger.types import Ledger, ModelFlops

MAX_NOTES: Final = 6
_LEVEL_ORDER: Final = {"error": 0, "warning": 1, "info": 2}
_LEVEL_STYLES: Final = {"error": "bold red", "warning": "yellow", "info": "dim"}
_STATE_STYLES: Final = {"completed": "green", "running": "cyan", "failed": "bold red"}


def render_training(ledger: "Ledger", *, screen: Screen | None = None) -> str:
    """Return the whole report of one job as text.

    Args:
        ledger: any training ledger.
        screen: width, colour and glyphs; None = 80 columns, plain, UTF-8.

    Returns:
        Lines no wider than the screen, ending in a newline.
    """
    shown = screen or Screen()
    return to_text(_parts(ledger, shown), shown)


def _parts(ledger: "Ledger", screen: Screen) -> "Iterator[RenderableType]":
    yield from _header(ledger, screen)
    yield ""
    yield from _goodput(ledger, screen)
    yield ""
    capacity = ledger.waterfall.capacity
    scale = scale_for(ledger.waterfall.unit, capacity)
    yield heading(f"Where {scale.text(capacity)} went", screen)
    yield from waterfall_lines(ledger.waterfall, screen)
    if ledger.excluded:
        yield Text(f"   excluded from capacity: {scale.text(ledger.excluded)}", style="dim")
    yield ""
    yield heading("Steps", screen)
    yield from _steps(ledger, screen)
    if ledger.incidents:
        yield ""
        yield from incident_lines(ledger, screen)
    if len(ledger.attempts) > 1:
        yield ""
        yield from attempt_lines(ledger, screen)
    if ledger.definitions:
        yield ""
        yield from _definitions(ledger, screen)
    if ledger.notes:
        yield ""
        yield from _notes(ledger.notes, screen)


def _header(ledger: "Ledger", screen: Screen) -> Iterator[Text]:
    state = clean(ledger.state)
    name = cut(ledger.job, screen.width - cell_len(state) - 2, screen)
    line = Text(no_wrap=True)
    line.append(name, style="bold")
    line.append(" " * (screen.width - cell_len(name) - cell_len(state)))
    line.append(state, style=_STATE_STYLES.get(ledger.state, "yellow"))
    yield line
    yield Text(period(ledger.started_at_ns, ledger.ended_at_ns), style="dim")
    facts = [
        duration(ledger.ended_at_ns - ledger.started_at_ns),
        count(ledger.chips, "chip"),
        count(ledger.world, "rank"),
    ]
    if len(ledger.attempts) > 1:
        facts.append(count(len(ledger.attempts), "attempt"))
    yield Text(cut(f" {screen.glyphs.dot} ".join(facts), screen.width, screen), style="dim")


def _goodput(ledger: "Ledger", screen: Screen) -> Iterator[Text]:
    if not ledger.waterfall.capacity:
        yield Text("Goodput: no chip-time in this account, so there is nothing to divide by")
        return
    factors = ledger.factors
    line = Text(no_wrap=True)
    saved = ledger.saved.goodput_fraction
    line.append("Goodput  ", style="bold")
    line.append(percent(factors.goodput), style="bold green")
    line.append(" executed   ")
    line.append("not known" if saved is None else percent(saved), style="bold")
    line.append(" saved")
    if saved is None:
        line.append(" (no evidence of committed checkpoints)", style="dim")
    yield line
    times = screen.glyphs.times
    yield Text(
        f"         SG {percent(factors.scheduling)} {times} RG {percent(factors.runtime)}"
        f" {times} PG {percent(factors.program)} = {percent(factors.goodput)}"
    )
    if ledger.elastic is not None:
        held, available = ledger.elastic
        yield Text(
            f"elastic: held {percent(held)} and available {percent(available)} of requested chips",
            style="dim",
        )


def _steps(ledger: "Ledger", screen: Screen) -> "Iterator[RenderableType]":
    steps = ledger.steps
    if not steps.executed:
        yield Text("no step was completed")
        return
    dot = f" {screen.glyphs.dot} "
    risk = f"{steps.at_risk:,} at risk" if ledger.saved.persistence == "known" else "risk not known"
    counts = [
        f"{steps.kept:,} kept",
        f"{steps.lost:,} lost",
        risk,
        f"last step {steps.last_step:,}",
    ]
    yield Text(cut(dot.join(counts), screen.width, screen))
    times = [
        f"ideal {duration(steps.ideal_step_ns)} ({steps.ideal_source or 'source not known'})",
        f"median {duration(steps.median_ns)}",
        f"p99 {duration(steps.p99_ns)}",
        f"longest {duration(steps.longest_ns)}",
    ]
    yield Text(cut(dot.join(times), screen.width, screen))
    if ledger.flops is not None:
        yield _mfu(ledger.flops, screen)


def _mfu(flops: "ModelFlops", screen: Screen) -> Text:
    if flops.mfu is None:
        reason = flops.refused or "peak FLOP/s or FLOPs per step not known"
        return Text(cut(f"MFU not printed: {reason}", screen.width, screen), style="yellow")
    known = [
        f"{flops.flops_per_step:.3g} FLOPs/step {flops.source}".strip(),
        f"peak {flops.peak_flops_per_chip:.3g} FLOP/s",
        f"{flops.chip} {flops.dtype}".strip(),
    ]
    dot = f" {screen.glyphs.dot} "
    return Text(cut(f"MFU {percent(flops.mfu)} ({dot.join(known)})", screen.width, screen))


def _definitions(ledger: "Ledger", screen: Screen) -> Iterator[Text]:
    yield heading("As others define it", screen)
    columns = [
        Column("name", most=24),
        Column("value", right=True),
        Column("meaning", grows=True),
    ]
    if screen.width >= 110:
        columns.append(Column("source", most=24))
    rows = []
    for definition in ledger.definitions:
        value = "not known" if definition.value is None else percent(definition.value)
        first, *more = _folded(definition.meaning, screen)
        row = [definition.name, value, first, definition.source]
        rows.append(row[: len(columns)])
        rows += [["", "", line, ""][: len(columns)] for line in more]
    yield from table(columns, rows, screen)


def _folded(meaning: str, screen: Screen) -> list[str]:
    """Return a meaning in lines that fit beside the longest names and values."""
    room = screen.width - 40 - (26 if screen.width >= 110 else 0)
    return wrap(clean(meaning), max(20, room)) or [""]


def _notes(notes: "tuple[Note, ...]", screen: Screen) -> "Iterator[RenderableType]":
    yield heading("How far to trust this", screen)
    ordered = sorted(notes, key=lambda note: _LEVEL_ORDER[note.level])
    for note in ordered[:MAX_NOTES]:
        where = f" ({clean(note.where)})" if note.where else ""
        times = f" {screen.glyphs.times}{note.count:,}" if note.count > 1 else ""
        line = Text(f"{note.level}: ", style=_LEVEL_STYLES[note.level])
        line.append(clean(note.text) + where + times, style="default")
        line.truncate(3 * screen.width - 12)
        yield Padding(line, (0, 0, 0, 0))
    hidden = Counter(note.level for note in ordered[MAX_NOTES:])
    if hidden:
        kinds = ", ".join(f"{number} {level}" for level, number in hidden.items())
        yield Text(f"and {sum(hidden.values())} more ({kinds}): see --json", style="dim")
