"""The machine: observations in, signals out, nothing else."""

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.training.faults import Fault, FaultMachine, FaultSchedule, Observation, Worker

A0, A1 = Worker(0, 10, "a"), Worker(1, 11, "a")
B0, B1 = Worker(0, 20, "b"), Worker(1, 21, "b")


def machine(*faults: Fault, origin: str = "first_step") -> FaultMachine:
    return FaultMachine(FaultSchedule(faults=faults, origin=origin))  # type: ignore[arg-type]


def seen(now_s: float, *, step: int = -1, alive: tuple[Worker, ...] = (A0, A1)) -> Observation:
    return Observation(now_s=now_s, launched_s=0.0, first_step_s=5.0, step=step, alive=alive)


def test_a_kill_at_a_step_hits_its_rank_once() -> None:
    injector = machine(Fault(kind="kill", at_step=90, rank=1))
    assert injector.observe(seen(10.0, step=89)) == ()
    (shot,) = injector.observe(seen(11.0, step=90))
    assert (shot.signal, shot.workers, shot.due_s) == (signal.SIGKILL, (A1,), 11.0)
    assert injector.finished
    assert injector.observe(seen(12.0, step=95, alive=(B0, B1))) == ()


def test_a_step_that_was_jumped_over_still_triggers() -> None:
    injector = machine(Fault(kind="kill", at_step=90))
    assert injector.observe(seen(1.0, step=97))


def test_seconds_count_from_the_origin() -> None:
    by_step = machine(Fault(kind="kill", at_s=3.0))
    by_launch = machine(Fault(kind="kill", at_s=3.0), origin="launch")
    assert by_launch.observe(seen(3.0))
    assert not by_step.observe(seen(7.9))
    assert by_step.next_due_s(7.9) == 8.0
    assert by_step.observe(seen(8.0))


def test_nothing_is_due_before_the_origin_is_known() -> None:
    injector = machine(Fault(kind="kill", at_s=0.0))
    assert injector.observe(Observation(now_s=99.0, alive=(A0,))) == ()
    assert injector.next_due_s(99.0) is None


def test_a_delay_after_the_trigger() -> None:
    injector = machine(Fault(kind="terminate", at_step=5, after_s=0.25))
    assert not injector.observe(seen(1.0, step=5))
    assert injector.next_due_s(1.0) == 1.25
    (shot,) = injector.observe(seen(1.3, step=6))
    assert (shot.signal, shot.due_s) == (signal.SIGTERM, 1.25)


def test_a_fault_waits_for_its_target_to_come_back() -> None:
    injector = machine(Fault(kind="kill", at_s=1.0, rank=1))
    assert injector.observe(seen(6.0, alive=(A0,))) == ()
    assert injector.waiting == (0,)
    (shot,) = injector.observe(seen(9.0, alive=(B0, B1)))
    assert (shot.workers, shot.due_s) == ((B1,), 6.0)


def test_a_refused_first_signal_is_due_again_unless_it_is_final() -> None:
    injector = machine(Fault(kind="kill", at_step=1), Fault(kind="kill", at_step=1, pid=77))
    first, second = injector.observe(seen(1.0, step=1))
    assert second.pid == 77
    injector.refused(first, final=False)
    injector.refused(second, final=True)
    (again,) = injector.observe(seen(2.0, step=1))
    assert again.fault == 0


def test_a_hang_for_a_time_is_continued() -> None:
    injector = machine(Fault(kind="hang", at_step=1, for_s=2.0))
    (stop,) = injector.observe(seen(1.0, step=1))
    assert stop.signal == signal.SIGSTOP
    assert injector.observe(seen(2.9, step=1)) == ()
    assert injector.next_due_s(2.9) == 3.0
    (go,) = injector.observe(seen(3.0, step=1))
    assert (go.signal, go.workers) == (signal.SIGCONT, (A0,))
    assert injector.finished


def test_a_hang_for_good_is_not() -> None:
    injector = machine(Fault(kind="hang", at_step=1))
    injector.observe(seen(1.0, step=1))
    assert injector.finished
    assert injector.release() == ()


def test_a_temporary_fault_ends_with_its_victim() -> None:
    injector = machine(Fault(kind="hang", at_step=1, for_s=9.0))
    injector.observe(seen(1.0, step=1))
    assert injector.observe(seen(2.0, step=1, alive=(B0, B1))) == ()
    assert injector.finished


def test_leaving_early_continues_what_was_stopped_for_a_time() -> None:
    injector = machine(Fault(kind="hang", at_step=1, for_s=9.0))
    injector.observe(seen(1.0, step=1))
    (go,) = injector.release()
    assert (go.signal, go.workers) == (signal.SIGCONT, (A0,))
    assert injector.release() == ()


def test_scope_job_hits_all_workers() -> None:
    (shot,) = machine(Fault(kind="kill", at_step=1, scope="job")).observe(seen(1.0, step=1))
    assert shot.workers == (A0, A1)


@pytest.mark.parametrize("slowdown", [1.25, 2.0, 4.0])
def test_a_slow_process_runs_for_its_share_of_the_time(slowdown: float) -> None:
    injector = machine(Fault(kind="slow", at_step=1, for_s=3.0, slowdown=slowdown))
    stopped_s, stopped_at, now_s = 0.0, None, 1.0
    while not injector.finished:
        for order in injector.observe(seen(now_s, step=1)):
            if order.signal == signal.SIGSTOP:
                stopped_at = now_s
            elif stopped_at is not None:
                stopped_s, stopped_at = stopped_s + now_s - stopped_at, None
        now_s = injector.next_due_s(now_s) or now_s + 0.001
    assert stopped_at is None
    assert stopped_s / 3.0 == pytest.approx(1 - 1 / slowdown, abs=0.02)


FAULTS = st.builds(
    Fault,
    kind=st.sampled_from(["kill", "terminate", "segfault", "hang"]),
    at_s=st.floats(0, 50),
    after_s=st.floats(0, 5),
    rank=st.integers(0, 2),
    scope=st.sampled_from(["process", "group", "job"]),
) | st.builds(
    Fault,
    kind=st.sampled_from(["hang", "slow"]),
    at_s=st.floats(0, 50),
    rank=st.integers(0, 2),
    for_s=st.floats(0.1, 20),
)


@given(
    faults=st.lists(FAULTS, max_size=6),
    times=st.lists(st.floats(0, 100), max_size=60).map(sorted),
    alive=st.lists(st.sets(st.integers(0, 2)), min_size=60, max_size=60),
)
def test_signals_only_ever_go_to_live_workers_and_every_stop_for_a_time_is_undone(
    faults: list[Fault], times: list[float], alive: list[set[int]]
) -> None:
    workers = (A0, A1, Worker(2, 12, "a"))
    injector, twin = (machine(*faults, origin="launch") for _ in range(2))
    stopped: dict[int, int] = {}
    for now_s, ranks in zip(times, alive, strict=False):
        here = tuple(workers[rank] for rank in sorted(ranks))
        orders = injector.observe(seen(now_s, alive=here))
        assert orders == twin.observe(seen(now_s, alive=here))
        for order in orders:
            assert order.workers
            assert order.due_s <= now_s
            assert set(order.workers) & set(here)
            if faults[order.fault].for_s:
                step = 1 if order.signal == signal.SIGSTOP else -1
                stopped[order.fault] = stopped.get(order.fault, 0) + step
                assert stopped[order.fault] in {0, 1}
    for order in injector.release():
        stopped[order.fault] -= 1
    # What is left stopped belonged to a worker that was gone at the time.
    assert all(count in {0, 1} for count in stopped.values())
    assert injector.release() == ()
