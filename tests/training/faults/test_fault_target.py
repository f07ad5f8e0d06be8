"""No stranger is ever signalled: real processes, real pidfds."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from goodput.core.errors import InputError
from goodput.core.events import SCHEMA, Process
from goodput.training.faults.target import hold, process_stat
from goodput.training.measure.identity import boot_id

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pidfd and /proc")


def sleeper(*, new_session: bool = False, code: str = "") -> subprocess.Popen[bytes]:
    code = code or "import time; print(flush=True); time.sleep(60)"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=new_session
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = sleeper(new_session=True)
    yield process
    process.kill()
    process.communicate()


def record(pid: int, **other: object) -> Process:
    mono, wall = time.monotonic_ns(), time.time_ns()
    fields: dict[str, object] = {
        "t": wall,
        "m": mono,
        "schema": SCHEMA,
        "job": "j",
        "pid": pid,
        "host": socket.gethostname(),
        "boot": boot_id(),
    }
    return Process(**(fields | other))  # type: ignore[arg-type]


def started_ns(pid: int) -> int:
    stat = process_stat(pid)
    assert stat is not None
    age = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - stat.started_at_ns
    return time.time_ns() - age


def test_the_writer_of_a_record_is_held_and_signalled(child: subprocess.Popen[bytes]) -> None:
    victim = hold(record(child.pid, started=started_ns(child.pid)))
    assert victim is not None
    assert not victim.gone
    assert victim.send(signal.SIGSTOP) == (child.pid,)
    assert os.waitid(os.P_PID, child.pid, os.WSTOPPED) is not None
    stat = process_stat(child.pid)
    assert stat is not None
    assert stat.state == "T"
    assert victim.send(signal.SIGKILL) == (child.pid,)
    child.wait(5)
    assert victim.send(signal.SIGKILL) == ()
    victim.close()


def test_a_recycled_pid_is_not_held(child: subprocess.Popen[bytes]) -> None:
    now_m, now_t = time.monotonic_ns(), time.time_ns()
    hour = 3_600_000_000_000
    # The record is an hour older than the process that has its pid now.
    old = {"t": now_t - hour, "m": now_m - hour}
    assert hold(record(child.pid, **old)) is None
    assert hold(record(child.pid, **old, started=now_t - 2 * hour)) is None
    # The record is new, but its writer started an hour before this process did.
    assert hold(record(child.pid, started=now_t - hour)) is None


def test_a_wall_clock_step_does_not_matter(child: subprocess.Popen[bytes]) -> None:
    step = 10_000_000_000_000
    started = started_ns(child.pid)
    victim = hold(record(child.pid, t=time.time_ns() - step, started=started - step))
    assert victim is not None
    victim.close()


@pytest.mark.parametrize("wrong", [{"boot": "another"}, {"boot": ""}, {"host": "elsewhere"}])
def test_a_process_of_another_machine_is_not_held(
    child: subprocess.Popen[bytes], wrong: dict[str, str]
) -> None:
    assert hold(record(child.pid, **wrong)) is None


def test_neither_itself_nor_init_nor_the_dead_are_held() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert hold(record(os.getpid())) is None
    assert hold(record(1)) is None
    assert hold(record(0)) is None
    assert hold(record(gone.pid)) is None


def test_a_zombie_is_not_held() -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
    assert hold(record(dead.pid)) is None
    dead.wait()


FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


def test_a_group_is_the_worker_and_its_children() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", FAMILY], stdout=subprocess.PIPE, start_new_session=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    victim = hold(record(parent.pid))
    assert victim is not None
    assert victim.send(0, pid=child) == (child,)
    assert victim.send(0, pid=os.getpid()) == ()
    assert set(victim.send(signal.SIGKILL, scope="group")) == {parent.pid, child}
    parent.communicate()
    victim.close()


def test_a_group_that_holds_strangers_is_left_alone() -> None:
    # Without a session of its own the child shares this test's process group.
    process = sleeper()
    victim = hold(record(process.pid))
    assert victim is not None
    with pytest.raises(InputError, match="no part of this worker"):
        victim.send(signal.SIGKILL, scope="group")
    assert process.poll() is None
    process.kill()
    process.communicate()
    victim.close()
