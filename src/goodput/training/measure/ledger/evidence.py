"""Where each class of the waterfall comes from: recorded, from a log, inferred, not measured."""

from collections.abc import Callable
from typing import Final

import msgspec

from goodput.core.events import ProcessEnd, Resumed
from goodput.core.waterfall import Provenance
from goodput.training.measure.ledger.books import Books, Share
from goodput.training.measure.ledger.paint import class_of

NEEDS_SPANS: Final = frozenset({"checkpoint", "evaluation", "data"})
"""Classes that exist only where something was instrumented."""


Evidence = tuple[Provenance, str]


class Facts(msgspec.Struct, frozen=True):
    """What the evidence for any class depends on, gathered once for a job."""

    recorded: Provenance
    """What records of this job are: recorded, read from a log, simulated, mixed."""
    span_classes: frozenset[str]
    comm_ranks: int
    """Ranks whose communication was measured."""
    queued: bool
    flops: bool
    failed: bool
    noticed: bool
    """Somebody recorded that something was wrong."""
    dated: bool
    """Somebody recorded when it went wrong."""
    resumed: bool
    goodbyes: bool
    ideal_source: str


def facts_of(books: Books) -> Facts:
    """Return the facts about a job's records."""
    failed = [t for t in books.plan.trials if t.end.outcome == "failed"]
    streams = [s.measured.painted for shares in books.shares for s in shares]
    labels = {label for p in streams if p.stream is not None for label in p.stream.labels}
    measured = {s.rank for shares in books.shares for s in shares if _has_comm(s)}
    summed = {p.header.rank for p in books.plan.processes if any(w.work >= 0 for w in p.windows)}
    kinds = {type(event) for p in books.plan.processes for event in p.events}
    flops = books.ideals.flops
    return Facts(
        recorded=_recorded({p.header.origin for p in books.plan.processes}),
        span_classes=frozenset(class_of(label) for label in labels),
        comm_ranks=len(measured | summed),
        queued=any(h.queued for h in books.plan.chips.holdings),
        flops=flops is not None and not flops.refused,
        failed=bool(failed),
        noticed=any(t.end.noticed for t in failed),
        dated=any(t.end.recorded for t in failed),
        resumed=Resumed in kinds,
        goodbyes=ProcessEnd in kinds,
        ideal_source=books.ideals.source,
    )


def evidence_for(name: str, amount: int, facts: Facts) -> Evidence:
    """Return how a class of the waterfall is known, and the evidence in words."""
    if name in NEEDS_SPANS:
        if amount or name in facts.span_classes:
            return facts.recorded, f"{name} spans"
        return "not measured", f"no {name} span was recorded"
    if name == "detection" and facts.failed and not amount and not facts.noticed:
        return "not measured", "nobody recorded when the fault was noticed; see recovery"
    return _BY_CLASS[name](facts)


def _communication(facts: Facts) -> Evidence:
    if facts.comm_ranks:
        return facts.recorded, "exposed communication recorded with the steps"
    return "not measured", "no communication was recorded"


def _straggler(facts: Facts) -> Evidence:
    if facts.comm_ranks > 1:
        return "inferred", "work of each rank outside communication, compared step by step"
    return "not measured", "needs communication times of at least two ranks"


def _inefficiency(facts: Facts) -> Evidence:
    if facts.flops:
        return "inferred", "ideal step time over model FLOPs at peak"
    return "not measured", "model FLOPs or the chip's peak are not known"


def _scheduling(facts: Facts) -> Evidence:
    if facts.queued:
        return facts.recorded, "submission and allocation were recorded"
    return "not measured", "no submission time was recorded"


def _startup(facts: Facts) -> Evidence:
    if "startup" in facts.span_classes:
        return "mixed", "process start to first step, with spans inside"
    return "inferred", "process start to first step"


def _recovery(facts: Facts) -> Evidence:
    if facts.dated:
        return "recorded", "fault and notice recorded by the launcher"
    return "inferred", "last sign of work, first process that noticed, next process start"


def _rework(facts: Facts) -> Evidence:
    return ("recorded" if facts.resumed else "inferred"), "where each attempt resumed"


def _slow(facts: Facts) -> Evidence:
    return "inferred", f"kept steps over the ideal step time ({facts.ideal_source})"


def _unattributed(facts: Facts) -> Evidence:
    more = "" if facts.goodbyes else "; no process said goodbye"
    return "inferred", f"time that no record explains{more}"


_BY_CLASS: Final[dict[str, Callable[[Facts], Evidence]]] = {
    "scheduling": _scheduling,
    "startup": _startup,
    "detection": _recovery,
    "recovery": _recovery,
    "rework": _rework,
    "unattributed": _unattributed,
    "straggler": _straggler,
    "communication": _communication,
    "slow": _slow,
    "inefficiency": _inefficiency,
}


def _has_comm(share: Share) -> bool:
    return share.measured.painted.steps.comm is not None


def _recorded(origins: set[str]) -> Provenance:
    if origins <= {"recorded"}:
        return "recorded"
    if origins <= {"simulated"}:
        return "simulated"
    return "log" if origins <= {"log"} else "mixed"
