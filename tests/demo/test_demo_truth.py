"""The demo's own account, on a history that can be computed by hand."""

from pathlib import Path

import pytest

from goodput.core.errors import DataError
from goodput.demo.plan import Folder
from goodput.demo.truth import Launch, Truth, account, read
from goodput.demo.witness import Mark, Witness, read_marks
from goodput.training.faults.truthlog import Sent

S = 1_000_000_000


def marks(*what: tuple[float, str, int]) -> tuple[Mark, ...]:
    return tuple(Mark(round(at * S), name, number) for at, name, number in what)


def step(n: int, begin: float, end: float | None) -> list[tuple[float, str, int]]:
    """A step with a data wait of 0.1 s before it."""
    first = [(begin - 0.1, "data_begin", n), (begin, "data_end", n), (begin, "step_begin", n)]
    return first if end is None else [*first, (end, "step_end", n)]


def sent(at: float, kind: str, rank: int) -> Sent:
    return Sent(
        t=0,
        m=round(at * S),
        fault=0,
        kind=kind,
        signal="",
        rank=rank,
        pids=(1,),
        attempt="",
        step=0,
        late_s=0.0,
    )


# Launch 1: start 0, steps 0 and 1 of 1 s from 5 s, a save, step 2, a kill 0.5 s into step 3.
LEAD_1 = marks(
    (2.0, "rank", 0),
    (3.0, "restore_begin", -1),
    (4.0, "restore_end", 0),
    *step(0, 5.0, 6.0),
    *step(1, 6.1, 7.1),
    (7.1, "save_begin", 1),
    (7.6, "save_end", 1),
    *step(2, 7.7, 8.7),
    *step(3, 8.8, None),
    (9.4, "failed", -1),
)
PEER_1 = LEAD_1[:-1]
# Launch 2: resumes at step 2; an evaluation after step 3; ends by itself.
LEAD_2 = marks(
    (13.0, "restore_begin", -1),
    (14.0, "restore_end", 2),
    *step(2, 14.5, 16.0),
    *step(3, 16.1, 18.1),
    (18.1, "evaluation_begin", 3),
    (18.4, "evaluation_end", 3),
    (18.4, "trained", -1),
)
LAUNCHES = (
    Launch(0, 10 * S, {0: LEAD_1, 1: PEER_1}),
    Launch(11 * S, 19 * S, {0: LEAD_2, 1: LEAD_2}),
)


def seconds(truth: Truth) -> dict[str, float]:
    return {name: amount / S for name, amount in truth.classes.items()}


def test_a_history_by_hand() -> None:
    truth = account(LAUNCHES, [sent(9.3, "kill", 1)])
    assert seconds(truth) == pytest.approx(
        {
            # steps 0 and 2 begin a process: what they take over the ideal of 1.1 s is startup
            "steps": 2 * (1 + 1 + 1.1 + 2),
            # to the first step, the wait for its data included
            "startup": 2 * (5.0 + 3.5 + 0.4),
            "checkpoint": 2 * 0.5,
            # the kill at 9.3, the failed collective at 9.4
            "detection": 2 * 0.1,
            "recovery": 2 * 1.6,
            # step 2 and half of step 3
            "rework": 2 * (1 + 0.5),
            "data": 2 * 0.4,
            "evaluation": 2 * 0.3,
            "teardown": 2 * 0.6,
            "other": 0.0,
        }
    )
    assert sum(truth.classes.values()) == truth.capacity == 2 * 19 * S
    assert (truth.kept_steps, truth.lost_steps) == (4, 1)
    # 10th percentile of 1 s (step 1) and 2 s (step 3)
    assert truth.ideal_step_ns == round(1.1 * S)
    (strike,) = truth.strikes
    assert (strike.kind, strike.rank, strike.step, strike.rework_steps) == ("kill", 1, 3, 1)
    assert strike.noticed_ns == round(9.4 * S)
    assert strike.relaunched_ns == 11 * S


def test_what_a_rank_did_after_the_fault_is_not_progress() -> None:
    # Rank 0 still finished step 3 after its peer was killed.
    lead = marks(*((m.at_ns / S, m.what, m.number) for m in LEAD_1[:-1]), (9.35, "step_end", 3))
    launches = (LAUNCHES[0]._replace(workers={0: lead, 1: PEER_1}), LAUNCHES[1])
    truth = account(launches, [sent(9.3, "kill", 1)])
    assert truth.lost_steps == 1
    # Nobody said "failed": torchrun's exit at 10 is what was noticed.
    assert seconds(truth)["detection"] == pytest.approx(2 * 0.7)
    assert sum(truth.classes.values()) == truth.capacity


def test_a_fault_before_the_first_step_is_startup() -> None:
    early = Launch(0, 10 * S, {0: LEAD_1[:2], 1: LEAD_1[:1]})
    truth = account((early, LAUNCHES[1]), [sent(3.5, "kill", 1)])
    assert seconds(truth)["startup"] == pytest.approx(2 * (3.5 + 3.5))
    assert seconds(truth)["rework"] == 0
    assert sum(truth.classes.values()) == truth.capacity
    assert truth.strikes[0].step == -1


def test_a_job_that_never_came_back() -> None:
    truth = account(LAUNCHES[:1], [sent(9.3, "hang", 0)])
    assert seconds(truth)["recovery"] == pytest.approx(2 * 0.6)
    assert truth.strikes[0].relaunched_ns == 0
    assert truth.kept_steps == 3
    assert sum(truth.classes.values()) == truth.capacity


def test_it_reads_what_the_witnesses_wrote(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    for rank, history in enumerate((LEAD_2, LEAD_2)):
        lines = [f"0 rank {rank}", "1 parent 77"]
        lines += [f"{mark.at_ns} {mark.what} {mark.number}" for mark in history]
        folder.truth.mkdir(exist_ok=True)
        (folder.truth / f"worker-{rank}.log").write_text("\n".join(lines) + "\n")
    folder.faults.write_text("")
    torchrun = folder.truth / "torchrun-77.log"
    torchrun.write_text(f"0 start {11 * S}\n")
    with pytest.raises(DataError, match="cut off"):
        read(folder)
    torchrun.write_text(f"0 start {11 * S}\n{19 * S} exit -1\n")
    assert read(folder) == account(LAUNCHES[1:], [])


def test_a_folder_without_witnesses(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.truth.mkdir()
    folder.faults.write_text("")
    with pytest.raises(DataError, match="no witness marks"):
        read(folder)


def test_marks_come_back_and_a_torn_line_does_not(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "w.log"
    witness = Witness(path)
    witness.mark("step_begin", 7)
    witness.mark("done")
    witness.close()
    with path.open("a") as file:
        file.write("123 step_e")
    first, second = read_marks(path)
    assert (first.what, first.number, second.what, second.number) == ("step_begin", 7, "done", -1)
    assert 0 < first.at_ns <= second.at_ns
    path.write_text("12 what\n")
    with pytest.raises(DataError, match=f"{path}:1"):
        read_marks(path)
