import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sweep_functions as functions
from hypothesis import given
from hypothesis import strategies as st

from goodput.core.errors import ConfigError, MissingExtraError
from goodput.core.sweep import Progress, Success, point_seed, stream, sweep

pytestmark = pytest.mark.real_processes


@pytest.fixture(autouse=True)
def no_worker_is_left() -> Iterator[None]:
    yield
    deadline = time.monotonic() + 10
    while (left := children()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


def children() -> list[str]:
    """Command lines of our child processes, without Python's own resource tracker."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, IndexError):
            continue
        if parent == os.getpid() and "multiprocessing.resource_tracker" not in command:
            found.append(command)
    return found


@pytest.mark.parametrize("backend", ["serial", "processes"])
@pytest.mark.parametrize("workers", [1, 2])
def test_results_and_seeds_depend_on_nothing_but_the_points(backend: str, workers: int) -> None:
    result = sweep(functions.square, range(9), seed=5, backend=backend, workers=workers)  # type: ignore[arg-type]
    assert result.complete
    assert [each.index for each in result.outcomes] == list(range(9))
    assert [each.value for each in result.successes] == [
        (point * point, point_seed(5, point)) for point in range(9)
    ]
    assert result.failures == ()
    assert result.missing == ()


def test_outcomes_come_as_they_are_ready_and_the_list_keeps_its_order() -> None:
    points = [0.8, 0.0, 0.0]
    with closing(stream(functions.sleep_for, points, workers=2)) as outcomes:
        order = [outcome.index for outcome in outcomes]
    assert order[-1] == 0
    result = sweep(functions.sleep_for, points, workers=2)
    assert [each.value for each in result.successes] == points
    assert result.successes[0].duration_s >= 0.8


@pytest.mark.parametrize("backend", ["serial", "processes"])
def test_a_point_that_raises_is_kept_with_its_traceback(backend: str) -> None:
    result = sweep(functions.fail_on_odd, range(6), backend=backend, workers=2)  # type: ignore[arg-type]
    assert result.complete
    assert [each.value for each in result.successes] == [0, 2, 4]
    assert [each.index for each in result.failures] == [1, 3, 5]
    for failed in result.failures:
        assert failed.kind == "raised"
        assert failed.message == f"ValueError: point {failed.index} is odd"
        assert "in fail_on_odd" in failed.traceback
        assert failed.seed == point_seed(0, failed.index)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("kill", "killed by signal 9 (SIGKILL), as the kernel does when memory runs out"),
        ("segfault", "killed by signal 11 (SIGSEGV)"),
        ("exit", "ended with exit code 7"),
    ],
)
def test_a_worker_that_dies_loses_its_point_only(how: str, words: str) -> None:
    points = [(number, how if number in {1, 4} else "") for number in range(7)]
    result = sweep(functions.die_on, points, workers=2)
    assert result.complete
    assert [each.value for each in result.successes] == [0, 2, 3, 5, 6]
    for failed in result.failures:
        assert failed.kind == "died"
        assert words in failed.message
        assert f"point {failed.index} ({points[failed.index]!r})" in failed.message
    assert [each.index for each in result.failures] == [1, 4]


def test_even_if_every_worker_dies_every_point_is_accounted_for() -> None:
    result = sweep(functions.die_on, [(number, "kill") for number in range(5)], workers=2)
    assert result.complete
    assert {each.kind for each in result.failures} == {"died"}
    assert len(result.failures) == 5


def test_a_worker_killed_from_outside_while_it_computes(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def kill_it() -> None:
        while not (pid_file.exists() and pid_file.read_text()):
            time.sleep(0.02)
        os.kill(int(pid_file.read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill_it)
    killer.start()
    result = sweep(functions.write_pid_and_wait, [str(pid_file)], workers=1)
    killer.join()
    assert result.complete
    assert f"process {pid_file.read_text()} was killed" in result.failures[0].message


def test_results_and_points_of_many_megabytes_pass() -> None:
    result = sweep(functions.big, [5_000_000, 3_000_000], workers=2)
    assert [len(each.value) for each in result.successes] == [5_000_000, 3_000_000]


def test_what_cannot_be_sent_costs_its_point_only() -> None:
    for function in (functions.unsendable, functions.gives_no_way_back):
        result = sweep(function, [0, 1, 0], workers=1)
        assert [each.index for each in result.successes] == [0, 2]
        assert result.failures[0].kind == "unsendable"
    points = [0, functions.NoUnpickle(), (lambda: 0), 3]
    result = sweep(functions.square, points, workers=1)  # type: ignore[arg-type]
    assert [each.index for each in result.failures] == [1, 2]
    assert {each.kind for each in result.failures} == {"unsendable"}


def test_progress_counts_up_to_the_total_with_an_estimate() -> None:
    seen: list[Progress] = []
    sweep(functions.fail_on_odd, range(5), workers=2, on_progress=seen.append)
    assert [each.done for each in seen] == [0, 1, 2, 3, 4, 5]
    assert {each.total for each in seen} == {5}
    assert seen[0].eta_s is None
    assert seen[-1].eta_s == 0
    assert seen[-1].failed == 2
    halfway = Progress.at(done=2, failed=0, total=8, elapsed_s=3.0)
    assert halfway.eta_s == 9.0


def test_an_error_in_the_progress_callback_ends_the_workers() -> None:
    def fail(progress: Progress) -> None:
        if progress.done == 1:
            raise RuntimeError("the caller's own error")

    with pytest.raises(RuntimeError, match="own error"):
        sweep(functions.sleep_for, [0.0, 30.0, 30.0], workers=2, on_progress=fail)


def test_stopping_early_ends_the_workers() -> None:
    started = time.monotonic()
    with closing(stream(functions.sleep_for, [0.0, 60.0, 60.0], workers=2)) as outcomes:
        first = next(outcomes)
    assert isinstance(first, Success)
    assert time.monotonic() - started < 20


def test_no_points_need_no_workers() -> None:
    result = sweep(functions.square, [])
    assert result.complete
    assert result.outcomes == ()


def test_functions_that_cannot_be_pickled_are_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="cannot be sent to worker processes"):
        sweep(lambda point, seed: point, [1, 2])
    bound = functools.partial(functions.scaled, 10)
    assert sweep(bound, [3], workers=1).successes[0].value == 30


def test_options_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match="workers = 0"):
        sweep(functions.square, [1], workers=0)
    with pytest.raises(ConfigError, match="backend = 'threads'"):
        sweep(functions.square, [1], backend="threads")  # type: ignore[arg-type]


def test_ray_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'goodput-ml\[ray\]'"):
        sweep(functions.square, [1], backend="ray")


@given(st.integers(), st.lists(st.integers(0, 10**9), unique=True, max_size=50))
def test_seeds_are_distinct_and_fit_64_bits(seed: int, indexes: list[int]) -> None:
    seeds = [point_seed(seed, index) for index in indexes]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= each < 2**64 for each in seeds)
    assert not set(seeds) & {point_seed(seed + 1, index) for index in indexes}


def test_seeds_never_change_between_versions() -> None:
    assert [point_seed(0, index) for index in range(3)] == [
        371894790479728273,
        1658262492416644573,
        11196277416977013477,
    ]
