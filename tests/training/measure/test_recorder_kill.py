"""SIGKILL at a random instant: no record whose call had returned may be missing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from recordings import clean_environ

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "kill_anywhere.py"


@pytest.mark.real_processes
def test_two_hundred_kills_lose_no_record_and_break_no_report(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--kills=200", "--longest-s=0.01", "--json"]
    done = subprocess.run(
        [*command, "--dir", str(tmp_path), f"--seed={os.getpid()}"],
        capture_output=True,
        text=True,
        timeout=120,
        env=clean_environ(),
        check=False,
    )
    result = json.loads(done.stdout)
    assert result["kills"] == 200
    assert result["killed while recording"] > 150
    assert result["records that had returned"] > 10_000
    assert result["lost"] == 0
    assert result["failures"] == [], done.stderr
    assert done.returncode == 0
