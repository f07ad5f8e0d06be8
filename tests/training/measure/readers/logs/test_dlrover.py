"""DLRover event files and the runtime errors of Ascend beside its trainer's log."""

import json
from pathlib import Path

from samples import NS, sample, tell, told

from goodput.core.events import AttemptEnd, Committed


def event(stamp: str, name: str, edge: str, step: int, *, key: str = "0a", pid: int = 7) -> str:
    body = json.dumps({"global_step": step, "epoch": 0})
    return f"[2026-04-21T{stamp}] [{pid}] [{key}] [Trainer] [#{name}] [{edge}] {body}"


def test_steps_saves_and_steps_between(tmp_path: Path) -> None:
    log = told(
        tmp_path,
        [
            event("10:00:00", "step", "BEGIN", 100),
            event("10:00:20", "step", "END", 101),
            event("10:00:21", "step", "BEGIN", 101, key="0b"),
            event("10:00:41", "step", "END", 102, key="0b"),
            event("10:01:41", "save", "BEGIN", 105, key="0c"),
            event("10:01:51", "save", "END", 105, key="0c"),
        ],
    )
    rows = [(n, c, d) for n, c, _, d in log.steps()]
    assert rows == [(101, 1, 20.0), (102, 1, 20.0), (103, 3, 60.0)]
    assert [seconds for _, seconds in log.spans("checkpoint")] == [10.0]
    assert [e.last_step for e in log.events(Committed)] == [105]  # type: ignore[attr-defined]
    assert log.noted("not logged one by one") == 3


def test_another_process_is_another_launch(tmp_path: Path) -> None:
    lines = [
        event("10:00:00", "step", "BEGIN", 1),
        event("10:00:10", "step", "END", 2),
        event("11:00:00", "step", "BEGIN", 1, pid=8),
        event("11:00:10", "step", "END", 2, pid=8),
    ]
    assert len(told(tmp_path, lines).logs) == 2


def test_broken_json_is_counted(tmp_path: Path) -> None:
    lines = [event("10:00:00", "step", "BEGIN", 1), event("10:00:09", "step", "END", 2)[:-2]]
    assert told(tmp_path, lines).noted("does not close") == 1


def test_ascend_error_ends_the_launch(tmp_path: Path) -> None:
    log = told(
        tmp_path,
        [
            "[2026-07-03 19:15:16,379] [INFO] [accelerate.py:1:f] starting",
            "RuntimeError: store->get() got error: HCCL_BLOCKING_WAIT",
            "[ERROR] 2026-07-03-19:45:13 (PID:62743, Device:11, RankID:43) ERR02005 DIST error",
        ],
    )
    (end,) = log.events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert (end.outcome, end.cause, end.rank) == ("failed", "collective_timeout", 43)
    assert (end.t - log.logs[0].started_at_ns) // NS == 29 * 60 + 56


def test_sample_events() -> None:
    log = tell(sample("dlrover/events_0.log"))
    assert [e.last_step for e in log.events(Committed)] == [177215, 177413]  # type: ignore[attr-defined]
    first, *_ = log.steps()
    assert first[:2] == (177019, 1)
    assert abs(first[3] - 1346.5) < 1
    lasted = [seconds for _, seconds in log.spans("checkpoint")]
    assert [round(seconds, 1) for seconds in lasted] == [91.6, 91.0]


def test_sample_training_log() -> None:
    log = tell(sample("dlrover/training.log"))
    (end,) = log.events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert (end.outcome, end.cause) == ("failed", "collective_timeout")
