"""The Ray backend against a real Ray on this machine; needs the extra."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sweep_functions as functions

from goodput.core.sweep import point_seed, sweep

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.real_processes,
    pytest.mark.filterwarnings("default"),  # Ray's own warnings are not ours to fix
]

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"


@pytest.fixture(autouse=True)
def workers_find_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{SOURCE}:{HERE}")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")


def test_ray_gives_what_processes_give() -> None:
    result = sweep(functions.square, range(5), seed=3, backend="ray", workers=2)
    assert result.complete
    assert [each.value for each in result.successes] == [
        (point * point, point_seed(3, point)) for point in range(5)
    ]


def test_a_dead_ray_worker_loses_its_point_only() -> None:
    points = [(0, ""), (1, "kill"), (2, ""), (3, "")]
    result = sweep(functions.die_on, points, backend="ray", workers=2)
    assert result.complete
    assert [each.value for each in result.successes] == [0, 2, 3]
    assert result.failures[0].kind == "died"
    assert "Ray lost point 1" in result.failures[0].message


def test_an_exception_on_ray_is_kept_with_its_traceback() -> None:
    result = sweep(functions.fail_on_odd, range(3), backend="ray", workers=2)
    assert [each.message for each in result.failures] == ["ValueError: point 1 is odd"]
    assert "in fail_on_odd" in result.failures[0].traceback


def test_ctrl_c_on_ray_returns_what_is_done(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sweep_functions as functions\n"
        "from goodput.core.sweep import sweep\n"
        "result = sweep(functions.sleep_for, [0.0, 600.0, 600.0], backend='ray', workers=2,\n"
        "               on_progress=lambda progress: print(progress.done, flush=True))\n"
        "print(result.complete, result.missing)\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == "1":
            break
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=90)
    assert process.returncode == 0
    assert out.splitlines()[-1] == "False (1, 2)"
