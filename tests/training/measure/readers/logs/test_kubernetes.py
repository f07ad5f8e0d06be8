"""Kubernetes dumps: JobSets, pods and events; written from the API's description."""

import json
from pathlib import Path

import pytest
from foreign import jobs, told_by
from samples import NS, at

from goodput.core.errors import DataError
from goodput.core.events import Allocated, AttemptEnd, AttemptStart, Ended, Submitted

DAY = "2026-05-01T"


def dump(tmp_path: Path, *items: dict[str, object]) -> Path:
    path = tmp_path / "k8s.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def pod(name: str, *states: dict[str, object], restarts: int = 0) -> dict[str, object]:
    status = {"restartCount": restarts, "state": states[-1]}
    if len(states) > 1:
        status["lastState"] = states[0]
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "creationTimestamp": DAY + "10:00:00Z",
            "labels": {"jobset.sigs.k8s.io/jobset-name": "train"},
        },
        "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]},
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled", "status": "True",
                    "lastTransitionTime": DAY + "10:05:00Z",
                }
            ],
            "containerStatuses": [status],
        },
    }  # fmt: skip


def running(since: str) -> dict[str, object]:
    return {"running": {"startedAt": f"{DAY}{since}Z"}}


def ended(since: str, until: str, code: int, reason: str) -> dict[str, object]:
    state = {"startedAt": f"{DAY}{since}Z", "finishedAt": f"{DAY}{until}Z"}
    return {"terminated": {**state, "exitCode": code, "reason": reason}}


def test_pods_queue_chips_and_a_restart(tmp_path: Path) -> None:
    told = told_by(
        dump(
            tmp_path,
            pod("train-w-0-0-aaaaa", ended("10:06:00", "11:00:00", 137, "OOMKilled"),
                running("11:02:00"), restarts=1),
            pod("train-w-0-1-bbbbb", ended("10:06:10", "11:00:05", 1, "Error"),
                running("11:02:10"), restarts=1),
            {
                "kind": "JobSet",
                "metadata": {"name": "train", "creationTimestamp": DAY + "09:59:00Z"},
                "status": {
                    "restarts": 1,
                    "conditions": [
                        {"type": "Completed", "status": "True",
                         "lastTransitionTime": DAY + "12:00:00Z"}
                    ],
                },
            },
        )
    )  # fmt: skip
    assert jobs(told) == ["train"]
    (queued,) = told.events(Submitted)
    (held,) = told.events(Allocated)
    assert isinstance(queued, Submitted)
    assert isinstance(held, Allocated)
    assert (queued.t / NS, queued.chips) == (at("2026-05-01 09:59:00"), 16)
    assert (held.t / NS, held.chips) == (at("2026-05-01 10:05:00"), 16)
    assert len(told.events(AttemptStart)) == 2
    (end,) = told.events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert (end.cause, end.exit_code) == ("out_of_memory_host", 137)
    assert end.t / NS == at("2026-05-01 11:00:05")
    assert end.fault_t / NS == at("2026-05-01 11:00:00")
    (over,) = told.events(Ended)
    assert isinstance(over, Ended)
    assert over.outcome == "completed"


def event(
    stamp: str, reason: str, *, name: str = "train-0-x1y2z", message: str = ""
) -> dict[str, object]:
    return {
        "kind": "Event",
        "metadata": {"name": f"{name}.1"},
        "involvedObject": {"kind": "Pod", "name": name},
        "reason": reason,
        "message": message,
        "firstTimestamp": f"{DAY}{stamp}Z",
        "lastTimestamp": f"{DAY}{stamp}Z",
    }


def test_events_alone(tmp_path: Path) -> None:
    told = told_by(
        dump(
            tmp_path,
            event("10:00:00", "FailedScheduling"),
            event("10:20:00", "Scheduled"),
            event("10:21:00", "Started"),
            event("11:00:00", "NodeNotReady", message="node n1 is gone"),
        )
    )
    assert jobs(told) == ["train"]
    (end,) = told.events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert (end.outcome, end.cause) == ("failed", "node_lost")
    assert "node n1 is gone" in end.evidence
    lost = {loss.name: loss.amount for loss in told.ledger.waterfall.losses}
    assert lost["scheduling"] == 20 * 60 * NS
    assert told.noted("events alone") == 1


def test_other_objects_are_counted_and_nothing_is_said(tmp_path: Path) -> None:
    path = dump(tmp_path, {"kind": "ConfigMap", "metadata": {"name": "x"}})
    with pytest.raises(DataError, match="without a time of a job"):
        told_by(path)
