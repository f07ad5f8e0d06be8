"""Kubernetes as JSON (`kubectl get events,pods,jobs,jobsets -o json`): queue, pods, restarts, ends.

From description: no dump of a real cluster was at hand. What pods and JobSets say stands as long
as they exist; events are kept for an hour by most clusters.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from goodput.core.events import (
    Allocated,
    AttemptEnd,
    AttemptStart,
    Ended,
    Event,
    Process,
    Submitted,
)
from goodput.core.notes import Note
from goodput.training.measure.eventlog import NO_ENDS, NO_SPANS, NO_STEPS, ProcessLog
from goodput.training.measure.readers.logs.clock import iso_ns
from goodput.training.measure.readers.logs.story import UNKNOWN
from goodput.training.measure.readers.whole import Told, unreadable

WRITER: Final = "kubernetes reader"
_KINDS: Final = frozenset({"Pod", "Event", "JobSet", "Job"})
_CHIPS: Final = ("nvidia.com/gpu", "amd.com/gpu", "google.com/tpu", "habana.ai/gaudi")
_JOB_LABELS: Final = (
    "jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/job-name",
    "batch.kubernetes.io/job-name", "job-name",
)  # fmt: skip
_POD_NAME: Final = re.compile(r"^(.+?)(?:-\d+)*-[a-z0-9]{5}$")
_CAUSES: Final = {
    "OOMKilled": ("failed", "out_of_memory_host"),
    "OOMKilling": ("failed", "out_of_memory_host"),
    "Evicted": ("preempted", "preempted"),
    "Preempted": ("preempted", "preempted"),
    "Preempting": ("preempted", "preempted"),
    "NodeNotReady": ("failed", "node_lost"),
    "NodeLost": ("failed", "node_lost"),
    "TaintManagerEviction": ("failed", "node_lost"),
    "DeadlineExceeded": ("failed", "time_limit"),
    "BackoffLimitExceeded": ("failed", ""),
    "Error": ("failed", ""),
    "ContainerCannotRun": ("failed", "configuration"),
}
"""Reasons of container states, pods and events. Source: the Kubernetes API reference."""
_SAME_NS: Final = 60_000_000_000
"""Containers of one job that start within this of each other belong to one launch."""
_NO_CHIPS: Final = "no accelerator in the limits of a pod: each pod is counted as one chip"
_EVENTS_ONLY: Final = (
    "events alone: chips are counted as pods, and events older than an hour are gone"
)
_RESTARTED: Final = "restarts of pods or JobSets whose earlier runs are not in the dump"
_ODD: Final = "objects of other kinds; skipped"


class _Life(NamedTuple):
    """One run of one container."""

    begin_ns: int
    end_ns: int
    reason: str
    exit_code: int
    signal: int


class _Job:
    """What is known of one job."""

    def __init__(self) -> None:
        self.submitted_at_ns: list[int] = []
        self.scheduled_at_ns: list[int] = []
        self.lives: list[_Life] = []
        self.faults: list[tuple[int, str, str]] = []
        """(when, reason, message) of events."""
        self.pods: dict[str, int] = {}
        """Chips by pod."""
        self.ended: tuple[int, str] | None = None
        self.restarts = 0


def looks_like_kubernetes(path: Path, head: bytes) -> bool:
    """Return whether a file begins like a Kubernetes object or list in JSON."""
    del path
    return head.lstrip()[:1] == b"{" and b'"apiVersion"' in head and b'"kind"' in head


def read_kubernetes(path: Path, name: str) -> Told:
    """Return the jobs that a dump tells of."""
    try:
        root = msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return unreadable(name, f"not a whole JSON document ({error}); ignored")
    notes: dict[str, int] = {}
    jobs: dict[str, _Job] = {}
    for item in _objects(root):
        if _text(item, "kind") in _KINDS:
            _take(item, jobs)
        else:
            notes[_ODD] = notes.get(_ODD, 0) + 1
    logs = tuple(log for job, what in jobs.items() for log in _log(job, what, name, notes))
    if not logs:
        return unreadable(name, "Kubernetes objects without a time of a job; ignored")
    return Told(
        logs, tuple(Note(level="info", text=t, where=name, count=n) for t, n in notes.items())
    )


def _objects(root: object) -> Iterator[dict[object, object]]:
    if not isinstance(root, dict):
        return
    items = root.get("items")
    for item in items if isinstance(items, list) else [root]:
        if isinstance(item, dict):
            yield item


def _take(item: dict[object, object], jobs: dict[str, _Job]) -> None:
    job = jobs.setdefault(_job_name(item), _Job())
    kind = _text(item, "kind")
    if kind == "Event":
        _take_event(item, job)
        return
    created = _at(item, "metadata", "creationTimestamp")
    if created != UNKNOWN:
        job.submitted_at_ns.append(created)
    if kind == "Pod":
        _take_pod(item, job)
    else:
        job.restarts += _whole(_get(item, "status", "restarts"))
        _take_conditions(item, job)


def _job_name(item: dict[object, object]) -> str:
    """The job that an object belongs to: its labels, else its own or its pod's name."""
    kind = _text(item, "kind")
    for label in _JOB_LABELS:
        named = _text(item, "metadata", "labels", label)
        if named:
            return named
    name = _text(item, "metadata", "name")
    if kind == "Event":
        name = _text(item, "involvedObject", "name")
        kind = _text(item, "involvedObject", "kind")
    found = _POD_NAME.match(name) if kind == "Pod" else None
    return found[1] if found is not None else name


def _take_event(item: dict[object, object], job: _Job) -> None:
    stamps = [_at(item, key) for key in ("eventTime", "firstTimestamp", "lastTimestamp")]
    known = [at for at in stamps if at != UNKNOWN]
    if not known:
        return
    at, reason = known[0], _text(item, "reason")
    if reason in {"FailedScheduling", "SuccessfulCreate", "Queued"}:
        job.submitted_at_ns.append(at)
    elif reason in {"Scheduled", "QuotaReserved", "Admitted"}:
        job.scheduled_at_ns.append(at)
        job.pods.setdefault(_text(item, "involvedObject", "name"), 0)
    elif reason == "Started":
        job.lives.append(_Life(at, UNKNOWN, "", -1, 0))
    elif reason in _CAUSES or reason == "Killing":
        job.faults.append((known[-1], reason, _text(item, "message")))


def _take_pod(item: dict[object, object], job: _Job) -> None:
    containers = _get(item, "spec", "containers")
    chips = sum(
        _whole(_get(one, "resources", "limits", kind))
        for one in (containers if isinstance(containers, list) else [])
        for kind in _CHIPS
    )
    job.pods[_text(item, "metadata", "name")] = chips
    conditions = _get(item, "status", "conditions")
    for one in conditions if isinstance(conditions, list) else []:
        if _text(one, "type") == "PodScheduled" and _text(one, "status") == "True":
            job.scheduled_at_ns.append(_at(one, "lastTransitionTime"))
    statuses = _get(item, "status", "containerStatuses")
    for one in statuses if isinstance(statuses, list) else []:
        told = [_life(_get(one, which)) for which in ("lastState", "state")]
        lives = [life for life in told if life is not None]
        job.lives.extend(lives)
        job.restarts += max(_whole(_get(one, "restartCount")) - max(len(lives) - 1, 0), 0)
    reason = _text(item, "status", "reason")
    if reason in _CAUSES and job.lives:
        ends = [life.end_ns for life in job.lives if life.end_ns != UNKNOWN]
        if ends:
            job.faults.append((max(ends), reason, _text(item, "status", "message")))


def _life(state: object) -> _Life | None:
    for kind in ("terminated", "running"):
        begun = _at(state, kind, "startedAt")
        if begun != UNKNOWN:
            code = _get(state, kind, "exitCode")
            return _Life(
                begun,
                _at(state, kind, "finishedAt"),
                _text(state, kind, "reason"),
                _whole(code) if code is not None else -1,
                _whole(_get(state, kind, "signal")),
            )
    return None


def _take_conditions(item: dict[object, object], job: _Job) -> None:
    conditions = _get(item, "status", "conditions")
    for one in conditions if isinstance(conditions, list) else []:
        kind, at = _text(one, "type"), _at(one, "lastTransitionTime")
        if _text(one, "status") == "True" and at != UNKNOWN:
            if kind in {"Complete", "Completed", "Succeeded"}:
                job.ended = (at, "completed")
            elif kind == "Failed":
                job.ended = (at, "failed")
                job.faults.append((at, _text(one, "reason"), _text(one, "message")))


def _log(name: str, job: _Job, path: str, notes: dict[str, int]) -> list[ProcessLog]:
    """The job as a launcher's log; none if no time is known."""
    if job.restarts:
        notes[_RESTARTED] = notes.get(_RESTARTED, 0) + job.restarts
    chips = sum(job.pods.values())
    if not chips:
        chips = max(len(job.pods), 1)
        known = any(life.end_ns != UNKNOWN or life.exit_code >= 0 for life in job.lives)
        notes[_NO_CHIPS if known else _EVENTS_ONLY] = 1
    events: list[Event] = []
    if job.submitted_at_ns:
        events.append(Submitted(t=min(job.submitted_at_ns), chips=chips))
    scheduled = [at for at in job.scheduled_at_ns if at != UNKNOWN]
    first = min((life.begin_ns for life in job.lives), default=UNKNOWN)
    held = [at for at in scheduled if first == UNKNOWN or at <= first]
    if held or first != UNKNOWN:
        events.append(Allocated(t=max(held) if held else first, chips=chips))
    events.extend(_attempts(name, job))
    if job.ended is not None:
        events.append(Ended(t=job.ended[0], outcome=job.ended[1]))
    if not events:
        return []
    events.sort(key=lambda event: event.t)
    header = Process(
        t=events[0].t,
        schema="goodput.events/1.0",
        job=name,
        role="launcher",
        host=f"{path}#{name}",
        writer=WRITER,
        origin="log",
    )
    return [
        ProcessLog(
            header=header,
            path=path,
            offset_ns=0,
            steps=NO_STEPS,
            ends=NO_ENDS,
            spans=NO_SPANS,
            labels=(),
            shapes=("",),
            windows=(),
            events=tuple(events),
            last_at_ns=events[-1].t,
            aliases=(f"kubernetes:{name}",),
        )
    ]


def _attempts(name: str, job: _Job) -> list[Event]:
    """Launches: containers that start together; each ends with its first container that ends."""
    lives = sorted(job.lives, key=lambda life: life.begin_ns)
    launches: list[list[_Life]] = []
    for life in lives:
        if launches and life.begin_ns - launches[-1][0].begin_ns <= _SAME_NS:
            launches[-1].append(life)
        else:
            launches.append([life])
    events: list[Event] = []
    for index, launch in enumerate(launches):
        begin = launch[0].begin_ns
        until = launches[index + 1][0].begin_ns if index + 1 < len(launches) else 2**62
        key = f"{name}.{index}"
        events.append(AttemptStart(t=begin, attempt=key))
        end = _end(launch, [f for f in job.faults if begin <= f[0] < until], key)
        if end is not None:
            events.append(end)
    return events


def _end(
    launch: Sequence[_Life], faults: Sequence[tuple[int, str, str]], key: str
) -> AttemptEnd | None:
    over = [life for life in launch if life.end_ns != UNKNOWN]
    bad = sorted((life for life in over if life.exit_code > 0), key=lambda life: life.end_ns)
    named = sorted(fault for fault in faults if fault[1] in _CAUSES)
    if bad or named:
        first = bad[0] if bad else None
        reason = named[0][1] if named else (first.reason if first is not None else "")
        outcome, cause = _CAUSES.get(reason, ("failed", ""))
        if not cause and first is not None:
            outcome, cause = _CAUSES.get(first.reason, (outcome, cause))
        fault = min([fault[0] for fault in named] + [life.end_ns for life in bad])
        told = f"Kubernetes: {reason or 'container failed'}"
        if named and named[0][2]:
            told += f": {named[0][2]}"
        return AttemptEnd(
            t=max([fault, *(life.end_ns for life in over)]),
            attempt=key,
            outcome=outcome,
            cause=cause,
            evidence=told,
            exit_code=first.exit_code if first is not None else -1,
            signal=first.signal if first is not None else 0,
            fault_t=fault,
        )
    if over and len(over) == len(launch):
        return AttemptEnd(t=max(life.end_ns for life in over), attempt=key, exit_code=0)
    return None


def _get(value: object, *keys: str) -> object:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(value: object, *keys: str) -> str:
    found = _get(value, *keys)
    return found if isinstance(found, str) else ""


def _at(value: object, *keys: str) -> int:
    return iso_ns(_text(value, *keys).encode())


def _whole(value: object) -> int:
    """A whole number, also as text (resource quantities); 0 = it is none."""
    if isinstance(value, str):
        value = int(value) if value.isdigit() and len(value) < 10 else 0
    return value if isinstance(value, int) and 0 <= value < 2**31 else 0
