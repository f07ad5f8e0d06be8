"""How a process ends, and that recording changes nothing about it. Signals here are real."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from recordings import Child, clean_environ, events_of, kinds, program, spawn

from goodput.core import events

pytestmark = pytest.mark.real_processes


def ending(folder: Path) -> events.ProcessEnd:
    """The last record of the only file."""
    last = events_of(folder)[-1]
    assert isinstance(last, events.ProcessEnd)
    return last


@pytest.mark.parametrize(
    ("code", "status", "outcome", "error"),
    [
        ("run.step(0)", 0, "completed", ""),
        ("sys.exit()", 0, "completed", ""),
        ("sys.exit(0)", 0, "completed", ""),
        ("sys.exit(3)", 3, "failed", "SystemExit: 3"),
        ("sys.exit('no data')", 1, "failed", "SystemExit: no data"),
        ("raise ValueError('first\\nsecond')", 1, "failed", "ValueError: first"),
        ("raise ValueError", 1, "failed", "ValueError"),
        ("raise KeyboardInterrupt", -2, "stopped", "KeyboardInterrupt"),
        ("threading.Thread(target=lambda: 1 / 0).start()", 0, "completed", ""),
        ("sys.excepthook = lambda *_: None\nraise OSError('x')", 1, "failed", "OSError: x"),
        ("run.close('preempted')\nraise OSError('x')", 1, "preempted", ""),
    ],
)
def test_the_end_is_recorded_and_the_exit_status_is_the_programs_own(
    tmp_path: Path, code: str, status: int, outcome: str, error: str
) -> None:
    child = spawn(code, tmp_path)
    child.end()
    assert child.returncode == status
    end = ending(tmp_path)
    assert (end.outcome, end.error, end.signal) == (outcome, error, 0)


def test_an_exit_that_was_caught_is_none(tmp_path: Path) -> None:
    code = """
    try:
        sys.exit(3)
    except SystemExit:
        run.step(0)
    """
    spawn(code, tmp_path).end()
    assert ending(tmp_path).outcome == "completed"


def test_os_exit_leaves_no_goodbye(tmp_path: Path) -> None:
    spawn("run.step(0); os._exit(0)", tmp_path).end()
    assert kinds(events_of(tmp_path)) == ["step"]


def test_an_exception_prints_its_traceback_and_reaches_the_hook_that_was_there(
    tmp_path: Path,
) -> None:
    code = """
    run.close()
    before = sys.excepthook
    def hook(*args):
        print("own hook", file=sys.stderr)
        before(*args)
    sys.excepthook = hook
    goodput.start("second")
    raise ValueError("x")
    """
    err = spawn(code, tmp_path).end()
    assert "own hook" in err
    assert err.count("ValueError: x") == 1
    assert ending(tmp_path / "second").error == "ValueError: x"


def test_sigterm_is_recorded_and_still_ends_the_process_as_sigterm(tmp_path: Path) -> None:
    child = spawn("run.step(0); print('up', flush=True); time.sleep(30)", tmp_path)
    child.line()
    child.send_signal(signal.SIGTERM)
    child.end(5)
    assert child.returncode == -signal.SIGTERM
    end = ending(tmp_path)
    assert (end.outcome, end.signal) == ("stopped", signal.SIGTERM)


STUCK = """
import ctypes
libc = ctypes.CDLL(None)
mutex = ctypes.create_string_buffer(64)
run.step(0)
libc.pthread_mutex_lock(mutex)
print("up", flush=True)
libc.pthread_mutex_lock(mutex)   # a deadlock in C: no Python handler will ever run here
"""


def test_sigterm_ends_a_process_that_is_stuck_in_c_code(tmp_path: Path) -> None:
    child = spawn(STUCK, tmp_path)
    child.line()
    child.send_signal(signal.SIGTERM)
    child.end(5)
    assert child.returncode == -signal.SIGTERM
    assert ending(tmp_path).signal == signal.SIGTERM


def test_a_stuck_process_with_a_handler_of_its_own_is_left_to_it(tmp_path: Path) -> None:
    own = "signal.signal(signal.SIGTERM, lambda *_: print('never'))\n"
    child = spawn(own + STUCK, tmp_path)
    child.line()
    child.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.5)
    child.kill()
    child.end()
    assert kinds(events_of(tmp_path)) == ["step"]


@pytest.mark.parametrize("when", ["before", "after", "after, calling ours"])
def test_a_handler_of_the_programs_own_decides_what_sigterm_means(
    tmp_path: Path, when: str
) -> None:
    handler = "def own(*args):\n    global asked\n    asked = True\n"
    if when == "after, calling ours":
        handler += "    before(*args)\n"
    install = "before = signal.signal(signal.SIGTERM, own)\n"
    rest = (
        "print('up', flush=True)\nwhile not asked: time.sleep(0.01)\n"
        "time.sleep(0.3)\nrun.step(1)\nprint('saved', flush=True)\n"
    )
    start = "import goodput\nrun = goodput.start()\n"
    head = "import signal, time\nasked = False\n" + handler
    text = head + (install + start if when == "before" else start + install) + rest
    child = Child(
        [sys.executable, "-c", text],
        env=clean_environ(GOODPUT_DIR=str(tmp_path)),
        stdout=-1,
        stderr=-1,
        text=True,
    )
    child.line()
    child.send_signal(signal.SIGTERM)
    assert child.line() == "saved"
    child.end()
    assert child.returncode == 0
    assert kinds(events_of(tmp_path)) == ["step", "process_end"]
    assert ending(tmp_path).outcome == "completed"


def test_an_ignored_sigterm_stays_ignored(tmp_path: Path) -> None:
    code = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + program(
        "print('up', flush=True)\ntime.sleep(0.3)\nrun.step(0)"
    )
    child = Child(
        [sys.executable, "-c", code],
        env=clean_environ(GOODPUT_DIR=str(tmp_path)),
        stdout=-1,
        stderr=-1,
        text=True,
    )
    child.line()
    child.send_signal(signal.SIGTERM)
    child.end()
    assert child.returncode == 0
    assert kinds(events_of(tmp_path)) == ["step", "process_end"]


def test_a_run_of_another_thread_leaves_sigterm_alone(tmp_path: Path) -> None:
    code = """
    run.close()
    def work():
        goodput.start("second").step(0)
        print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, flush=True)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    time.sleep(30)
    """
    child = spawn(code, tmp_path)
    assert child.line() == "True"
    child.terminate()
    child.end(5)
    assert child.returncode == -signal.SIGTERM
    assert kinds(events_of(tmp_path / "second")) == ["step"]


def test_a_process_that_only_might_train_keeps_its_sigterm_until_it_does(tmp_path: Path) -> None:
    code = """
    from goodput.training.measure.recorder import start_held
    run.close()
    run = start_held()
    print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, flush=True)
    run.step(0)
    print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, flush=True)
    """
    child = spawn(code, tmp_path)
    assert child.line() == "True"
    assert child.line() == "False"
    child.end()


def test_close_puts_everything_back(tmp_path: Path) -> None:
    code = """
    run.close()
    print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, sys.exit.__module__, flush=True)
    print(sys.excepthook is sys.__excepthook__, signal.set_wakeup_fd(-1), flush=True)
    until = time.monotonic() + 5
    while threading.active_count() > 1 and time.monotonic() < until:
        time.sleep(0.01)
    print(threading.active_count(), flush=True)
    """
    child = spawn(code, tmp_path)
    assert child.line() == "True sys"
    assert child.line() == "True -1"
    assert child.line() == "1"
    child.end()


def test_a_wakeup_descriptor_of_the_programs_own_is_respected(tmp_path: Path) -> None:
    code = """
    import asyncio
    async def main():
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        loop.add_signal_handler(signal.SIGUSR1, stop.set)
        second = goodput.start("second")
        print("up", flush=True)
        await stop.wait()
        second.step(0)
    run.close()
    asyncio.run(main())
    """
    child = spawn(code, tmp_path)
    child.line()
    child.send_signal(signal.SIGUSR1)
    assert child.end() == ""
    assert child.returncode == 0
    assert kinds(events_of(tmp_path / "second")) == ["step", "process_end"]


@pytest.mark.parametrize("how", ["exit", "exception", "sigterm", "close"])
def test_no_way_to_end_loses_the_last_window(tmp_path: Path, how: str) -> None:
    last = {
        "exit": "",
        "exception": "raise ValueError",
        "sigterm": "os.kill(os.getpid(), signal.SIGTERM)",
        "close": "run.close()",
    }[how]
    child = spawn(f"for n in range(5): run.step(n)\n{last}", tmp_path, RANK="1", WORLD_SIZE="2")
    child.end()
    written = events_of(tmp_path)
    assert kinds(written) == ["step", "window", "step", "process_end"]
    window = written[2]
    assert isinstance(window, events.Window)
    assert (window.first, window.last) == (1, 3)


@pytest.mark.parametrize("rank", ["0", "1"])
def test_sigterm_in_the_middle_of_recording_loses_no_record_that_was_written(
    tmp_path: Path, rank: str
) -> None:
    code = """
    print("up", flush=True)
    n = 0
    while True:
        run.step(n)
        os.write(1, b"%d\\n" % n)
        n += 1
    """
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        child = spawn(code, folder, RANK=rank, WORLD_SIZE="2")
        child.line()
        for _ in range(50 * attempt):
            child.line()
        child.terminate()
        last = -1
        while line := child.line():
            last = int(line)
        child.end()
        assert child.returncode == -signal.SIGTERM
        written = events_of(folder)
        seen = {e.n for e in written if isinstance(e, events.Step)}
        for window in (e for e in written if isinstance(e, events.Window)):
            assert window.steps == window.last - window.first + 1
            assert not seen & set(range(window.first, window.last + 1)), "each step once"
            seen |= set(range(window.first, window.last + 1))
        missing = set(range(last + 1)) - seen
        # A summary that was about to be written is all that may be lost, on a rank that keeps them.
        assert not missing or (rank == "1" and len(missing) == max(missing) - min(missing) + 1)
        assert ending(folder).signal == signal.SIGTERM


def test_records_from_signal_handlers_mix_with_records_that_they_interrupt(tmp_path: Path) -> None:
    code = """
    fired = 0
    def tick(*_):
        global fired
        fired += 1
        with run.span("tick"):
            run.point("tick", fired)
    signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    steps = 0
    until = time.monotonic() + 1
    while time.monotonic() < until:
        with run.step(steps):
            steps += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(fired, steps, flush=True)
    """
    child = spawn(code, tmp_path)
    fired, steps = (int(x) for x in child.line().split())
    child.end()
    written = events_of(tmp_path)
    assert fired > 100
    assert sum(isinstance(e, events.Point) for e in written) == fired
    assert sum(isinstance(e, events.Step) for e in written) == steps
    assert sum(isinstance(e, events.StepEnd) for e in written) == steps
