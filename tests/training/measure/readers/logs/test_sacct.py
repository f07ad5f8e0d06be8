"""Slurm accounting, as text and as JSON. dumps/ were made with a real Slurm 22.05 and slurmdbd."""

import json
from pathlib import Path

import pytest
from foreign import by_job, jobs, told_by
from samples import NS, at

from goodput.core.errors import DataError
from goodput.core.events import Allocated, AttemptEnd, AttemptStart, Ended, Submitted
from goodput.training.measure.readers.slurm_jobs import chips_in, nodes_in

DUMPS = Path(__file__).parent / "dumps"
COLUMNS = "JobID|JobName|Submit|Eligible|Start|End|State|ExitCode|AllocTRES|NodeList|Restarts"


def dump(tmp_path: Path, *rows: str, columns: str = COLUMNS) -> Path:
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join([columns, *rows]) + "\n")
    return path


def row(state: str, *, code: str = "0:0", end: str = "2026-05-01T12:00:00", more: str = "") -> str:
    return (
        "7|train|2026-05-01T10:00:00|2026-05-01T10:00:00|2026-05-01T10:30:00|"
        f"{end}|{state}|{code}|cpu=8,gres/gpu=16,node=2|n[1-2]|{more or '0'}"
    )


def test_text_and_json_of_one_cluster_say_the_same() -> None:
    text, other = told_by(DUMPS / "sacct.txt"), told_by(DUMPS / "sacct.json")
    assert jobs(text) == jobs(other)
    assert len(jobs(text)) == 17
    # The text lacks ReqTRES; the JSON of this Slurm has lost the exit codes.
    for job in sorted({*jobs(text)} - {"cancelpend-16", "fail-2", "sig-3"}):
        assert by_job(text, job).logs[0].events == by_job(other, job).logs[0].events
    assert (text.noted("time zone"), other.noted("time zone")) == (1, 0)
    assert other.noted("FAILED with exit code 0") == 2
    assert text.noted("what happened inside the runs is not known") == 1


def test_node_failure_and_requeue() -> None:
    told = by_job(told_by(DUMPS / "sacct.txt"), "nodefail-6")
    day = "2026-11-30 "
    queued = [(e.t / NS, e.chips) for e in told.events(Submitted)]  # type: ignore[attr-defined]
    assert queued == [(at(day + "19:14:07"), 8), (at(day + "19:14:36"), 8)]
    held = [e.t / NS for e in told.events(Allocated)]  # type: ignore[attr-defined]
    assert held == [at(day + "19:14:07"), at(day + "19:16:41")]
    ends = [(e.outcome, e.cause) for e in told.events(AttemptEnd)]  # type: ignore[attr-defined]
    assert ends == [("failed", "node_lost"), ("completed", "")]
    assert len(told.events(Ended)) == 1
    lost = {loss.name: loss.amount for loss in told.ledger.waterfall.losses}
    assert lost["scheduling"] == 125 * 8 * NS


@pytest.mark.parametrize(
    ("job", "outcome", "cause", "over"),
    [
        ("ok-1", "completed", "", "completed"),
        ("fail-2", "failed", "", "failed"),
        ("timeout-14", "failed", "time_limit", "failed"),
        ("cancel-15", "stopped", "cancelled", "cancelled"),
    ],
)
def test_end_states(job: str, outcome: str, cause: str, over: str) -> None:
    told = by_job(told_by(DUMPS / "sacct.json"), job)
    (end,) = told.events(AttemptEnd)
    (last,) = told.events(Ended)
    assert isinstance(end, AttemptEnd)
    assert isinstance(last, Ended)
    assert (end.outcome, end.cause, last.outcome) == (outcome, cause, over)


def test_requeues_keep_the_job_alive() -> None:
    told = told_by(DUMPS / "sacct.txt")
    preempted = by_job(told, "preempted-7").events(AttemptEnd)
    assert [e.outcome for e in preempted] == ["preempted", "completed"]  # type: ignore[attr-defined]
    assert len(by_job(told, "requeued-9").events(AttemptStart)) == 2


def test_waiting_and_running_jobs() -> None:
    told = told_by(DUMPS / "sacct.txt")
    assert by_job(told, "running-17").events(AttemptEnd) == []
    pending = by_job(told, "cancelpend-16")
    assert pending.events(Allocated) == []
    assert [e.outcome for e in pending.events(Ended)] == ["cancelled"]  # type: ignore[attr-defined]


def test_a_wait_for_another_job_is_no_queue() -> None:
    (queued,) = by_job(told_by(DUMPS / "sacct.txt"), "second-11").events(Submitted)
    assert isinstance(queued, Submitted)
    assert queued.t / NS == at("2026-11-30 19:15:09")


def test_any_columns_in_any_order_with_steps_and_odd_lines(tmp_path: Path) -> None:
    path = dump(
        tmp_path,
        "COMPLETED|2026-05-01T11:00:00|8|2026-05-01T12:00:00|gres/gpu:a100=4|",
        "COMPLETED|2026-05-01T11:00:00|8.batch|2026-05-01T12:00:00|gres/gpu:a100=4|",
        "too|short",
        columns="State|Start|JobID|End|AllocTRES|",
    )
    told = told_by(path)
    assert jobs(told) == ["8"]
    assert [e.chips for e in told.events(Allocated)] == [4]  # type: ignore[attr-defined]
    assert told.events(Submitted) == []
    assert told.noted("another number of columns") == 1
    assert told.noted("time in the queue is not known") == 1


def test_exit_codes_and_signals(tmp_path: Path) -> None:
    (end,) = told_by(dump(tmp_path, row("FAILED", code="1:9"))).events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert (end.exit_code, end.signal) == (1, 9)
    assert "FAILED, exit code 1:9, on n[1-2]" in end.evidence


def test_restarts_without_their_runs_are_noted(tmp_path: Path) -> None:
    assert told_by(dump(tmp_path, row("COMPLETED", more="2"))).noted("use sacct -D") == 1


def test_states_with_more_words(tmp_path: Path) -> None:
    (end,) = told_by(dump(tmp_path, row("CANCELLED by 1000"))).events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert end.cause == "cancelled"


def test_jobs_without_gpus_count_nodes(tmp_path: Path) -> None:
    told = told_by(dump(tmp_path, row("COMPLETED").replace("gres/gpu=16,", "")))
    assert [e.chips for e in told.events(Allocated)] == [2]  # type: ignore[attr-defined]
    assert told.noted("each node is counted as one chip") == 1


def test_a_dump_without_times_says_which_columns_to_ask_for(tmp_path: Path) -> None:
    path = dump(tmp_path, "1|ok|COMPLETED|0:0", columns="JobID|JobName|State|ExitCode")
    with pytest.raises(DataError, match=r"without Start.*--format=JobID"):
        told_by(path)


def test_newer_json_with_set_and_number(tmp_path: Path) -> None:
    number = {"set": True, "infinite": False, "number": 1}
    job = {
        "job_id": 5, "name": "n", "nodes": "n1", "restart_cnt": 0,
        "array": {"job_id": 0, "task_id": {"set": False, "number": 0}},
        "state": {"current": ["OUT_OF_MEMORY"], "reason": "None"},
        "time": {"submission": 1_780_000_000, "eligible": 1_780_000_000,
                 "start": 1_780_000_100, "end": 1_780_000_200},
        "exit_code": {"status": ["SIGNALED"], "return_code": {**number, "number": 0},
                      "signal": {"id": {**number, "number": 9}, "name": "KILL"}},
        "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 8}]},
    }  # fmt: skip
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({"meta": {"slurm": {}}, "jobs": [job, 3]}))
    told = told_by(path)
    (end,) = told.events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert (end.cause, end.signal) == ("out_of_memory_host", 9)
    assert told.noted("no jobs; skipped") == 1


def test_resources() -> None:
    assert chips_in("billing=1,gres/gpu:h100=8,gres/gpu=8,node=1") == 8
    assert chips_in("gres/gpu:a100=4,gres/gpu:h100=8") == 12
    assert chips_in("cpu=4,mem=0,node=3") == 0
    assert nodes_in("cpu=4,node=3") == 3
