"""How an attempt ended: when work stopped, who noticed and when, and why.

The fault is dated by the best evidence there is: a recorded instant; else, when somebody noticed,
the last sign of work plus what was open usually takes; else the last sign of work itself.
"""

from typing import Final

import numpy as np

from goodput.core.causes import classify
from goodput.core.events import Dropped, Noticed, ProcessEnd
from goodput.core.timeline import Ints
from goodput.training.measure.ledger.attempts import (
    CLEAN,
    End,
    Launch,
    notices,
    process_ends,
    start_of,
)
from goodput.training.measure.ledger.streams import Stream
from goodput.training.measure.ledger.types import Outcome

SECONDARY: Final = frozenset({"collective_timeout", "peer_failed"})
"""Causes that a rank gives when another one stopped answering."""

_OUTCOMES: Final[dict[str, Outcome]] = {
    "completed": "completed",
    "failed": "failed",
    "preempted": "preempted",
    "stopped": "stopped",
}


def end_of(
    launch: Launch, streams: dict[int, Stream], *, until_ns: int, last: bool, live: bool
) -> End:
    """Return how an attempt ended.

    Args:
        launch: the attempt.
        streams: its ranks' records.
        until_ns: start of the next attempt, or end of the account.
        last: no attempt follows.
        live: the account was asked for at an instant: a job without an end is still running.
    """
    ends = process_ends(launch)
    over = launch.over
    outcome = outcome_of(launch, last=last, live=live)
    over_at = launch.over_at_ns or max((w.last_at_ns for w in launch.workers), default=until_ns)
    over_at = min(max(over_at, start_of(launch)), until_ns)
    if outcome in CLEAN:
        done = [at for at, end, _ in ends if end.outcome == "completed"]
        left = max(done) if done else over_at
        left = min(left, until_ns)
        return End(
            outcome=outcome,
            fault_at_ns=left,
            noticed_at_ns=left,
            over_at_ns=over_at,
            cause=over.cause if over is not None else "",
            evidence=over.evidence if over is not None else "",
            recorded=True,
        )
    if outcome in {"running", "unknown"}:
        return End(
            outcome=outcome, fault_at_ns=until_ns, noticed_at_ns=until_ns, over_at_ns=until_ns
        )
    return _fault(launch, streams, over_at_ns=over_at, until_ns=until_ns)


def outcome_of(launch: Launch, *, last: bool, live: bool) -> Outcome:
    """Return how an attempt ended, by the launcher's word, the workers' or what followed."""
    if launch.over is not None:
        return _OUTCOMES.get(launch.over.outcome, "failed")
    said = process_ends(launch)
    if notices(launch) or any(end.outcome != "completed" for _, end, _ in said):
        return "failed"
    if said:
        return "completed"
    if not last:
        return "failed"  # another attempt had to be started, and this one never said goodbye
    return "running" if live else "unknown"


def _fault(launch: Launch, streams: dict[int, Stream], *, over_at_ns: int, until_ns: int) -> End:
    """Date the fault and its notice, and name its cause."""
    over = launch.over
    noted = notices(launch)
    said: list[tuple[int, int]] = [(at, event.fault_t) for at, event in noted]
    failed = [
        (at, end, rank) for at, end, rank in process_ends(launch) if end.outcome != "completed"
    ]
    said.extend((at, 0) for at, _, _ in failed)
    if over is not None:
        said.append((over.noticed_t or launch.over_at_ns, over.fault_t))
    noticed = min((at for at, _ in said), default=0)
    declared = [fault for _, fault in said if fault]
    begun = start_of(launch)
    work = last_work(streams, launch, before_ns=noticed or until_ns)
    if declared:
        fault = min(declared)
    elif noticed:
        fault = min(noticed, _expected_end(streams, work))
    else:
        fault = work
        noticed = work
    fault = min(max(fault, begun), until_ns)
    noticed = min(max(noticed, fault), until_ns)
    cause, evidence, rank = _cause(launch)
    return End(
        outcome="failed",
        fault_at_ns=fault,
        noticed_at_ns=noticed,
        over_at_ns=max(min(over_at_ns, until_ns), noticed),
        cause=cause,
        evidence=evidence,
        rank=rank,
        noticed=bool(said),
        recorded=bool(declared and said),
        exit_code=over.exit_code if over is not None else -1,
        signal=over.signal if over is not None else 0,
    )


def last_work(streams: dict[int, Stream], launch: Launch, *, before_ns: int) -> int:
    """Return the last sign of work before an instant: a step or span that began or ended."""
    latest = start_of(launch)
    for stream in streams.values():
        for column in (stream.start, stream.end, stream.span_start, stream.span_end):
            if column.size:
                seen = column[column <= before_ns]
                if seen.size:
                    latest = max(latest, int(seen.max()))
    signs = [
        worker.at_ns(event)
        for worker in launch.workers
        for event in worker.events
        if not isinstance(event, ProcessEnd | Noticed | Dropped)
    ]
    if not streams:
        signs.extend(min(worker.last_at_ns, before_ns) for worker in launch.workers)
    return max([latest, *(at for at in signs if at <= before_ns)])


def _expected_end(streams: dict[int, Stream], work_ns: int) -> int:
    """When the step or span that was open at the last sign of work would have ended, Unix ns."""
    expected = work_ns
    for stream in streams.values():
        if not stream.n.size:
            continue
        open_spans = np.flatnonzero((stream.span_end < 0) & (stream.span_start <= work_ns))
        if open_spans.size:
            label = stream.span_label[open_spans[-1]]
            same = (stream.span_label == label) & (stream.span_end >= 0)
            usual = _median((stream.span_end - stream.span_start)[same])
            expected = max(expected, int(stream.span_start[open_spans[-1]]) + usual)
        elif not stream.last_end_known():
            expected = max(expected, int(stream.start[-1]) + median_step(stream))
    return expected


def median_step(stream: Stream) -> int:
    """Return the median wall time of one step of a stream, ns; 0 = no step finished."""
    done = stream.end >= 0
    lengths = (stream.end - stream.start)[done]
    counts = stream.counts()[done]
    return _median(lengths // counts)


def _median(values: Ints) -> int:
    return int(np.median(values)) if values.size else 0


def _cause(launch: Launch) -> tuple[str, str, int]:
    """Return (cause, evidence, rank at fault): the launcher's word, else what the workers left."""
    over = launch.over
    for _, event in notices(launch):
        if event.cause:
            return event.cause, event.evidence, event.rank
    if over is not None and over.cause and over.cause != "unknown":
        # Who reports that a peer does not answer is not the one at fault: the silent one is.
        silent = silent_rank(launch) if over.cause in SECONDARY else -1
        return over.cause, over.evidence, silent if silent >= 0 else over.rank
    texts = [
        (end.error, rank) for _, end, rank in process_ends(launch) if end.outcome != "completed"
    ]
    best = classify(
        exit_code=over.exit_code if over is not None and over.exit_code >= 0 else None,
        signal=over.signal if over is not None and over.signal else None,
        text="\n".join(text for text, _ in texts if text) or None,
    )
    rank = silent_rank(launch)
    evidence = best.evidence or (over.evidence if over is not None else "")
    if not evidence and not texts and over is None:
        evidence = "no process said goodbye; the next attempt's start is all there is"
    return best.cause, evidence, rank


def silent_rank(launch: Launch) -> int:
    """Return the only rank that said nothing while the others raised; -1 = cannot be told."""
    said = {rank for _, _, rank in process_ends(launch)}
    ranks = {worker.header.rank for worker in launch.workers}
    silent = ranks - said
    return silent.pop() if said and len(silent) == 1 else -1
