"""`goodput train record` as a library: real commands, real signals, and what is recorded."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from recordings import Child, clean_environ, events_in, files, kinds

from goodput.core import events
from goodput.core.errors import ConfigError
from goodput.core.events import Process
from goodput.training.measure.launch import record

pytestmark = pytest.mark.real_processes

WORKER = """
import os, signal, sys, time, goodput
run = goodput.start()
run.step(0)
attempt = os.environ.get("GOODPUT_ATTEMPT", "")
"""


@pytest.fixture(autouse=True)
def no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in set(os.environ) - set(clean_environ()):
        monkeypatch.delenv(name)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", WORKER + code]


def launched(folder: Path) -> list[events.Event]:
    """The launcher's records, all launchers of the folder in order."""
    all_files = [events_in(path) for path in files(folder)]
    mine = [f for f in all_files if isinstance(f[0], Process) and f[0].role == "launcher"]
    mine.sort(key=lambda f: f[0].t)
    return [event for written in mine for event in written]


def attempts(folder: Path) -> list[events.AttemptEnd]:
    return [e for e in launched(folder) if isinstance(e, events.AttemptEnd)]


def worker_keys(folder: Path) -> list[str]:
    heads = [events_in(path)[0] for path in files(folder)]
    return sorted(h.attempt for h in heads if isinstance(h, Process) and h.role == "worker")


def start_launcher(folder: Path, code: str, options: str = "") -> Child:
    """A process that records a worker, so that signals can be sent to it."""
    script = (
        "import sys\nfrom goodput.training.measure.launch import record\n"
        f"sys.exit(record({python(code)!r}, dir={str(folder)!r}, {options}))"
    )
    return Child(
        [sys.executable, "-c", script], env=clean_environ(), stdout=-1, stderr=-1, text=True
    )


def test_a_job_that_works_is_recorded_from_submission_to_end(tmp_path: Path) -> None:
    assert record(python(""), job="ok", dir=tmp_path, chips=4) == 0
    written = launched(tmp_path)
    assert kinds(written) == [
        "submitted",
        "allocated",
        "attempt_start",
        "attempt_end",
        "ended",
        "process_end",
    ]
    assert isinstance(written[1], events.Submitted)
    assert isinstance(written[2], events.Allocated)
    assert written[1].chips == written[2].chips == 4
    (end,) = attempts(tmp_path)
    assert (end.attempt, end.outcome, end.exit_code, end.signal) == ("1", "completed", 0, 0)
    assert worker_keys(tmp_path) == ["1"]


def test_a_failure_is_relaunched_and_the_exit_code_is_the_last_one(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = """
print('to stderr', file=sys.stderr)
if attempt < '3':
    raise MemoryError('CUDA out of memory')
"""
    assert record(python(code), dir=tmp_path, relaunch=5, relaunch_delay_s=0.01) == 0
    ends = attempts(tmp_path)
    assert [(e.attempt, e.outcome, e.exit_code) for e in ends] == [
        ("1", "failed", 1),
        ("2", "failed", 1),
        ("3", "completed", 0),
    ]
    assert "CUDA out of memory" in ends[0].evidence
    assert ends[0].cause == "out_of_memory_device"
    assert 0 < ends[0].noticed_t <= ends[0].t
    assert worker_keys(tmp_path) == ["1", "2", "3"]
    assert [e.outcome for e in launched(tmp_path) if isinstance(e, events.Ended)] == ["completed"]
    err = capfd.readouterr().err
    assert err.count("to stderr\n") == 3, "passed through unchanged"
    assert "relaunch 1 of 5" in err


def test_when_all_launches_failed_the_job_failed(tmp_path: Path) -> None:
    assert record(python("sys.exit(7)"), dir=tmp_path, relaunch=2, relaunch_delay_s=0) == 7
    assert [e.exit_code for e in attempts(tmp_path)] == [7, 7, 7]
    assert [e.outcome for e in launched(tmp_path) if isinstance(e, events.Ended)] == ["failed"]


def test_a_second_run_of_the_command_continues_the_attempt_keys(tmp_path: Path) -> None:
    for _ in range(2):
        record(python("sys.exit(1)"), dir=tmp_path, relaunch=1, relaunch_delay_s=0)
    assert [e.attempt for e in attempts(tmp_path)] == ["1", "2", "3", "4"]
    assert worker_keys(tmp_path) == ["1", "2", "3", "4"]


def test_a_command_killed_by_a_signal_says_which(tmp_path: Path) -> None:
    assert record(python("os.kill(os.getpid(), signal.SIGKILL)"), dir=tmp_path) == 128 + 9
    (end,) = attempts(tmp_path)
    assert (end.outcome, end.exit_code, end.signal) == ("failed", 137, 9)
    assert end.cause
    assert "SIGKILL" in end.evidence


@pytest.mark.parametrize(("name", "code"), [("no-such-command", 127), ("", 126)])
def test_a_command_that_cannot_be_run_is_not_tried_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, code: int
) -> None:
    command = name or str(tmp_path)  # a folder is not executable
    assert record([command], dir=tmp_path, relaunch=3) == code
    (end,) = attempts(tmp_path)
    assert (end.outcome, end.exit_code) == ("failed", code)
    assert "cannot run" in capfd.readouterr().err


@pytest.mark.parametrize(
    "options", [{"relaunch": -1}, {"relaunch_delay_s": -1.0}, {"chips": 0}, {"command": []}]
)
def test_options_that_make_no_sense_are_the_users_error(
    tmp_path: Path, options: dict[str, int]
) -> None:
    with pytest.raises(ConfigError):
        record(**{"command": ["true"], "dir": tmp_path, **options})  # type: ignore[arg-type]


def test_ctrl_c_reaches_the_command_and_ends_the_job(tmp_path: Path) -> None:
    child = start_launcher(tmp_path, "print('up', flush=True); time.sleep(30)", "relaunch=3")
    assert child.line() == "up"
    child.send_signal(signal.SIGINT)
    err = child.end(10)
    assert child.returncode == 130
    assert "KeyboardInterrupt" in err
    (end,) = attempts(tmp_path)
    assert (end.outcome, end.signal, end.cause) == ("stopped", 2, "cancelled")
    assert [e.outcome for e in launched(tmp_path) if isinstance(e, events.Ended)] == ["cancelled"]
    worker = next(f for f in map(events_in, files(tmp_path)) if f[0].role == "worker")  # type: ignore[attr-defined]
    assert isinstance(worker[-1], events.ProcessEnd)
    assert worker[-1].outcome == "stopped"


def test_sigterm_lets_the_command_save_and_leaves_the_job_open_for_a_requeue(
    tmp_path: Path,
) -> None:
    code = """
def save(*_):
    run.committed(0)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print('up', flush=True)
time.sleep(30)
"""
    child = start_launcher(tmp_path, code, "relaunch=3")
    assert child.line() == "up"
    child.send_signal(signal.SIGTERM)
    child.end(10)
    assert child.returncode == 0
    (end,) = attempts(tmp_path)
    assert (end.outcome, end.exit_code) == ("stopped", 0)
    assert not [e for e in launched(tmp_path) if isinstance(e, events.Ended)]


def test_a_signal_during_the_pause_ends_the_pause(tmp_path: Path) -> None:
    child = start_launcher(tmp_path, "sys.exit(1)", "relaunch=3, relaunch_delay_s=60")
    until = time.monotonic() + 10
    while not (files(tmp_path) and attempts_so_far(tmp_path)) and time.monotonic() < until:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    child.end(5)
    assert child.returncode == 1
    assert len(attempts(tmp_path)) == 1


def attempts_so_far(folder: Path) -> int:
    return sum(path.read_bytes().count(b'"attempt_end"') for path in files(folder))


def test_the_whole_group_gets_the_signal_not_only_its_leader(tmp_path: Path) -> None:
    code = """
import subprocess
helper = subprocess.Popen(["sleep", "30"])
signal.signal(signal.SIGTERM, lambda *_: None)
print(helper.pid, flush=True)
print(helper.wait(), flush=True)
"""
    child = start_launcher(tmp_path, code)
    pid = int(child.line())
    child.send_signal(signal.SIGTERM)
    assert child.line() == "-15"
    child.end(10)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_before_a_relaunch_nothing_of_the_last_launch_is_left(tmp_path: Path) -> None:
    code = """
import subprocess
pids = os.environ["PIDS"]
if attempt == "1":
    alone = subprocess.Popen(["sleep", "60"], start_new_session=True)
    group = subprocess.Popen(["sleep", "60"])
    open(pids, "w").write(f"{alone.pid} {group.pid}")
    os.kill(os.getpid(), signal.SIGKILL)
for pid in open(pids).read().split():
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        continue
    sys.exit(9)
"""
    child = start_launcher(
        tmp_path,
        f"os.environ['PIDS'] = {str(tmp_path / 'pids')!r}\n" + code,
        "relaunch=1, relaunch_delay_s=0",
    )
    child.end(20)
    assert child.returncode == 0


def test_only_the_end_of_a_long_stderr_is_evidence_and_all_of_it_is_passed_on(
    tmp_path: Path,
) -> None:
    code = """
for i in range(20000):
    print(f"noise {i} " + "x" * 20, file=sys.stderr)
raise RuntimeError("NCCL error: unhandled system error")
"""
    child = start_launcher(tmp_path, code)
    err = child.end(20)
    assert child.returncode == 1
    assert err.count("noise ") == 20000
    (end,) = attempts(tmp_path)
    assert "NCCL error" in end.evidence


def test_a_daemon_that_holds_stderr_does_not_hold_up_the_end(tmp_path: Path) -> None:
    code = (
        "import subprocess; print(subprocess.Popen(['sleep', '20']).pid, flush=True); os._exit(0)"
    )
    began = time.monotonic()
    child = start_launcher(tmp_path, code)
    daemon = int(child.line())
    assert child.wait(10) == 0
    assert time.monotonic() - began < 8
    os.kill(daemon, signal.SIGKILL)
    child.end()


def test_torchruns_summary_names_the_rank_that_failed_first(tmp_path: Path) -> None:
    summary = """
Root Cause (first observed failure):
[0]:
  time      : 2026-08-01_12:00:00
  host      : node7
  rank      : 11 (local_rank: 3)
  exitcode  : -9 (pid: 4711)
"""
    code = f"sys.stderr.write({summary!r}); sys.exit(1)"
    record(python(code), dir=tmp_path)
    (end,) = attempts(tmp_path)
    assert end.rank == 11


def test_on_other_nodes_nothing_is_recorded_and_no_attempt_key_is_given(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    command = ["env", sys.executable, str(script)]
    shape = ["--nnodes=2", "--node_rank=1"]
    wrapper = ["sh", "-c", 'shift 2; exec "$@"', "sh", *shape, *command]
    assert record(wrapper, dir=tmp_path / "runs") == 0
    assert launched(tmp_path / "runs") == []
    assert worker_keys(tmp_path / "runs") == [""]


def test_slurms_queue_is_the_jobs_queue_and_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scontrol = tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\necho SubmitTime=2026-01-01T00:00:00\n")
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    monkeypatch.setenv("SLURM_JOB_START_TIME", "1767300000")
    monkeypatch.setenv("SLURM_NTASKS", "6")
    for _ in range(2):
        record(["true"], dir=tmp_path)
    written = launched(tmp_path)
    (queued,) = [e for e in written if isinstance(e, events.Submitted)]
    assert queued.chips == 6
    assert queued.t < 1767300000 * 10**9
    held = [e for e in written if isinstance(e, events.Allocated)]
    assert [e.chips for e in held] == [6, 6]
    assert (held[0].t, held[0].m) == (1767300000 * 10**9, 0)


def test_the_launcher_leaves_signal_handlers_as_they_were(tmp_path: Path) -> None:
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)]
    record(["true"], dir=tmp_path)
    after = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)]
    assert after == before
