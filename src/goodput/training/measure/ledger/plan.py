"""The shape of the job: its span of time, its chips, its attempts, and which steps were kept."""

from collections.abc import Sequence

import msgspec

from goodput.core.events import AttemptEnd, Committed, Ended
from goodput.training.measure.eventlog import EventLog, ProcessLog
from goodput.training.measure.ledger.attempts import (
    CLEAN,
    Launch,
    Trial,
    cut,
    declared_next_step,
    gather_launches,
    lead_of,
    resumes_of,
    start_of,
    streams_of,
    world_of,
)
from goodput.training.measure.ledger.chips import Chips, chips_of
from goodput.training.measure.ledger.endings import end_of, outcome_of
from goodput.training.measure.ledger.lineage import Commit, Lineage, Resume, Segment, trace
from goodput.training.measure.ledger.memo import Memo
from goodput.training.measure.ledger.options import Options
from goodput.training.measure.ledger.streams import Stream, settled, spans_only
from goodput.training.measure.ledger.types import Outcome


class Plan(msgspec.Struct):
    """Everything about the job that does not depend on how time is divided."""

    job: str
    start_ns: int
    end_ns: int
    state: Outcome
    trials: tuple[Trial, ...]
    chips: Chips
    segments: tuple[Segment, ...]
    lineage: Lineage
    processes: tuple[ProcessLog, ...]
    by_trial: dict[int, list[Segment]]

    def segments_of(self, trial: int) -> list[Segment]:
        """Return the segments of an attempt, in order."""
        return self.by_trial.get(trial, [])


def as_known(log: EventLog, as_of_ns: int) -> EventLog:
    """Return the log as it stood at an instant."""
    parts = [
        cut(p, -(2**62), as_of_ns) if p.last_at_ns >= as_of_ns or p.steps.n.size == 0 else p
        for p in log.processes
        if p.at_ns(p.header) < as_of_ns
    ]
    return EventLog(processes=tuple(parts), notes=log.notes, sources=log.sources)


def plan_job(log: EventLog, options: Options, memo: Memo) -> Plan:
    """Return the plan of the one job that a log holds."""
    launches = gather_launches(log.processes)
    starts = [start_of(launch) for launch in launches]
    chips = chips_of(
        log.processes,
        worlds=[(at, world_of(x)) for at, x in zip(starts, launches, strict=True)],
        override=options.chips,
    )
    over = job_end(log.processes, starts)
    if over is not None:
        _close_last(launches, over)
    start, end = _span(log.processes, launches, chips, options)
    trials = _trials(launches, starts, end, memo, live=options.as_of_ns is not None)
    if trials:
        start = min(start, trials[0].started_at_ns)
    state = _state(over, trials)
    commits = _commits(trials)
    segments = [s for trial in trials for s in _segments(trial, commits)]
    by_trial: dict[int, list[Segment]] = {}
    for segment in segments:
        by_trial.setdefault(segment.attempt, []).append(segment)
    lineage = trace(
        segments,
        commits,
        _resumes(trials),
        failed=_live_state_is_gone(segments, trials, state),
        completed=state == "completed",
    )
    return Plan(
        job=log.processes[0].header.job if log.processes else "",
        start_ns=start,
        end_ns=max(end, start),
        state=state,
        trials=tuple(trials),
        chips=chips,
        segments=tuple(segments),
        lineage=lineage,
        processes=log.processes,
        by_trial=by_trial,
    )


def _span(
    processes: Sequence[ProcessLog], launches: Sequence[Launch], chips: Chips, options: Options
) -> tuple[int, int]:
    """First and last instant of the account."""
    starts = [start_of(launch) for launch in launches]
    known = [h.at_ns for h in chips.holdings if h.at_ns > 0]
    start = min([*starts, *known], default=0)
    over = job_end(processes, starts)
    alive = max((p.last_at_ns for p in processes), default=start)
    end = over[0] if over is not None else alive
    if options.as_of_ns is not None and over is None and not _left_cleanly(launches):
        end = options.as_of_ns  # still running, or down and waiting to be started again
    return start, max(end, start)


def _trials(
    launches: Sequence[Launch], starts: Sequence[int], end_ns: int, memo: Memo, *, live: bool
) -> list[Trial]:
    untils = [*starts[1:], max(end_ns, starts[-1])] if starts else []
    trials = []
    for index, launch in enumerate(launches):
        window = (index, starts[index], max(untils[index], starts[index]))
        last = index == len(launches) - 1
        trials.append(
            memo.recall(
                (launch.key, launch.began, launch.over, window, last, live),
                tuple(launch.workers),
                lambda launch=launch, window=window, last=last: _trial(  # type: ignore[misc]
                    launch, window, last=last, live=live
                ),
            )
        )
    return trials


def _trial(launch: Launch, window: tuple[int, int, int], *, last: bool, live: bool) -> Trial:
    """Put an attempt together; `window` is (index, start, until)."""
    index, start, until = window
    streams = streams_of(launch) or _without_steps(launch)
    end = end_of(launch, streams, until_ns=until, last=last, live=live)
    if end.outcome in CLEAN:
        streams = {rank: settled(stream, end.fault_at_ns) for rank, stream in streams.items()}
    stepping = {rank: stream for rank, stream in streams.items() if stream.n.size}
    first = min((int(stream.start[0]) for stream in stepping.values()), default=until)
    return Trial(
        index=index,
        key=launch.key,
        started_at_ns=start,
        until_ns=until,
        world=world_of(launch),
        next_step=declared_next_step(launch, first),
        resumes=tuple(resumes_of(launch)),
        workers=tuple(launch.workers),
        streams=streams,
        lead=lead_of(stepping),
        end=end,
        restart=index > 0,
        last=last,
    )


def _without_steps(launch: Launch) -> dict[int, Stream]:
    """Streams of an attempt in which no rank took a step: spans still tell of its start-up."""
    by_rank = {w.header.rank: w for w in launch.workers}
    return {r: spans_only(r, [w]) for r, w in sorted(by_rank.items()) if w.spans.name.size}


def job_end(processes: Sequence[ProcessLog], starts: Sequence[int]) -> tuple[int, Outcome] | None:
    """Return when the job ended and how, as last said; None = not, or it was started again."""
    said = [(p.at_ns(e), e.outcome) for p in processes for e in p.events if isinstance(e, Ended)]
    if not said:
        return None
    at, outcome = max(said, key=lambda pair: pair[0])
    if starts and at < starts[-1]:
        return None
    words: dict[str, Outcome] = {"completed": "completed", "cancelled": "stopped"}
    return at, words.get(outcome, "failed")


def _close_last(launches: Sequence[Launch], over: tuple[int, Outcome]) -> None:
    """Where nobody saw the last attempt end, it ended as the job did."""
    if launches and outcome_of(launches[-1], last=True, live=False) == "unknown":
        at, outcome = over
        launches[-1].over = AttemptEnd(t=at, outcome=outcome)
        launches[-1].over_at_ns = at


def _left_cleanly(launches: Sequence[Launch]) -> bool:
    """Whether the last attempt ran to its end."""
    return bool(launches) and outcome_of(launches[-1], last=True, live=True) == "completed"


def _state(over: tuple[int, Outcome] | None, trials: Sequence[Trial]) -> Outcome:
    """How the job stands: its own word, else how its last attempt ended."""
    if over is not None:
        return over[1]
    return trials[-1].end.outcome if trials else "unknown"


def _live_state_is_gone(
    segments: Sequence[Segment], trials: Sequence[Trial], state: Outcome
) -> bool:
    """Whether the last attempt that took steps ended in a fault."""
    if not segments:
        return False
    outcome = trials[segments[-1].attempt].end.outcome
    return outcome == "failed" or (outcome not in CLEAN and state == "failed")


def _segments(trial: Trial, commits: Sequence[Commit]) -> list[Segment]:
    """Runs of rising step numbers in the lead rank's record."""
    stream = trial.lead_stream
    if stream is None:
        return []
    counts = stream.counts()
    saved = max((c.last_step for c in commits if c.attempt == trial.index), default=-(2**60))
    out = []
    for first, last in stream.segment_bounds():
        n, count = int(stream.n[last - 1]), int(counts[last - 1])
        finished = int(stream.end[last - 1]) >= 0
        final_row = last == stream.n.size
        if not finished and final_row and trial.end.outcome in CLEAN:
            finished = True  # a clean end means that the last step returned
        proven = not finished and final_row and saved == n + count - 1
        whole = finished or proven
        out.append(
            Segment(
                attempt=trial.index,
                first=int(stream.n[first]),
                reached=n + count if whole else n,
                began_at_ns=int(stream.start[first]),
                open_step=-1 if whole else n,
                open_until=-1 if whole else n + count,
                open_finished=proven,
            )
        )
    return out


def _commits(trials: Sequence[Trial]) -> list[Commit]:
    found = [
        Commit(attempt=trial.index, last_step=event.last_step, at_ns=worker.at_ns(event))
        for trial in trials
        for worker in trial.workers
        for event in worker.events
        if isinstance(event, Committed)
    ]
    return sorted(found, key=lambda c: (c.at_ns, c.last_step))


def _resumes(trials: Sequence[Trial]) -> list[Resume]:
    """States that were restored with no step after: where the job stands all the same."""
    out = []
    before = 0
    for trial in trials:
        stream = trial.lead_stream
        if stream is None:
            if trial.next_step >= 0:
                out.append(Resume(after_segment=before, next_step=trial.next_step))
            continue
        before += len(stream.segment_bounds())
        last = int(stream.start[-1])
        out.extend(
            Resume(after_segment=before, next_step=step) for at, step in trial.resumes if at > last
        )
    return out
