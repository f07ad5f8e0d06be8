"""Hugging Face trainer states: evaluations, one session's run time, contradictions."""

import json
import os
from pathlib import Path

import pytest
from foreign import jobs, told_by
from samples import NS, sample

from goodput.core.errors import DataError
from goodput.core.events import Work

END = 1_780_000_000


def state(
    tmp_path: Path, entries: list[dict[str, object]], *, folder: str = "run", **more: object
) -> Path:
    last = max((e.get("step", 0) for e in entries), default=0)  # type: ignore[type-var]
    body = {"best_metric": None, "global_step": last, "log_history": entries, **more}
    path = tmp_path / folder / "trainer_state.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(body))
    os.utime(path, (END, END))
    return path


LOGGED: list[dict[str, object]] = [
    {"step": 10, "loss": 2.0},
    {"step": 10, "eval_loss": 2.0, "eval_runtime": 5.0},
    {"step": 20, "loss": 1.0},
]


def test_run_time_without_evaluations_is_step_time(tmp_path: Path) -> None:
    done: dict[str, object] = {"step": 20, "train_runtime": 45.0, "train_loss": 1.5}
    told = told_by(state(tmp_path, [*LOGGED, done], max_steps=20, total_flos=2e15))
    assert [(n, c, d) for n, c, _, d in told.steps()] == [(1, 10, 20.0), (11, 10, 20.0)]
    assert told.spans("evaluation") == [(END - 25, 5.0)]
    assert told.logs[0].last_at_ns == END * NS
    (work,) = told.events(Work)
    assert isinstance(work, Work)
    assert work.flops_per_step == 1e14
    assert jobs(told) == ["run"]


def test_a_checkpoint_folder_belongs_to_its_run(tmp_path: Path) -> None:
    assert jobs(told_by(state(tmp_path, LOGGED, folder="bert/checkpoint-20"))) == ["bert"]


def test_only_the_last_session_has_a_run_time(tmp_path: Path) -> None:
    entries: list[dict[str, object]] = [
        {"step": 100, "loss": 1.0},
        {"step": 100, "train_runtime": 900.0},
        {"step": 110, "loss": 1.0},
        {"step": 110, "train_runtime": 10.0},
    ]
    told = told_by(state(tmp_path, entries))
    assert told.steps()[-1][3] == 10.0  # 10 steps of the last session in 10 s
    assert told.noted("covers that one only") == 1


def test_evaluations_longer_than_the_run_are_a_contradiction(tmp_path: Path) -> None:
    told = told_by(state(tmp_path, [*LOGGED, {"step": 20, "train_runtime": 3.0}]))
    assert told.noted("contradiction") == 1
    assert all(d == 0 for _, _, _, d in told.steps())


def test_without_run_time_it_says_so_as_a_warning(tmp_path: Path) -> None:
    told = told_by(state(tmp_path, LOGGED, max_steps=100))
    (note,) = [n for n in told.notes if "no train_runtime" in n.text]
    assert note.level == "warning"
    assert told.noted("stopped at step 20 of 100") == 1


def test_a_torn_file_is_ignored_with_a_reason(tmp_path: Path) -> None:
    path = state(tmp_path, LOGGED)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(DataError, match="not a whole trainer_state"):
        told_by(path)


def test_sample_mt5() -> None:
    told = told_by(sample("hf-trainer-state/mt5-az-summarize-trainer_state.json"))
    lasted = [seconds for _, seconds in told.spans("evaluation")]
    assert len(lasted) == 70
    assert sum(lasted) == pytest.approx(1994.1, abs=1)
    assert sum(c for _, c, _, _ in told.steps()) == 7000
    assert told.noted("stopped at step 7000 of 9411") == 1
    assert told.noted("no train_runtime") == 1
