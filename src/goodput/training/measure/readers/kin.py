"""Which process logs tell of one job: scheduler ids, then folders, overlap and step numbers."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from goodput.core.notes import Note
from goodput.training.measure.eventlog import ProcessLog
from goodput.training.measure.readers.logs.batch import LONGEST_FIRST
from goodput.training.measure.readers.shift import shifted, together, zone_between

ZONED: Final = (
    "tensorboard reader", "wandb reader", "wandb summary reader", "mlperf reader",
    "sacct --json reader",
    "kubernetes reader", "ml-goodput-measurement reader",
)  # fmt: skip
"""Readers of sources that carry Unix time: others are moved to them, never they to others."""
TRACKERS: Final = (
    "tensorboard reader", "wandb reader", "wandb summary reader", "lightning csv reader",
    "trainer_state reader",
)  # fmt: skip
"""Readers of sources whose step times are differences between records."""
_NAMED: Final = ("ml-goodput-measurement reader", "straggler trace reader")
"""Readers of files that give the job's name themselves; others name it after a file or folder."""
_ID_IN_NAME: Final = re.compile(r"(?:^|[-_.])j?(\d{2,10})(?:[_.]\d+)?\.(?:out|err|log|txt)(?:\.|$)")
_PART: Final = re.compile(
    r"(?i)(tb|tb_?logs?|tensorboard|runs?|logs?|events|output|wandb|(offline-)?run-\d{8}_.*|version_\d+)$"
)
"""Folders that hold a part of a job's files, beside others of it."""
_HALF: Final = 2
"""Logs that overlap by a half of the shorter one may be of one job."""


class Group(NamedTuple):
    """Workers of one job, in order of time."""

    members: tuple[ProcessLog, ...]
    aliases: frozenset[str]


def aliases_of(log: ProcessLog) -> frozenset[str]:
    """Return the scheduler ids of a log: what it says, else what its file's name ends with."""
    if log.aliases or log.header.origin != "log":
        return frozenset(log.aliases)
    found = _ID_IN_NAME.search(Path(log.path).name)
    return frozenset({f"slurm:{found[1]}"} if found is not None else ())


def group(workers: Sequence[ProcessLog]) -> tuple[list[Group], list[Note]]:
    """Return the workers by job, those in another time zone moved to the ones with Unix time."""
    logs = list(workers)
    notes: list[Note] = []
    parent = list(range(len(logs)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    def unite(i: int, j: int) -> None:
        parent[max(root(i), root(j))] = min(root(i), root(j))

    _by_name(logs, unite)
    _zones(logs, notes)
    heads = _one_per_source(logs)
    for i in heads:
        for j in heads:
            if i < j and root(i) != root(j):
                why = _kin(logs, i, j)
                if why:
                    unite(i, j)
                    if why != "overlap":
                        notes.append(Note(level="info", text=why, where=logs[j].path))
    groups: dict[int, list[ProcessLog]] = {}
    for i, log in enumerate(logs):
        groups.setdefault(root(i), []).append(log)
    return _distinct([_named(members) for members in groups.values()]), notes


def _distinct(groups: list[Group]) -> list[Group]:
    """Jobs of one name in several folders are called after their folders as well."""
    counts = Counter(one.members[0].header.job for one in groups)
    seen: Counter[str] = Counter()
    out = []
    for one in groups:
        lead = max(one.members, key=_telling)
        job = lead.header.job
        if counts[job] > 1 and lead.header.origin == "log":
            job = f"{_folder(lead.path).name}/{job}"
            seen[job] += 1
            job = job if seen[job] == 1 else f"{job}#{seen[job]}"
        out.append(Group(_called(one.members, job), one.aliases))
    return out


def _job_key(log: ProcessLog) -> tuple[object, ...]:
    """What logs of one name must share as well: two folders may each hold a train.log."""
    job = log.header.job
    if log.header.origin != "log" or log.header.writer in _NAMED:
        return (job,)
    if log.header.writer in TRACKERS:  # sessions in folders below the one that names the job
        folder = _folder(log.path)
        above = next((one for one in (folder, *folder.parents) if one.name == job), folder)
        return (job, above)
    return (job, log.path)


def _by_name(logs: Sequence[ProcessLog], unite: Callable[[int, int], None]) -> None:
    """Logs of one job name, or of one scheduler id, are of one job."""
    first: dict[object, int] = {}
    for i, log in enumerate(logs):
        keys: list[object] = [_job_key(log), *log.aliases]
        path = Path(log.path)
        if _ID_IN_NAME.search(path.name):
            # train-123.out and train-123.err; the number alone may be a rank or a trial
            keys.append((_folder(log.path), path.name.split(".")[0]))
        for key in keys:
            unite(first.setdefault(key, i), i)


def _one_per_source(logs: Sequence[ProcessLog]) -> list[int]:
    """Foreign logs only: what we recorded ourselves names its job."""
    return [i for i, log in enumerate(logs) if log.header.origin == "log"]


def _zones(logs: list[ProcessLog], notes: list[Note]) -> None:
    """Move logs in local time so that their steps fall on those of a source with Unix time."""
    anchors = [log for log in logs if log.header.writer in ZONED and log.steps.n.size]
    told: dict[str, int] = {}
    for i, log in enumerate(logs):
        if log.header.writer in ZONED or log.header.origin != "log" or floating(log):
            continue
        found = [zone_between(log, anchor) for anchor in anchors if _related(log, anchor)]
        fits = [by for by in found if by is not None]
        by = min(fits, key=abs, default=0)
        if by:
            logs[i] = shifted(log, by)
            told[log.path] = by
    for path, by in told.items():
        notes.append(Note(level="info", text=moved_text(by), where=path))


def moved_text(by_ns: int) -> str:
    """Return the note about a log that was moved between time zones."""
    return f"stamps are local time, not UTC: moved by {by_ns / 3.6e12:+g} h to fit the other files"


def floating(log: ProcessLog) -> bool:
    """Return whether no record of a log carries a time of its own."""
    return 0 < log.steps.n.size + log.spans.name.size <= log.inferred


def _kin(logs: Sequence[ProcessLog], i: int, j: int) -> str:
    """Why two logs are of one job; empty = they are not, as far as anyone can tell."""
    a, b = logs[i], logs[j]
    if a.header.writer == b.header.writer:
        early, late = (a, b) if a.started_at_ns <= b.started_at_ns else (b, a)
        if _continues(early, late) and _related(a, b) and not _nearer(logs, early, late):
            return f"taken as the same job: it goes on where {Path(early.path).name} had got to"
        return ""
    if floating(a) or floating(b):
        near = _last(a) >= 0 and abs(_last(a) - _last(b)) * 20 <= max(_last(a), _last(b))
        fits = near and _related(a, b)
        return "taken as the same job: its folder and its last step fit" if fits else ""
    if not _overlap(a, b) or not _related(a, b):
        return ""
    return "" if together(a, b) is False else "overlap"


def _related(a: ProcessLog, b: ProcessLog) -> bool:
    """Whether one of two files lies in the folder of the other, below it, or in a part of it."""
    x, y = _folder(a.path), _folder(b.path)
    if x == y or x in y.parents or y in x.parents:
        return True
    return x.parent == y.parent and bool(_PART.match(x.name) or _PART.match(y.name))


@lru_cache(maxsize=65_536)
def _folder(path: str) -> Path:
    return Path(path).absolute().parent


def _overlap(a: ProcessLog, b: ProcessLog) -> bool:
    common = min(a.last_at_ns, b.last_at_ns) - max(a.started_at_ns, b.started_at_ns)
    shorter = min(a.last_at_ns - a.started_at_ns, b.last_at_ns - b.started_at_ns)
    return common > 0 and common * _HALF >= shorter


def _continues(early: ProcessLog, late: ProcessLog) -> bool:
    """Whether the later log begins at a step above 1 that the earlier one had reached.

    Where every k-th step is logged, the later one may begin k steps on.
    """
    if not early.steps.n.size or not late.steps.n.size or floating(early) or floating(late):
        return False
    first = int(late.steps.n[0])
    stride = int(late.steps.n[1]) - first if late.steps.n.size > 1 else 0
    reached = _last(early) + 1 + min(max(stride, 0), LONGEST_FIRST)
    return late.started_at_ns >= early.last_at_ns and 1 < first <= reached


def _nearer(logs: Sequence[ProcessLog], early: ProcessLog, late: ProcessLog) -> bool:
    """Whether another log of the same kind lies between, which the later one continues as well."""
    return any(
        log is not early
        and log is not late
        and log.header.writer == late.header.writer
        and log.started_at_ns > early.started_at_ns
        and _related(log, late)
        and _continues(log, late)
        for log in logs
    )


def _last(log: ProcessLog) -> int:
    """Last step that a log tells of; -1 = none."""
    if not log.steps.n.size:
        return -1
    covers = int(log.steps.covers[-1]) if log.steps.covers is not None else 1
    return int(log.steps.n[-1]) + max(covers, 1) - 1


def _telling(log: ProcessLog) -> tuple[bool, bool, int]:
    return log.header.origin != "log", log.header.writer not in TRACKERS, int(log.steps.n.size)


def _named(members: Sequence[ProcessLog]) -> Group:
    """Give all members the name of the job: the one of what tells most steps."""
    lead = max(members, key=_telling)
    aliases = frozenset().union(*(aliases_of(log) for log in members))
    return Group(_called(members, lead.header.job), aliases)


def _called(members: Sequence[ProcessLog], job: str) -> tuple[ProcessLog, ...]:
    return tuple(
        log if log.header.job == job else replace(log, header=replace(log.header, job=job))
        for log in members
    )
