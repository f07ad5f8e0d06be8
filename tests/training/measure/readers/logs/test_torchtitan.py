"""torchtitan: a stamp on every line, colours inside, perhaps several ranks."""

from pathlib import Path

from samples import NS, at, told

from goodput.core.events import AttemptEnd, Committed, Resumed


def log(clock: str, words: str, rank: int = 0) -> str:
    return f"[rank{rank}]:[titan] 2025-03-07 {clock} - root - INFO - {words}"


def step(clock: str, number: int, rank: int = 0) -> str:
    words = (
        f"\x1b[31mstep: {number:2}  \x1b[32mloss: {7.1:8.5f}  \x1b[38;2;180;60;0mgrad_norm: 1.2  "
        "\x1b[36mmemory: 66.91GiB(37.51%)  \x1b[34mtps: 10,050  tflops: 314.71  mfu: 13.99%\x1b[39m"
    )
    return log(clock, words, rank)


START = [
    log("10:00:00,000", "Starting job: Llama 3 8B training"),
    log("10:00:20,000", "Training starts at step 1, with local batch size 8"),
]


def test_an_interval_lasts_from_line_to_line(tmp_path: Path) -> None:
    lines = [*START, step("10:00:50,500", 1), step("10:01:00,500", 10), step("10:01:11,000", 20)]
    result = told(tmp_path, lines)
    assert result.steps() == [
        (1, 1, at("2025-03-07 10:00:20"), 30.5),
        (2, 9, at("2025-03-07 10:00:50.5"), 10.0),
        (11, 10, at("2025-03-07 10:01:00.5"), 10.5),
    ]
    assert result.logs[0].started_at_ns == round(at("2025-03-07 10:00:00")) * NS


def test_other_ranks_say_the_same(tmp_path: Path) -> None:
    lines = [*START, START[0].replace("rank0", "rank1"), START[1].replace("rank0", "rank1")]
    steps = [
        step("10:01:00,500", 1),
        step("10:01:00,501", 1, 1),
        step("10:01:02,000", 2, 1),
        step("10:01:02,000", 2),
    ]
    result = told(tmp_path, [*lines, *steps])
    assert len(result.logs) == 1
    assert [row[:2] for row in result.steps()] == [(1, 1), (2, 1)]


def test_a_save_is_inside_the_next_interval(tmp_path: Path) -> None:
    lines = [
        *START,
        step("10:01:00,000", 10),
        log("10:01:00,100", "Saving the checkpoint (or staging if async is enabled)."),
        log("10:01:05,100", "Finished saving the checkpoint (or staging if async is enabled) in "
            "5.00 seconds."),
        step("10:01:15,000", 20),
    ]  # fmt: skip
    result = told(tmp_path, lines)
    assert result.spans("checkpoint") == [(at("2025-03-07 10:01:00.1"), 5.0)]
    assert result.steps()[1] == (11, 10, at("2025-03-07 10:01:00"), 15.0)
    (saved,) = result.events(Committed)
    assert isinstance(saved, Committed)
    assert saved.last_step == 10
    assert result.noted("name no step") == 1
    assert result.noted("asynchronous saves") == 1


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    lines = [
        START[0],
        log("10:00:10,000", "Loading the checkpoint from outputs/checkpoint/step-500."),
        log("10:00:18,000", "Finished loading the checkpoint in 8.00 seconds."),
        log("10:00:20,000", "Training starts at step 501"),
        step("10:01:20,000", 510),
    ]
    result = told(tmp_path, lines)
    assert result.spans("restore") == [(at("2025-03-07 10:00:10"), 8.0)]
    assert result.steps()[0][:2] == (501, 10)
    (resumed,) = result.events(Resumed)
    assert isinstance(resumed, Resumed)
    assert resumed.next_step == 501


def test_validation_lasts_from_the_step_before(tmp_path: Path) -> None:
    lines = [*START, step("10:01:00,000", 10), log("10:01:07,000", "validate step: 10  loss: 7.0")]
    assert told(tmp_path, lines).spans("evaluation") == [(at("2025-03-07 10:01:00"), 7.0)]


def test_launches_and_the_end(tmp_path: Path) -> None:
    again = [text.replace(" 10:0", " 11:0") for text in START]
    lines = [*START, *again, step("11:01:00,000", 1), log("11:02:00,000", "Training completed")]
    result = told(tmp_path, lines)
    assert len(result.logs) == 2
    (end,) = result.events(AttemptEnd, 1)
    assert isinstance(end, AttemptEnd)
    assert end.outcome == "completed"
