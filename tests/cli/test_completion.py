"""Completion scripts, and what a shell is told when it asks."""

import json
import os
import subprocess
import sys

import pytest

from small_runs import Cli


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_names_our_variable(cli: Cli, shell: str) -> None:
    ran = cli("completion", shell)
    assert ran.code == 0
    assert "_GOODPUT_COMPLETE" in ran.out


def test_json(cli: Cli) -> None:
    ran = cli("completion", "bash", "--json")
    assert json.loads(ran.out)["shell"] == "bash"


def test_unknown_shell(cli: Cli) -> None:
    assert cli("completion", "tcsh").code == 2


@pytest.mark.parametrize(
    ("words", "expected"), [("goodput do", "plain,doctor"), ("goodput train rep", "plain,report")]
)
def test_a_shell_that_asks_is_told(words: str, expected: str) -> None:
    asked = {
        "_GOODPUT_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    done = subprocess.run(
        [sys.executable, "-m", "goodput"],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert expected in done.stdout.splitlines()
