"""The checks behind `goodput doctor`, one by one."""

import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from goodput import doctor

PROJECT = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]


def check(checkup: doctor.Checkup, name: str) -> doctor.Check:
    return next(check for check in checkup.checks if check.name == name)


def test_every_core_dependency_is_checked() -> None:
    names = {line.split(">=")[0] for line in PROJECT["dependencies"]}
    assert names == set(doctor.CORE_MODULES)


def test_every_extra_says_what_it_adds() -> None:
    assert set(doctor.EXTRA_ADDS) == set(PROJECT["optional-dependencies"])
    assert {extra.name for extra in doctor.extras()} == set(PROJECT["optional-dependencies"])
    for extra in doctor.extras():
        assert extra.pip == f"pip install 'goodput-ml[{extra.name}]'"


def test_runs_folder_is_not_made(tmp_path: Path) -> None:
    checkup = doctor.examine(runs_dir=tmp_path / "deep" / "down")
    assert check(checkup, "runs folder").status == "ok"
    assert list(tmp_path.iterdir()) == []


def test_a_missing_core_dependency_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(doctor.CORE_MODULES, "httptools", "httptools_gone")
    checkup = doctor.examine(runs_dir=tmp_path)
    assert not checkup.healthy
    assert check(checkup, "httptools").remedy == "pip install httptools"


def test_a_full_disk_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "FULL_DISK_BYTES", 1 << 62)
    assert check(doctor.examine(runs_dir=tmp_path), "disk").status == "broken"


def test_a_stepped_wall_clock_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, stepped = time.time_ns, iter([0, 10**9])
    monkeypatch.setattr(time, "time_ns", lambda: real() - next(stepped))
    assert check(doctor.examine(runs_dir=tmp_path), "clocks").status == "warning"


def test_torch_and_ray_are_never_imported(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from goodput.doctor import examine;"
        f"examine(runs_dir=Path({str(tmp_path)!r}));"
        "print({'torch', 'ray'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "set()"
