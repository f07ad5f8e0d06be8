"""A forked child must not write as its parent, nor end its parent when it is ended itself."""

import os
import signal
import sys
from pathlib import Path

import pytest
from recordings import events_in, events_of, files, kinds, spawn

from goodput.core import events

pytestmark = pytest.mark.real_processes


def test_a_forked_child_writes_nothing_and_counts_nothing(tmp_path: Path) -> None:
    code = """
    from goodput.training.measure.recorder import current
    run.step(0)
    pid = os.fork()
    if pid == 0:
        for n in range(100):
            run.step(n)
        with run.span("data"):
            run.point("loss", float("nan"))
        run.close("failed")
        os.write(1, b"%d %d %d\\n" % (run.enabled, run.dropped, current() is run))
        sys.exit(3)      # leaves through atexit, with the parent's hooks inherited
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    run.step(1)
    """
    child = spawn(code, tmp_path)
    assert child.line() == "0 0 1"
    assert child.line() == "3"
    assert child.end() == ""
    assert kinds(events_of(tmp_path)) == ["step", "step", "process_end"]


def test_a_forked_child_that_starts_itself_gets_a_file_of_its_own(tmp_path: Path) -> None:
    code = """
    run.step(0)
    pid = os.fork()
    if pid == 0:
        mine = goodput.start(rank=1, world=2, detail="steps")
        mine.step(0)
        mine.close()
        os._exit(0)
    os.waitpid(pid, 0)
    run.step(1)
    """
    child = spawn(code, tmp_path)
    assert child.end() == ""
    parent, forked = sorted(
        (events_in(path) for path in files(tmp_path)),
        key=len,
        reverse=True,
    )
    assert kinds(parent) == ["step", "step", "process_end"]
    assert kinds(forked) == ["step", "process_end"]
    first = forked[0]
    assert isinstance(first, events.Process)
    assert first.rank == 1
    assert first.pid != child.pid


def test_a_fork_from_a_thread_while_others_record_leaves_all_files_whole(tmp_path: Path) -> None:
    code = """
    def record(base):
        for n in range(3000):
            run.point("n", 1.0, step=base + n)
    def fork():
        for n in range(20):
            pid = os.fork()
            if pid == 0:
                run.point("child", 1.0)
                goodput.start("forked").step(n)
                os._exit(0)
            os.waitpid(pid, 0)
    threads = [threading.Thread(target=record, args=(k * 3000,)) for k in range(2)]
    threads.append(threading.Thread(target=fork))
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    """
    child = spawn(code, tmp_path)
    assert child.end() == ""
    points = [e for e in events_of(tmp_path / "run") if isinstance(e, events.Point)]
    assert sorted(p.step for p in points) == list(range(6000))
    assert len(files(tmp_path / "forked")) == 20


def test_ending_a_forked_child_at_once_ends_it_and_not_its_parent(tmp_path: Path) -> None:
    code = """
    for n in range(200):
        pid = os.fork()
        if pid == 0:
            time.sleep(30)
            os._exit(0)
        os.kill(pid, signal.SIGTERM)     # mostly before the child has run a line
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert status == -signal.SIGTERM, status
    time.sleep(0.3)                      # a watcher that was misled would act within 0.1 s
    run.step(0)
    """
    child = spawn(code, tmp_path)
    assert child.end(30) == ""
    assert child.returncode == 0
    assert kinds(events_of(tmp_path)) == ["step", "process_end"]


def test_sigterm_for_the_parent_still_works_after_forks(tmp_path: Path) -> None:
    code = """
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    print(signal.pthread_sigmask(signal.SIG_BLOCK, []), flush=True)
    time.sleep(30)
    """
    child = spawn(code, tmp_path)
    assert child.line() == "set()"
    child.terminate()
    child.end(5)
    assert child.returncode == -signal.SIGTERM
    end = events_of(tmp_path)[-1]
    assert isinstance(end, events.ProcessEnd)
    assert end.signal == signal.SIGTERM


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize(
    ("body", "outcome", "error"),
    [
        ("pass", "completed", ""),
        ("raise ValueError('x')", "failed", "ValueError: x"),
        ("sys.exit(4)", "failed", "SystemExit: 4"),
    ],
)
def test_a_child_of_multiprocessing_says_goodbye(
    tmp_path: Path, method: str, body: str, outcome: str, error: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, sys, goodput\n"
        "def work():\n"
        "    goodput.start('child').step(0)\n"
        f"    {body}\n"
        "if __name__ == '__main__':\n"
        "    goodput.start('parent')\n"
        f"    process = multiprocessing.get_context({method!r}).Process(target=work)\n"
        "    process.start()\n"
        "    process.join()\n"
    )
    child = spawn(
        f"run.close(); os.execv(sys.executable, [sys.executable, {str(script)!r}])", tmp_path
    )
    child.end()
    assert child.returncode == 0
    end = events_of(tmp_path / "child")[-1]
    assert isinstance(end, events.ProcessEnd)
    assert end.outcome == outcome
    # From Python 3.13 on, the exception is gone by the time a child may say goodbye.
    assert end.error == error or (sys.version_info >= (3, 13) and end.error == "SystemExit: 1")
    assert kinds(events_of(tmp_path / "parent")) == ["process_end"]


def test_a_program_that_is_started_from_here_does_not_hold_the_file(tmp_path: Path) -> None:
    code = """
    import subprocess
    names = subprocess.run(["ls", "-l", "/proc/self/fd"], capture_output=True, text=True,
                           close_fds=False).stdout
    print("events-" in names, flush=True)
    """
    child = spawn(code, tmp_path)
    assert child.line() == "False"
    child.end()


def test_the_parents_own_death_by_signal_is_no_childs_business(tmp_path: Path) -> None:
    code = """
    pid = os.fork()
    if pid == 0:
        time.sleep(0.5)
        os._exit(0)
    print(pid, flush=True)
    time.sleep(30)
    """
    child = spawn(code, tmp_path)
    forked = int(child.line())
    os.kill(child.pid, signal.SIGTERM)
    child.wait(5)
    os.kill(forked, 0)
    child.end()
    assert kinds(events_of(tmp_path)) == ["process_end"]
