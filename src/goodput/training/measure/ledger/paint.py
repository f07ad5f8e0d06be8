"""One rank's window of time, painted: every instant belongs to one class, or to one step.

The order of the layers is the precedence table of docs/concepts.md. Steps take what is left;
what is inside a step is divided later (split.py). Legend: S steps.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from goodput.core.events import SPAN_CLASSES
from goodput.core.timeline import Cover, Intervals, Ints, Layer, as_ints, partition, union
from goodput.training.measure.eventlog import Label
from goodput.training.measure.ledger.attempts import CLEAN, Trial
from goodput.training.measure.ledger.endings import median_step
from goodput.training.measure.ledger.streams import Stream

SPAN_PRECEDENCE: Final = (
    "scheduling",
    "detection",
    "recovery",
    "checkpoint",
    "evaluation",
    "startup",
    "data",
)
"""Classes that a span can be booked under, highest first; `startup` also covers the whole time to
the first step, below the spans above it and above `data`. `communication` lies inside steps."""


class Steps(NamedTuple):
    """The steps of a window. Shapes (S,)."""

    start: Ints
    end: Ints
    own: Ints
    """Time that no layer covers, ns."""
    covers: Ints
    """Steps that the record stands for."""
    kept: Ints
    """Of these, steps in the final state."""
    saved: Ints
    """Of the kept ones, steps in durable state."""
    comm: Ints | None
    """Exposed communication within `own`, ns; None = not measured."""
    row: Ints | slice
    """Rows in the rank's stream."""

    @property
    def begins(self) -> bool:
        """Whether the first record here is the first of the stream."""
        return (self.row.start or 0) == 0 if isinstance(self.row, slice) else self.row[0] == 0


class Fate(NamedTuple):
    """What became of the steps of an attempt (lineage.py)."""

    kept_until: Sequence[int]
    """For each segment, one past its last step in the final state."""
    saved_until: int
    """Steps below this are in durable state."""
    open_finished: bool
    """A later resume proves that the last open step finished."""


class Painted(NamedTuple):
    """One rank's window [low, high)."""

    low: int
    high: int
    owned: dict[str, Cover]
    """`class/part` -> what it owns; disjoint from each other and from the steps' own time."""
    covered: Cover
    """All of `owned` that outrank the steps."""
    steps: Steps
    stream: Stream | None


def class_of(label: Label) -> str:
    """Return the loss class of a span; "" = the user's own name."""
    if label.counts_as in SPAN_PRECEDENCE or label.counts_as == "communication":
        return label.counts_as
    return SPAN_CLASSES.get(label.name, "")


def paint(
    trial: Trial,
    stream: Stream | None,
    *,
    fate: Fate,
    queues: Sequence[tuple[int, int]],
    exclude: Sequence[tuple[int, int]],
) -> Painted:
    """Paint the window of an attempt as one rank saw it.

    Args:
        trial: the attempt; its window is [started, next start).
        stream: the rank's record; None = nothing but the attempt's own evidence.
        fate: what became of the attempt's steps.
        queues: stays in a queue, Unix ns.
        exclude: windows to leave out, Unix ns.
    """
    low, high = trial.started_at_ns, trial.until_ns
    finished = (
        _finish(trial, stream, open_finished=fate.open_finished) if stream is not None else None
    )
    fault, noticed = trial.end.fault_at_ns, trial.end.noticed_at_ns
    if finished is not None and trial.end.outcome == "failed" and fate.open_finished:
        fault = max(fault, min(finished.last_end, high))
        noticed = max(noticed, fault)
    layers = [
        Layer("excluded/", *_bounds(exclude)),
        Layer("scheduling/queue", *_bounds(queues)),
        *_ending(trial, fault, noticed),
    ]
    if stream is not None:
        first = int(stream.start[0]) if stream.n.size else fault
        layers.extend(_span_layers(trial, stream, first_step_ns=first, fault_ns=fault))
    else:
        layers.append(_startup(trial, fault))
    owned, union_ = partition(layers, low, high)
    owned_by = {label: Cover(own) for label, own in owned.items()}
    covered = Cover(union_)
    if stream is None or finished is None:
        return Painted(low, high, owned_by, covered, NO_STEPS, stream)
    steps = _steps(stream, finished, covered, fate, (low, high))
    around = _Around(union_, finished.torn, (low, high, fault))
    owned_by.update(_labels(trial, stream, steps, around))
    return Painted(low, high, owned_by, covered, steps, stream)


class _Finished(NamedTuple):
    end: Ints
    torn: bool
    """The last record was cut by the fault."""
    last_end: int


def _finish(trial: Trial, stream: Stream, *, open_finished: bool) -> _Finished:
    """Close the last record by what the attempt's end proves."""
    end = stream.end
    if not stream.n.size or int(end[-1]) >= 0:
        last = int(end[-1]) if stream.n.size else trial.started_at_ns
        return _Finished(end, torn=False, last_end=last)
    start = int(stream.start[-1])
    outcome = trial.end.outcome
    if outcome not in CLEAN and not open_finished:
        return _Finished(end, torn=outcome == "failed", last_end=start)
    usual = median_step(stream) * int(stream.counts()[-1])
    bound = trial.end.fault_at_ns if outcome in CLEAN else trial.until_ns
    last = max(min(bound, start + usual) if usual else bound, start)
    if not usual and outcome not in CLEAN:
        last = start
    end = end.copy()
    end[-1] = last
    return _Finished(end, torn=False, last_end=last)


def _ending(trial: Trial, fault: int, noticed: int) -> list[Layer]:
    """Detection and recovery: from the fault to the next attempt."""
    high = trial.until_ns
    outcome = trial.end.outcome
    if outcome in {"running", "unknown"} or (outcome in CLEAN and trial.last):
        return []
    return [
        Layer("detection/", as_ints([fault]), as_ints([noticed])),
        Layer("recovery/", as_ints([noticed]), as_ints([high])),
    ]


def _startup(trial: Trial, until_ns: int) -> Layer:
    which = "restart" if trial.restart else "first start"
    return Layer(f"startup/{which}", as_ints([trial.started_at_ns]), as_ints([until_ns]))


def _span_layers(trial: Trial, stream: Stream, *, first_step_ns: int, fault_ns: int) -> list[Layer]:
    """Layers of the spans that have a class, highest first."""
    out: list[Layer] = []
    until = np.where(stream.span_end >= 0, stream.span_end, np.int64(max(fault_ns, 0)))
    for name in SPAN_PRECEDENCE:
        for index, label in enumerate(stream.labels):
            if class_of(label) == name:
                rows = stream.span_label == index
                part = label.name if label.name != name else ""
                if name == "startup":
                    part += " (restart)" if trial.restart else " (first start)"
                out.append(Layer(f"{name}/{part}", stream.span_start[rows], until[rows]))
        if name == "startup":
            out.append(_startup(trial, first_step_ns))
    return out


def _steps(
    stream: Stream,
    finished: _Finished,
    covered: Cover,
    fate: Fate,
    window: tuple[int, int],
) -> Steps:
    """The finished records with the time that is their own."""
    low, high = window
    start, end = stream.start, finished.end
    count = stream.counts()
    kept = _kept(stream, count, fate.kept_until, last_open=int(end[-1]) < 0 if end.size else False)
    row = _finished_rows(end)
    start, end, count, kept = start[row], end[row], count[row], kept[row]
    if start.size and (int(start[0]) < low or int(end[-1]) > high):
        start, end = np.clip(start, low, high), np.clip(end, low, high)
    own = end - start
    if covered.total:
        own -= covered.within(start, end)
    safe = max(fate.kept_until, default=0) <= fate.saved_until
    saved = kept if safe else np.clip(fate.saved_until - stream.n[row], 0, kept)
    comm = _communication(stream, own, start, end, row)
    return Steps(start, end, own, count, kept, saved, comm, row)


def _finished_rows(end: Ints) -> Ints | slice:
    """Rows of the records that have an end: nearly always all, or all but the last."""
    if not end.size:
        return slice(0, 0)
    if int(end[-1]) < 0 and bool((end[:-1] >= 0).all()):
        return slice(0, end.size - 1)
    whole = end >= 0
    return slice(0, end.size) if bool(whole.all()) else np.flatnonzero(whole)


def _kept(stream: Stream, count: Ints, kept_until: Sequence[int], *, last_open: bool) -> Ints:
    """Steps of each record that are in the final state, shape (S,)."""
    bounds = stream.segment_bounds()
    if len(bounds) == 1 and kept_until:
        last = stream.n.size - 1 - last_open  # an open record counts for nothing
        if last < 0 or int(stream.n[last] + count[last]) <= kept_until[0]:
            return count
    kept = np.zeros(count.size, dtype=np.int64)
    for index, (first, last) in enumerate(bounds):
        until = kept_until[min(index, len(kept_until) - 1)] if kept_until else 0
        # Numbers rise within a segment: all rows but the one at the border are kept or not.
        border = first + int(np.searchsorted(stream.n[first:last], until))
        kept[first:border] = count[first:border]
        if border > first:
            at = border - 1
            kept[at] = min(int(count[at]), until - int(stream.n[at]))
    return kept


def _communication(
    stream: Stream, own: Ints, start: Ints, end: Ints, row: Ints | slice
) -> Ints | None:
    """Exposed communication of each step: recorded with it, and from spans that lie in it."""
    total: Ints | None = None
    if stream.comm is not None:
        total = np.maximum(stream.comm[row], 0)
    rows = np.isin(
        stream.span_label,
        [i for i, label in enumerate(stream.labels) if class_of(label) == "communication"],
    )
    if bool(rows.any()):
        spans = union(stream.span_start[rows], np.maximum(stream.span_end[rows], 0))
        inside = Cover(spans).within(start, end)
        total = inside if total is None else total + inside
    return None if total is None else np.minimum(total, own)


class _Around(NamedTuple):
    covered: Intervals
    torn: bool
    instants: tuple[int, int, int]
    """Start and end of the window, and the fault."""


def _labels(trial: Trial, stream: Stream, steps: Steps, around: _Around) -> dict[str, Cover]:
    """What lies outside finished steps: the torn one, the one under way, the user's own spans."""
    low, high, fault = around.instants
    layers: list[Layer] = []
    until = np.where(stream.span_end >= 0, stream.span_end, np.int64(fault))
    for index, label in enumerate(stream.labels):
        rows = stream.span_label == index
        if class_of(label) or not bool(rows.any()):
            continue
        part = f"unattributed/{label.name}"
        layers.append(Layer(part, stream.span_start[rows], until[rows]))
    if trial.end.outcome in {"running", "unknown"} and stream.n.size and int(stream.end[-1]) < 0:
        layers.append(Layer("unattributed/step in progress", stream.start[-1:], as_ints([high])))
    if around.torn:
        layers.insert(0, Layer("rework/torn step", stream.start[-1:], as_ints([fault])))
    if trial.end.outcome in CLEAN and trial.last and steps.end.size:
        layers.append(Layer("unattributed/after the last step", steps.end[-1:], as_ints([high])))
    if not layers:
        return {}
    first = min(int(layer.start.min()) for layer in layers if layer.start.size)
    near = slice(int(np.searchsorted(steps.end, first, side="right")), None)
    above = [Layer("", *around.covered), Layer("", steps.start[near], steps.end[near])]
    owned, _ = partition([*above, *layers], low, high)
    return {label: Cover(own) for label, own in owned.items() if label}


def _bounds(windows: Sequence[tuple[int, int]]) -> tuple[Ints, Ints]:
    return as_ints([w[0] for w in windows]), as_ints([w[1] for w in windows])


_NONE = as_ints([])
NO_STEPS = Steps(_NONE, _NONE, _NONE, _NONE, _NONE, _NONE, None, slice(0, 0))
