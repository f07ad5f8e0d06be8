"""Several files of one job become one: identity, whose steps count, launchers, time zones."""

import os
from pathlib import Path

from foreign import jobs, megatron_lines, told_by
from samples import NS, Told, at
from tracker_files import session

from goodput.core.events import Allocated, AttemptEnd, Submitted

HEAD = "JobID|JobName|Submit|Eligible|Start|End|State|ExitCode|AllocTRES|NodeList"
NAME = "events.out.tfevents.1.host.1.0"


def sacct(tmp_path: Path, *rows: tuple[int, str, str, str, str]) -> Path:
    """Write a dump: (job id, submitted, started, ended, state), all on one day."""
    path = tmp_path / "sacct.txt"
    day = "2026-05-01T"
    lines = [
        f"{job}|train|{day}{submit}|{day}{submit}|{day}{start}|{day}{end}|{state}|0:0|"
        "gres/gpu=16,node=2|n[1-2]"
        for job, submit, start, end, state in rows
    ]
    path.write_text("\n".join([HEAD, *lines]) + "\n")
    return path


def stdout(path: Path, first: int, last: int, begun: str, **more: float) -> Path:
    """Write a Megatron log whose first step begins then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = megatron_lines(first, last, at=f"2026-05-01 {begun}", **more)  # type: ignore[arg-type]
    path.write_text("\n".join(lines) + "\n")
    return path


def losses(told: Told) -> dict[str, float]:
    """Chip-seconds of every loss."""
    return {loss.name: loss.amount / NS for loss in told.ledger.waterfall.losses}


def test_stdout_and_sacct_by_the_id_in_the_name(tmp_path: Path) -> None:
    stdout(tmp_path / "slurm-77.out", 1, 100, "10:31:00")
    sacct(
        tmp_path,
        (76, "10:00:00", "10:30:00", "10:40:00", "COMPLETED"),
        (77, "10:00:00", "10:30:00", "10:33:00", "NODE_FAIL"),
    )
    told = told_by(tmp_path)
    assert jobs(told) == ["slurm-77"]
    assert told.noted("no training log here") == 1
    ledger = told.ledger
    assert ledger.chips == 16
    assert losses(told)["scheduling"] == 30 * 60 * 16
    (incident,) = ledger.incidents
    assert incident.cause == "node_lost"
    assert (ledger.started_at_ns, ledger.ended_at_ns) == (
        at("2026-05-01 10:00:00") * NS,
        at("2026-05-01 10:33:00") * NS,
    )


def test_a_requeued_job_in_one_appended_log(tmp_path: Path) -> None:
    lines = [*megatron_lines(1, 100, at="2026-05-01 10:31:00")]
    (tmp_path / "train-77.out").write_text("\n".join(lines) + "\n")
    with (tmp_path / "train-77.out").open("a") as file:
        file.write("[after megatron is initialized] datetime: 2026-05-01 11:00:30\n")
        file.write("\n".join(megatron_lines(51, 150, at="2026-05-01 11:01:00")) + "\n")
    sacct(
        tmp_path,
        (77, "10:00:00", "10:30:00", "10:33:00", "PREEMPTED"),
        (77, "10:33:00", "11:00:00", "11:03:00", "COMPLETED"),
    )
    told = told_by(tmp_path)
    ledger = told.ledger
    assert [a.outcome for a in ledger.attempts] == ["preempted", "completed"]
    assert losses(told)["scheduling"] == (30 + 27) * 60 * 16
    assert (ledger.steps.kept, ledger.steps.lost) == (150, 50)
    assert ledger.state == "completed"


def test_the_only_job_that_fits_in_time_is_taken(tmp_path: Path) -> None:
    stdout(tmp_path / "output.log", 1, 100, "10:31:00")
    sacct(tmp_path, (77, "10:00:00", "10:30:00", "10:33:00", "COMPLETED"))
    told = told_by(tmp_path)
    assert told.noted("the only job that fits in time") == 1
    assert told.ledger.chips == 16


def test_two_jobs_that_fit_are_not_guessed_between(tmp_path: Path) -> None:
    stdout(tmp_path / "output.log", 1, 100, "10:31:00")
    sacct(
        tmp_path,
        (76, "10:00:00", "10:30:00", "10:40:00", "COMPLETED"),
        (77, "10:00:00", "10:30:00", "10:33:00", "COMPLETED"),
    )
    told = told_by(tmp_path)
    assert told.noted("2 jobs fit output in time and none by id") == 1
    assert told.events(Submitted) == []


def test_tensorboard_beside_stdout_counts_once(tmp_path: Path) -> None:
    stdout(tmp_path / "slurm-77.out", 1, 100, "10:31:00")
    start = at("2026-05-01 10:30:30")
    session(tmp_path / "tb" / NAME, start, 1, 100)
    told = told_by(tmp_path)
    assert jobs(told) == ["slurm-77"]
    assert len(told.logs) == 1
    assert told.ledger.steps.kept == 100
    assert told.noted("steps are taken from slurm-77.out") == 10


def test_what_only_the_other_source_tells_is_added(tmp_path: Path) -> None:
    from tracker_files import event, tfevents

    stdout(tmp_path / "slurm-77.out", 1, 100, "10:31:00")
    start = at("2026-05-01 10:30:30")
    rows = [event(start + 30 + n, n, {"train/loss": 1.0}) for n in range(1, 101)]
    rows.append(event(start + 150, 100, {"eval/runtime": 20.0}))
    tfevents(tmp_path / "tb" / NAME, start, rows)
    told = told_by(tmp_path)
    assert len(told.logs) == 1
    assert sum(seconds for _, seconds in told.spans("evaluation")) == 20


def test_local_stamps_are_moved_to_unix_time(tmp_path: Path) -> None:
    """The log says 10:31 where it is 08:31 UTC; TensorBoard has Unix time."""
    stdout(tmp_path / "slurm-77.out", 1, 100, "10:31:00")
    session(tmp_path / "tb" / NAME, at("2026-05-01 08:30:30"), 1, 100)
    told = told_by(tmp_path)
    assert len(told.logs) == 1
    assert told.noted("moved by -2 h") == 1
    assert told.logs[0].steps.at_ns[0] == at("2026-05-01 08:31:00") * NS


def test_local_stamps_are_moved_into_the_schedulers_run(tmp_path: Path) -> None:
    import json

    stdout(tmp_path / "slurm-77.out", 1, 100, "15:31:00")
    begun = int(at("2026-05-01 10:30:00"))
    times = {"submission": begun - 600, "eligible": begun - 600, "start": begun, "end": begun + 200}
    job = {
        "job_id": 77, "name": "train", "nodes": "n1", "time": times,
        "state": {"current": ["COMPLETED"]},
        "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 8}]},
    }  # fmt: skip
    (tmp_path / "jobs.json").write_text(json.dumps({"meta": {"slurm": {}}, "jobs": [job]}))
    told = told_by(tmp_path)
    assert told.noted("moved by -5 h") == 1
    assert losses(told)["scheduling"] == 600 * 8
    assert told.ledger.state == "completed"


def test_a_chain_of_jobs_joined_by_tensorboard(tmp_path: Path) -> None:
    stdout(tmp_path / "slurm-1.out", 1, 100, "10:01:00")
    stdout(tmp_path / "slurm-2.out", 61, 200, "11:01:00")
    session(tmp_path / "tb" / NAME, at("2026-05-01 10:00:30"), 1, 100)
    session(tmp_path / "tb" / (NAME + ".2"), at("2026-05-01 11:00:30"), 61, 200)
    told = told_by(tmp_path)
    assert len(jobs(told)) == 1
    assert (told.ledger.steps.kept, told.ledger.steps.lost) == (200, 40)


def test_a_log_that_goes_on_where_another_ended(tmp_path: Path) -> None:
    stdout(tmp_path / "slurm-1.out", 1, 100, "10:01:00")
    lines = megatron_lines(101, 200, at="2026-05-01 11:01:00")
    loaded = "  successfully loaded checkpoint from /ckpt [ t 1/1, p 1/1 ] at iteration 100"
    (tmp_path / "slurm-2.out").write_text("\n".join([loaded, *lines]) + "\n")
    told = told_by(tmp_path)
    assert jobs(told) == ["slurm-1"]
    assert told.noted("it goes on where slurm-1.out had got to") == 1
    assert told.ledger.steps.kept == 200


def test_a_log_without_a_word_on_where_it_resumed(tmp_path: Path) -> None:
    stdout(tmp_path / "slurm-1.out", 1, 100, "10:01:00")
    stdout(tmp_path / "slurm-2.out", 91, 200, "11:01:00")
    assert len(jobs(told_by(tmp_path))) == 1


def test_two_jobs_of_one_folder_stay_two(tmp_path: Path) -> None:
    stdout(tmp_path / "a.log", 1, 100, "10:01:00")
    stdout(tmp_path / "b.log", 1, 100, "10:02:00")
    assert jobs(told_by(tmp_path)) == ["a", "b"]


def test_a_number_in_the_name_joins_no_two_logs(tmp_path: Path) -> None:
    stdout(tmp_path / "small-01.log", 1, 100, "10:01:00")
    stdout(tmp_path / "large-01.log", 1, 100, "10:01:30")
    assert jobs(told_by(tmp_path)) == ["large-01", "small-01"]


def test_a_sweep_side_by_side_is_not_joined(tmp_path: Path) -> None:
    for name, begun in (("a", "10:01:00"), ("b", "10:01:20")):
        stdout(tmp_path / name / "train.out", 1, 100, begun)
        session(tmp_path / name / "tb" / NAME, at(f"2026-05-01 {begun}") - 30, 1, 100)
    told = told_by(tmp_path)
    assert len(told.logs) == len(jobs(told)) == 2


def test_one_log_above_two_runs_goes_to_the_one_whose_steps_fit(tmp_path: Path) -> None:
    stdout(tmp_path / "slurm-5.out", 1, 100, "10:01:00")
    session(tmp_path / "a" / "tb" / NAME, at("2026-05-01 10:00:10"), 1, 100)
    session(tmp_path / "b" / "tb" / NAME, at("2026-05-01 10:00:30"), 1, 100)
    assert jobs(told_by(tmp_path)) == ["a", "slurm-5"]


def test_folders_apart_are_not_joined(tmp_path: Path) -> None:
    stdout(tmp_path / "x" / "deep" / "slurm-77.out", 1, 100, "10:31:00")
    session(tmp_path / "y" / "run" / NAME, at("2026-05-01 10:30:30"), 1, 100)
    assert len(jobs(told_by(tmp_path))) == 2


def test_evaluations_without_times_are_placed_by_step(tmp_path: Path) -> None:
    import json

    stdout(tmp_path / "slurm-77.out", 1, 100, "10:31:00")
    entries: list[dict[str, float]] = [{"step": n, "loss": 1.0} for n in range(10, 101, 10)]
    entries.insert(5, {"step": 50, "eval_runtime": 8.0})
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps({"best_metric": None, "global_step": 100, "log_history": entries}))
    os.utime(path, (1, 1))
    told = told_by(tmp_path)
    assert len(told.logs) == 1
    (span,) = told.spans("evaluation")
    assert span == (at("2026-05-01 10:31:50"), 8.0)


def test_contradicting_chips_are_reported(tmp_path: Path) -> None:
    lines = ["using world size: 64", *megatron_lines(1, 100, at="2026-05-01 10:31:00")]
    (tmp_path / "slurm-77.out").write_text("\n".join(lines) + "\n")
    sacct(tmp_path, (77, "10:00:00", "10:30:00", "10:33:00", "COMPLETED"))
    told = told_by(tmp_path)
    assert told.noted("contradiction: [16] chips by the scheduler, [64] ranks") == 1
    assert [e.chips for log in told.logs for e in log.events if isinstance(e, Allocated)] == [16]


def test_cause_of_the_log_and_outcome_of_the_scheduler(tmp_path: Path) -> None:
    path = stdout(tmp_path / "slurm-77.out", 1, 100, "10:31:00")
    with path.open("a") as file:
        file.write(
            "slurmstepd: error: *** STEP 77.0 ON n1 CANCELLED AT 2026-05-01T10:32:50 "
            "DUE TO TIME LIMIT ***\n"
        )
    sacct(tmp_path, (77, "10:00:00", "10:30:00", "10:33:00", "TIMEOUT"))
    told = told_by(tmp_path)
    ends = [e for log in told.logs for e in log.events if isinstance(e, AttemptEnd)]
    (end,) = ends
    assert (end.cause, end.outcome) == ("time_limit", "failed")
    assert end.fault_t / NS == at("2026-05-01 10:32:50")
    assert "CANCELLED AT" in end.evidence
    assert "Slurm: TIMEOUT" in end.evidence
