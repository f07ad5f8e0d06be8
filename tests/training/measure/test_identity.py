"""Who records: arguments, then the environment, then 0 of 1."""

import os
import time
from pathlib import Path

import pytest

from goodput.training.measure.identity import boot_id, folder_name, identify, process_started_ns


@pytest.mark.parametrize(
    ("environ", "rank", "world"),
    [
        ({}, 0, 1),
        ({"RANK": "3", "WORLD_SIZE": "8"}, 3, 8),
        ({"SLURM_PROCID": "2", "SLURM_NTASKS": "4"}, 2, 4),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, 1, 2),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, 1, 2),
        ({"RANK": "5", "WORLD_SIZE": "8", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, 5, 8),
        ({"RANK": "", "WORLD_SIZE": "8"}, 0, 1),
        ({"RANK": "two", "WORLD_SIZE": "8"}, 0, 1),
        ({"RANK": "0", "WORLD_SIZE": "many"}, 0, 1),
        ({"SLURM_NTASKS": "64"}, 0, 1),
    ],
)
def test_rank_and_world_come_from_one_launcher(
    environ: dict[str, str], rank: int, world: int
) -> None:
    identity = identify(environ=environ)
    assert (identity.rank, identity.world) == (rank, world)


def test_arguments_win_over_the_environment(tmp_path: Path) -> None:
    environ = {
        "RANK": "3",
        "WORLD_SIZE": "8",
        "GOODPUT_JOB": "other",
        "GOODPUT_DIR": "/elsewhere",
        "GOODPUT_ATTEMPT": "9",
    }
    identity = identify(
        job="mine", directory=tmp_path, rank=0, world=2, attempt="", environ=environ
    )
    assert (identity.job, identity.folder) == ("mine", tmp_path / "mine")
    assert (identity.rank, identity.world, identity.attempt) == (0, 2, "")
    other = identify(environ=environ)
    assert (other.job, other.folder) == ("other", Path("/elsewhere/other"))


@pytest.mark.parametrize(
    ("environ", "key"),
    [
        ({}, ""),
        ({"GOODPUT_ATTEMPT": "2"}, "2"),
        ({"GOODPUT_ATTEMPT": "2", "TORCHELASTIC_RESTART_COUNT": "1"}, "2.1"),
        ({"TORCHELASTIC_RESTART_COUNT": "1"}, ""),
    ],
)
def test_an_attempt_is_a_launch_and_torchruns_restart_in_it(
    environ: dict[str, str], key: str
) -> None:
    assert identify(environ=environ).attempt == key


@pytest.mark.parametrize(
    ("job", "folder"),
    [
        ("llama-3.1_8b", "llama-3.1_8b"),
        ("team/run 7", "team_run_7"),
        ("../../etc", "_.._etc"),
        ("..", "run"),
        ("größe", "größe"),
    ],
)
def test_a_job_has_one_folder_inside_the_directory(job: str, folder: str) -> None:
    assert folder_name(job) == folder


def test_the_process_knows_when_it_was_started_and_on_which_boot() -> None:
    started = process_started_ns()
    hertz = os.sysconf("SC_CLK_TCK")
    assert time.time_ns() - started > 0
    assert abs(process_started_ns() - started) <= 2 * 10**9 // hertz
    assert len(boot_id()) == 36
