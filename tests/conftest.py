"""For every test: Hypothesis profiles, the command line in this process, small recorded runs."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from goodput.cli import main
from small_runs import Cli, Ran, WriteRun, write_small_run

# A shell that runs this in the background ignores SIGINT for all its children. Tests of Ctrl-C need
# it, so it is taken back here; processes that tests start inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: a test that shares two cores with training processes may be slow and still be right.
settings.register_profile("everyday", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("proof", deadline=None, max_examples=2000)
settings.load_profile(
    "proof" if os.environ.get("GOODPUT_PROOF") else "ci" if os.environ.get("CI") else "everyday"
)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs `goodput ARGS` as the console script would."""
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*args: object) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([str(arg) for arg in args])
        captured = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return Ran(stop.value.code, captured.out, captured.err)

    return run


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    """Writes a small run of a job below tmp_path; `folder` puts several into one."""

    def write(job: str, *, steps: int = 10, step_s: int = 10, folder: str = "") -> Path:
        return write_small_run(tmp_path / (folder or job), job, steps=steps, step_s=step_s)

    return write
