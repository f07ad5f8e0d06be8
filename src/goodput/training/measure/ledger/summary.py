"""The account in words and ratios: waterfall, factors, definitions, steps, attempts, ranks."""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from goodput.core.stats.order import order_statistics
from goodput.core.timeline import Ints, as_ints
from goodput.core.waterfall import Loss, Part, Waterfall
from goodput.training.measure.eventlog import EventLog
from goodput.training.measure.ledger.attempts import Trial
from goodput.training.measure.ledger.books import Books, Totals
from goodput.training.measure.ledger.evidence import Facts, evidence_for, facts_of
from goodput.training.measure.ledger.incidents import incidents_of
from goodput.training.measure.ledger.notes import notes_of
from goodput.training.measure.ledger.split import AT_RISK
from goodput.training.measure.ledger.types import (
    LEDGER_SCHEMA,
    LOSS_FACTORS,
    Attempt,
    Definition,
    Factors,
    Ledger,
    ModelFlops,
    Rank,
    Saved,
    StepStats,
)
from goodput.training.measure.ledger.views import no_views, views_of

MAX_RANKS: Final = 512
"""Rows in the rank table; beyond it the slowest and the first are the ones of interest."""


def summarise(books: Books, log: EventLog) -> Ledger:
    """Return the ledger of the part of the job that the options ask for."""
    plan, options = books.plan, books.options
    low, high = view_of(books)
    totals = books.totals(low, high, rank=options.rank)
    facts = facts_of(books)
    waterfall = waterfall_of(totals, facts)
    factors = factors_of(waterfall)
    saved = _saved(books, totals, waterfall)
    flops = _flops(books, factors)
    views = views_of(books, low, high) if options.views else no_views()
    return Ledger(
        schema=LEDGER_SCHEMA,
        job=plan.job,
        state=plan.state,
        started_at_ns=low,
        ended_at_ns=high,
        chips=max((h.chips for h in plan.chips.holdings), default=0),
        world=max((t.world for t in plan.trials), default=0),
        waterfall=waterfall,
        excluded=totals.get("excluded/", 0),
        factors=factors,
        saved=saved,
        definitions=_definitions(waterfall, factors, saved),
        steps=_steps(books),
        flops=flops,
        elastic=plan.chips.elastic(low, high),
        incidents=tuple(i for i in incidents_of(books) if low <= i.at_ns <= high),
        attempts=_attempts(books, facts) if options.views else (),
        ranks=_ranks(books, facts, low, high) if options.views else (),
        series=views.series,
        timeline=views.timeline,
        step_times=views.step_times,
        notes=notes_of(books, log, flops),
        sources=log.sources,
    )


def view_of(books: Books) -> tuple[int, int]:
    """Return the window [low, high) that the options ask for, within the job's time."""
    plan, options = books.plan, books.options
    low, high = plan.start_ns, plan.end_ns
    if options.attempt is not None:
        from goodput.core.errors import InputError

        mine = [t for t in plan.trials if t.key == options.attempt]
        if not mine:
            keys = ", ".join(t.key for t in plan.trials) or "none"
            raise InputError(f"no attempt {options.attempt!r}; found: {keys}")
        low, high = mine[0].started_at_ns, mine[0].until_ns
    if options.window is not None:
        low = min(max(low, options.window[0]), high)
        high = max(min(high, options.window[1]), low)
    if options.last_s is not None:
        low = max(low, high - round(options.last_s * 1e9))
    return low, high


def waterfall_of(totals: Totals, facts: Facts) -> Waterfall:
    """Return the waterfall of chip-ns by class; what is excluded is no part of capacity."""
    by_class: dict[str, dict[str, int]] = {name: {} for name in (*LOSS_FACTORS, "useful")}
    for label, amount in totals.items():
        name, _, part = label.partition("/")
        if name != "excluded":
            key = "" if part == AT_RISK else part
            by_class[name][key] = by_class[name].get(key, 0) + amount
    losses = []
    for name, factor in LOSS_FACTORS.items():
        parts = by_class[name]
        amount = sum(parts.values())
        provenance, evidence = evidence_for(name, amount, facts)
        named = tuple(
            Part(part or "other", value)
            for part, value in sorted(parts.items(), key=lambda p: -p[1])
            if value
        )
        losses.append(
            Loss(
                name=name,
                amount=amount,
                factor=factor,
                provenance=provenance,
                evidence=evidence,
                parts=named if any(p for p in parts) else (),
            )
        )
    useful = sum(by_class["useful"].values())
    capacity = useful + sum(loss.amount for loss in losses)
    return Waterfall(unit="chip_ns", capacity=capacity, useful=useful, losses=tuple(losses))


def factors_of(waterfall: Waterfall) -> Factors:
    """Return SG, RG, PG and their product, asserted to be useful / capacity.

    Source: Google, ML Productivity Goodput (arXiv 2502.06982): MPG = SG x RG x PG.
    """
    capacity = waterfall.capacity
    allocated = capacity - waterfall.by_factor("SG")
    stepping = allocated - waterfall.by_factor("RG")
    ideal = stepping - waterfall.by_factor("PG")
    assert ideal == waterfall.useful, "the factors do not telescope to useful"
    sg = allocated / capacity if capacity else 0.0
    rg = stepping / allocated if allocated else 0.0
    pg = ideal / stepping if stepping else 0.0
    goodput = waterfall.goodput_fraction
    assert abs(sg * rg * pg - goodput) < 1e-9, "SG x RG x PG is not useful / capacity"
    return Factors(scheduling=sg, runtime=rg, program=pg, goodput=goodput)


def _saved(books: Books, totals: Totals, waterfall: Waterfall) -> Saved:
    lineage = books.plan.lineage
    risk = totals.get(f"useful/{AT_RISK}", 0)
    useful = waterfall.useful - risk
    if not lineage.persistence_known:
        return Saved(
            persistence="unknown",
            useful=0,
            goodput_fraction=None,
            runtime_fraction=None,
            last_step=-1,
        )
    allocated = waterfall.capacity - waterfall.by_factor("SG")
    stepping = allocated - waterfall.by_factor("RG")
    at_risk = sum(amount for label, amount in totals.items() if label.endswith(f"/{AT_RISK}"))
    return Saved(
        persistence="known",
        useful=useful,
        goodput_fraction=useful / waterfall.capacity if waterfall.capacity else 0.0,
        runtime_fraction=(stepping - at_risk) / allocated if allocated else 0.0,
        last_step=lineage.saved_until - 1,
    )


def _definitions(waterfall: Waterfall, factors: Factors, saved: Saved) -> tuple[Definition, ...]:
    allocated = waterfall.capacity - waterfall.by_factor("SG")
    stepping = allocated - waterfall.by_factor("RG")
    ettr = stepping / waterfall.capacity if waterfall.capacity else 0.0
    return (
        Definition(
            name="ETTR with queue",
            value=ettr,
            meaning="time in kept steps / (queue + run time)",
            source="Meta, arXiv 2410.21680",
        ),
        Definition(
            name="ETTR without queue",
            value=factors.runtime,
            meaning="time in kept steps / run time",
            source="Meta, arXiv 2410.21680; ByteDance, arXiv 2509.16293",
        ),
        Definition(
            name="RG (saved)",
            value=saved.runtime_fraction,
            meaning="time in steps saved by a checkpoint / allocated chip-time",
            source="Google, arXiv 2502.06982",
        ),
        Definition(
            name="MPG",
            value=factors.goodput,
            meaning="SG x RG x PG",
            source="Google, arXiv 2502.06982",
        ),
    )


def _flops(books: Books, factors: Factors) -> ModelFlops | None:
    flops = books.ideals.flops
    if flops is None or flops.refused:
        return flops
    return msgspec.structs.replace(flops, mfu=factors.program)


def _steps(books: Books) -> StepStats:
    executed = kept = saved = 0
    lengths: list[Ints] = []
    last = -1
    for trial, shares in zip(books.plan.trials, books.shares, strict=True):
        steps = shares[0].measured.painted.steps
        stream = shares[0].measured.painted.stream
        if trial.lead < 0 or stream is None or steps.start.size == 0:
            continue
        executed += int(steps.covers.sum())
        kept += int(steps.kept.sum())
        saved += int(steps.saved.sum())
        lengths.append(steps.own if stream.covers is None else steps.own // steps.covers)
    last = books.plan.lineage.next_step - 1
    known = books.plan.lineage.persistence_known
    quantiles = quantiles_of(lengths, (0.5, 0.9, 0.99, 1.0))
    ideals = books.ideals
    return StepStats(
        executed=executed,
        kept=kept,
        lost=executed - kept,
        at_risk=kept - saved if known else 0,
        last_step=last if kept else -1,
        ideal_step_ns=next(iter(ideals.by_key.values()), 0),
        ideal_source=ideals.source,
        median_ns=quantiles[0],
        p90_ns=quantiles[1],
        p99_ns=quantiles[2],
        longest_ns=quantiles[3],
    )


def quantiles_of(parts: Sequence[Ints], at: Sequence[float]) -> list[int]:
    """Return lower quantiles of the concatenation, exact values of the data; 0 without data."""
    values = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else as_ints([])
    if values.size == 0:
        return [0] * len(at)
    ranks = [int(q * (values.size - 1)) for q in at]
    return order_statistics(values, ranks)


def _attempts(books: Books, facts: Facts) -> tuple[Attempt, ...]:
    return tuple(_attempt(books, facts, trial) for trial in books.plan.trials)


def _attempt(books: Books, facts: Facts, trial: Trial) -> Attempt:
    plan = books.plan
    lead = trial.lead_stream
    segments = plan.segments_of(trial.index)
    steps = books.shares[trial.index][0].measured.painted.steps
    counted = trial.lead >= 0 and steps.start.size > 0
    totals = books.totals(trial.started_at_ns, trial.until_ns)
    return Attempt(
        key=trial.key,
        started_at_ns=trial.started_at_ns,
        first_step_at_ns=int(lead.start[0]) if lead is not None else 0,
        ended_at_ns=trial.end.over_at_ns,
        outcome=trial.end.outcome,
        cause=trial.end.cause,
        world=trial.world,
        chips=plan.chips.at(max(trial.started_at_ns, trial.end.fault_at_ns - 1)),
        next_step=segments[0].first if segments else trial.next_step,
        last_step=max((s.reached for s in segments), default=0) - 1,
        kept_steps=int(steps.kept.sum()) if counted else 0,
        lost_steps=int((steps.covers - steps.kept).sum()) if counted else 0,
        waterfall=waterfall_of(totals, facts),
    )


def _ranks(books: Books, facts: Facts, low: int, high: int) -> tuple[Rank, ...]:
    """Ranks with a record of their own, in order."""
    seen: dict[int, list[tuple[Ints, Ints | None]]] = {}
    hosts: dict[int, str] = {}
    details: dict[int, str] = {}
    for trial, shares in zip(books.plan.trials, books.shares, strict=True):
        for worker in trial.workers:
            hosts.setdefault(worker.header.rank, worker.header.host)
            details.setdefault(worker.header.rank, worker.header.detail)
        for share in shares:
            steps = share.measured.painted.steps
            if share.own and steps.start.size:
                work = None if steps.comm is None else steps.own - steps.comm
                seen.setdefault(share.rank, []).append((steps.own, work))
    means = {
        rank: _mean([w for _, w in rows if w is not None]) if rows[0][1] is not None else -1
        for rank, rows in seen.items()
    }
    known = sorted(m for m in means.values() if m > 0)
    middle = known[(len(known) - 1) // 2] if len(known) > 1 else 0
    ranks = sorted(set(hosts) | set(seen))[:MAX_RANKS]
    return tuple(
        Rank(
            rank=rank,
            host=hosts.get(rank, ""),
            detail=details.get(rank, "steps") if rank in seen else "windows",
            steps=sum(d.size for d, _ in seen.get(rank, [])),
            median_step_ns=quantiles_of([d for d, _ in seen.get(rank, [])], (0.5,))[0],
            mean_work_ns=means.get(rank, -1),
            slowdown=means.get(rank, 0) / middle if middle and means.get(rank, -1) > 0 else 0.0,
            waterfall=waterfall_of(books.totals(low, high, rank=rank), facts),
        )
        for rank in ranks
    )


def _mean(parts: Sequence[Ints]) -> int:
    count = sum(p.size for p in parts)
    return sum(int(p.sum()) for p in parts) // count if count else -1
