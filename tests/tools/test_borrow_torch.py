"""The demo borrows the user's torch: a real virtual environment and a Python that has one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "borrow_torch.py"


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    folder = tmp_path / "venv"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60
    )
    return folder / "bin" / "python"


@pytest.fixture
def lender(tmp_path: Path) -> Path:
    """A Python that imports a package named torch from a place of its own."""
    home = tmp_path / "lender"
    (home / "torch" / "distributed").mkdir(parents=True)
    (home / "torch" / "__init__.py").write_text("__version__ = '9.9.9'\n")
    (home / "torch" / "distributed" / "__init__.py").touch()
    script = home / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={home} exec {sys.executable} "$@"\n')
    script.chmod(0o755)
    return script


def run(python: Path, *args: str, lender: str = "") -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env |= {"PYTHON": lender, "PATH": str(python.parent)}
    return subprocess.run(
        [str(python), str(TOOL), *args],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def imports_torch(python: Path) -> bool:
    done = subprocess.run(
        [str(python), "-c", "import torch"], capture_output=True, check=False, timeout=60
    )
    return done.returncode == 0


def test_borrows_and_gives_back(environment: Path, lender: Path) -> None:
    done = run(environment, lender=str(lender))
    assert done.returncode == 0, done.stderr
    assert "using torch 9.9.9" in done.stdout
    assert imports_torch(environment)
    assert run(environment, "--give-back").returncode == 0
    assert not imports_torch(environment)


def test_nothing_to_borrow(environment: Path) -> None:
    assert run(environment).returncode == 1
    assert not imports_torch(environment)


def test_a_lender_that_fails_is_passed_over(environment: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    assert run(environment, lender=str(broken)).returncode == 1
