"""For every test: Hypothesis profiles, the command line in this process, small recorded runs."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings

from goodput.cli import main

# No deadline: a test that shares two cores with training processes may be slow and still be right.
settings.register_profile("everyday", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("proof", deadline=None, max_examples=2000)
settings.load_profile(
    "proof" if os.environ.get("GOODPUT_PROOF") else "ci" if os.environ.get("CI") else "everyday"
)

NS_PER_S = 1_000_000_000
RUN_BEGAN_S = 1_767_225_600
"""2026-01-01T00:00:00Z."""


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Cli = Callable[..., Ran]


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


WriteRun = Callable[..., Path]


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    """Writes a folder of one process that made `steps` steps of 10 s, the first after 20 s."""

    def write(job: str, *, steps: int = 10, step_s: int = 10, folder: str = "") -> Path:
        place = tmp_path / (folder or job)
        place.mkdir(parents=True, exist_ok=True)

        def at(second: int) -> dict[str, int]:
            return {"t": (RUN_BEGAN_S + second) * NS_PER_S, "m": (5 + second) * NS_PER_S}

        first, last = 20, 20 + steps * step_s
        marks = [
            {"k": "step", **at(first + n * step_s), "n": n, "d": step_s * NS_PER_S, "c": 1}
            for n in range(steps)
        ]
        lines: list[dict[str, object]] = [
            {"k": "process", **at(0), "schema": "goodput.events/1.0", "job": job, "boot": "b"},
            {"k": "allocated", **at(0), "chips": 4},
            *marks,
            {"k": "committed", **at(last), "last_step": steps - 1},
            {"k": "process_end", **at(last)},
            {"k": "ended", **at(last)},
        ]
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        (place / f"events-{job}.jsonl").write_text(text)
        return place

    return write
