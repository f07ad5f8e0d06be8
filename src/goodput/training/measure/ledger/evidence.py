"""Where each class of the waterfall comes from: recorded, from a log, inferred, not measured."""

from collections.abc import Callable
from typing import Final

from goodput.core.events import ProcessEnd, Resumed
from goodput.core.waterfall import Provenance
from goodput.training.measure.ledger.books import Books, Share
from goodput.training.measure.ledger.paint import Painted, class_of

NEEDS_SPANS: Final = frozenset({"checkpoint", "evaluation", "data"})
"""Classes that exist only where something was instrumented."""


Evidence = tuple[Provenance, str]


def evidence_for(name: str, amount: int, books: Books) -> Evidence:
    """Return how a class of the waterfall is known, and the evidence in words."""
    if name in NEEDS_SPANS:
        return _spans(name, amount, books)
    if name == "detection":
        return _detection(amount, books)
    return _BY_CLASS[name](books)


def _communication(books: Books) -> Evidence:
    if _has_comm(books):
        return _recorded(books), "exposed communication recorded with the steps"
    return "not measured", "no communication was recorded"


def _straggler(books: Books) -> Evidence:
    ranks = {s.rank for s in _all(books) if s.measured.painted.steps.comm is not None}
    summed = any(w.work >= 0 for p in books.plan.processes for w in p.windows)
    if len(ranks) + summed > 1:
        return "inferred", "work of each rank outside communication, compared step by step"
    return "not measured", "needs communication times of at least two ranks"


def _inefficiency(books: Books) -> Evidence:
    flops = books.ideals.flops
    if flops is not None and not flops.refused:
        return "inferred", "ideal step time over model FLOPs at peak"
    return "not measured", "model FLOPs or the chip's peak are not known"


def _scheduling(books: Books) -> Evidence:
    if any(h.queued for h in books.plan.chips.holdings):
        return _recorded(books), "submission and allocation were recorded"
    return "not measured", "no submission time was recorded"


def _startup(books: Books) -> Evidence:
    if any(_has_spans("startup", share.measured.painted) for share in _all(books)):
        return "mixed", "process start to first step, with spans inside"
    return "inferred", "process start to first step"


def _detection(amount: int, books: Books) -> Evidence:
    failed = [t for t in books.plan.trials if t.end.outcome == "failed"]
    if failed and not amount and not any(t.end.noticed for t in failed):
        return "not measured", "nobody recorded when the fault was noticed; see recovery"
    return _recovery(books)


def _recovery(books: Books) -> Evidence:
    if any(t.end.recorded for t in books.plan.trials if t.end.outcome == "failed"):
        return "recorded", "fault and notice recorded by the launcher"
    return "inferred", "last sign of work, first process that noticed, next process start"


def _rework(books: Books) -> Evidence:
    declared = any(isinstance(e, Resumed) for p in books.plan.processes for e in p.events)
    return ("recorded" if declared else "inferred"), "where each attempt resumed"


def _slow(books: Books) -> Evidence:
    return "inferred", f"kept steps over the ideal step time ({books.ideals.source})"


def _unattributed(books: Books) -> Evidence:
    ends = any(isinstance(e, ProcessEnd) for p in books.plan.processes for e in p.events)
    said = "time that no record explains" + ("" if ends else "; no process said goodbye")
    return "inferred", said


_BY_CLASS: Final[dict[str, Callable[[Books], Evidence]]] = {
    "scheduling": _scheduling,
    "startup": _startup,
    "recovery": _recovery,
    "rework": _rework,
    "unattributed": _unattributed,
    "straggler": _straggler,
    "communication": _communication,
    "slow": _slow,
    "inefficiency": _inefficiency,
}


def _spans(name: str, amount: int, books: Books) -> Evidence:
    if amount or any(_has_spans(name, share.measured.painted) for share in _all(books)):
        return _recorded(books), f"{name} spans"
    return "not measured", f"no {name} span was recorded"


def _has_spans(name: str, painted: Painted) -> bool:
    stream = painted.stream
    return stream is not None and any(class_of(label) == name for label in stream.labels)


def _has_comm(books: Books) -> bool:
    return any(share.measured.painted.steps.comm is not None for share in _all(books))


def _all(books: Books) -> list[Share]:
    return [share for shares in books.shares for share in shares]


def _recorded(books: Books) -> Provenance:
    origins = {p.header.origin for p in books.plan.processes}
    if origins <= {"recorded"}:
        return "recorded"
    if origins <= {"simulated"}:
        return "simulated"
    return "log" if origins <= {"log"} else "mixed"
