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
    began_at_ns: int = 0
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
    saves = _by_segment(segments, commits)
    # Without any checkpoint on record, nothing is known of what survived: it is not called lost.
    state, index = _final_state(segments, saves, resumes, fell=failed and bool(commits))
    gaps: list[tuple[int, int]] = []
    proven = next_step = 0
    durable = [0]
    chain: set[int] = set()
    while index is not None:
        segment = segments[index]
        chain.add(index)
        _keep(segment, state, gaps)
        durable.extend(s + 1 for s in saves.get(index, ()) if s + 1 <= segment.kept_until)
        next_step = next_step or segment.kept_until
        state = segment.first
        if index > 0 or state > 0:
            proven = max(proven, min(state, next_step))
        index = _producer(segments, saves, index, state)
    known = bool(commits) or completed or len(segments) > 1
    return Lineage(
        rollbacks=_rollbacks(segments, chain),
        saved_until=next_step if completed else max(proven, *durable),
        persistence_known=known,
        next_step=next_step,
        gaps=tuple(gaps),
    )


def _by_segment(segments: Sequence[Segment], commits: Sequence[Commit]) -> dict[int, list[int]]:
    """Last steps of the checkpoints that each segment made: of its attempt, while it ran."""
    saves: dict[int, list[int]] = {}
    for commit in commits:
        mine = [
            index
            for index, segment in enumerate(segments)
            if segment.attempt == commit.attempt and segment.began_at_ns <= commit.at_ns
        ]
        if mine:
            saves.setdefault(mine[-1], []).append(commit.last_step)
    return saves


def _final_state(
    segments: Sequence[Segment],
    saves: dict[int, list[int]],
    resumes: Sequence[Resume],
    *,
    fell: bool,
) -> tuple[int, int | None]:
    """Return one past the last step of the final state, and the segment that produced it."""
    if not segments:
        return 0, None
    latest = len(segments) - 1
    declared = [r.next_step for r in resumes if r.after_segment == len(segments)]
    if declared:  # a later restart that took no step still shows the state it found
        return declared[-1], _producer(segments, saves, len(segments), declared[-1])
    segment = segments[latest]
    if not fell:
        return max(segment.reached, segment.first), latest
    durable = [step for step in saves.get(latest, []) if step < segment.reached]
    if durable:
        return max(durable) + 1, latest
    # The last one saved nothing of its own: what it resumed from is still there.
    return segment.first, _producer(segments, saves, latest, segment.first)


def _producer(
    segments: Sequence[Segment], saves: dict[int, list[int]], position: int, state: int
) -> int | None:
    """The segment behind a state: the last to save it, else the last to run its last step."""
    if state <= 0:
        return None
    ran: int | None = None
    beneath: int | None = None
    for index in range(position - 1, -1, -1):
        segment = segments[index]
        if segment.first >= state:
            continue
        if _holds(segment, state):
            if state - 1 in saves.get(index, ()):
                return index
            ran = index if ran is None else ran
        elif beneath is None or segment.reached > segments[beneath].reached:
            beneath = index
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


def _rollbacks(segments: Sequence[Segment], chain: set[int]) -> tuple[Rollback, ...]:
    """Assign every lost step to the first later segment that resumed at or below it.

    What is left of a branch that was given up goes to the segment after it, which took another one.
    """
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
            given_up = index not in chain and index + 1 < len(segments)
            by = index + 1 if given_up else -1
            out.append(Rollback(segment=index, first=low, until=high, by=by))
    return tuple(out)
