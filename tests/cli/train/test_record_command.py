"""`goodput train record -- CMD`: output and exit code pass through, the job is recorded."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.real_processes


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "goodput", "train", "record", "--dir", str(folder), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ran(folder: Path, *words: str) -> tuple[int, str, str]:
    with start(folder, *words) as process:
        out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def python(code: str) -> list[str]:
    return ["--", sys.executable, "-c", code]


def reported(folder: Path) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "goodput", "train", "report", str(folder), "--json"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    ledger: dict[str, object] = json.loads(done.stdout)
    return ledger


def test_output_passes_through(tmp_path: Path) -> None:
    code, out, _ = ran(tmp_path, "--job", "a", *python("print('hello')"))
    assert (code, out) == (0, "hello\n")
    ledger = reported(tmp_path)
    assert ledger["job"] == "a"
    assert ledger["state"] == "completed"


@pytest.mark.parametrize("code", [1, 3, 42])
def test_code_of_the_command_is_ours(tmp_path: Path, code: int) -> None:
    assert ran(tmp_path, *python(f"raise SystemExit({code})"))[0] == code
    assert reported(tmp_path)["state"] == "failed"


def test_a_killed_command_is_128_and_the_signal(tmp_path: Path) -> None:
    code, _, _ = ran(tmp_path, *python("import os; os.kill(os.getpid(), 9)"))
    assert code == 128 + 9


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    code, _, err = ran(tmp_path, "--", "no-such-command")
    assert code == 127
    assert "no-such-command" in err


def test_no_command_is_a_usage_error(tmp_path: Path) -> None:
    assert ran(tmp_path)[0] == 2


def test_json_is_the_last_line(tmp_path: Path) -> None:
    code, out, _ = ran(
        tmp_path, "--job", "a", "--json", *python("print('hello'); raise SystemExit(5)")
    )
    assert code == 5
    assert out.splitlines()[0] == "hello"
    result = json.loads(out.splitlines()[-1])
    assert result["code"] == 5
    assert list(Path(result["folder"]).glob("events-*.jsonl"))


def test_relaunch(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    script = (
        f"import pathlib, sys; p = pathlib.Path({str(flag)!r});"
        "again = p.exists(); p.touch(); sys.exit(not again)"
    )
    runs = tmp_path / "runs"
    code, _, err = ran(runs, "--relaunch", "2", "--relaunch-delay", "0", *python(script))
    assert code == 0, err
    attempts = reported(runs)["attempts"]
    assert isinstance(attempts, list)
    assert len(attempts) == 2


def test_options_of_the_command_are_its_own(tmp_path: Path) -> None:
    _, out, _ = ran(
        tmp_path, sys.executable, "-c", "import sys; print(sys.argv[1:])", "--json", "--job", "x"
    )
    assert out == "['--json', '--job', 'x']\n"


def test_ctrl_c_reaches_the_command(tmp_path: Path) -> None:
    script = "import time; print('up', flush=True); time.sleep(30)"
    with start(tmp_path, *python(script)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        os.kill(process.pid, signal.SIGINT)
        began = time.monotonic()
        process.communicate(timeout=30)
    assert process.returncode == 130
    assert time.monotonic() - began < 20
