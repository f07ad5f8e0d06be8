"""`goodput train report --follow`: a file that grows, an end, and Ctrl-C in a real process."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from goodput.report import from_json
from small_runs import Cli, WriteRun

PROGRAM = [sys.executable, "-c", "from goodput.cli import main; main()", "train", "report"]
OPTIONS = ["--follow", "--every", "0.2"]
WAIT_S = 60


def events(run: Path) -> tuple[Path, list[str]]:
    (file,) = run.glob("events-*.jsonl")
    return file, file.read_text().splitlines(keepends=True)


@contextmanager
def following(*arguments: object) -> Iterator["subprocess.Popen[str]"]:
    words = [*PROGRAM, *map(str, arguments), *OPTIONS]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as process:
        stop = threading.Timer(WAIT_S, process.kill)
        stop.start()
        try:
            yield process
        finally:
            stop.cancel()
            process.kill()


def test_a_job_that_is_over_ends_it(cli: Cli, write_run: WriteRun) -> None:
    run = write_run("job")
    plain = cli("train", "report", run)
    ran = cli("train", "report", run, "--follow")
    assert ran.code == 0, ran.err
    first, _, rest = ran.out.partition("\n")
    assert "job: goodput" in first
    assert "10 steps kept, 1 attempt, completed" in first
    assert rest == plain.out


def test_json_and_a_page(cli: Cli, write_run: WriteRun, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ran = cli("train", "report", write_run("job"), "--follow", "--json", "--html", page)
    assert ran.code == 0, ran.err
    assert from_json(ran.out).steps.kept == 10
    assert page.exists()


def test_no_such_path(cli: Cli, tmp_path: Path) -> None:
    ran = cli("train", "report", tmp_path / "nowhere", "--follow")
    assert ran.code == 2
    assert "nowhere" in ran.err


@pytest.mark.real_processes
def test_a_file_that_grows_until_ctrl_c(write_run: WriteRun) -> None:
    file, lines = events(write_run("job"))
    file.write_text("".join(lines[:5]))
    with following(file.parent) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert "3 steps kept" in first
        with file.open("a") as more:
            more.write("".join(lines[5:8]))
        second = process.stdout.readline()
        assert "6 steps kept" in second
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130
    assert "6 kept" in out
    assert "Goodput" in out
    assert err.strip() == "goodput: interrupted"


@pytest.mark.real_processes
def test_a_log_of_a_profile_that_is_empty_at_first(tmp_path: Path) -> None:
    profile, log = tmp_path / "my.toml", tmp_path / "run.log"
    profile.write_text(
        'name = "x"\n[[rules]]\nkind = "step"\n'
        "pattern = 'step (?P<step>\\d+) took (?P<seconds>\\S+) s'\n"
        '[[rules]]\nkind = "end"\npattern = "done"\n'
    )
    log.write_text("")
    with following("--profile", profile, "--json", log) as process:
        assert process.stdout is not None
        time.sleep(0.5)
        with log.open("a") as file:
            file.write("step 1 took 2 s\nstep 2 took")
        assert json.loads(process.stdout.readline())["steps"]["kept"] == 1
        with log.open("a") as file:
            file.write(" 2 s\ndone\n")
        out, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0
    last = from_json(out.splitlines()[-1])
    assert (last.steps.kept, last.state) == (2, "completed")


@pytest.mark.real_processes
def test_a_terminal_is_drawn_again(write_run: WriteRun) -> None:
    file, lines = events(write_run("job"))
    file.write_text("".join(lines[:5]))
    ours, theirs = pty.openpty()
    with subprocess.Popen([*PROGRAM, str(file.parent), *OPTIONS], stdout=theirs) as process:
        os.close(theirs)
        stop = threading.Timer(WAIT_S, process.kill)
        stop.start()
        seen = b""
        while b"Ctrl-C ends" not in seen:
            seen += os.read(ours, 65536)
        with file.open("a") as more:
            more.write("".join(lines[5:]))
        try:
            while chunk := os.read(ours, 65536):
                seen += chunk
        except OSError:  # Linux says so when the other side is closed
            pass
        assert process.wait(timeout=WAIT_S) == 0
        stop.cancel()
    os.close(ours)
    assert seen.count(b"\x1b[2J") >= 3
    assert b"10 kept" in seen.rsplit(b"\x1b[2J", 1)[1]
