"""NeMo 2: step lines without stamps between lines that have one."""

from pathlib import Path

import pytest
from samples import NS, at, sample, tell, told

from goodput.core.events import AttemptEnd, Committed, Resumed


def step(number: int, seconds: float, epoch: int = 0) -> str:
    return (
        f"[default0]:Training epoch {epoch}, iteration {number}/19 | lr: 1.499e-07 | "
        f"global_batch_size: 512 | global_step: {number} | reduced_train_loss: 11.03 | "
        f"train_step_timing in s: {seconds}"
    )


def info(clock: str, words: str) -> str:
    return f"[default0]:[NeMo I 2025-03-07 {clock} model_checkpoint:497] {words}"


START = [
    info("22:33:56", "Experiments will be logged at /tmp/x"),
    "[default0]:All distributed processes registered. Starting with 8 processes",
    info("22:34:00", "Padded vocab_size: 50432"),
]
SCHEDULED = "Scheduled async checkpoint save for /ckpt/model--step=1-consumed.ckpt"
DONE = (
    "Async checkpoint save for step 2 (/ckpt/model--step=1-consumed.ckpt) finalized successfully."
)


def test_steps_begin_with_0_and_follow_the_stamp_before_them(tmp_path: Path) -> None:
    result = told(tmp_path, [*START, step(0, 10.5), step(1, 7.5)])
    begin = at("2025-03-07 22:34:00")
    assert result.steps() == [(0, 1, begin, 10.5), (1, 1, begin + 10.5, 7.5)]
    assert result.logs[0].header.world == 8


def test_a_save_blocks_from_the_step_before_to_its_schedule(tmp_path: Path) -> None:
    result = told(
        tmp_path,
        [
            *START,
            step(0, 10),
            step(1, 7),
            info("22:34:20", SCHEDULED),
            step(2, 7),
            info("22:34:30", DONE),
        ],
    )
    assert result.spans("checkpoint") == [(at("2025-03-07 22:34:17"), 3.0)]
    (saved,) = result.events(Committed)
    assert isinstance(saved, Committed)
    assert saved.last_step == 1  # two steps are done: 0 and 1
    assert saved.t == round(at("2025-03-07 22:34:30")) * NS


def test_durations_that_the_log_gives_are_used(tmp_path: Path) -> None:
    words = (
        "Global Checkpoint Save : Rank: 0 : Iteration: 1 : Start time: 1.0s : Save duration: 4.5s"
    )
    result = told(tmp_path, [*START, step(0, 10), info("22:34:20", words)])
    assert result.spans("checkpoint") == [(at("2025-03-07 22:34:15.5"), 4.5)]


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    words = "Restoring states from the checkpoint path at /ckpt/model--step=9-last.ckpt"
    result = told(tmp_path, [*START, info("22:34:05", words), step(10, 7)])
    (resumed,) = result.events(Resumed)
    assert isinstance(resumed, Resumed)
    assert resumed.next_step == 10
    assert result.steps()[0][:2] == (10, 1)


def test_validation_is_the_gap_before_the_next_step(tmp_path: Path) -> None:
    lines = [*START, step(0, 10), "Validation: iteration 1/20", "Validation: iteration 2/20"]
    result = told(tmp_path, [*lines, step(1, 7), info("22:34:40", "later")])
    assert [row[:2] for row in result.steps()] == [(0, 1), (1, 1)]


def test_two_launches_in_one_file(tmp_path: Path) -> None:
    again = [text.replace("22:3", "23:3") for text in START]
    result = told(tmp_path, [*START, step(0, 10), *again, step(0, 10)])
    assert len(result.logs) == 2
    assert result.logs[1].started_at_ns == round(at("2025-03-07 23:33:56")) * NS


def test_sample_of_the_resiliency_demo() -> None:
    result = tell(sample("nemo/resiliency-demo-cell14.log"))
    rows = result.steps()
    assert [row[0] for row in rows] == list(range(20))
    assert rows[0][3] == pytest.approx(10.31)
    assert result.logs[0].started_at_ns / NS == pytest.approx(at("2025-03-07 22:33:45.9"), abs=0.1)
    # The step before the save ended by the warning at 22:35:19; it was scheduled at 22:35:22.
    assert result.spans("checkpoint")[0] == (at("2025-03-07 22:35:19"), 3.0)
    assert [e.last_step for e in result.events(Committed) if isinstance(e, Committed)] == [9, 18]
    (end,) = result.events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert end.outcome == "completed"
    assert result.ledger.steps.lost == 0
    assert result.logs[0].header.world == 8
