"""The ledger inside a page: whole when it fits, else with the least telling parts left out.

What was left out is said in notes of the embedded ledger, which the page shows.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import msgspec

from goodput.core.notes import Note
from goodput.report.json import to_json
from goodput.training.measure.ledger.types import Band, Ledger, Track

BUDGET_BYTES: Final = 1_000_000
"""For the embedded JSON: about what is left of a page beside styles, scripts and tables."""
_DEFAULT_ENDINGS: Final = (
    b',"provenance":"recorded","evidence":"","parts":[]}',  # a loss
    b',"evidence":"","parts":[]}',
    b',"detail":""}',  # a band
)


def candidates(
    ledger: Ledger, *, budget_bytes: int = BUDGET_BYTES
) -> Iterator[tuple[Ledger, bytes]]:
    """Yield ledgers for a page with their JSON, each smaller than the one before.

    Args:
        ledger: any size.
        budget_bytes: what the JSON may weigh; larger ones are not yielded.

    Returns:
        First the same ledger if it fits; then ledgers with bands, ranks, attempts, incidents, notes
        or sources left out, and a note for each kind. At least one.
    """
    shown, told, text = ledger, ledger, compact_json(ledger)
    fits = len(text) <= budget_bytes
    if fits:
        yield told, text
    for shrink in _STEPS:
        smaller = shrink(shown)
        if smaller == shown:
            continue
        shown = smaller
        told = msgspec.structs.replace(shown, notes=(*shown.notes, *_left_out(ledger, shown)))
        text = compact_json(told)
        fits = len(text) <= budget_bytes
        if fits:
            yield told, text
    if not fits:
        yield told, text


def compact_json(ledger: Ledger) -> bytes:
    """Return the ledger's JSON without the defaults of losses and bands: it parses to the same.

    The endings replaced here belong to those two alone, and never occur inside a string, where the
    quotes would be escaped.
    """
    text = to_json(ledger)
    for ending in _DEFAULT_ENDINGS:
        text = text.replace(ending, b"}")
    return text


def _left_out(whole: Ledger, shown: Ledger) -> list[Note]:
    counts = {
        "tracks of the timeline": len(whole.timeline) - len(shown.timeline),
        "short bands of the timeline": sum(
            len(before.bands) - len(after.bands)
            for before, after in zip(whole.timeline, shown.timeline, strict=False)
        ),
        "ranks (the least slow)": len(whole.ranks) - len(shown.ranks),
        "attempts (the first)": len(whole.attempts) - len(shown.attempts),
        "incidents (the cheapest)": len(whole.incidents) - len(shown.incidents),
        "notes": len(whole.notes) - len(shown.notes),
        "source files": len(whole.sources) - len(shown.sources),
    }
    return [
        Note("info", f"this page leaves out {number:,} {what}; the report as JSON has them all")
        for what, number in counts.items()
        if number
    ]


def _bands(ledger: Ledger, most: int) -> Ledger:
    """Leave `most` bands: the last tracks go first (they mostly repeat the first one), then the
    shortest bands.
    """  # noqa: D205 - one sentence
    timeline = list(ledger.timeline)
    while len(timeline) > 1 and sum(len(track.bands) for track in timeline) > most:
        timeline.pop()
    ordered = sorted(
        (_length(band), row, place)
        for row, track in enumerate(timeline)
        for place, band in enumerate(track.bands)
    )
    kept = {(row, place) for _, row, place in ordered[-most:]}
    shown = tuple(
        Track(
            track.name,
            tuple(band for place, band in enumerate(track.bands) if (row, place) in kept),
        )
        for row, track in enumerate(timeline)
    )
    return msgspec.structs.replace(ledger, timeline=shown)


def _length(band: Band) -> int:
    return band.end_ns - band.start_ns


def _ranks(ledger: Ledger, most: int) -> Ledger:
    worst = sorted(ledger.ranks, key=lambda rank: (-rank.slowdown, rank.rank))[:most]
    return msgspec.structs.replace(ledger, ranks=tuple(sorted(worst, key=lambda one: one.rank)))


def _attempts(ledger: Ledger, most: int) -> Ledger:
    return msgspec.structs.replace(ledger, attempts=ledger.attempts[-most:])


def _incidents(ledger: Ledger, most: int) -> Ledger:
    costly = sorted(ledger.incidents, key=lambda one: (-one.cost_chip_ns, one.number))[:most]
    kept = tuple(sorted(costly, key=lambda one: one.number))
    return msgspec.structs.replace(ledger, incidents=kept)


def _notes(ledger: Ledger, most: int) -> Ledger:
    return msgspec.structs.replace(ledger, notes=ledger.notes[:most])


def _sources(ledger: Ledger, most: int) -> Ledger:
    return msgspec.structs.replace(ledger, sources=ledger.sources[:most])


_STEPS: Final[tuple[Callable[[Ledger], Ledger], ...]] = (
    partial(_bands, most=6_000),
    partial(_sources, most=64),
    partial(_ranks, most=128),
    partial(_bands, most=4_000),
    partial(_attempts, most=300),
    partial(_incidents, most=1_000),
    partial(_notes, most=300),
    partial(_ranks, most=64),
    partial(_attempts, most=150),
    partial(_bands, most=2_500),
    partial(_attempts, most=60),
    partial(_incidents, most=300),
    partial(_notes, most=50),
    partial(_bands, most=800),
)
"""In the order in which a reader would miss them least."""
