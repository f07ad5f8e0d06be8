"""What the ledger should say of a simulated job, by brute force: tick by tick, from the simulation.

`as_of` is the first tick of which nothing is known: everything is answered from what was recorded
before it.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from job_simulator import Attempt, Execution, Job, Span, State
from job_writer import Recording

NEVER = 1 << 40
SPANS = ("checkpoint", "evaluation", "init", "startup", "data")
"""Precedence of what a rank records, highest first; `startup` is the time to the first step."""


class View(NamedTuple):
    """What is asked of the job."""

    as_of: int = NEVER
    exclude: tuple[tuple[int, int], ...] = ()


def known_attempts(job: Job, view: View) -> list[Attempt]:
    return [a for a in job.attempts if a.start < view.as_of]


def outcome(job: Job, attempt: Attempt, how: Recording, view: View) -> str:
    """How an attempt ended, as far as is known."""
    last = attempt is known_attempts(job, view)[-1]
    if how.launcher and attempt.noticed < view.as_of:
        return attempt.outcome
    if attempt.clean and attempt.end < view.as_of:
        return "completed"
    heard = any(0 < rank < attempt.world for rank in how.ranks) and how.says_goodbye
    if not attempt.clean and heard and attempt.noticed < view.as_of:
        return "failed"
    return "under way" if last else "failed"


def job_failed(job: Job, how: Recording, view: View) -> bool:
    last = outcome(job, known_attempts(job, view)[-1], how, view)
    if job.ended_at is not None and job.ended_at < view.as_of:
        return not job.attempts[-1].clean
    return last == "failed"


def job_completed(job: Job, how: Recording, view: View) -> bool:
    last = known_attempts(job, view)[-1]
    if job.ended_at is not None and job.ended_at < view.as_of:
        return last.outcome == "completed"
    return outcome(job, last, how, view) == "completed"


def recorded_end(attempt: Attempt, run: Execution, how: Recording, view: View) -> int | None:
    """When a step is known to have ended; None = it is not known to have."""
    if how.closed:
        return run.end if run.end is not None and run.end < view.as_of else None
    later = [e.begin for e in attempt.executions if e.id > run.id and e.begin < view.as_of]
    if later:
        return min(later)
    return attempt.end if attempt.clean and attempt.end < view.as_of else None


def known_state(attempt: Attempt, how: Recording, view: View) -> State | None:
    """The state of an attempt, as far as is known; None = it shows none yet."""
    runs = [e for e in attempt.executions if e.begin < view.as_of]
    if not runs and not (how.resumes and attempt.restored_at < view.as_of):
        return None
    moments: list[tuple[int, int, State | Execution]] = [
        (e.begin, 1, e) for e in runs if recorded_end(attempt, e, how, view) is not None
    ]
    for tick, back in attempt.backs:
        if any(e.begin >= tick for e in runs) or (how.resumes and tick < view.as_of):
            moments.append((tick, 0, back))
    state = attempt.restored
    for _, _, what in sorted(moments, key=lambda m: m[:2]):
        state = (*state, what.id) if isinstance(what, Execution) else what
    if how.commits:  # a durable checkpoint proves that its last step was finished
        since = max([t for t, order, _ in moments if order == 0], default=attempt.start)
        for commit in attempt.commits:
            if since <= commit.tick < view.as_of and commit.state[: len(state)] == state:
                state = commit.state
    return state


def unambiguous(job: Job, how: Recording, view: View) -> bool:
    """Whether the record can tell: without commits, a restart is known by its step number only."""
    if how.commits:
        return True
    previous: State = ()
    for attempt in known_attempts(job, view):
        if known_state(attempt, how, view) is None:
            continue
        if attempt.restored != previous[: len(attempt.restored)]:
            return False
        previous = true_state(attempt)
    return True


def true_state(attempt: Attempt) -> State:
    """The state of an attempt when it ended, known or not."""
    moments: list[tuple[int, int, State | Execution]] = [
        (e.begin, 1, e) for e in attempt.executions if e.end is not None
    ]
    moments += [(tick, 0, back) for tick, back in attempt.backs]
    state = attempt.restored
    for _, _, what in sorted(moments, key=lambda m: m[:2]):
        state = (*state, what.id) if isinstance(what, Execution) else what
    return state


def durable(job: Job, how: Recording, view: View) -> list[State]:
    """Every state that is known to be on disk."""
    return [
        commit.state
        for attempt in job.attempts
        for commit in attempt.commits
        if how.commits and commit.tick < view.as_of
    ]


def final_state(job: Job, how: Recording, view: View) -> State:
    """The state that the job ended with, or would resume from."""
    attempts = known_attempts(job, view)
    states = [known_state(a, how, view) for a in attempts]
    shown = [i for i, s in enumerate(states) if s is not None]
    if not shown:
        return ()
    source = attempts[shown[-1]]
    state = states[shown[-1]] or ()
    fell = outcome(job, source, how, view) == "failed"
    if source is attempts[-1]:
        fell = job_failed(job, how, view)
    saved = durable(job, how, view)
    if fell and saved:
        return newest_below(state, [*saved, source.restored])
    return state


def newest_below(state: State, saved: list[State]) -> State:
    """The longest checkpoint that led to a state."""
    return max((s for s in saved if s == state[: len(s)]), key=len, default=())


def saved_state(job: Job, how: Recording, view: View) -> State:
    """The part of the final state that survives a fault now."""
    state = final_state(job, how, view)
    if job_completed(job, how, view):
        return state
    told = [a for a in known_attempts(job, view) if known_state(a, how, view) is not None]
    restored = [a.restored for a in told] + [
        back for a in told for tick, back in a.backs if tick < view.as_of
    ]
    return newest_below(state, [*durable(job, how, view), *restored])


def chips_at(job: Job, tick: int, how: Recording, view: View) -> int:
    """Chips that are paid at a tick."""
    if not how.chips:
        started = [a for a in known_attempts(job, view) if a.start <= tick]
        return started[-1].world if started else job.attempts[0].world
    known = [h for h in job.holdings if h[0] < view.as_of]
    before = [h for h in known if h[0] <= tick]
    return (before[-1] if before else known[0])[1]


def queued_at(job: Job, tick: int, how: Recording, view: View) -> bool:
    before = [h for h in job.holdings if h[0] <= tick and h[0] < view.as_of]
    return how.chips and bool(before) and before[-1][2]


def span_of_time(job: Job, how: Recording, view: View) -> tuple[int, int]:
    """First tick of the job and the one after its last."""
    start = min([a.start for a in job.attempts[:1]] + [t for t, _, _ in job.holdings if how.chips])
    if job.ended_at is not None and job.ended_at < view.as_of:
        return start, job.ended_at
    last = known_attempts(job, view)[-1]
    if view.as_of < NEVER and outcome(job, last, how, view) != "completed":
        return start, view.as_of
    signs = [a.start for a in job.attempts]
    signs += [e.begin for e in job.executions.values()]
    signs += [e.end for e in job.executions.values() if how.closed and e.end is not None]
    signs += [a.restored_at for a in job.attempts if how.resumes]
    signs += [t for a in job.attempts for t, _ in a.backs if how.resumes]
    signs += [c.tick for a in job.attempts for c in a.commits if how.commits]
    signs += [a.end for a in job.attempts if a.clean]
    signs += [a.noticed for a in job.attempts if how.launcher]
    signs += [
        a.noticed for a in job.attempts if outcome(job, a, how, view) == "failed" and _heard(a, how)
    ]
    signs += [t for t, _, _ in job.holdings if how.chips]
    for attempt in job.attempts:
        signs += [s.start for s in attempt.spans if _recorded(s, attempt, how)]
        signs += [s.end for s in attempt.spans if s.end is not None and _recorded(s, attempt, how)]
    return start, max(sign for sign in signs if sign < view.as_of)


def launcher_goes_on(job: Job, how: Recording, view: View) -> bool:
    """Whether the job left cleanly and its launcher has more to say: when it ends is not known."""
    last = known_attempts(job, view)[-1]
    said = [job.ended_at or 0, *(t for t, _, _ in job.holdings if how.chips)]
    said += [t for a in job.attempts if how.launcher for t in (a.start, a.noticed)]
    return outcome(job, last, how, view) == "completed" and max(said) >= view.as_of


def _heard(attempt: Attempt, how: Recording) -> bool:
    return how.says_goodbye and any(0 < rank < attempt.world for rank in how.ranks)


def _recorded(span: Span, attempt: Attempt, how: Recording) -> bool:
    ranks = [r for r in how.ranks if r < attempt.world]
    return (how.asides or not span.background) and (span.rank is None or span.rank in ranks)


def capacity(job: Job, how: Recording, view: View) -> int:
    """Chip-ticks of the job without the excluded windows."""
    low, high = span_of_time(job, how, view)
    return sum(chips_at(job, t, how, view) for t in range(low, high) if not excluded(t, view))


def excluded(tick: int, view: View) -> bool:
    return any(a <= tick < b for a, b in view.exclude)


class Labels(NamedTuple):
    """What one rank's ticks of one attempt are."""

    attempt: Attempt
    at: dict[int, str]
    """Tick -> class, `step` for those of steps."""


def label_rank(job: Job, attempt: Attempt, rank: int, how: Recording, view: View) -> Labels:
    """Label every tick of a rank in the window of an attempt (recordings with a launcher)."""
    following = [a.start for a in job.attempts if a.number == attempt.number + 1]
    until = (following or [span_of_time(job, how, view)[1]])[0]
    at: dict[int, str] = {}
    for tick in range(attempt.start, until):
        name = _ending(attempt, tick, last=not following) or _spans(attempt, rank, tick)
        if queued_at(job, tick, how, view):
            name = "scheduling"
        if excluded(tick, view):
            name = "excluded"
        for run in attempt.executions:
            end = attempt.end if run.end is None else run.end
            if run.begin <= tick < end and not name:
                name = "step"
        at[tick] = name or "unattributed"
    return Labels(attempt, at)


def _ending(attempt: Attempt, tick: int, *, last: bool) -> str:
    if attempt.clean and last:
        return ""
    if attempt.end <= tick < attempt.noticed:
        return "detection"
    return "recovery" if tick >= attempt.noticed else ""


def _spans(attempt: Attempt, rank: int, tick: int) -> str:
    first = min((e.begin for e in attempt.executions), default=attempt.end)
    for name in SPANS:
        if name == "startup" and tick < first:
            return name
        for span in attempt.spans:
            mine = span.name == name and span.rank in {None, rank} and not span.background
            if mine and span.start <= tick < (attempt.end if span.end is None else span.end):
                return "startup" if name == "init" else name
    return ""


def classes(job: Job, how: Recording, view: View) -> dict[str, int]:
    """Chip-ticks by class for a whole job whose every rank is recorded, with a launcher."""
    kept = set(final_state(job, how, view))
    labels = [
        (label_rank(job, attempt, rank, how, view), rank)
        for attempt in job.attempts
        for rank in range(attempt.world)
    ]
    fast = _ideal(labels, kept, job, view)
    out: Counter[str] = Counter()
    for tick, name in _before(job, how, view):
        out[name] += chips_at(job, tick, how, view)
    for mine, rank in labels:
        world = mine.attempt.world
        named = [(tick, name) for tick, name in mine.at.items() if name != "step"]
        for run in mine.attempt.executions:
            named.extend(_divided(mine, run, fast.get(world, 0), kept))
        for tick, name in named:
            each, more = divmod(chips_at(job, tick, how, view), world)
            out[name] += each + (rank < more)
    return {name: amount for name, amount in out.items() if amount}


def _before(job: Job, how: Recording, view: View) -> Iterator[tuple[int, str]]:
    low, _ = span_of_time(job, how, view)
    for tick in range(low, job.attempts[0].start):
        name = "scheduling" if queued_at(job, tick, how, view) else "unattributed"
        yield tick, "excluded" if excluded(tick, view) else name


def _ticks(mine: Labels, run: Execution) -> list[int]:
    end = mine.attempt.end if run.end is None else run.end
    return [t for t in range(run.begin, end) if mine.at[t] == "step"]


def _divided(mine: Labels, run: Execution, ideal: int, kept: set[int]) -> Iterator[tuple[int, str]]:
    """The ticks of a step: warm-up of an attempt's first step, then useful, then slow."""
    ticks = _ticks(mine, run)
    first = run is mine.attempt.executions[0] and run.end is not None
    warm = max(len(ticks) - ideal, 0) if first and ideal else 0
    for index, tick in enumerate(ticks):
        if index < warm:
            yield tick, "startup"
        elif run.id not in kept:
            yield tick, "rework"
        else:
            yield tick, "useful" if not ideal or index - warm < ideal else "slow"


def _ideal(
    labels: list[tuple[Labels, int]], kept: set[int], job: Job, view: View
) -> dict[int, int]:
    """A tenth of the kept steps of a world is at least this fast: the lower p10."""
    later: dict[int, list[int]] = {}
    every: dict[int, list[int]] = {}
    for mine, _ in labels:
        samples: list[tuple[bool, int]] = []
        for run in mine.attempt.executions:
            if run.end is None or run.id not in kept:
                continue
            if any(a < run.end and run.begin < b for a, b in view.exclude):
                continue
            samples.append((run is mine.attempt.executions[0], len(_ticks(mine, run))))
        ordinary = [ticks for first, ticks in samples if not first]
        pool = later if ordinary else every
        pool.setdefault(mine.attempt.world, []).extend(ordinary or [t for _, t in samples])
    out = {}
    for world in {*later, *every}:
        values = sorted(later.get(world) or every.get(world) or [0])
        out[world] = values[int(0.1 * (len(values) - 1))]
    return out
