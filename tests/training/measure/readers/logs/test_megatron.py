"""Megatron-LM and Megatron-DeepSpeed output, old and new, plain and with several ranks."""

from pathlib import Path

import pytest
from samples import NS, at, sample, tell, told

from goodput.core.events import AttemptEnd, Committed, Resumed, Work

WORLD = "using world size: 16, data-parallel-size: 4, tensor-model-parallel size: 4"
START = "[after megatron is initialized] datetime: 2025-03-07 10:00:00 "
READY = "[before the start of training step] datetime: 2025-03-07 10:00:20 "


def line(iteration: int, ms: float, stamp: str = "", extra: str = "", skipped: int = 0) -> str:
    prefix = f" [{stamp}]" if stamp else ""
    return (
        f"{prefix} iteration {iteration:8d}/    1000 | consumed samples: {iteration * 8} | "
        f"elapsed time per iteration (ms): {ms} |{extra} learning rate: 1.0E-04 | lm loss: 2.1E+00 "
        f"| number of skipped iterations: {skipped:3d} | number of nan iterations:   0 |"
    )


def test_dateless_lines_follow_the_stage_before_them(tmp_path: Path) -> None:
    result = told(tmp_path, [WORLD, START, READY, line(10, 3000), line(20, 1500.5)])
    begin = at("2025-03-07 10:00:20")
    assert result.steps() == [(1, 10, begin, 30.0), (11, 10, begin + 30, 15.005)]
    assert result.logs[0].header.world == 16
    assert result.logs[0].started_at_ns == round(at("2025-03-07 10:00:00")) * NS
    assert result.noted("inferred") == 2


def test_seconds_and_milliseconds(tmp_path: Path) -> None:
    in_s = line(10, 1.5).replace("(ms)", "(s)")
    assert told(tmp_path, [START, in_s]).steps()[0][3] == 15.0


def test_dated_lines_end_at_their_stamp(tmp_path: Path) -> None:
    result = told(
        tmp_path,
        [
            START,
            line(10, 1000, "2025-03-07 10:01:00.500000"),
            line(20, 1000, "2025-03-07 10:01:11"),
        ],
    )
    assert result.steps() == [
        (1, 10, at("2025-03-07 10:00:50.5"), 10.0),
        (11, 10, at("2025-03-07 10:01:01"), 10.0),
    ]
    assert result.noted("inferred") == 0


@pytest.mark.parametrize("prefix", ["[default7]:", "7: ", "[rank7]: ", "node-3 7: "])
def test_rank_prefixes(tmp_path: Path, prefix: str) -> None:
    lines = [prefix + text for text in (START, line(10, 1000), line(20, 1000))]
    assert [row[:2] for row in told(tmp_path, lines).steps()] == [(1, 10), (11, 10)]


def test_copies_of_other_ranks_count_once_even_when_late(tmp_path: Path) -> None:
    lines = [START, line(10, 1000), line(10, 1001), line(20, 1000), line(10, 1002), line(20, 1001)]
    result = told(tmp_path, [*lines, line(30, 1000)])
    assert [row[:2] for row in result.steps()] == [(1, 10), (11, 10), (21, 10)]
    assert result.noted("went back") == 0


def test_skipped_and_nan_iterations_are_counted(tmp_path: Path) -> None:
    nan = line(20, 1000).replace("nan iterations:   0", "nan iterations:   2")
    result = told(tmp_path, [START, line(10, 1000, skipped=3), nan])
    assert result.noted("no progress") == 5


def test_throughput_gives_the_flops_of_a_step(tmp_path: Path) -> None:
    lines = [WORLD, START, line(10, 2000, extra=" throughput per GPU (TFLOP/s/GPU): 390.5 |")]
    (work,) = told(tmp_path, lines).events(Work)
    assert isinstance(work, Work)
    assert work.flops_per_step == pytest.approx(390.5e12 * 2.0 * 16)


def test_a_dated_save_is_a_span_and_a_checkpoint(tmp_path: Path) -> None:
    result = told(
        tmp_path,
        [
            START,
            line(10, 1000, "2025-03-07 10:01:00"),
            " [2025-03-07 10:01:00] saving checkpoint at iteration      10 to /a-checkpoint",
            " [2025-03-07 10:01:08] successfully saved checkpoint from iteration      10 to /ckpt",
            line(20, 1000, "2025-03-07 10:01:18"),
        ],
    )
    assert result.spans("checkpoint") == [(at("2025-03-07 10:01:00"), 8.0)]
    (saved,) = result.events(Committed)
    assert isinstance(saved, Committed)
    assert (saved.last_step, saved.path) == (10, "/ckpt")


def test_a_dateless_save_is_timed_by_its_timer(tmp_path: Path) -> None:
    result = told(
        tmp_path,
        [
            START,
            line(10, 1000),
            "saving checkpoint at iteration      10 to /ckpt",
            "  successfully saved checkpoint at iteration      10 to /ckpt",
            "time (ms) | save-checkpoint: 7500.00",
            line(20, 1000),
        ],
    )
    begin = at("2025-03-07 10:00:00")
    assert result.spans("checkpoint") == [(begin + 10, 7.5)]
    assert result.steps()[1] == (11, 10, begin + 17.5, 10.0)
    assert len(result.events(Committed)) == 1


def test_a_loaded_checkpoint_says_where_the_launch_goes_on(tmp_path: Path) -> None:
    result = told(
        tmp_path,
        [
            START,
            " loading checkpoint from /ckpt at iteration 500",
            "  successfully loaded checkpoint from /ckpt [ t 0, p 0 ] at iteration 500",
            line(510, 1000),
        ],
    )
    (resumed,) = result.events(Resumed)
    assert isinstance(resumed, Resumed)
    assert (resumed.next_step, resumed.path) == (501, "/ckpt")
    assert result.steps()[0][:2] == (501, 10)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (5010, 5020, [(5001, 10), (5011, 10)]),
        (61, 62, [(61, 1), (62, 1)]),
        (10, 20, [(1, 10), (11, 10)]),
    ],
)
def test_the_second_line_shows_what_the_first_covers(
    tmp_path: Path, first: int, second: int, expected: list[tuple[int, int]]
) -> None:
    evaluation = f" validation loss at iteration {first} | lm loss value: 8.0E+00 | "
    for between in ([], [evaluation]):
        result = told(tmp_path, [START, line(first, 1000), *between, line(second, 1000)])
        assert [row[:2] for row in result.steps()] == expected
        assert [row[3] for row in result.steps()] == [float(covers) for _, covers in expected]


def test_an_evaluation_between_dated_lines_is_what_no_step_covers(tmp_path: Path) -> None:
    result = told(
        tmp_path,
        [
            START,
            line(10, 1000, "2025-03-07 10:01:00"),
            " validation loss at iteration 10 | lm loss value: 8.09E+00 | lm loss PPL: 3.2E+03 | ",
            line(20, 1000, "2025-03-07 10:01:17"),
        ],
    )
    assert result.spans("evaluation") == [(at("2025-03-07 10:01:00"), 7.0)]


def test_without_stamps_an_evaluation_is_said_to_be_untimed(tmp_path: Path) -> None:
    text = " validation loss at iteration 10 | lm loss value: 8.09E+00 | "
    result = told(tmp_path, [START, line(10, 1000), text, line(20, 1000)])
    assert result.spans("evaluation") == []
    assert result.noted("does not say how long") == 1


@pytest.mark.parametrize(
    ("words", "outcome", "cause"),
    [
        ("exiting program after receiving SIGTERM.", "stopped", "killed"),
        ("exiting program at iteration 20", "stopped", ""),
        ("exiting program after 230.5 minutes", "stopped", ""),
        ("after training is done", "completed", ""),
    ],
)
def test_exits(tmp_path: Path, words: str, outcome: str, cause: str) -> None:
    lines = [START, line(10, 1000), f"[{words}] datetime: 2025-03-07 11:00:00 "]
    (end,) = told(tmp_path, lines).events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert (end.outcome, end.cause) == (outcome, cause)
    assert end.t == round(at("2025-03-07 11:00:00")) * NS


def test_launches_in_one_file(tmp_path: Path) -> None:
    """The second resumed from iteration 10, so 11-20 of the first are lost."""
    second = [text.replace("10:00:", "12:00:") for text in (WORLD, START)]
    loaded = "  successfully loaded checkpoint from /ckpt [ t 0, p 0 ] at iteration 10"
    saved = "  successfully saved checkpoint at iteration      10 to /ckpt"
    result = told(
        tmp_path,
        [WORLD, START, line(10, 1000), saved, line(20, 1000), *second, loaded, line(20, 1000)],
    )
    assert len(result.logs) == 2
    assert [row[:2] for row in result.steps(1)] == [(11, 10)]
    steps = result.ledger.steps
    assert (steps.kept, steps.lost) == (20, 10)


def test_a_launch_that_reached_no_step_is_one_of_its_own(tmp_path: Path) -> None:
    second = [text.replace("10:00:", "12:00:") for text in (WORLD, START)]
    result = told(tmp_path, [WORLD, START, *second, line(10, 1000)])
    assert len(result.logs) == 2
    assert result.logs[0].steps.n.size == 0


def test_going_back_without_a_start_is_said(tmp_path: Path) -> None:
    lines = [START, *(line(10 * i, 1000) for i in range(1, 8)), line(20, 1000), line(30, 1000)]
    result = told(tmp_path, lines)
    assert result.noted("went back") == 1
    assert [row[:2] for row in result.steps()][-2:] == [(11, 10), (21, 10)]


def test_sample_dateless_killed_by_slurm() -> None:
    result = tell(sample("megatron-lm/bigscience-meg-n8-1809562.out"))
    rows = result.steps()
    assert rows[0][1] == 10
    assert rows[0][3] / 10 == pytest.approx(3.17, rel=0.005)
    assert sum(row[3] for row in rows) == pytest.approx(340.4, abs=1)
    assert (rows[-1][0] + rows[-1][1] - 1, len(rows)) == (200, 20)
    ledger = result.ledger
    assert (ledger.ended_at_ns - ledger.started_at_ns) / NS == pytest.approx(355, abs=1)
    (end,) = result.events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert end.outcome == "stopped"
    assert not result.events(Committed)
    assert result.logs[0].header.world == 32


def test_sample_megatron_deepspeed_at_its_time_limit() -> None:
    result = tell(sample("megatron-deepspeed/bigscience-meg-ds-zero-n16-1999616.out"))
    assert [row[:2] for row in result.steps()] == [(1, 1), (2, 1), (3, 1), (4, 1)]
    assert result.steps()[0][3] == pytest.approx(123.742, abs=0.001)
    (end,) = result.events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert (end.outcome, end.cause) == ("failed", "time_limit")
    assert result.logs[0].header.world == 64
