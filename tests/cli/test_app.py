"""The tree of commands: listing, typos, version."""

import pytest

from goodput import __version__
from small_runs import Cli


def test_version(cli: Cli) -> None:
    ran = cli("--version")
    assert ran.code == 0
    assert __version__ in ran.out


def test_help_lists_commands_groups_and_codes(cli: Cli) -> None:
    ran = cli("--help")
    assert ran.code == 0
    for word in ("doctor", "train", "Exit codes", "130"):
        assert word in ran.out


@pytest.mark.parametrize(
    ("typo", "meant"),
    [(["doctr"], "doctor"), (["trian"], "train"), (["train", "reprot"], "report")],
)
def test_a_typo_names_the_nearest_command(cli: Cli, typo: list[str], meant: str) -> None:
    ran = cli(*typo)
    assert ran.code == 2
    assert f"Did you mean '{meant}'?" in ran.err


def test_nothing_near_lists_what_there_is(cli: Cli) -> None:
    ran = cli("zzzz")
    assert ran.code == 2
    assert "There are: " in ran.err


def test_unknown_option_is_a_usage_error(cli: Cli) -> None:
    assert cli("doctor", "--colour").code == 2
