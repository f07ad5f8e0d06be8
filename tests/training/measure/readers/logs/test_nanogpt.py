"""nanoGPT, llm.c and modded-nanogpt: durations without stamps."""

from pathlib import Path

import pytest
from samples import NS, at, sample, tell, told

from goodput.core.events import AttemptEnd, Committed


def iteration(number: int, ms: float) -> str:
    return f"iter {number}: loss 4.2187, time {ms:.2f}ms, mfu 31.02%"


def modded(step: int, ms: int, kind: str = "train_loss:3.5 ") -> str:
    return f"step:{step}/20 {kind}train_time:{ms}ms step_avg:140.00ms"


def test_without_stamps_the_file_s_time_is_the_end(tmp_path: Path) -> None:
    lines = [iteration(0, 9000), iteration(1, 500), iteration(2, 500)]
    result = told(tmp_path, lines, mtime="2025-01-01 00:00:10")
    begin = at("2025-01-01 00:00:00")
    assert result.steps() == [
        (0, 1, begin, 9.0),
        (1, 1, begin + 9, 0.5),
        (2, 1, begin + 9.5, 0.5),
    ]


def test_every_tenth_line_stands_for_ten(tmp_path: Path) -> None:
    result = told(tmp_path, [iteration(0, 9000), iteration(10, 500), iteration(20, 500)])
    assert [(row[0], row[1], row[3]) for row in result.steps()] == [
        (0, 1, 9.0),
        (1, 10, 5.0),
        (11, 10, 5.0),
    ]
    assert result.noted("one step of several") == 2


def test_an_evaluation_is_folded_into_a_step_and_taken_out_again(tmp_path: Path) -> None:
    lines = [
        iteration(0, 9000), iteration(1, 500),
        "step 2: train loss 3.1, val loss 3.2", "saving checkpoint to out",
        iteration(2, 30_500), iteration(3, 500),
    ]  # fmt: skip
    result = told(tmp_path, lines, mtime="2025-01-01 00:00:41")
    begin = at("2025-01-01 00:00:00.500")
    assert result.spans("evaluation") == [(begin + 9.5, 30.0)]
    assert [row[3] for row in result.steps()] == [9.0, 0.5, 0.5, 0.5]
    (saved,) = result.events(Committed)
    assert isinstance(saved, Committed)
    assert saved.last_step == 1


def test_llm_c(tmp_path: Path) -> None:
    row = (
        "step %4d/3 | loss 11.0 (+nanz)| norm 15.3 (+nanz)| lr 8.5e-07 | %.2f ms | 34.9%% bf16 MFU"
    )
    result = told(tmp_path, [row % (1, 3000), row % (2, 150), "val loss 3.2", row % (3, 150)])
    assert [(r[0], r[3]) for r in result.steps()] == [(1, 3.0), (2, 0.15), (3, 0.15)]
    (end,) = result.events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert end.outcome == "completed"


def test_modded_time_is_cumulative_and_starts_anew_after_the_warm_up(tmp_path: Path) -> None:
    lines = [
        "Tue Oct 29 17:09:20 2024       ",
        modded(0, 387, "val_loss:16.0 "),
        modded(1, 23_387),
        modded(2, 23_527),
        modded(3, 77),
        modded(4, 217),
        modded(4, 230, "val_loss:5.5 "),
        modded(5, 357),
    ]
    result = told(tmp_path, lines)
    begin = at("2024-10-29 17:09:20")
    assert result.steps()[0] == (1, 1, begin, 23.0)
    assert [row[3] for row in result.steps()] == [23.0, 0.14, 0.077, 0.14, 0.14]
    assert result.noted("evaluations") == 2


def test_sample_modded_nanogpt() -> None:
    result = tell(sample("nanogpt/modded-nanogpt-2024-10-29-optimizers.txt"))
    rows = result.steps()
    assert [row[0] for row in rows] == list(range(1, 5101))
    assert sum(row[3] for row in rows) == pytest.approx(25.859 - 0.387 + 912.686, abs=0.1)
    assert result.logs[0].started_at_ns == round(at("2024-10-29 17:09:20")) * NS
    assert result.ledger.state == "completed"


def test_sample_llm_c_main_log_has_no_times() -> None:
    result = tell(sample("nanogpt/llmc-main.log"))
    assert result.logs[0].steps.n.size == 19_560
    assert result.noted("the log holds no times") == 1
    assert result.ledger.waterfall.capacity == 0
