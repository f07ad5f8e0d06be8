"""MaxText: step lines with or without absl's stamps, which have no year."""

from pathlib import Path

import pytest
from samples import at, told

from goodput.core.events import Allocated, Committed, Resumed, Work


def step(number: int, seconds: float, prefix: str = "") -> str:
    return (
        f"{prefix}completed step: {number}, seconds: {seconds}, TFLOP/s/device: 134.924, "
        "Tokens/s/device: 8672.758, total_weights: 196608, loss: 10.374"
    )


def absl(stamp: str) -> str:
    return f"I{stamp}.000000 138304841739136 metric_logger.py:226] "


HEAD = ["Num_devices: 32, shape (1, 1, 32)", "Per train step:", " Total TFLOPs: 764.67 "]


def test_stamped_steps_end_at_their_stamp(tmp_path: Path) -> None:
    lines = [step(0, 30.0, absl("0511 10:01:00")), step(1, 5.5, absl("0511 10:01:06"))]
    result = told(tmp_path, [*HEAD, *lines])
    assert result.steps() == [
        (0, 1, at("2026-05-11 10:00:30"), 30.0),
        (1, 1, at("2026-05-11 10:01:00.5"), 5.5),
    ]


def test_without_stamps_the_file_s_time_is_the_end(tmp_path: Path) -> None:
    result = told(tmp_path, [step(0, 30.0), step(1, 5.5)], mtime="2025-01-01 00:00:36")
    assert result.steps()[0] == (0, 1, at("2025-01-01 00:00:00.5"), 30.0)


def test_devices_and_flops(tmp_path: Path) -> None:
    result = told(tmp_path, [*HEAD, step(0, 30.0)])
    (allocated,), (work,) = result.events(Allocated), result.events(Work)
    assert isinstance(allocated, Allocated)
    assert isinstance(work, Work)
    assert (result.logs[0].header.world, allocated.chips) == (32, 32)
    assert work.flops_per_step == pytest.approx(764.67e12 * 32)


def test_saves_and_restores(tmp_path: Path) -> None:
    lines = [
        step(0, 30.0),
        "Started an asynchronous checkpoint save for step 0",
        step(1, 5.0),
        "Saved a checkpoint at step 1.",
        *HEAD,
        "restoring from this run's directory step 1",
        step(2, 30.0),
    ]
    result = told(tmp_path, lines)
    assert [e.last_step for e in result.events(Committed) if isinstance(e, Committed)] == [0, 1]
    (resumed,) = result.events(Resumed, 1)
    assert isinstance(resumed, Resumed)
    assert resumed.next_step == 2
    assert result.steps(1)[0][:2] == (2, 1)
    assert result.noted("asynchronous saves") == 1


def test_an_evaluation_is_the_gap_before_the_next_stamped_step(tmp_path: Path) -> None:
    lines = [
        step(0, 30.0, absl("0511 10:01:00")),
        "eval metrics after step: 0, loss=3.1, total_weights=1.0",
        step(1, 5.0, absl("0511 10:01:25")),
    ]
    assert told(tmp_path, lines).spans("evaluation") == [(at("2026-05-11 10:01:00"), 20.0)]
