"""Megatron's progress.txt: a campaign of several Slurm jobs in one file."""

from pathlib import Path

from samples import told

from goodput.core.events import Allocated, Committed, Work

HEAD = "\tJob ID: {job}\t# GPUs: 64\t"


def line(stamp: str, job: int, what: str) -> str:
    return f"2026-03-01 {stamp}{HEAD.format(job=job)}{what}"


def saved(iteration: int, flops: float) -> str:
    return (
        f"Saved checkpoint\tIteration: {iteration}\tJob throughput: 300.0 TFLOP/s/GPU\t"
        f"Cumulative throughput: 250.0 TFLOP/s/GPU\tFloating-point operations: {flops:.2e}\t"
        "Tokens (in billions): 1.00"
    )


def test_campaign(tmp_path: Path) -> None:
    log = told(
        tmp_path,
        [
            line("10:00:00", 11, "Starting job"),
            line("11:00:00", 11, saved(100, 1e20)),
            line("12:00:00", 11, saved(200, 2e20)),
            line("13:00:00", 12, "Starting job"),
            line("13:30:00", 12, "Saving async checkpoint\tIteration: 300"),
            line("14:00:00", 12, saved(300, 3e20).replace("Saved", "Saved async")),
        ],
    )
    assert len(log.logs) == 2
    assert [(n, c) for n, c, _, _ in log.steps(0)] == [(1, 100), (101, 100)]
    assert log.steps(1)[0][:2] == (201, 100)
    assert [e.last_step for e in log.events(Committed, 1)] == [300]  # type: ignore[attr-defined]
    assert [e.chips for e in log.events(Allocated)] == [64]  # type: ignore[attr-defined]
    (work,) = log.events(Work, 0)
    assert isinstance(work, Work)
    assert work.flops_per_step == 1e18
    assert log.logs[0].aliases == ("slurm:11", "slurm:12")
    assert log.noted("is not in it") == 1


def test_a_lower_iteration_is_no_negative_progress(tmp_path: Path) -> None:
    log = told(
        tmp_path,
        [
            line("10:00:00", 11, "Starting job"),
            line("11:00:00", 11, saved(200, 2e20)),
            line("12:00:00", 12, "Starting job"),
            line("13:00:00", 12, saved(150, 1.5e20)),
            line("14:00:00", 12, saved(250, 2.5e20)),
        ],
    )
    assert [(n, c) for n, c, _, _ in log.steps(1)] == [(151, 100)]
