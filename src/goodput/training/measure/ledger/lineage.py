"""Which steps are in the state that the job ended with, and which restart rolled the others back.

The state is followed backwards: it came from the last attempt, which resumed from a state that an
earlier one had produced, and so on. Repeated step numbers are not looked at.
Legend: G segments (runs of rising step numbers within an attempt).
"""

from collections.abc import Sequence

import msgspec

UNKNOWN = -1


class Segment(msgspec.Struct):
    """A run of rising step numbers of one attempt."""

    attempt: int
    """Index of the attempt."""
    first: int
    """First step number."""
    reached: int
    """One past the last step that finished."""
    open_step: int = UNKNOWN
    """A step that began and is not known to have finished, and how far it would reach."""
    open_until: int = UNKNOWN
    kept_until: int = 0
    """Result: steps first .. kept_until-1 are in the final state."""
    open_finished: bool = False
    """Result: a later resume proves that the open step did finish."""


class Commit(msgspec.Struct, frozen=True):
    """A checkpoint holding every step up to `last_step`, made durable by an attempt."""

    attempt: int
    last_step: int
    at_ns: int


class Resume(msgspec.Struct, frozen=True):
    """A restart from a known state, by an attempt that took no step itself."""

    after_segment: int
    """Number of segments that came before it."""
    next_step: int


class Rollback(msgspec.Struct, frozen=True):
    """Steps of a segment that a later restart threw away."""

    segment: int
    first: int
    until: int
    by: int
    """Index of the segment that resumed below them; -1 = the end of the job."""


class Lineage(msgspec.Struct, frozen=True):
    """What became of every step."""

    rollbacks: tuple[Rollback, ...]
    saved_until: int
    """Steps below this are in durable state; 0 when nothing is known to be."""
    persistence_known: bool
    next_step: int
    """One past the last step of the final state."""
    gaps: tuple[tuple[int, int], ...]
    """Ranges of steps in the final state that no record shows being executed."""


def trace(
    segments: Sequence[Segment],
    commits: Sequence[Commit],
    resumes: Sequence[Resume],
    *,
    failed: bool,
    completed: bool,
) -> Lineage:
    """Follow the final state backwards; sets `kept_until` and `open_finished` of the segments.

    Args:
        segments: all of them, in order of time.
        commits: every durable checkpoint, in order of time.
        resumes: restarts that reached no step.
        failed: the job's last attempt ended in a fault.
        completed: the job ended normally, so its last state was the goal.
    """
    for segment in segments:
        segment.kept_until = segment.first
    head, state = _final_state(segments, commits, resumes, failed=failed)
    next_step = max(state, 0)
    gaps: list[tuple[int, int]] = []
    proven = 0
    position = head
    while position > 0 and state > 0:
        index = _producer(segments, commits, position, state)
        if index is None:
            break
        segment = segments[index]
        _keep(segment, state, gaps)
        state = segment.first
        position = index
        if index > 0 or state > 0:
            proven = max(proven, min(state, next_step))
    saved = max([proven, *_durable(segments, commits, next_step)])
    known = bool(commits) or completed or len(segments) > 1
    if completed:
        saved = next_step
    return Lineage(
        rollbacks=_rollbacks(segments),
        saved_until=saved,
        persistence_known=known,
        next_step=next_step,
        gaps=tuple(gaps),
    )


def _final_state(
    segments: Sequence[Segment],
    commits: Sequence[Commit],
    resumes: Sequence[Resume],
    *,
    failed: bool,
) -> tuple[int, int]:
    """Return (number of segments that may have led to it, one past the last step in the state)."""
    if not segments:
        return 0, 0
    head, state = len(segments), max(segments[-1].reached, segments[-1].first)
    for resume in resumes:  # a later restart that took no step still shows the state it found
        if resume.after_segment == len(segments):
            state = min(resume.next_step, segments[-1].reached)
    if failed and commits:
        durable = [c for c in commits if c.last_step < state]
        exact = [c for c in durable if c.attempt == segments[-1].attempt]
        newest = max((c.last_step for c in exact), default=None)
        # If the last attempt saved nothing of its own, what it resumed from is still there.
        state = min(state, max(segments[-1].first, 0) if newest is None else newest + 1)
    return head, state


def _producer(
    segments: Sequence[Segment], commits: Sequence[Commit], position: int, state: int
) -> int | None:
    """The segment behind a state: the last to save it, else the last to run its last step."""
    savers = {c.attempt for c in commits if c.last_step == state - 1}
    ran: int | None = None
    beneath: int | None = None
    for index in range(position - 1, -1, -1):
        segment = segments[index]
        if segment.first >= state:
            continue
        if _holds(segment, state):
            if segment.attempt in savers:
                return index
            if ran is None:
                ran = index
        elif beneath is None or segment.reached > segments[beneath].reached:
            beneath = index
        if ran is not None and not savers:
            return ran
    return ran if ran is not None else beneath


def _holds(segment: Segment, state: int) -> bool:
    """Whether a segment can have run step state-1: it finished it, or had it under way."""
    return segment.reached >= state or (
        segment.open_step != UNKNOWN and segment.open_step < state <= segment.open_until
    )


def _keep(segment: Segment, state: int, gaps: list[tuple[int, int]]) -> None:
    if segment.reached >= state:
        segment.kept_until = state
    elif _holds(segment, state):
        segment.open_finished = True
        segment.kept_until = state
    else:
        gaps.append((segment.reached, state))
        segment.kept_until = max(segment.reached, segment.first)


def _durable(segments: Sequence[Segment], commits: Sequence[Commit], next_step: int) -> list[int]:
    """One past the last step of each checkpoint that is part of the final state."""
    out = []
    for commit in commits:
        state = commit.last_step + 1
        for segment in segments:
            inside = segment.first <= state <= segment.kept_until
            if segment.attempt == commit.attempt and inside and state <= next_step:
                out.append(state)
    return out


def _rollbacks(segments: Sequence[Segment]) -> tuple[Rollback, ...]:
    """Assign every lost step to the first later segment that resumed at or below it."""
    out = []
    for index, segment in enumerate(segments):
        low = segment.kept_until
        high = max(segment.reached, segment.open_until if segment.open_finished else 0)
        for later in range(index + 1, len(segments)):
            if low >= high:
                break
            cut = max(segments[later].first, low)
            if cut < high:
                out.append(Rollback(segment=index, first=cut, until=high, by=later))
                high = cut
        if low < high:
            out.append(Rollback(segment=index, first=low, until=high, by=-1))
    return tuple(out)
