"""The account in bins, for charts: series over time, timeline tracks, step-time bands."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from goodput.core.timeline import Intervals, Ints, as_ints, subtract, union
from goodput.training.measure.ledger.books import Books, Share
from goodput.training.measure.ledger.split import Measured
from goodput.training.measure.ledger.types import (
    LOSS_FACTORS,
    Band,
    Series,
    StepTimes,
    Track,
)

MAX_BANDS: Final = 1_500
"""Bands on one track before it is drawn in equal slices instead."""
MAX_TRACKS: Final = 64
SLICES: Final = 1_000
STEP_BINS: Final = 240


class Views(NamedTuple):
    """What the charts draw."""

    series: Series
    timeline: tuple[Track, ...]
    step_times: StepTimes


def no_views() -> Views:
    """Return empty views, for a caller that wants the numbers only."""
    return Views(
        Series(starts_ns=(), width_ns=0, capacity=(), classes={}),
        (),
        StepTimes((), (), (), (), (), ()),
    )


def views_of(books: Books, low: int, high: int) -> Views:
    """Return the views of [low, high)."""
    return Views(
        series_of(books, low, high, books.options.windows),
        _timeline(books, low, high),
        _step_times(books, low, high),
    )


def series_of(books: Books, low: int, high: int, windows: int) -> Series:
    """Return chip-ns by class in equal windows (the last one may be shorter)."""
    width = max(-(-(high - low) // windows), 1)
    edges = sorted({*range(low, high, width), high})
    rows = books.windows(edges, rank=books.options.rank) if len(edges) > 1 else []
    names = [*LOSS_FACTORS, "useful", "excluded"]
    merged = [_merged(row) for row in rows]
    classes = {
        name: tuple(row.get(name, 0) for row in merged)
        for name in names
        if any(row.get(name, 0) for row in merged) or name == "useful"
    }
    capacity = tuple(sum(v for k, v in row.items() if k != "excluded") for row in merged)
    return Series(starts_ns=tuple(edges[:-1]), width_ns=width, capacity=capacity, classes=classes)


def _merged(row: dict[str, int]) -> dict[str, int]:
    out: dict[str, int] = {}
    for label, amount in row.items():
        name = label.partition("/")[0]
        out[name] = out.get(name, 0) + amount
    return out


def _timeline(books: Books, low: int, high: int) -> tuple[Track, ...]:
    """One track for the job, as its lead rank saw it, and one for each rank with a record."""
    job: list[Band] = list(_before(books, low, high))
    ranks: dict[int, list[Band]] = {}
    several = any(sum(share.own for share in shares) > 1 for shares in books.shares)
    for trial, shares in zip(books.plan.trials, books.shares, strict=True):
        job.extend(_bands(shares[0].measured, f"attempt {trial.key}"))
        for share in shares if several else ():
            if share.own and share.measured.painted.stream is not None:
                ranks.setdefault(share.rank, []).extend(_bands(share.measured, ""))
    tracks = [Track(name="job", bands=_fit(job, low, high))]
    tracks.extend(
        Track(name=f"rank {rank}", bands=_fit(ranks[rank], low, high))
        for rank in sorted(ranks)[:MAX_TRACKS]
    )
    return tuple(tracks)


def _before(books: Books, low: int, high: int) -> Iterator[Band]:
    first = books.plan.trials[0].started_at_ns if books.plan.trials else high
    for start, end in books.plan.chips.queues(books.plan.end_ns):
        if start < first:
            yield Band(start_ns=max(start, low), end_ns=min(end, first), label="scheduling")


def _bands(measured: Measured, detail: str) -> Iterator[Band]:
    """The classes' own stretches, and runs of steps between them."""
    painted = measured.painted
    for label, cover in painted.owned.items():
        name, _, part = label.partition("/")
        said = ", ".join(x for x in (part, detail) if x)
        for start, end in _pairs(_thin(cover.intervals)):
            yield Band(start_ns=start, end_ns=end, label=name, detail=said)
    steps = painted.steps
    whole = Intervals(as_ints([painted.low]), as_ints([painted.high]))
    rest = subtract(subtract(whole, union(steps.start, steps.end)), painted.covered.intervals)
    named = [c for label, c in painted.owned.items() if label.startswith("unattributed/")]
    for cover in named:
        rest = subtract(rest, cover.intervals)
    for start, end in _pairs(_thin(rest)):
        yield Band(start_ns=start, end_ns=end, label="unattributed", detail=detail)
    lost = steps.kept < steps.covers
    for rows, label in ((~lost, "steps"), (lost, "rework")):
        if bool(rows.any()):
            runs = union(steps.start[rows], steps.end[rows])
            runs = subtract(runs, painted.covered.intervals)
            said = f"{int(rows.sum())} steps" + (f", {detail}" if detail else "")
            for start, end in _pairs(_thin(runs)):
                yield Band(start_ns=start, end_ns=end, label=label, detail=said)


def _thin(intervals: Intervals) -> Intervals:
    """Keep the longest stretches: a chart has no room for a million."""
    if intervals.start.size <= 4 * MAX_BANDS:
        return intervals
    length = intervals.end - intervals.start
    keep = np.sort(np.argpartition(length, -4 * MAX_BANDS)[-4 * MAX_BANDS :])
    return Intervals(intervals.start[keep], intervals.end[keep])


def _pairs(intervals: Intervals) -> Iterator[tuple[int, int]]:
    yield from zip(intervals.start.tolist(), intervals.end.tolist(), strict=True)


def _fit(bands: Sequence[Band], low: int, high: int) -> tuple[Band, ...]:
    """Cut to the view; where there are too many bands, keep one per slice, the longest in it."""
    shown = [
        Band(
            start_ns=max(b.start_ns, low),
            end_ns=min(b.end_ns, high),
            label=b.label,
            detail=b.detail,
        )
        for b in bands
        if b.end_ns > low and b.start_ns < high
    ]
    shown.sort(key=lambda b: b.start_ns)
    if len(shown) <= MAX_BANDS or high <= low:
        return tuple(shown)
    best: dict[int, Band] = {}
    for band in shown:
        key = (band.start_ns - low) * SLICES // (high - low)
        known = best.get(key)
        if known is None or band.end_ns - band.start_ns > known.end_ns - known.start_ns:
            best[key] = band
    return tuple(best[key] for key in sorted(best))


def _step_times(books: Books, low: int, high: int) -> StepTimes:
    """Quantiles of the lead rank's step time in bins of consecutive steps."""
    columns = [_lead_steps(shares[0], low, high) for shares in books.shares]
    number, at, length = (
        (np.concatenate(parts) for parts in zip(*columns, strict=True))
        if (columns)
        else (as_ints([]), as_ints([]), as_ints([]))
    )
    if length.size == 0:
        return StepTimes((), (), (), (), (), ())
    size = max(-(-length.size // STEP_BINS), 1)
    starts = list(range(0, length.size, size))
    quantiles = [_bin(length[i : i + size]) for i in starts]
    p10, median, p90, longest = zip(*quantiles, strict=True)
    return StepTimes(
        first_step=tuple(number[starts].tolist()),
        at_ns=tuple(at[starts].tolist()),
        p10_ns=p10,
        median_ns=median,
        p90_ns=p90,
        longest_ns=longest,
    )


def _lead_steps(share: Share, low: int, high: int) -> tuple[Ints, Ints, Ints]:
    painted = share.measured.painted
    steps, stream = painted.steps, painted.stream
    if stream is None or steps.start.size == 0:
        return as_ints([]), as_ints([]), as_ints([])
    rows = (steps.start >= low) & (steps.start < high)
    length = steps.own[rows] // steps.covers[rows]
    return stream.n[steps.row][rows], steps.start[rows], length


def _bin(values: Ints) -> tuple[int, int, int, int]:
    ranks = [int(q * (values.size - 1)) for q in (0.1, 0.5, 0.9, 1.0)]
    ordered = np.partition(values, sorted(set(ranks)))
    p10, median, p90, longest = (int(ordered[rank]) for rank in ranks)
    return p10, median, p90, longest
