"""Real scripts, real signals: what Ctrl-C and SIGKILL leave behind."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.real_processes,
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc"),
]

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
HEAD = """
import json, sys, time
import sweep_functions as functions
from goodput.core.sweep import stream, sweep

def tell(progress):
    print(json.dumps({"done": progress.done}), flush=True)

def show(result):
    print(json.dumps({
        "complete": result.complete,
        "values": [each.value for each in result.successes],
        "failures": [each.message for each in result.failures],
        "missing": list(result.missing),
    }), flush=True)
"""


class Script:
    """A running script, in a session of its own like a terminal's foreground job."""

    def __init__(self, folder: Path, body: str, *, head: str = HEAD) -> None:
        path = folder / "script.py"
        path.write_text(head + body)
        self.marker = uuid.uuid4().hex
        environment = os.environ | {
            "PYTHONPATH": f"{SOURCE}:{HERE}",
            "PYTHONWARNINGS": "error",
            "GOODPUT_TEST_MARKER": self.marker,
        }
        self.process = subprocess.Popen(
            [sys.executable, str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def wait_for(self, done: int) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if json.loads(line).get("done", -1) >= done:
                return
        pytest.fail(f"ended before {done} points were done: {self.finish()}")

    def finish(self) -> tuple[int, list[dict[str, object]], str]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err

    def survivors(self) -> dict[int, str]:
        """Command lines by pid of all processes that inherited this script's environment."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if self.marker.encode() in (entry / "environ").read_bytes():
                    state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                    if state != "Z":
                        found[int(entry.name)] = (entry / "cmdline").read_bytes().decode()
            except OSError:
                continue
        return found

    def assert_nothing_is_left(self) -> None:
        deadline = time.monotonic() + 15
        while (left := self.survivors()) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not left


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[Script]]:
    scripts: list[Script] = []
    yield scripts
    for script in scripts:
        for pid in script.survivors():  # only after a failed test
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        script.process.communicate(timeout=30)


def run(started: list[Script], folder: Path, body: str, *, head: str = HEAD) -> Script:
    script = Script(folder, body, head=head)
    started.append(script)
    return script


@pytest.mark.parametrize("backend", ["processes", "serial"])
def test_ctrl_c_returns_what_is_done_and_leaves_no_process(
    backend: str, started: list[Script], tmp_path: Path
) -> None:
    script = run(
        started,
        tmp_path,
        f"""
if __name__ == "__main__":
    points = [0.01, 0.02, 0.03, 600.0, 600.5, 600.25]
    show(sweep(functions.with_grandchild, points, backend={backend!r}, workers=2,
               on_progress=tell))
""",
    )
    script.wait_for(3)
    time.sleep(0.3)
    os.killpg(script.process.pid, signal.SIGINT)  # as a terminal does
    code, lines, err = script.finish()
    assert code == 0, err
    result = lines[-1]
    assert result["complete"] is False
    assert result["values"] == [0.01, 0.02, 0.03]
    assert result["missing"] == [3, 4, 5]
    assert "Traceback" not in err
    script.assert_nothing_is_left()


def test_ctrl_c_while_workers_start(started: list[Script], tmp_path: Path) -> None:
    for delay_s in (0.0, 0.02, 0.05, 0.1, 0.2, 0.3):
        folder = tmp_path / str(delay_s)
        folder.mkdir()
        script = run(
            started,
            folder,
            """
if __name__ == "__main__":
    show(sweep(functions.sleep_for, [60.0] * 4, workers=2, on_progress=tell))
""",
        )
        script.wait_for(0)
        time.sleep(delay_s)
        os.killpg(script.process.pid, signal.SIGINT)
        code, lines, err = script.finish()
        assert code == 0, err
        assert lines[-1]["missing"] == [0, 1, 2, 3]
        assert "Traceback" not in err
        script.assert_nothing_is_left()


def test_ctrl_c_comes_out_of_a_stream_as_keyboard_interrupt(
    started: list[Script], tmp_path: Path
) -> None:
    script = run(
        started,
        tmp_path,
        """
if __name__ == "__main__":
    outcomes = stream(functions.sleep_for, [0.0, 60.0], workers=2)
    try:
        for outcome in outcomes:
            print(json.dumps({"done": 1}), flush=True)
    except KeyboardInterrupt:
        print(json.dumps({"interrupted": True}), flush=True)
""",
    )
    script.wait_for(1)
    os.killpg(script.process.pid, signal.SIGINT)
    code, lines, err = script.finish()
    assert (code, lines) == (0, [{"interrupted": True}]), err
    script.assert_nothing_is_left()


def test_a_second_ctrl_c_leaves_a_caller_that_does_not_come_back(
    started: list[Script], tmp_path: Path
) -> None:
    script = run(
        started,
        tmp_path,
        """
def stuck(progress):
    tell(progress)
    if progress.done == 1:
        time.sleep(600)

if __name__ == "__main__":
    show(sweep(functions.sleep_for, [0.0, 60.0], workers=2, on_progress=stuck))
""",
    )
    script.wait_for(1)
    for _ in range(2):
        time.sleep(0.3)
        os.killpg(script.process.pid, signal.SIGINT)
    code, lines, err = script.finish()
    assert code == 0, err
    assert lines[-1]["missing"] == [1]
    script.assert_nothing_is_left()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent_whatever_kills_it(
    number: signal.Signals, started: list[Script], tmp_path: Path
) -> None:
    script = run(
        started,
        tmp_path,
        """
if __name__ == "__main__":
    sweep(functions.with_grandchild, [0.01, 600.0, 600.5], workers=2, on_progress=tell)
""",
    )
    script.wait_for(1)
    time.sleep(0.3)
    assert len(script.survivors()) >= 4  # parent, tracker, workers, their programs
    os.kill(script.process.pid, number)
    script.finish()
    script.assert_nothing_is_left()


def test_a_script_without_a_main_guard_is_told_so(started: list[Script], tmp_path: Path) -> None:
    script = run(started, tmp_path, "sweep(functions.square, [1, 2], workers=1)\n")
    code, _, err = script.finish()
    assert code == 1
    assert "needs `if __name__ == '__main__':`" in err
    script.assert_nothing_is_left()


def test_a_function_of_the_script_itself_works(started: list[Script], tmp_path: Path) -> None:
    script = run(
        started,
        tmp_path,
        """
def cube(point, seed):
    return point ** 3

if __name__ == "__main__":
    show(sweep(cube, [1, 2, 3], workers=2))
""",
    )
    code, lines, err = script.finish()
    assert code == 0, err
    assert lines[-1]["values"] == [1, 8, 27]


def test_a_module_that_fails_in_the_worker_is_named(started: list[Script], tmp_path: Path) -> None:
    (tmp_path / "only_once.py").write_text(
        "import multiprocessing\n"
        "if multiprocessing.parent_process() is not None:\n"
        "    raise RuntimeError('not in a worker')\n"
        "def function(point, seed):\n    return point\n"
    )
    script = run(
        started,
        tmp_path,
        f"""
sys.path.insert(0, {str(tmp_path)!r})
if __name__ == "__main__":
    from only_once import function
    sweep(function, [1])
""",
    )
    code, _, err = script.finish()
    assert code == 1
    assert "ConfigError: a worker process could not load the function" in err
    assert "not in a worker" in err
    script.assert_nothing_is_left()


def test_the_package_loads_no_numpy_and_no_ray() -> None:
    code = (
        "import sys, goodput.core.sweep; "
        "sys.exit(any(name in sys.modules for name in ('numpy', 'ray')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
