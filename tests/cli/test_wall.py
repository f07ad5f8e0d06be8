"""Every way a command can end has one exit code and says one clear thing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from goodput.cli.wall import ExitCode, guarded
from goodput.core.errors import (
    AccountingError,
    ConfigError,
    DataError,
    GoodputError,
    MissingExtraError,
)


def raising(error: BaseException) -> int:
    def run() -> object:
        raise error

    return guarded(run)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DataError("no such kind 'x'", path="a.jsonl", line=3), ExitCode.USAGE),
        (ConfigError("chips = 0"), ExitCode.USAGE),
        (AccountingError("MFU = 133 %"), ExitCode.FAILED),
        (GoodputError("the job ended"), ExitCode.FAILED),
        (MissingExtraError("FLOP counting", extra="torch"), ExitCode.MISSING_EXTRA),
    ],
)
def test_expected_errors_are_one_line(
    error: GoodputError, code: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raising(error) == code
    assert capsys.readouterr().err == f"goodput: error: {error}\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_interrupt_is_130(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(error) == 130
    assert capsys.readouterr().err == "goodput: interrupted\n"


def test_usage_error_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(click.UsageError("no PATH")) == 2
    assert "no PATH" in capsys.readouterr().err


def test_unreadable_file_is_2() -> None:
    assert raising(click.FileError("out.html", hint="read-only")) == 2


def test_code_of_the_command_passes_through() -> None:
    assert guarded(lambda: 17) == 17
    assert guarded(lambda: None) == 0


def test_debug_prints_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOODPUT_DEBUG", "1")
    raising(ConfigError("chips = 0"))
    assert "Traceback" in capsys.readouterr().err


def test_unexpected_error_keeps_its_traceback_in_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert raising(RuntimeError("first line\nsecond")) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "unexpected error: RuntimeError: first line" in err
    found = re.search(r"traceback in (\S+);", err)
    assert found
    text = Path(found[1]).read_text(encoding="utf-8")
    assert "Traceback" in text
    assert "second" in text


def test_unexpected_error_where_nothing_can_be_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    assert raising(RuntimeError("boom")) == 1
    assert "boom" in capsys.readouterr().err


def test_reader_that_goes_away_is_quiet() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "goodput", "doctor", "--json"]
    done = subprocess.run(
        command, stdout=write_end, stderr=subprocess.PIPE, check=False, timeout=60
    )
    os.close(write_end)
    assert done.stderr == b""
    assert done.returncode == ExitCode.READER_GONE
