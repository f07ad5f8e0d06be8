"""W&B run files: framing and damage, step keys, start and exit, the library."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from foreign import jobs, told_by
from hypothesis import given
from hypothesis import strategies as st
from tracker_files import exit_record, history, run_record, wandb_file

from goodput.core.events import AttemptEnd
from goodput.training.measure.readers.leveldb_log import Damage, records_of
from goodput.training.measure.readers.wandb import read_wandb

T0 = 1_780_000_000.0


def run(
    folder: Path, first: int, last: int, *, run_id: str = "a1", code: int = 0, later_s: float = 0
) -> Path:
    rows = [
        history({"_step": n - first, "_timestamp": T0 + n + later_s, "train/global_step": n})
        for n in range(first, last + 1)
    ]
    records = [
        run_record(run_id, "mine", T0 + first - 1.5 + later_s),
        *rows,
        exit_record(code, last - first + 3),
    ]
    return wandb_file(folder / f"run-{run_id}.wandb", records)


def test_rows_are_steps(tmp_path: Path) -> None:
    told = told_by(run(tmp_path, 1, 5))
    assert jobs(told) == ["mine"]
    assert [(n, c, d) for n, c, _, d in told.steps()] == [
        (1, 1, 1.5), (2, 1, 1.0), (3, 1, 1.0), (4, 1, 1.0), (5, 1, 1.0),
    ]  # fmt: skip
    assert told.noted("taken from 'train/global_step'") == 1
    assert told.noted("rework inside a run is not in this file") == 1


@pytest.mark.parametrize(("code", "outcome"), [(0, "completed"), (255, "failed")])
def test_exit(tmp_path: Path, code: int, outcome: str) -> None:
    (end,) = told_by(run(tmp_path, 1, 5, code=code)).events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert (end.outcome, end.exit_code) == (outcome, code)


def test_two_runs_that_continue_are_one_job(tmp_path: Path) -> None:
    run(tmp_path / "offline-run-20260501_100000-a1", 1, 20)
    run(tmp_path / "offline-run-20260501_110000-a2", 16, 40, run_id="a2", later_s=99)
    assert len(told_by(tmp_path).logs) == 2
    assert jobs(told_by(tmp_path)) == ["mine"]
    assert told_by(tmp_path).noted("it goes on where run-a1.wandb had got to") == 1


def test_without_a_step_key_rows_are_counted(tmp_path: Path) -> None:
    rows = [history({"_step": n, "_timestamp": T0 + n, "loss": 1.0}) for n in range(4)]
    told = told_by(wandb_file(tmp_path / "run-x.wandb", [run_record("x", "", T0 - 1), *rows]))
    assert [n for n, _, _, _ in told.steps()] == [0, 1, 2, 3]
    assert told.noted("count of rows") == 1


def test_evaluation_length(tmp_path: Path) -> None:
    rows = [history({"_step": n, "_timestamp": T0 + n, "global_step": n}) for n in range(1, 4)]
    rows.append(history({"_step": 4, "_timestamp": T0 + 8, "global_step": 3, "eval/runtime": 4.0}))
    told = told_by(wandb_file(tmp_path / "run-x.wandb", [run_record("x", "", T0), *rows]))
    assert told.spans("evaluation") == [(T0 + 4, 4.0)]
    assert len(told.steps()) == 3


def test_records_longer_than_a_block(tmp_path: Path) -> None:
    records = [b"a" * 10, b"b" * 100_000, b"c" * 32_768, b"", b"d"]
    path = wandb_file(tmp_path / "run-x.wandb", records)
    damage = Damage()
    assert list(records_of(path.read_bytes(), damage)) == records
    assert (damage.blocks, damage.torn) == (0, False)


def test_damage_costs_a_block_and_is_told(tmp_path: Path) -> None:
    path = run(tmp_path, 1, 1000)
    data = bytearray(path.read_bytes())
    assert len(data) > 2 * 32768
    data[40_000] ^= 0xFF
    path.write_bytes(bytes(data))
    told = told_by(path)
    assert told.noted("blocks with a wrong checksum") == 1
    assert 300 < len(told.steps()) < 1000


def test_torn_end(tmp_path: Path) -> None:
    path = run(tmp_path, 1, 50)
    path.write_bytes(path.read_bytes()[:-5])
    told = told_by(path)
    assert told.noted("ends inside a record") == 1
    assert len(told.steps()) == 50


@given(st.integers(0, 5000), st.integers(1, 255))
def test_no_flip_crashes_the_reader(at: int, flip: int) -> None:
    with TemporaryDirectory() as folder:
        path = run(Path(folder), 1, 40)
        data = bytearray(path.read_bytes())
        data[7 + at % (len(data) - 7)] ^= flip
        path.write_bytes(bytes(data))
        assert len(read_wandb(path, "run").logs) <= 1


_PROGRAM = """
import wandb
run = wandb.init(project="p", name="mine", id="abc")
for n in range(1, 31):
    run.log({"train/loss": 1 / n, "train/global_step": n})
run.finish()
"""


@pytest.mark.integration
def test_a_file_of_the_library(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    offline = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(tmp_path)}
    subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        check=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, **offline},
    )
    (path,) = tmp_path.rglob("run-*.wandb")
    told = told_by(path)
    assert jobs(told) == ["mine"]
    assert [n for n, _, _, _ in told.steps()] == list(range(1, 31))
    (end,) = told.events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert end.outcome == "completed"


def summary(folder: Path, **more: float) -> Path:
    """Write the summary of a run of 90 s and 30 rows."""
    path = folder / "files" / "wandb-summary.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"_timestamp": T0 + 90, "_runtime": 90.0, "_step": 29, **more}))
    return path


def test_a_summary_alone_holds_totals(tmp_path: Path) -> None:
    told = told_by(summary(tmp_path / "run-1-a1"))
    assert told.steps() == [(1, 30, T0, 90.0)]
    assert jobs(told) == ["run-1-a1"]
    (note,) = [n for n in told.notes if "totals only" in n.text]
    assert note.level == "warning"


def test_a_summary_beside_its_run_adds_nothing(tmp_path: Path) -> None:
    run(tmp_path / "run-1-a1", 1, 60)
    summary(tmp_path / "run-1-a1", **{"train/global_step": 60})
    told = told_by(tmp_path)
    assert jobs(told) == ["mine"]
    assert len(told.steps()) == 60
    assert len(told.logs) == 1
