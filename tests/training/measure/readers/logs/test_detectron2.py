"""detectron2's log.txt: stamps without a year, launches appended to one file."""

from pathlib import Path

import pytest
from samples import NS, at, sample, tell, told

from goodput.core.events import AttemptEnd, Committed, Resumed


def event(stamp: str, iteration: int, data: float = 0.0) -> str:
    return (
        f"[{stamp} d2.utils.events]:  eta: 0:08:51  iter: {iteration}  total_loss: 8.858  "
        f"loss_cls: 1.1    time: 1.0998  last_time: 1.1  data_time: {data}  "
        "last_data_time: 0.01   lr: 0.00025  max_mem: 7000M"
    )


def start(stamp: str, first: int = 0) -> list[str]:
    return [
        f"[{stamp} detectron2]: Rank of current process: 0. World size: 4",
        f"[{stamp} d2.engine.train_loop]: Starting training from iteration {first}",
    ]


def test_steps_begin_with_0_and_last_from_line_to_line(tmp_path: Path) -> None:
    lines = [*start("06/22 20:00:00"), event("06/22 20:00:30", 19), event("06/22 20:00:52", 39)]
    result = told(tmp_path, lines)
    begin = at("2026-06-22 20:00:00")
    assert result.steps() == [(0, 20, begin, 30.0), (20, 20, begin + 30, 22.0)]
    assert result.logs[0].header.world == 4
    assert result.noted("without a year") == 1


def test_data_time_is_the_mean_of_the_interval(tmp_path: Path) -> None:
    lines = [*start("06/22 20:00:00"), event("06/22 20:00:30", 19, data=0.25)]
    assert told(tmp_path, lines).spans("data") == [(at("2026-06-22 20:00:00"), 5.0)]


def test_the_log_goes_over_new_year(tmp_path: Path) -> None:
    lines = [*start("12/31 23:59:50"), event("01/01 00:00:20", 19)]
    result = told(tmp_path, lines, mtime="2026-01-01 00:01:00")
    assert result.steps() == [(0, 20, at("2025-12-31 23:59:50"), 30.0)]


def test_a_save_lasts_until_the_next_line(tmp_path: Path) -> None:
    lines = [
        *start("06/22 20:00:00"),
        "[06/22 20:00:25 fvcore.common.checkpoint]: Saving checkpoint to out/model_0000019.pth",
        "[06/22 20:00:27 fvcore.common.checkpoint]: Saving checkpoint to out/model_final.pth",
        event("06/22 20:00:30", 19),
    ]
    result = told(tmp_path, lines)
    begin = at("2026-06-22 20:00:00")
    assert result.spans("checkpoint") == [(begin + 25, 2.0), (begin + 27, 3.0)]
    saved = [e.last_step for e in result.events(Committed) if isinstance(e, Committed)]
    assert saved == [19, 19]


def test_an_evaluation_and_one_that_never_ended(tmp_path: Path) -> None:
    began = "[06/22 20:01:00 d2.evaluation.evaluator]: Start inference on 125 batches"
    ended = "[06/22 20:05:18 d2.evaluation.evaluator]: Total inference time: 0:04:18.9"
    lines = [*start("06/22 20:00:00"), began, ended, *start("06/22 21:00:00"), began]
    result = told(tmp_path, lines)
    assert result.spans("evaluation") == [(at("2026-06-22 20:01:00"), 258.0)]
    assert [lasted for _, lasted in result.spans("evaluation", 1)] == [-1]


def test_a_launch_that_goes_on(tmp_path: Path) -> None:
    lines = [*start("06/22 20:00:00"), event("06/22 20:00:30", 19)]
    result = told(tmp_path, [*lines, *start("06/22 21:00:00", 10), event("06/22 21:00:30", 19)])
    assert result.steps(1)[0][:2] == (10, 10)
    (resumed,) = result.events(Resumed, 1)
    assert isinstance(resumed, Resumed)
    assert resumed.next_step == 10


def test_sample_with_five_launches() -> None:
    result = tell(sample("detectron2/cdfsod-clipart1k_10shot-log.txt"))
    assert len(result.logs) == 5
    assert sum(len(result.events(Resumed, i)) for i in range(5)) == 2
    assert sum(log.steps.n.size for log in result.logs) == 50
    assert [log.header.world for log in result.logs] == [4, 4, 1, 1, 4]
    for launch in (0, 1):
        rows = result.steps(launch)
        assert rows[-1][0] + rows[-1][1] - 1 == 499
        (end,) = result.events(AttemptEnd, launch)
        assert isinstance(end, AttemptEnd)
        assert end.outcome == "completed"
    begun = [log.started_at_ns / NS for log in result.logs]
    assert [round(b - begun[0]) for b in begun] == pytest.approx(
        [0, 8054, 73_232, 73_923, 84_719], abs=1
    )
    ((_, lasted),) = result.spans("evaluation", 4)
    assert lasted == pytest.approx(288, abs=1)
