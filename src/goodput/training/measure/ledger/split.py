"""Inside a step: useful, inefficiency, straggler, communication, slow, or rework.

A step's own time is divided in a fixed order, in integers, so that the shares sum to it exactly.
Legend: S steps of one rank.
"""

from typing import Final, NamedTuple

import numpy as np

from goodput.core.timeline import Ints
from goodput.training.measure.ledger.paint import Painted, Steps

AT_RISK: Final = "at risk"
"""Part of every class inside kept steps that no durable state holds yet."""

KEPT_CLASSES: Final = ("useful", "inefficiency", "straggler", "communication", "slow")

ORDER: Final = (
    "startup/first step (first start)",
    "startup/first step (restart)",
    *(f"{name}/{part}" for name in KEPT_CLASSES for part in ("", AT_RISK)),
    "rework/lost steps",
)
"""Where the shares lie within a step, for windows that cut one: the useful part comes first."""


FEW_EDGES: Final = 2
"""The whole window is asked for again and again; its answer is kept."""


class Wait(NamedTuple):
    """What a slower rank cost this one, step by step, ns, shapes (S,)."""

    in_work: Ints
    """Own time over the median rank's: this rank is the slow one."""
    in_comm: Ints
    """Waiting for the slowest rank inside communication."""


class Targets(NamedTuple):
    """What a step should take. Shapes (S,) or scalars, ns per step."""

    ideal: Ints | int
    """0 = not known: the step's own time."""
    flops: Ints | int
    """FLOPs at peak; 0 = not known."""


def work_of(steps: Steps) -> Ints:
    """Return own time outside communication, ns, shape (S,)."""
    return steps.own if steps.comm is None else steps.own - steps.comm


def split(
    painted: Painted, targets: Targets, wait: Wait | None, *, restart: bool
) -> dict[str, Ints]:
    """Return the shares of every step's own time by `class/part`, each of shape (S,), ns."""
    steps = painted.steps
    if steps.start.size == 0:
        return {}
    work = work_of(steps)
    comm = steps.comm
    out: dict[str, Ints] = {}
    ideal = targets.ideal if np.any(targets.ideal) else None
    if ideal is not None and steps.begins:
        warm = int(work[0]) - int(
            _at_most(work[:1], np.broadcast_to(ideal, work.shape)[:1], steps.covers[:1])[0]
        )
        if warm:
            work = work.copy()
            work[0] -= warm
            share = np.zeros(work.size, dtype=np.int64)
            share[0] = warm
            out[ORDER[1] if restart else ORDER[0]] = share
    if wait is not None:
        late = np.minimum(wait.in_work, work)
        waited = np.minimum(wait.in_comm, comm) if comm is not None else np.int64(0)
        work = work - late
        comm = None if comm is None else comm - waited
        out["straggler/"] = late + waited
    useful = work if ideal is None else _at_most(work, ideal, steps.covers)
    out["slow/"] = work - useful
    if np.any(targets.flops):
        at_peak = _at_most(useful, targets.flops, steps.covers)
        out["inefficiency/"] = useful - at_peak
        useful = at_peak
    out["useful/"] = useful
    if comm is not None:
        out["communication/"] = comm
    return _mark_at_risk(_lose(out, steps), steps)


def _at_most(time: Ints, per_step: Ints | int, covers: Ints) -> Ints:
    """Return min(time, per_step * covers) without the product, which may be too large; (S,), ns."""
    if int(covers.max()) <= 1:
        return np.minimum(time, per_step)
    each = time // covers
    return np.where(per_step > each, time, np.minimum(per_step, each) * covers)


def _part(time: Ints, some: Ints, of: Ints) -> Ints:
    """Return time * some // of without the product, which may be too large; shape (S,), ns."""
    return time // of * some + time % of * some // of


def _mark_at_risk(shares: dict[str, Ints], steps: Steps) -> dict[str, Ints]:
    """Tell apart what would be lost if the job died now."""
    if steps.saved is steps.kept or not bool((steps.saved < steps.kept).any()):
        return shares
    kept = np.maximum(steps.kept, 1)
    out: dict[str, Ints] = {}
    for name, share in shares.items():
        if name.split("/")[0] in KEPT_CLASSES:
            out[name] = _part(share, steps.saved, kept)
            out[name + AT_RISK] = share - out[name]
        else:
            out[name] = share
    return _present(out)


def _lose(shares: dict[str, Ints], steps: Steps) -> dict[str, Ints]:
    """Book the shares of steps that were rolled back as rework; warm-up stays startup."""
    if steps.kept is steps.covers:
        return _present(shares)
    rows = np.flatnonzero(steps.kept < steps.covers)
    if rows.size == 0:
        return _present(shares)
    kept, covers = steps.kept[rows], steps.covers[rows]
    rework = np.zeros(rows.size, dtype=np.int64)
    out: dict[str, Ints] = {}
    for name, share in shares.items():
        out[name] = share
        if not name.startswith("startup/"):
            mine = share[rows]
            remains = _part(mine, kept, covers)
            rework += mine - remains
            ours = share is not steps.own and share is not steps.comm  # else not to be written to
            out[name] = share if ours else share.copy()
            out[name][rows] = remains
    lost = np.zeros(steps.own.size, dtype=np.int64)
    lost[rows] = rework
    out["rework/lost steps"] = lost
    return _present(out)


def _present(shares: dict[str, Ints]) -> dict[str, Ints]:
    """Leave out classes that own nothing."""
    return {name: share for name, share in shares.items() if name == "useful/" or share.any()}


class Measured:
    """A painted window whose steps are divided: cumulative amounts of every class at any instant.

    Args:
        painted: the window.
        shares: `split` of its steps.
    """

    __slots__ = ("_known", "labels", "painted", "shares")

    def __init__(self, painted: Painted, shares: dict[str, Ints]) -> None:
        self.painted = painted
        self.shares = {name: shares[name] for name in ORDER if name in shares}
        labels = dict.fromkeys((*painted.owned, *self.shares))
        labels["unattributed/"] = None
        self.labels = tuple(labels)
        self._known: dict[bytes, Ints] = {}

    def between(self, edges: Ints) -> Ints:
        """Return what each class owns between consecutive instants.

        Args:
            edges: shape (E,), rising, within the window.

        Returns:
            shape (E - 1, L), ns, one column for each of `labels`; rows sum to the edges' distance.
        """
        if edges.size > FEW_EDGES:
            return self._between(edges)
        key = edges.tobytes()
        if key not in self._known:
            self._known[key] = self._between(edges)
        return self._known[key]

    def _between(self, edges: Ints) -> Ints:
        out = np.zeros((edges.size - 1, len(self.labels)), dtype=np.int64)
        column = {label: i for i, label in enumerate(self.labels)}
        for label, cover in self.painted.owned.items():
            out[:, column[label]] = np.diff(cover.until(edges))
        if self.shares:
            self._steps(edges, out, [column[label] for label in self.shares])
        out[:, -1] += np.diff(edges) - out.sum(axis=1)
        return out

    def _steps(self, edges: Ints, out: Ints, columns: list[int]) -> None:
        """Add the steps' shares: whole steps by sums of slices, cut ones in the fixed order."""
        steps = self.painted.steps
        before = np.searchsorted(steps.start, edges, side="right").tolist()
        cut = [self._cut(row - 1, int(at)) for row, at in zip(before, edges.tolist(), strict=True)]
        for column, share in zip(columns, self.shares.values(), strict=True):
            for i in range(edges.size - 1):
                # Steps begun before an edge count whole, less what lies beyond the edge.
                total = int(share[before[i] : before[i + 1]].sum())
                out[i, column] += total
        for i in range(edges.size - 1):
            for column, high, low in zip(columns, cut[i + 1], cut[i], strict=True):
                out[i, column] += low - high

    def _cut(self, row: int, at: int) -> list[int]:
        """What of a step's shares lies at or after an instant, in the order of the shares."""
        steps = self.painted.steps
        if row < 0 or int(steps.end[row]) <= at:
            return [0] * len(self.shares)
        start = steps.start[row : row + 1]
        edge = np.asarray([at], dtype=np.int64)
        gone = at - int(start[0]) - int(self.painted.covered.within(start, edge)[0])
        out = []
        for share in self.shares.values():
            amount = int(share[row])
            inside = min(max(gone, 0), amount)
            gone -= inside
            out.append(amount - inside)
        return out
