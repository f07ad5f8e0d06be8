"""What a launcher reads from a command line, the environment, the folder and Slurm."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import goodput
from goodput.core.events import SCHEMA
from goodput.training.measure.launch_facts import (
    Earlier,
    Shape,
    SlurmTimes,
    earlier_launches,
    shape_of,
    slurm_times,
)


@pytest.mark.parametrize(
    ("command", "environ", "shape"),
    [
        ("python train.py", {}, (0, 1, 0)),
        ("torchrun --nproc_per_node=8 train.py", {}, (8, 1, 0)),
        ("torchrun --nproc-per-node 8 --nnodes 4 --node-rank 3 train.py", {}, (32, 4, 3)),
        ("torchrun --nnodes=2:4 --nproc_per_node=8 train.py", {}, (16, 2, 0)),
        ("python -m torch.distributed.run --nproc_per_node=2 train.py", {}, (2, 1, 0)),
        ("torchrun --nproc_per_node=2 train.py --nproc_per_node=99", {}, (2, 1, 0)),
        ("torchrun --nproc_per_node=gpu t.py", {"CUDA_VISIBLE_DEVICES": "0,1,2"}, (3, 1, 0)),
        ("torchrun --nproc_per_node=auto t.py", {"CUDA_VISIBLE_DEVICES": ""}, (0, 1, 0)),
        ("torchrun --nproc_per_node=cpu t.py", {}, (os.cpu_count(), 1, 0)),
        ("torchrun --nproc_per_node=many t.py", {}, (0, 1, 0)),
        ("torchrun --nproc_per_node", {}, (0, 1, 0)),
        ("accelerate launch --num_processes 16 --num_machines 2 t.py", {}, (16, 2, 0)),
        ("accelerate launch --num_processes 16 --machine_rank=1 t.py", {}, (16, 1, 1)),
        ("python t.py", {"SLURM_GPUS": "a100:8"}, (8, 1, 0)),
        ("python t.py", {"SLURM_GPUS_ON_NODE": "4", "SLURM_NNODES": "3"}, (12, 1, 0)),
        ("python t.py", {"SLURM_NTASKS": "5", "SLURM_NODEID": "2"}, (5, 1, 2)),
        ("torchrun --nproc_per_node=2 t.py", {"SLURM_NTASKS": "5"}, (2, 1, 0)),
    ],
)
def test_chips_nodes_and_node_rank(
    command: str, environ: dict[str, str], shape: tuple[int, int, int]
) -> None:
    assert shape_of(command.split(), environ) == Shape(*shape)


def test_an_empty_or_foreign_folder_has_no_earlier_launches(tmp_path: Path) -> None:
    nothing = Earlier(last_attempt=0, submitted_at_ns=frozenset())
    assert earlier_launches(tmp_path / "none") == nothing
    (tmp_path / "events-x.jsonl").write_bytes(b"\x00\xff garbage\n")
    (tmp_path / "events-y.jsonl").mkdir()
    assert earlier_launches(tmp_path) == nothing


def test_earlier_launches_are_those_of_launchers(tmp_path: Path) -> None:
    with goodput.start("job", dir=tmp_path, role="launcher") as run:
        run.submitted(8, at_ns=123)
        run.attempt_start("7")
        run.attempt_start("elastic-9")
    with goodput.start("job", dir=tmp_path, attempt="12") as run:
        run.attempt_start("99")
    head = f'{{"k":"process","schema":"{SCHEMA}","job":"job","role":"launcher","t":1}}\n'
    torn = head + '{"k":"attempt_start","attempt":"8","t":1}\n{"k":"attempt_st'
    (tmp_path / "job" / "events-torn.jsonl").write_text(torn)
    assert earlier_launches(tmp_path / "job") == Earlier(
        last_attempt=8, submitted_at_ns=frozenset({123})
    )


def scontrol(folder: Path, answer: str) -> dict[str, str]:
    """An environment in which `scontrol` says `answer`."""
    program = folder / "scontrol"
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin", "SLURM_JOB_ID": "42", "TZ": "UTC"}


def test_outside_slurm_there_are_no_slurm_times() -> None:
    assert slurm_times({}) is None


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def test_slurm_says_when_it_took_the_job_and_when_it_started_it(tmp_path: Path, utc: None) -> None:
    environ = scontrol(
        tmp_path,
        "echo JobId=$4 JobState=RUNNING SubmitTime=2026-01-01T00:00:00 "
        "EligibleTime=2026-01-01T00:00:00 StartTime=2026-01-01T01:00:00 EndTime=Unknown",
    )
    midnight_s = 1_767_225_600
    assert slurm_times(environ) == SlurmTimes(midnight_s * 10**9, (midnight_s + 3600) * 10**9)
    environ["SLURM_JOB_START_TIME"] = str(midnight_s + 60)
    times = slurm_times(environ)
    assert times is not None
    assert times.started_at_ns == (midnight_s + 60) * 10**9


@pytest.mark.parametrize("answer", ["exit 1", "echo SubmitTime=Unknown"])
def test_a_slurm_that_does_not_answer_is_no_error(tmp_path: Path, answer: str) -> None:
    assert slurm_times(scontrol(tmp_path, answer)) == SlurmTimes(0, 0)


def test_without_scontrol_slurms_own_variables_are_used(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path), "SLURM_JOB_ID": "42", "SLURM_JOB_START_TIME": "100"}
    assert slurm_times(environ) == SlurmTimes(0, 100 * 10**9)
