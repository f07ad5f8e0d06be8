"""Hugging Face Trainer: bars with carriage returns, dict lines, copies of other nodes."""

from pathlib import Path

import pytest
from samples import NS, at, sample, tell, told

from goodput.core.events import AttemptEnd, Committed, Resumed

RUNNING = "[INFO|trainer.py:1143] 2025-03-07 10:00:00,000 >> ***** Running training *****\n"
TOTAL = "[INFO|trainer.py:1149] 2025-03-07 10:00:00,000 >>   Total optimization steps = 4\n"


def bar(number: int, elapsed: str, total: int = 4) -> str:
    return (
        f"\r {100 * number // total:2d}%|███▏      | {number}/{total} [{elapsed}<09:41, 58.76s/it]"
    )


def runtime(seconds: float, rate: float = 0.5) -> str:
    return (
        f"{{'train_runtime': {seconds}, 'train_samples_per_second': 8.0, "
        f"'train_steps_per_second': {rate}, 'train_loss': 2.1, 'epoch': 1.0}}\n"
    )


FOUR = bar(0, "00:00") + bar(1, "00:10") + bar(2, "00:12") + bar(3, "00:14") + bar(4, "00:16")


def test_bars_give_steps_after_the_start_of_training(tmp_path: Path) -> None:
    result = told(tmp_path, RUNNING + TOTAL + FOUR + "\n" + runtime(16.1))
    begin = at("2025-03-07 10:00:00")
    assert result.steps() == [
        (1, 1, begin, 10.0),
        (2, 1, begin + 10, 2.0),
        (3, 1, begin + 12, 2.0),
        (4, 1, begin + 14, 2.0),
    ]
    (end,) = result.events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert end.outcome == "completed"


def test_a_bar_that_skips_numbers_covers_them(tmp_path: Path) -> None:
    result = told(tmp_path, RUNNING + bar(0, "00:00") + bar(3, "00:09") + "\n" + runtime(9))
    assert result.steps()[0][1:] == (3, at("2025-03-07 10:00:00"), 9.0)


def test_copies_of_other_nodes_count_once(tmp_path: Path) -> None:
    result = told(tmp_path, RUNNING + RUNNING + TOTAL + FOUR + "\n" + FOUR + "\n" + runtime(16.1))
    assert [row[0] for row in result.steps()] == [1, 2, 3, 4]
    assert len(result.logs) == 1


def test_a_bar_that_starts_again_at_another_pace_is_a_launch(tmp_path: Path) -> None:
    slower = bar(0, "00:00") + bar(1, "00:03") + bar(2, "00:06") + bar(3, "00:09")
    result = told(tmp_path, "{'loss': 2.5}\n" + FOUR + "\n" + slower + "\n{'loss': 2.4}\n")
    assert len(result.logs) == 2
    assert [row[3] for row in result.steps(1)] == [3.0, 3.0, 3.0]


def test_a_second_end_with_another_time_is_a_launch(tmp_path: Path) -> None:
    """Bars of the same pace look like another node's copy: its steps are one record then."""
    result = told(tmp_path, FOUR + "\n" + runtime(16.1) + FOUR + "\n" + runtime(18.0))
    assert [len(result.steps(i)) for i in range(len(result.logs))] == [4, 1]
    assert result.steps(1)[0][1:2] == (4,)


def test_the_same_end_from_another_node_is_a_copy(tmp_path: Path) -> None:
    result = told(tmp_path, FOUR + "\n" + runtime(16.1) + FOUR + "\n" + runtime(16.2))
    assert len(result.logs) == 1


def test_an_evaluation_is_taken_out_of_the_next_step(tmp_path: Path) -> None:
    evaluation = (
        "\n" + bar(5, "00:02", 50) + bar(50, "00:04", 50)
        + "\n{'eval_loss': 2.0, 'eval_runtime': 5.0, 'eval_samples_per_second': 9.9}\n"
    )  # fmt: skip
    before = bar(1, "00:10") + bar(2, "00:12")
    text = RUNNING + TOTAL + before + evaluation + bar(3, "00:19") + "\n"
    result = told(tmp_path, text + runtime(19))
    assert result.spans("evaluation") == [(at("2025-03-07 10:00:12"), 5.0)]
    assert [(row[0], row[3]) for row in result.steps()] == [(1, 10.0), (2, 2.0), (3, 2.0)]
    assert result.steps()[2][2] == at("2025-03-07 10:00:17")


def test_saves_that_are_logged(tmp_path: Path) -> None:
    head = "[INFO|trainer.py:2656] 2025-03-07 10:00:"
    saving = head + "12,000 >> Saving model checkpoint to o/checkpoint-2\n"
    weights = head + "15,500 >> Model weights saved in o/x.bin\n"
    text = RUNNING + TOTAL + bar(1, "00:10") + bar(2, "00:12") + "\n" + saving + weights
    result = told(tmp_path, text)
    assert result.spans("checkpoint") == [(at("2025-03-07 10:00:12"), 3.5)]
    (saved,) = result.events(Committed)
    assert isinstance(saved, Committed)
    assert saved.last_step == 2


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    words = (
        "[INFO|trainer.py:1] 2025-03-07 10:00:01,000 >>   Continuing training from global step 2\n"
    )
    text = RUNNING + words + bar(2, "00:00") + bar(3, "00:03") + bar(4, "00:05") + "\n"
    result = told(tmp_path, text)
    assert [(row[0], row[3]) for row in result.steps()] == [(3, 3.0), (4, 2.0)]
    (resumed,) = result.events(Resumed)
    assert isinstance(resumed, Resumed)
    assert resumed.next_step == 3


def test_without_bars_there_is_one_record(tmp_path: Path) -> None:
    evaluation = "{'eval_loss': 2.0, 'eval_runtime': 4.0, 'epoch': 1.0}\n"
    text = "{'loss': 2.5, 'epoch': 0.5}\n" + evaluation + runtime(20.0, 2.0)
    result = told(tmp_path, text)
    assert [(row[0], row[1], row[3]) for row in result.steps()] == [(1, 40, 16.0)]
    assert result.noted("no progress bar") == 1


def test_evaluations_longer_than_the_run_contradict_it(tmp_path: Path) -> None:
    evaluation = "\n{'eval_loss': 2.0, 'eval_runtime': 400.0, 'epoch': 1.0}\n"
    result = told(tmp_path, RUNNING + TOTAL + FOUR + evaluation + runtime(16.1))
    assert result.noted("contradicts itself") == 1


def test_sample_of_four_nodes() -> None:
    result = tell(sample("hf-trainer-stdout/bigscience-hf-ds-n4-1832555.out"))
    rows = result.steps()
    assert [row[0] for row in rows] == list(range(1, 17))
    assert sum(row[3] for row in rows) == pytest.approx(919.02, abs=1)
    assert len(result.logs) == 1
    ledger = result.ledger
    assert ledger.state == "completed"
    assert ledger.ended_at_ns / NS == pytest.approx(at("2021-05-25 06:53:45.9"), abs=1)
