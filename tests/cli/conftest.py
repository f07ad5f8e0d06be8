"""Runs the command line in this process, as the console script would."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from goodput.cli import main


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Cli = Callable[..., Ran]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*args: object) -> Ran:
        with pytest.raises(SystemExit) as stop:
            main([str(arg) for arg in args])
        captured = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return Ran(stop.value.code, captured.out, captured.err)

    return run
