"""NCCL's watchdog: the stall began when the collective was enqueued."""

from pathlib import Path

from samples import NS, Told, at, told

from goodput.core.events import AttemptEnd


def step(iteration: int, clock: str) -> str:
    return (
        f" [2025-12-18 {clock}] iteration {iteration:8d}/ 1000 | elapsed time per iteration (ms): "
        "1000.0 | learning rate: 1.0E-04 |"
    )


def watchdog(stamp: str, rank: int = 3, ran_ms: int = 600_026) -> str:
    return (
        f"[rank{rank}]:[E{stamp}ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
        f"Timeout(ms)=600000) ran for {ran_ms} milliseconds before timing out."
    )


STEPS = [step(10, "20:16:00"), step(20, "20:17:00")]


def end(result: Told) -> AttemptEnd:
    (found,) = result.events(AttemptEnd)
    assert isinstance(found, AttemptEnd)
    return found


def test_the_stall_began_at_the_line_s_time_minus_the_timeout(tmp_path: Path) -> None:
    over = end(told(tmp_path, [*STEPS, watchdog("1218 20:27:21.426 ")]))
    noticed = round(at("2025-12-18 20:27:21.426") * 1000) * 1_000_000
    assert (over.outcome, over.cause) == ("failed", "collective_timeout")
    assert over.noticed_t == noticed
    assert over.fault_t == noticed - 600_026_000_000
    assert over.rank == -1  # the rank that waits is not the one at fault


def test_the_ledger_books_the_wait_as_detection(tmp_path: Path) -> None:
    (incident,) = told(tmp_path, [*STEPS, watchdog("1218 20:27:21.426 ")]).ledger.incidents
    assert incident.detection_ns == 600_026_000_000


def test_of_many_ranks_the_first_word_stands(tmp_path: Path) -> None:
    lines = [watchdog("1218 20:27:21.426 "), watchdog("1218 20:27:25.000 ", 7, 600_900)]
    over = end(told(tmp_path, [*STEPS, *lines]))
    assert over.noticed_t == round(at("2025-12-18 20:27:21.426") * 1000) * 1_000_000
    assert over.t == round(at("2025-12-18 20:27:25")) * NS


def test_without_a_stamp_the_begin_of_the_stall_is_not_known(tmp_path: Path) -> None:
    result = told(tmp_path, [*STEPS, watchdog(" ")])
    assert end(result).fault_t == 0
    assert result.noted("without a stamp") == 1
