"""DeepSpeed: throughput lines, skipped steps, saves, phases of DeepSpeed-Chat, its launcher."""

from pathlib import Path

import pytest
from samples import NS, at, sample, tell, told

from goodput.core.events import AttemptEnd, Committed, Resumed

DAY = "2023-04-18"


def timer(step: int, clock: str, rate: float = 128.0) -> str:
    return (
        f"[{DAY} {clock},000] [INFO] [timer.py:199:stop] epoch=0/micro_step={step}/"
        f"global_step={step}, RunningAvgSamplesPerSec=127.9, CurrSamplesPerSec={rate}, "
        "MemAllocated=3.96GB, MaxMemAllocated=22.95GB"
    )


def plain(step: int, clock: str, skipped: int = 0) -> str:
    return (
        f"[{DAY} {clock},000] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, "
        f"skipped={skipped}, lr=[9.6e-06, 9.6e-06], mom=[(0.9, 0.95), (0.9, 0.95)]"
    )


def test_intervals_last_from_line_to_line_and_copies_count_once(tmp_path: Path) -> None:
    lines = [
        plain(10, "01:00:10"), timer(10, "01:00:10"),
        plain(20, "01:00:20"), timer(20, "01:00:20"),
        plain(30, "01:00:31"), timer(30, "01:00:31"),
    ]  # fmt: skip
    rows = told(tmp_path, lines).steps()
    assert [row[:2] for row in rows] == [(1, 10), (11, 10), (21, 10)]
    assert rows[1][2:] == (at(f"{DAY} 01:00:10"), 10.0)
    assert rows[2][2:] == (at(f"{DAY} 01:00:20"), 11.0)


def test_a_log_that_begins_late(tmp_path: Path) -> None:
    rows = told(tmp_path, [timer(70, "01:00:10"), timer(80, "01:00:20")]).steps()
    assert [row[:2] for row in rows] == [(61, 10), (71, 10)]


def test_without_throughput_lines_the_plain_ones_serve(tmp_path: Path) -> None:
    rows = told(tmp_path, [plain(10, "01:00:10"), plain(20, "01:00:20")]).steps()
    assert [row[:2] for row in rows] == [(1, 10), (11, 10)]


def test_the_older_throughput_line(tmp_path: Path) -> None:
    old = f"[{DAY} 01:00:10,000] [INFO] [timer.py:154:stop] 0/10, SamplesPerSec=24.5"
    assert told(tmp_path, [old]).steps()[0][:2] == (1, 10)


def test_an_evaluation_is_what_the_throughput_leaves_of_an_interval(tmp_path: Path) -> None:
    """128 samples a second and 128 samples a step: ten steps take ten of the 25 seconds."""
    lines = [
        timer(10, "01:00:10"),
        timer(20, "01:00:20"),
        "***** Evaluating perplexity, Epoch 1/16 *****",
        "ppl: 1.97",
        timer(30, "01:00:45"),
        timer(40, "01:00:55"),
    ]
    result = told(tmp_path, lines)
    assert result.spans("evaluation") == [(at(f"{DAY} 01:00:20"), 15.0)]
    assert result.steps()[2][2:] == (at(f"{DAY} 01:00:35"), 10.0)


def test_the_first_interval_is_measured_by_its_throughput(tmp_path: Path) -> None:
    lines = [timer(10, "01:00:10", rate=64.0), timer(20, "01:00:20"), timer(30, "01:00:30")]
    assert told(tmp_path, lines).steps()[0][3] == 20.0


def test_overflow_lines_are_skipped_steps(tmp_path: Path) -> None:
    scaler = f"[{DAY} 01:00:01,000] [INFO] [loss_scaler.py:188:update_scale] [deepspeed] OVERFLOW! "
    other = f"[{DAY} 01:00:02,000] [INFO] [logging.py:96:log_dist] [Rank 0] Overflow detected. "
    words = "Skipping step. Attempted loss scale: 65536, reducing to 32768"
    lines = [scaler + "Rank 0 " + words, scaler + "Rank 1 " + words, other + words]
    assert told(tmp_path, [*lines, timer(10, "01:00:10")]).noted("overflow") == 2


def test_saves_and_the_checkpoint_that_was_loaded(tmp_path: Path) -> None:
    head = f"[{DAY} 01:00:%s,000] [INFO] [torch_checkpoint_engine.py:27:load] [Torch] "
    lines = [
        head % "00" + "Loading checkpoint from /c/global_step100/mp_rank_00_model_states.pt...",
        head % "00" + "Loading checkpoint from /c/global_step100/mp_rank_00_model_states.pt...",
        timer(110, "01:00:10"),
        head % "11" + "Checkpoint global_step110 is about to be saved!",
        head % "15" + "Checkpoint global_step110 is ready now!",
        head % "15" + "Checkpoint global_step110 is ready now!",
        timer(120, "01:00:25"),
    ]
    result = told(tmp_path, lines)
    assert result.spans("checkpoint") == [(at(f"{DAY} 01:00:11"), 4.0)]
    (saved,), (resumed,) = result.events(Committed), result.events(Resumed)
    assert isinstance(saved, Committed)
    assert isinstance(resumed, Resumed)
    assert (saved.last_step, resumed.next_step) == (110, 101)
    assert result.steps()[0][:2] == (101, 10)


@pytest.mark.parametrize(
    ("words", "outcome", "code", "signal"),
    [
        ("[launch.py:460:main] Process 73584 exits successfully.", "completed", -1, 0),
        ("[launch.py:321:sigkill_handler] ['python'] exits with return code = 1", "failed", 1, 0),
        ("[launch.py:321:sigkill_handler] ['python'] exits with return code = -9", "failed", -1, 9),
    ],
)
def test_the_launcher_says_how_it_ended(
    tmp_path: Path, words: str, outcome: str, code: int, signal: int
) -> None:
    level = "ERROR" if outcome == "failed" else "INFO"
    lines = [timer(10, "01:00:10"), f"[{DAY} 01:01:00,000] [{level}] {words}"]
    (end,) = told(tmp_path, lines).events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert (end.outcome, end.exit_code, end.signal) == (outcome, code, signal)


def test_reinforcement_steps_are_divided(tmp_path: Path) -> None:
    latency = (
        "|E2E latency=4.00s |Gather latency=0.50s (12.50%) |Generate time=2.00s (50.00%) "
        "|Training time=1.20s (30.00%) |Others=0.30 (7.50%)|CurSamplesPerSec=8.0"
    )
    loss = "epoch: 0|step: %d|ppo_ep: 1|act_loss: 0.02|cri_loss: 0.2|unsuper_loss: 0.0"
    lines = ["***** Running training *****", loss % 0, latency, loss % 1, latency]
    result = told(tmp_path, lines, mtime="2025-01-01 00:00:08")
    begin = at("2025-01-01 00:00:00")
    assert result.steps() == [(0, 1, begin, 4.0), (1, 1, begin + 4, 4.0)]
    assert result.spans("gather") == [(begin, 0.5), (begin + 4, 0.5)]
    assert result.spans("generate") == [(begin + 0.5, 2.0), (begin + 4.5, 2.0)]


def test_a_contradiction_is_said(tmp_path: Path) -> None:
    wrong = (
        "|E2E latency=1.00s |Gather latency=0.00s (0.00%) |Generate time=2.00s (200.00%) "
        "|Training time=1.20s (30.00%) |Others=0.30 (7.50%)"
    )
    assert told(tmp_path, [wrong]).noted("contradicts itself") == 1


def test_sample_step_1() -> None:
    result = tell(sample("deepspeed/dschat-step1-opt-1.3b.log"))
    rows = result.steps()
    assert len(rows) == 736
    assert (rows[0][0], rows[-1][0] + rows[-1][1] - 1) == (1, 7360)
    assert result.noted("overflow") == 139
    ledger = result.ledger
    assert ledger.started_at_ns / NS == pytest.approx(at("2023-04-18 01:46:52"), abs=1)
    assert ledger.ended_at_ns / NS == pytest.approx(at("2023-04-18 03:20:49"), abs=1)
    evaluations = result.spans("evaluation")
    assert len(evaluations) == 15  # of 17, one lies before the first step and one after the last
    assert sum(lasted for _, lasted in evaluations) == pytest.approx(125, abs=5)
    (end,) = result.events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert end.outcome == "completed"


def test_sample_step_2() -> None:
    result = tell(sample("deepspeed/dschat-step2-opt-350m.log"))
    rows = result.steps()
    assert rows[-1][0] + rows[-1][1] - 1 == 1840
    assert result.noted("overflow") == 20
