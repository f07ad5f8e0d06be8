"""What a scheduler or launcher says of a job, given to the attempts that its logs tell of."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from goodput.core.events import Allocated, AttemptEnd, AttemptStart, Event
from goodput.core.notes import Note
from goodput.training.measure.eventlog import ProcessLog
from goodput.training.measure.readers.kin import ZONED, Group, moved_text
from goodput.training.measure.readers.shift import NEAR_NS, shifted, zone_into

_MARGIN_NS: Final = 2 * NEAR_NS
_FAR_NS: Final = 2**62
_ALONE: Final = (
    "no training log: what happened inside the runs is not known (give the job's output as well)"
)


class _Run(NamedTuple):
    """One stay of the job on machines, as the launcher tells it."""

    key: str
    begin_ns: int
    end_ns: int


def attach(
    groups: Sequence[Group], launchers: Sequence[ProcessLog]
) -> tuple[list[ProcessLog], list[Note]]:
    """Return all process logs, launchers named after the jobs that they belong to.

    Args:
        groups: workers by job.
        launchers: what schedulers and launchers said, one log per job.
    """
    if not groups:
        told = [
            Note(level="warning", text=_ALONE, where=path)
            for path in sorted({log.path for log in launchers})
        ]
        return [_dated_by_end(log) for log in launchers], told
    notes: list[Note] = []
    out: list[ProcessLog] = []
    owners = _owners(groups, launchers, notes)
    for index, group in enumerate(groups):
        mine = [launchers[i] for i, owner in owners.items() if owner == index]
        members = list(group.members)
        for launcher in sorted(mine, key=lambda log: log.started_at_ns):
            members, moved = _same_zone(members, launcher, notes)
            members, joined = _joined(members, moved, notes)
            out.append(joined)
        out.extend(members)
    spare = [log for i, log in enumerate(launchers) if i not in owners]
    for path in sorted({log.path for log in spare}):
        count = sum(log.path == path for log in spare)
        notes.append(
            Note(
                level="info",
                text="jobs of which there is no training log here; left out",
                where=path,
                count=count,
            )
        )
    return out, notes


def _owners(
    groups: Sequence[Group], launchers: Sequence[ProcessLog], notes: list[Note]
) -> dict[int, int]:
    """The job of each launcher: by the scheduler's id, else the only one that fits in time."""
    owners: dict[int, int] = {}
    for i, launcher in enumerate(launchers):
        named = [g for g, group in enumerate(groups) if group.aliases & set(launcher.aliases)]
        if named:
            owners[i] = named[0]
    taken = set(owners.values())
    fits: dict[int, list[int]] = {}
    for i, launcher in enumerate(launchers):
        if i in owners:
            continue
        for g, group in enumerate(groups):
            if g not in taken and _fits(group, launcher):
                fits.setdefault(g, []).append(i)
    for g, found in fits.items():
        job = groups[g].members[0].header.job
        if len(found) == 1 and sum(found[0] in other for other in fits.values()) == 1:
            owners[found[0]] = g
            notes.append(
                Note(
                    level="info",
                    text=f"taken as {job}: the only job that fits in time",
                    where=launchers[found[0]].path,
                )
            )
        elif len(found) > 1:
            notes.append(
                Note(
                    level="warning",
                    text=f"{len(found)} jobs fit {job} in time and none "
                    "by id: none is used (keep the job id in the log's file name)",
                    where=launchers[found[0]].path,
                )
            )
    return owners


def _fits(group: Group, launcher: ProcessLog) -> bool:
    """Whether all logs of a job lie in the runs of a launcher."""
    runs = _runs(launcher)
    if not runs:
        return False
    low, high = runs[0].begin_ns - _MARGIN_NS, max(run.end_ns for run in runs) + _MARGIN_NS
    return all(low <= m.started_at_ns and m.last_at_ns <= high for m in group.members)


def _runs(launcher: ProcessLog) -> list[_Run]:
    ends = {e.attempt: e.t for e in launcher.events if isinstance(e, AttemptEnd)}
    return [
        _Run(event.attempt, event.t, ends.get(event.attempt, _FAR_NS))
        for event in launcher.events
        if isinstance(event, AttemptStart)
    ]


def _same_zone(
    members: list[ProcessLog], launcher: ProcessLog, notes: list[Note]
) -> tuple[list[ProcessLog], ProcessLog]:
    """Move local times to Unix times where the job's logs lie outside the launcher's runs."""
    runs = _runs(launcher)
    mine = [m for m in members if set(m.aliases) & set(launcher.aliases)] or members
    if not runs or not mine:
        return members, launcher
    low, high = runs[0].begin_ns, max(run.end_ns for run in runs)
    lead = max(mine, key=lambda m: m.steps.n.size)
    by = zone_into(lead, low, high)
    if not by:
        return members, launcher
    if launcher.header.writer not in ZONED:
        notes.append(Note(level="info", text=moved_text(-by), where=launcher.path))
        return members, shifted(launcher, -by)
    local = [m for m in members if m.header.writer not in ZONED and m.header.origin == "log"]
    notes.extend(
        Note(level="info", text=moved_text(by), where=path)
        for path in sorted({m.path for m in local})
    )
    return [shifted(m, by) if m in local else m for m in members], launcher


def _joined(
    members: list[ProcessLog], launcher: ProcessLog, notes: list[Note]
) -> tuple[list[ProcessLog], ProcessLog]:
    """Name the launcher's runs after the attempts inside them, and merge what both say of ends."""
    job = members[0].header.job
    events = list(launcher.events)
    for run in _runs(launcher):
        inside = [
            m
            for m in members
            if run.begin_ns - _MARGIN_NS <= m.started_at_ns <= run.end_ns
            and m.started_at_ns <= run.end_ns
        ]
        if not inside:
            events = [_fault_at_end(event, run.key) for event in events]
            continue
        first, last = inside[0].header.attempt, inside[-1].header.attempt
        if first and last:
            own = [e for m in members for e in m.events if _ends(e, last)]
            events = [_renamed(event, run.key, first, last, own) for event in events]
            members = [_without_end(m, last) for m in members]
    _compare_chips(members, events, launcher, notes)
    members = [_without_chips(m) for m in members]
    header = replace(launcher.header, job=job)
    return members, replace(launcher, header=header, events=tuple(events))


def _dated_by_end(launcher: ProcessLog) -> ProcessLog:
    events = list(launcher.events)
    for run in _runs(launcher):
        events = [_fault_at_end(event, run.key) for event in events]
    return replace(launcher, events=tuple(events))


def _fault_at_end(event: Event, key: str) -> Event:
    """Without a log of the run its end is the only sign of a fault."""
    if isinstance(event, AttemptEnd) and event.attempt == key and not event.fault_t:
        return replace(event, fault_t=event.t)
    return event


def _ends(event: Event, key: str) -> bool:
    return isinstance(event, AttemptEnd) and event.attempt == key


def _renamed(event: Event, key: str, first: str, last: str, own: Sequence[Event]) -> Event:
    if isinstance(event, AttemptStart) and event.attempt == key:
        return replace(event, attempt=first)
    if isinstance(event, AttemptEnd) and event.attempt == key:
        merged = replace(event, attempt=last)
        for word in own:
            if isinstance(word, AttemptEnd):
                merged = _merged(merged, word)
        return merged
    return event


def _merged(by_launcher: AttemptEnd, by_log: AttemptEnd) -> AttemptEnd:
    """The launcher knows the outcome, the log more often why and since when."""
    if by_launcher.outcome == "completed":
        return by_launcher
    cause = by_launcher.cause or by_log.cause
    evidence = by_launcher.evidence
    if by_log.evidence and by_log.evidence not in evidence:
        evidence = f"{by_log.evidence}; {evidence}" if evidence else by_log.evidence
    return replace(
        by_launcher,
        cause=cause,
        evidence=evidence,
        rank=by_log.rank if by_log.rank >= 0 else by_launcher.rank,
        fault_t=by_log.fault_t or by_launcher.fault_t,
        noticed_t=by_log.noticed_t or by_launcher.noticed_t,
    )


def _without_end(member: ProcessLog, key: str) -> ProcessLog:
    kept = tuple(event for event in member.events if not _ends(event, key))
    return member if len(kept) == len(member.events) else replace(member, events=kept)


def _without_chips(member: ProcessLog) -> ProcessLog:
    if member.header.origin != "log":
        return member
    kept = tuple(event for event in member.events if not isinstance(event, Allocated))
    return member if len(kept) == len(member.events) else replace(member, events=kept)


def _compare_chips(
    members: Sequence[ProcessLog],
    events: Sequence[Event],
    launcher: ProcessLog,
    notes: list[Note],
) -> None:
    """Two numbers of chips for one job are a contradiction, and reported as one."""
    held = {e.chips for e in events if isinstance(e, Allocated)}
    said = {e.chips for m in members for e in m.events if isinstance(e, Allocated)}
    worlds = {m.header.world for m in members if m.header.world > 1}
    for what, numbers in (("chips", said), ("ranks", worlds)):
        if held and numbers and not held & numbers:
            notes.append(
                Note(
                    level="warning",
                    text=f"contradiction: {sorted(held)} chips by the scheduler, {sorted(numbers)} "
                    f"{what} by the training log; the scheduler's are used",
                    where=launcher.path,
                )
            )
