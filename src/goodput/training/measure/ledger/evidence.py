"""Where each class of the waterfall comes from: recorded, read from a log, inferred, not measured."""

from typing import Final

from goodput.core.events import ProcessEnd, Resumed
from goodput.core.waterfall import Provenance
from goodput.training.measure.ledger.books import Books, Share
from goodput.training.measure.ledger.paint import Painted, class_of

NEEDS_SPANS: Final = frozenset({"checkpoint", "evaluation", "data"})
"""Classes that exist only where something was instrumented."""


def evidence_for(name: str, amount: int, books: Books) -> tuple[Provenance, str]:
    """Return how a class of the waterfall is known, and the evidence in words."""
    if name in NEEDS_SPANS:
        return _spans(name, amount, books)
    if name == "communication":
        if _has_comm(books):
            return _recorded(books), "exposed communication recorded with the steps"
        return "not measured", "no communication was recorded"
    if name == "straggler":
        measured = sum(
            1
            for shares in books.shares
            for share in shares
            if share.measured.painted.steps.comm is not None
        )
        if measured > 1 or amount:
            return "inferred", "work of each rank outside communication, compared step by step"
        return "not measured", "needs communication times of at least two ranks"
    if name == "inefficiency":
        flops = books.ideals.flops
        if flops is not None and not flops.refused:
            return "inferred", "ideal step time over model FLOPs at peak"
        return "not measured", "model FLOPs or the chip's peak are not known"
    if name == "scheduling":
        if any(h.queued for h in books.plan.chips.holdings):
            return _recorded(books), "submission and allocation were recorded"
        return "not measured", "no submission time was recorded"
    return _faults(name, amount, books)


def _faults(name: str, amount: int, books: Books) -> tuple[Provenance, str]:
    trials = books.plan.trials
    if name == "startup":
        spans = any(_has_spans("startup", share.measured.painted) for share in _all(books))
        said = "process start to first step" + (", with spans inside" if spans else "")
        return ("mixed" if spans else "inferred"), said
    if name in {"detection", "recovery"}:
        failed = [t for t in trials if t.end.outcome == "failed"]
        if any(t.end.recorded for t in failed):
            return "recorded", "fault and notice recorded by the launcher"
        noticed = any(t.end.noticed_at_ns > t.end.fault_at_ns for t in failed)
        if name == "detection" and failed and not noticed and not amount:
            return "not measured", "nobody recorded when the fault was noticed; see recovery"
        return "inferred", "last sign of work, first process that noticed, next process start"
    if name == "rework":
        declared = any(isinstance(e, Resumed) for t in trials for w in t.workers for e in w.events)
        source = "where each attempt resumed"
        return ("recorded" if declared else "inferred"), source
    if name == "slow":
        return "inferred", f"kept steps over the ideal step time ({books.ideals.source})"
    ends = any(isinstance(e, ProcessEnd) for t in trials for w in t.workers for e in w.events)
    return "inferred", "time that no record explains" + (
        "" if ends else "; no process said goodbye"
    )


def _spans(name: str, amount: int, books: Books) -> tuple[Provenance, str]:
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
