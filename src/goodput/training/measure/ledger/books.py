"""The books: every stream of every attempt measured, times its chips, summed in integers."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec
import numpy as np

from goodput.core.errors import InputError
from goodput.core.timeline import Ints, as_ints
from goodput.training.measure.eventlog import EventLog
from goodput.training.measure.ledger.attempts import Trial
from goodput.training.measure.ledger.memo import Forgetful, Memo
from goodput.training.measure.ledger.options import Options
from goodput.training.measure.ledger.paint import Fate, Painted, paint
from goodput.training.measure.ledger.plan import Plan, as_known, plan_job
from goodput.training.measure.ledger.ranks import waits
from goodput.training.measure.ledger.split import Measured, Targets, Wait, split
from goodput.training.measure.ledger.targets import Ideals, ideals_of, targets_for

SAFE: Final = 1 << 62
"""Products below this fit an int64."""

Totals = dict[str, int]
"""Chip-ns by `class/part`; `useful/` and `excluded/` among them."""


class Share(msgspec.Struct, frozen=True):
    """One stream of an attempt and the chips that it stands for."""

    rank: int
    own: bool
    """The rank's own record; else the lead's stands for it."""
    ranks: tuple[int, ...]
    measured: Measured


class Books(msgspec.Struct):
    """The account before it is put into words."""

    plan: Plan
    options: Options
    ideals: Ideals
    shares: tuple[tuple[Share, ...], ...]
    """For each attempt, its streams."""

    def totals(self, low_ns: int, high_ns: int, *, rank: int | None = None) -> Totals:
        """Return chip-ns by class of [low, high), of one rank's chips or of all."""
        rows = self.windows([low_ns, high_ns], rank=rank)
        return rows[0] if rows else {}

    def windows(self, edges_ns: Sequence[int], *, rank: int | None = None) -> list[Totals]:
        """Return chip-ns by class between consecutive instants (rising)."""
        out: list[Totals] = [{} for _ in edges_ns[1:]]
        first = self.plan.trials[0].started_at_ns if self.plan.trials else self.plan.end_ns
        if rank is None:
            self._before(edges_ns, first, out)
        for trial, shares in zip(self.plan.trials, self.shares, strict=True):
            low, high = trial.started_at_ns, trial.until_ns
            if edges_ns[-1] <= low or edges_ns[0] >= high or low == high:
                continue
            self._trial(trial, shares, edges_ns, out, rank)
        return out

    def _before(self, edges_ns: Sequence[int], until_ns: int, out: list[Totals]) -> None:
        """Time before the first attempt: queue, else not known."""
        queues = self.plan.chips.queues(self.plan.end_ns)
        marks = sorted({*edges_ns, *self.plan.chips.edges(edges_ns[0], until_ns), *_flat(queues)})
        marks = [m for m in marks if edges_ns[0] <= m <= edges_ns[-1]]
        window = 0
        for low, high in pairwise(marks):
            while high > edges_ns[window + 1]:
                window += 1
            cut = min(high, until_ns)
            if low >= cut or low < self.plan.start_ns:
                continue
            queued = any(a <= low < b for a, b in queues)
            label = "scheduling/queue" if queued else "unattributed/before the first process"
            for a, b, name in _without(self.options.exclude, low, cut, label):
                amount = (b - a) * self.plan.chips.at(low)
                out[window][name] = out[window].get(name, 0) + amount

    def _trial(
        self,
        trial: Trial,
        shares: Sequence[Share],
        edges_ns: Sequence[int],
        out: list[Totals],
        rank: int | None,
    ) -> None:
        low, high = trial.started_at_ns, trial.until_ns
        inside = [min(max(e, low), high) for e in edges_ns]
        marks = sorted({*inside, *self.plan.chips.edges(inside[0], inside[-1])})
        at = as_ints(marks)
        window = np.searchsorted(as_ints(inside), at[:-1], side="right") - 1
        chips = [self.plan.chips.at(mark) for mark in marks[:-1]]
        for share in shares:
            weights = [_weight(share.ranks, rank, trial.world, c) for c in chips]
            if not any(weights):
                continue
            amounts = _weighted(share.measured.between(at), weights)
            for label, column in zip(share.measured.labels, amounts, strict=True):
                for index, amount in zip(window.tolist(), column, strict=True):
                    if amount:
                        out[index][label] = out[index].get(label, 0) + amount


def keep_books(log: EventLog, options: Options | None = None, memo: Memo | None = None) -> Books:
    """Return the account before it is put into words, for several questions about one log."""
    options = options or Options()
    memo = memo if memo is not None else Forgetful()
    memo.turn()
    if len(log.jobs) != 1:
        found = ", ".join(log.jobs) or "none"
        raise InputError(f"expected one job, found {len(log.jobs)} ({found}): account for each")
    if options.as_of_ns is not None:
        log = as_known(log, options.as_of_ns)
        if not log.processes:
            raise InputError(f"nothing had been recorded yet at {options.as_of_ns}")
    plan = plan_job(log, options, memo)
    painted = [_paint(plan, trial, options, memo) for trial in plan.trials]
    ideals = ideals_of(plan, painted, options)
    shares = tuple(
        _shares(plan, trial, ranks, ideals, memo)
        for trial, ranks in zip(plan.trials, painted, strict=True)
    )
    return Books(plan=plan, options=options, ideals=ideals, shares=shares)


def _paint(plan: Plan, trial: Trial, options: Options, memo: Memo) -> dict[int, Painted]:
    """Paint every rank's window of an attempt; -1 stands for ranks without a record."""
    segments = plan.segments_of(trial.index)
    fate = Fate(
        kept_until=tuple(s.kept_until for s in segments),
        saved_until=plan.lineage.saved_until if plan.lineage.persistence_known else 1 << 61,
        open_finished=any(s.open_finished for s in segments),
    )
    low, high = trial.started_at_ns, trial.until_ns
    queues = tuple(q for q in plan.chips.queues(plan.end_ns) if q[0] < high and q[1] > low)
    return {
        rank: memo.recall(
            ("paint", rank, fate, queues, options.exclude),
            (trial,),
            lambda rank=rank: paint(  # type: ignore[misc]
                trial,
                trial.streams.get(rank),
                fate=fate,
                queues=queues,
                exclude=options.exclude,
            ),
        )
        for rank in trial.streams or (-1,)
    }


def _shares(
    plan: Plan, trial: Trial, ranks: dict[int, Painted], ideals: Ideals, memo: Memo
) -> tuple[Share, ...]:
    """Divide the steps of every rank; ranks without a record of their own go with the lead."""
    waiting = waits(ranks, trial.workers)
    lead = trial.lead if trial.lead in ranks else min(ranks)
    silent = tuple(r for r in range(trial.world) if r not in ranks)
    out = []
    for rank in sorted(ranks, key=lambda r: (r != lead, r)):  # the lead comes first
        window = ranks[rank]
        targets = targets_for(plan, window, trial.world, ideals)
        stands_for = (rank, *silent) if rank == lead and rank >= 0 else (rank,)
        if rank < 0:
            stands_for = silent
        measured = _divide(window, targets, waiting.get(rank), trial, memo)
        out.append(Share(rank=rank, own=rank >= 0, ranks=stands_for, measured=measured))
    return tuple(out)


def _divide(
    window: Painted, targets: Targets, wait: Wait | None, trial: Trial, memo: Memo
) -> Measured:
    def make() -> Measured:
        return Measured(window, split(window, targets, wait, restart=trial.restart))

    if wait is not None or not (isinstance(targets.ideal, int) and isinstance(targets.flops, int)):
        return make()
    return memo.recall(("divide", targets), (window, trial), make)


def _weight(ranks: Sequence[int], wanted: int | None, world: int, chips: int) -> int:
    """Chips of a set of ranks; where they do not divide, the first ranks hold one more."""
    each, more = divmod(chips, max(world, 1))
    mine = ranks if wanted is None else [r for r in ranks if r == wanted]
    return each * len(mine) + sum(1 for r in mine if r < more)


def _weighted(amounts: Ints, weights: Sequence[int]) -> list[list[int]]:
    """Amounts (E, L) times chips (E,), as exact integers, one list per column."""
    if amounts.size and int(amounts.max()) * max(weights) < SAFE:
        product: list[list[int]] = (amounts * as_ints(weights)[:, None]).T.tolist()
        return product
    return [
        [int(a) * w for a, w in zip(column, weights, strict=True)] for column in amounts.T.tolist()
    ]


def _flat(windows: Sequence[tuple[int, int]]) -> list[int]:
    return [edge for window in windows for edge in window]


def _without(
    exclude: Sequence[tuple[int, int]], low: int, high: int, label: str
) -> list[tuple[int, int, str]]:
    """Cut [low, high) at excluded windows and name the pieces."""
    edges = sorted({low, high, *(min(max(e, low), high) for e in _flat(exclude))})
    return [
        (a, b, "excluded/" if any(x <= a < y for x, y in exclude) else label)
        for a, b in pairwise(edges)
    ]
