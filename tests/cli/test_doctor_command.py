"""`goodput doctor`: text in 80 columns, JSON, and an exit code that scripts can trust."""

from pathlib import Path

import msgspec
import pytest

from goodput.doctor import Checkup
from small_runs import Cli


def test_text_fits_80_columns(cli: Cli) -> None:
    ran = cli("doctor")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "Ready." in ran.out


def test_json_is_the_checkup(cli: Cli) -> None:
    checkup = msgspec.json.decode(cli("doctor", "--json").out, type=Checkup)
    assert checkup.healthy
    assert {"python", "disk", "clocks", "numpy"} <= {check.name for check in checkup.checks}


def test_broken_runs_folder_exits_1(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a-file"
    file.touch()
    monkeypatch.setenv("GOODPUT_DIR", str(file))
    ran = cli("doctor")
    assert ran.code == 1
    assert "BROKEN" in ran.out
    assert "GOODPUT_DIR" in ran.out
