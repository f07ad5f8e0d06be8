"""Every interruption of progress with its cause and its price."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from msgspec.structs import replace

from goodput.core.causes import CAUSES
from goodput.core.timeline import as_ints
from goodput.training.measure.ledger.attempts import CLEAN, Trial
from goodput.training.measure.ledger.books import Books, Share
from goodput.training.measure.ledger.lineage import Rollback
from goodput.training.measure.ledger.types import Incident

ROLLED_BACK = "rolled back"
STARTED_AGAIN = "started again after a clean end"


class Lost(NamedTuple):
    """Steps that one restart threw away."""

    steps: int
    time_ns: int
    chip_ns: int


def incidents_of(books: Books) -> tuple[Incident, ...]:
    """Return attempts that ended early and rollbacks inside one, in order of time."""
    plan = books.plan
    rollbacks = _by_resuming_segment(plan.lineage.rollbacks)
    at_the_end = rollbacks.pop(-1, [])
    found: list[Incident] = []
    segment = 0
    for trial, shares in zip(plan.trials, books.shares, strict=True):
        for _ in plan.segments_of(trial.index)[1:]:
            segment += 1
            found.append(_rollback_inside(books, trial, shares, segment, rollbacks))
        segment += bool(plan.segments_of(trial.index))
        if trial.last and trial.end.outcome != "failed":
            continue
        following = plan.trials[trial.index + 1] if not trial.last else None
        # The attempt that took a step pays for the steps it threw away.
        pays = following is not None and bool(plan.segments_of(following.index))
        mine = rollbacks.get(segment, []) if pays else []
        found.append(_between(books, trial, following, shares, mine))
    if at_the_end and found:  # lost to the last interruption: nothing was run after it
        found[-1] = _charged(books, found[-1], at_the_end)
    found.sort(key=lambda i: i.at_ns)
    return tuple(replace(incident, number=k) for k, incident in enumerate(found, start=1))


def _charged(books: Books, incident: Incident, rollbacks: Sequence[Rollback]) -> Incident:
    """Return an incident with more lost steps on its bill."""
    lost = _lost(books, rollbacks)
    return replace(
        incident,
        rework_ns=incident.rework_ns + lost.time_ns,
        rework_steps=incident.rework_steps + lost.steps,
        cost_chip_ns=incident.cost_chip_ns + lost.chip_ns,
    )


def _by_resuming_segment(rollbacks: Sequence[Rollback]) -> dict[int, list[Rollback]]:
    out: dict[int, list[Rollback]] = {}
    for rollback in rollbacks:
        out.setdefault(rollback.by, []).append(rollback)
    return out


def _between(
    books: Books,
    trial: Trial,
    following: Trial | None,
    shares: Sequence[Share],
    rollbacks: Sequence[Rollback],
) -> Incident:
    """The incident that ended an attempt."""
    end = trial.end
    lead = shares[0].measured
    amounts = lead.between(as_ints([trial.started_at_ns, trial.until_ns]))[0].tolist()
    by_label = dict(zip(lead.labels, amounts, strict=True))
    detection = by_label.get("detection/", 0)
    recovery = by_label.get("recovery/", 0)
    torn = by_label.get("rework/torn step", 0)
    restart, restart_chips = _restart(books, following)
    lost = _lost(books, rollbacks)
    held = books.plan.chips.at(end.fault_at_ns)
    clean = end.outcome in CLEAN
    cause = end.cause or (STARTED_AGAIN if end.outcome == "completed" else "unknown")
    if end.outcome in {"preempted", "stopped"} and not end.cause:
        cause = "preempted" if end.outcome == "preempted" else "cancelled"
    known = CAUSES.get(cause)
    return Incident(
        number=0,
        attempt=trial.key,
        at_ns=end.fault_at_ns,
        noticed_at_ns=end.noticed_at_ns,
        resumed_at_ns=following.started_at_ns if following is not None else 0,
        cause=cause,
        evidence=end.evidence,
        rank=end.rank,
        planned=clean or (known is not None and known.planned),
        detection_ns=detection,
        recovery_ns=recovery,
        restart_ns=restart,
        rework_ns=lost.time_ns + torn,
        rework_steps=lost.steps,
        cost_chip_ns=(detection + recovery + torn) * held + restart_chips + lost.chip_ns,
        provenance=_provenance(trial),
    )


def _provenance(trial: Trial) -> Literal["recorded", "log", "inferred"]:
    if any(w.header.origin == "log" for w in trial.workers):
        return "log"
    return "recorded" if trial.end.recorded else "inferred"


def _restart(books: Books, following: Trial | None) -> tuple[int, int]:
    """Start-up of the next attempt: (wall ns, chip-ns)."""
    if following is None:
        return 0, 0
    lead = books.shares[following.index][0].measured
    edges = as_ints([following.started_at_ns, following.until_ns])
    amounts = lead.between(edges)[0].tolist()
    wall = sum(
        amount
        for label, amount in zip(lead.labels, amounts, strict=True)
        if label.startswith("startup/") and "restart" in label
    )
    return wall, wall * books.plan.chips.at(following.started_at_ns)


def _lost(books: Books, rollbacks: Sequence[Rollback]) -> Lost:
    """Time of the steps that were rolled back, by the lead rank's record."""
    plan = books.plan
    steps = time = chip = 0
    for rollback in rollbacks:
        owner = plan.segments[rollback.segment]
        index = plan.segments_of(owner.attempt).index(owner)
        share = books.shares[owner.attempt][0]
        lost = share.measured.shares.get("rework/lost steps")
        painted = share.measured.painted
        steps += rollback.until - rollback.first
        if lost is None or painted.stream is None:
            continue
        low, high = painted.stream.segment_bounds()[index]
        n = painted.stream.n[painted.steps.row]
        row = np.arange(painted.stream.n.size)[painted.steps.row]
        rows = (row >= low) & (row < high)
        rows &= (n < rollback.until) & (n + painted.steps.covers > rollback.first)
        amount = int(lost[rows].sum())
        time += amount
        chip += amount * plan.chips.at(plan.trials[owner.attempt].started_at_ns)
    return Lost(steps, time, chip)


def _rollback_inside(
    books: Books,
    trial: Trial,
    shares: Sequence[Share],
    segment: int,
    rollbacks: dict[int, list[Rollback]],
) -> Incident:
    """Step numbers went back without a new attempt: a restart in place."""
    first = books.plan.segments.index(books.plan.segments_of(trial.index)[0])
    stream = shares[0].measured.painted.stream
    at = int(stream.start[stream.segment[segment - first]]) if stream is not None else 0
    lost = _lost(books, rollbacks.get(segment, []))
    return Incident(
        number=0,
        attempt=trial.key,
        at_ns=at,
        noticed_at_ns=at,
        resumed_at_ns=at,
        cause=ROLLED_BACK,
        evidence="step numbers go back inside one attempt",
        rank=-1,
        planned=False,
        detection_ns=0,
        recovery_ns=0,
        restart_ns=0,
        rework_ns=lost.time_ns,
        rework_steps=lost.steps,
        cost_chip_ns=lost.chip_ns,
        provenance="inferred",
    )
