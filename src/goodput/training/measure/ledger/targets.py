"""What a step should take: given by the user, FLOPs at peak, or the fast mode of equal steps.

Legend: S steps of one rank's window.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from goodput.core.errors import ConfigError
from goodput.core.events import Work
from goodput.core.hardware import peak_flops
from goodput.core.stats.order import order_statistics
from goodput.core.timeline import Ints
from goodput.training.measure.ledger.options import Options
from goodput.training.measure.ledger.paint import Painted
from goodput.training.measure.ledger.plan import Plan
from goodput.training.measure.ledger.split import Targets, work_of
from goodput.training.measure.ledger.types import ModelFlops

FAST_QUANTILE: Final = 0.10
"""The fast mode: a tenth of equal steps is at least this fast (docs/concepts.md)."""

Flags = npt.NDArray[np.bool_]

Key = tuple[str, int]
"""(shape, ranks): steps that should take equal time."""


class Ideals(msgspec.Struct, frozen=True):
    """Ideal step time by shape and world, ns; and model FLOPs where they are known."""

    by_key: dict[Key, int]
    source: str
    flops: ModelFlops | None
    flops_by_shape: dict[str, float]
    """Empty shape = all others."""


def ideals_of(plan: Plan, painted: Sequence[dict[int, Painted]], options: Options) -> Ideals:
    """Return the ideal step time of every kind of step.

    Args:
        plan: the job.
        painted: for each attempt, the windows of its ranks.
        options: what the user gave overrides what was recorded.
    """
    works = _works(plan)
    given = options.ideal_step_s or next(
        (w.ideal_step_s for w in reversed(works) if w.ideal_step_s > 0), 0.0
    )
    pools = _pools(plan, painted, options)
    if given:
        fast = dict.fromkeys(pools, round(given * 1e9))
        source = "given"
    else:
        fast = {key: _fast(samples) for key, samples in pools.items()}
        source = "p10 of kept steps"
    flops, table = _flops(plan, works, options, fast)
    return Ideals(by_key=fast, source=source, flops=flops, flops_by_shape=table)


def targets_for(plan: Plan, painted: Painted, world: int, ideals: Ideals) -> Targets:
    """Return what each step of a window should take."""
    stream, steps = painted.stream, painted.steps
    if stream is None or steps.start.size == 0:
        return Targets(0, 0)
    known = ideals.flops
    peak = known.peak_flops_per_chip if known is not None and not known.refused else 0.0
    by_shape = [
        (ideals.by_key.get((name, world), 0), _flops_of(ideals, name)) for name in stream.shapes
    ]
    chips = _chips_at(plan, painted) if peak else 1
    if stream.shape is None:
        ideal, flops = by_shape[0]
        return Targets(ideal, _round(flops / peak * 1e9 / np.asarray(chips)) if peak else 0)
    shape = stream.shape[steps.row]
    # A shape of which nothing is known has no ideal: its steps take what they take.
    ideal_S = np.array([row[0] or 1 << 61 for row in by_shape], dtype=np.int64)[shape]  # noqa: N806
    if not peak:
        return Targets(ideal_S, 0)
    flops_S = np.array([row[1] for row in by_shape])[shape]  # noqa: N806
    return Targets(ideal_S, _round(flops_S / peak * 1e9 / chips))


def _round(values: object) -> Ints:
    return np.rint(np.asarray(values, dtype=np.float64)).astype(np.int64)


def _chips_at(plan: Plan, painted: Painted) -> Ints | int:
    """Chips held at each step: one number unless the allocation changed inside the window."""
    edges = plan.chips.edges(painted.low, painted.high)
    if not edges:
        return max(plan.chips.at(painted.low), 1)
    index = np.searchsorted(np.array(edges, dtype=np.int64), painted.steps.start, side="right")
    held = np.array([plan.chips.at(at) for at in (painted.low, *edges)], dtype=np.int64)
    return np.maximum(held[index], 1)


def _flops_of(ideals: Ideals, shape: str) -> float:
    return ideals.flops_by_shape.get(shape, ideals.flops_by_shape.get("", 0.0))


def _works(plan: Plan) -> list[Work]:
    """Declared work, in order of time."""
    found = [
        (process.at_ns(event), event)
        for process in plan.processes
        for event in process.events
        if isinstance(event, Work)
    ]
    return [event for _, event in sorted(found, key=lambda pair: pair[0])]


def _pools(
    plan: Plan, painted: Sequence[dict[int, Painted]], options: Options
) -> dict[Key, list[Ints]]:
    """Work per step of kept, ordinary steps, by kind; ns."""
    pools: dict[Key, list[Ints]] = {}
    spare: dict[Key, list[Ints]] = {}
    for trial, ranks in zip(plan.trials, painted, strict=True):
        for window in ranks.values():
            _sample(window, trial.world, options, pools, spare)
    for key, samples in spare.items():  # nothing better is known of this kind
        if key not in pools:
            pools[key] = samples
    return pools


def _sample(
    window: Painted,
    world: int,
    options: Options,
    pools: dict[Key, list[Ints]],
    spare: dict[Key, list[Ints]],
) -> None:
    stream, steps = window.stream, window.steps
    if stream is None or steps.start.size == 0:
        return
    per_step = work_of(steps)
    if stream.covers is not None:
        per_step = per_step // steps.covers
    warm = slice(1 if steps.begins else 0, None)  # the first step of a process warms up
    if steps.kept is steps.covers and stream.shape is None and not options.exclude:
        if per_step[warm].size:
            pools.setdefault((stream.shapes[0], world), []).append(per_step[warm])
        else:
            spare.setdefault((stream.shapes[0], world), []).append(per_step)
        return
    ordinary = steps.kept == steps.covers
    for low, high in options.exclude:
        ordinary &= (steps.end <= low) | (steps.start >= high)
    later = ordinary.copy()
    later[: warm.start] = False
    for index, name in enumerate(stream.shapes):
        mine = None if stream.shape is None else stream.shape[steps.row] == index
        for pool, rows in ((pools, later), (spare, ordinary)):
            values = _chosen(per_step, rows if mine is None else rows & mine)
            if values.size:
                pool.setdefault((name, world), []).append(values)
                break
        if stream.shape is None:
            break


def _chosen(values: Ints, rows: Flags) -> Ints:
    """Return the chosen values, as a view where they lie together, as they do in most attempts."""
    first, count = int(rows.argmax()), int(rows.sum())
    if bool(rows[first : first + count].all()):
        return values[first : first + count]
    return values[rows]


def _fast(samples: list[Ints]) -> int:
    values = samples[0] if len(samples) == 1 else np.concatenate(samples)
    return order_statistics(values, [int(FAST_QUANTILE * (values.size - 1))])[0]


def _flops(
    plan: Plan, works: Sequence[Work], options: Options, fast: dict[Key, int]
) -> tuple[ModelFlops | None, dict[str, float]]:
    """Model FLOPs and peak, as given or recorded; refused when they contradict the step times."""
    table = {w.shape: w.flops_per_step for w in works if w.flops_per_step > 0}
    source = next((w.source for w in reversed(works) if w.flops_per_step > 0), "")
    if options.flops_per_step:
        table, source = {"": options.flops_per_step}, "given"
    if not table:
        return None, {}
    chip = options.chip or next((w.chip for w in reversed(works) if w.chip), "")
    chip = chip or next((p.header.chip for p in plan.processes if p.header.chip), "")
    dtype = options.dtype or next((w.dtype for w in reversed(works) if w.dtype), "")
    peak = options.peak_flops_per_chip or next(
        (w.peak_flops_per_chip for w in reversed(works) if w.peak_flops_per_chip > 0), 0.0
    )
    refused = ""
    if not peak:
        peak, refused = _peak(chip, dtype)
    shown = next(iter(table.values()))
    if peak and not refused:
        refused = _contradiction(plan, fast, table, peak)
    flops = ModelFlops(
        mfu=None,
        flops_per_step=shown,
        peak_flops_per_chip=peak,
        chip=chip,
        dtype=dtype,
        source=source or "given",
        refused=refused,
    )
    return flops, table


def _peak(chip: str, dtype: str) -> tuple[float, str]:
    if not chip or not dtype:
        missing = " and ".join(n for n, v in (("chip", chip), ("dtype", dtype)) if not v)
        return 0.0, f"the peak is not known: give {missing}, or the peak FLOP/s of one chip"
    try:
        return peak_flops(chip, dtype), ""
    except ConfigError as error:
        return 0.0, str(error)


def _contradiction(plan: Plan, fast: dict[Key, int], table: dict[str, float], peak: float) -> str:
    """Why FLOPs cannot be right: at peak they take longer than steps really take."""
    chips = max((plan.chips.at(t.started_at_ns) for t in plan.trials), default=1)
    for (shape, world), ideal in fast.items():
        flops = table.get(shape, table.get("", 0.0))
        held = min(chips, world) if not plan.chips.recorded else chips
        if ideal > 0 and held > 0 and flops / (peak * held) > ideal / 1e9 * (1 + 1e-9):
            share = flops / (peak * held) / (ideal / 1e9)
            return (
                f"MFU would be {share:.0%}: {flops:.4g} FLOPs a step on {held} chips of "
                f"{peak:.4g} FLOP/s take longer than the {ideal / 1e9:.4g} s that steps take. "
                "Check the FLOPs (model FLOPs of the whole job's step), chip, dtype and chips"
            )
    return ""
