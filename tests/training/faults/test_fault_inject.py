"""The whole injector against real processes that record."""

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from goodput.core.events import SCHEMA, Process, Step
from goodput.training.faults import Fault, FaultSchedule, Injector, read_truth
from goodput.training.faults.__main__ import main
from goodput.training.faults.target import process_stat
from goodput.training.faults.truthlog import Closed, Gone, Opened, Refused, Sent
from goodput.training.measure.identity import boot_id

pytestmark = [
    pytest.mark.real_processes,
    pytest.mark.skipif(sys.platform != "linux", reason="pidfd and /proc"),
]

# A worker without the recorder: it introduces itself and steps every 20 ms.
WORKER = """
import os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.005)
n = 0
with open(sys.argv[1], "ab", buffering=0) as file:
    while True:
        now = time.time_ns(), time.monotonic_ns()
        file.write(b'{"k":"step","n":%d,"t":%d,"m":%d}\\n' % (n, *now))
        n += 1
        time.sleep(0.02)
"""
Start = Callable[[int], subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    processes: list[subprocess.Popen[bytes]] = []

    def one(rank: int) -> subprocess.Popen[bytes]:
        path = tmp_path / f"events-{rank}.jsonl"
        process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path)], start_new_session=True
        )
        processes.append(process)
        header = Process(
            t=time.time_ns(),
            m=time.monotonic_ns(),
            schema=SCHEMA,
            job="j",
            rank=rank,
            attempt="1",
            pid=process.pid,
            host=socket.gethostname(),
            boot=boot_id(),
        )
        whole = tmp_path / f"header-{rank}"
        whole.write_bytes(msgspec.json.encode(header) + b"\n")
        whole.rename(path)  # the worker waits for it
        return process

    yield one
    for process in processes:
        process.kill()
        process.wait()


def inject(folder: Path, *faults: Fault, seconds: float = 10.0) -> list[object]:
    log = folder / "faults.jsonl"
    injector = Injector(FaultSchedule(faults=faults), folder, log=log)
    stop = threading.Event()
    timer = threading.Timer(seconds, stop.set)
    timer.start()
    injector.run(stop=stop)
    timer.cancel()
    return list(read_truth(log))


def test_a_kill_hits_its_rank_and_is_logged(tmp_path: Path, start: Start) -> None:
    victim, other = start(1), start(0)
    entries = inject(tmp_path, Fault(kind="kill", at_step=3, rank=1))
    assert victim.wait(5) == -signal.SIGKILL
    assert other.poll() is None
    opened, sent, closed = entries
    assert isinstance(opened, Opened)
    assert isinstance(sent, Sent)
    assert (sent.signal, sent.rank, sent.pids) == ("SIGKILL", 1, (victim.pid,))
    assert sent.step >= 3
    assert 0 <= sent.late_s < 1
    assert closed == Closed(t=closed.t, m=closed.m, missed=())  # type: ignore[attr-defined]


def test_a_segfault_and_a_termination(tmp_path: Path, start: Start) -> None:
    first, second = start(0), start(1)
    inject(
        tmp_path,
        Fault(kind="segfault", at_step=1, rank=0),
        Fault(kind="terminate", at_step=1, rank=1),
    )
    assert first.wait(5) == -signal.SIGSEGV
    assert second.wait(5) == -signal.SIGTERM


def test_a_hang_for_a_time_stops_and_continues(tmp_path: Path, start: Start) -> None:
    start(0)
    entries = inject(tmp_path, Fault(kind="hang", at_step=1, for_s=0.5))
    stop, go = (entry for entry in entries if isinstance(entry, Sent))
    assert (stop.signal, go.signal) == ("SIGSTOP", "SIGCONT")
    assert (go.m - stop.m) / 1e9 == pytest.approx(0.5, abs=0.2)
    decoder = msgspec.json.Decoder(Step)
    lines = (tmp_path / "events-0.jsonl").read_bytes().splitlines()[1:]
    at = [decoder.decode(line).m for line in lines if line.endswith(b"}")]
    longest = max(later - earlier for earlier, later in itertools.pairwise(at))
    assert longest / 1e9 == pytest.approx(0.5, abs=0.2)


def test_a_stopped_worker_is_continued_when_the_injector_leaves(
    tmp_path: Path, start: Start
) -> None:
    worker = start(0)
    entries = inject(tmp_path, Fault(kind="hang", at_step=1, for_s=60.0), seconds=0.8)
    assert [entry.signal for entry in entries if isinstance(entry, Sent)] == ["SIGSTOP", "SIGCONT"]
    stat = process_stat(worker.pid)
    assert stat is not None
    assert stat.state in "RSD"


def test_a_slow_worker_makes_less_progress(tmp_path: Path, start: Start) -> None:
    start(0)
    entries = inject(tmp_path, Fault(kind="slow", at_step=1, for_s=1.0, slowdown=2.0))
    signals = [entry for entry in entries if isinstance(entry, Sent)]
    stopped_ns = sum(
        later.m - earlier.m
        for earlier, later in itertools.pairwise(signals)
        if earlier.signal == "SIGSTOP"
    )
    assert signals[-1].signal == "SIGCONT"
    # Half of the time, and the shell's lateness on a busy machine.
    assert stopped_ns / 1e9 == pytest.approx(0.5, abs=0.2)


def test_a_stranger_is_refused(tmp_path: Path, start: Start) -> None:
    worker = start(0)
    entries = inject(tmp_path, Fault(kind="kill", at_step=1, pid=os.getpid()))
    assert worker.poll() is None
    (refused,) = (entry for entry in entries if isinstance(entry, Refused))
    assert "no part of the job" in refused.reason


def test_a_fault_that_never_falls_due_is_missed(tmp_path: Path, start: Start) -> None:
    worker = start(0)
    entries = inject(tmp_path, Fault(kind="kill", at_step=10**9), seconds=0.3)
    assert worker.poll() is None
    assert isinstance(entries[-1], Closed)
    assert entries[-1].missed == (0,)


def test_an_exit_is_noted(tmp_path: Path, start: Start) -> None:
    worker = start(0)
    log = tmp_path / "faults.jsonl"
    injector = Injector(FaultSchedule(faults=()), tmp_path, log=log)
    injector.poll()
    worker.kill()
    worker.wait()
    injector.poll()
    injector.close()
    (gone,) = (entry for entry in read_truth(log) if isinstance(entry, Gone))
    assert gone.pid == worker.pid


def test_the_command_line(tmp_path: Path, start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    worker = start(0)
    schedule = tmp_path / "f.toml"
    schedule.write_text('[[faults]]\nkind = "kill"\nat_step = 2\n')
    assert main(["--dir", str(tmp_path), "--schedule", str(schedule)]) == 0
    assert worker.wait(5) == -signal.SIGKILL
    assert f"SIGKILL to rank 0 (pid {worker.pid})" in capsys.readouterr().out
    assert main(["--dir", str(tmp_path)]) == 2
    assert main(["--dir", str(tmp_path), "--mean-between", "1", "--mix", "melt=1"]) == 2
    assert "no such kind: melt" in capsys.readouterr().err
