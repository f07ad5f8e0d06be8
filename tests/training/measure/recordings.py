"""Starts small recording programs and reads what they wrote. Shared by the recorder's tests."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec

from goodput.core.events import AnyEvent, Event, Process

_PLACE_VARIABLES = ("RANK", "WORLD_SIZE", "SLURM_", "OMPI_", "PMI_", "GOODPUT_", "TORCHELASTIC_")
_decoder = msgspec.json.Decoder(AnyEvent)


def clean_environ(**more: str) -> dict[str, str]:
    """The environment without anything that says a rank, a job or a folder.

    From Python 3.12 on, a fork in a process with threads warns; those here fork on purpose.
    """
    more.setdefault("PYTHONWARNINGS", "ignore:This process:DeprecationWarning")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_PLACE_VARIABLES)}
    return {**kept, **more}


def spawn(code: str, folder: Path, *, stdout: int = subprocess.PIPE, **environ: str) -> "Child":
    """Start a Python program that records into `folder`; `goodput` and `run` are there."""
    return Child(
        [sys.executable, "-c", program(code)],
        env=clean_environ(GOODPUT_DIR=str(folder), **environ),
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


def program(code: str) -> str:
    """The text of a recording program around `code`."""
    head = "import os, signal, sys, threading, time\nimport goodput\nrun = goodput.start()\n"
    return head + textwrap.dedent(code)


class Child(subprocess.Popen[str]):
    """A program under test that cannot outlive its test."""

    def line(self) -> str:
        """The next line that it prints: how it says that it has come to a point."""
        assert self.stdout is not None
        return self.stdout.readline().strip()

    def end(self, timeout_s: float = 20) -> str:
        """Wait for its end and return what it said on stderr."""
        try:
            return self.communicate(timeout=timeout_s)[1]
        except subprocess.TimeoutExpired:
            self.kill()
            self.communicate()
            raise


def files(folder: Path) -> list[Path]:
    """All event files below a folder."""
    return sorted(folder.rglob("events-*.jsonl"))


def events_in(path: Path) -> list[Event]:
    """All events of one file; each line must be one, the first the process."""
    text = path.read_bytes()
    assert text.endswith(b"\n"), text[-200:]
    events = [_decoder.decode(line) for line in text.splitlines()]
    assert isinstance(events[0], Process)
    return list(events)


def events_of(folder: Path) -> list[Event]:
    """All events of the only file below a folder."""
    (path,) = files(folder)
    return events_in(path)


def kinds(events: list[Event]) -> list[str]:
    """The kind of each event after the first."""
    return [str(event.__struct_config__.tag) for event in events[1:]]
