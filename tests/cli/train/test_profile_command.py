"""`goodput train profile`, and `--profile` of `goodput train report`."""

import json
from pathlib import Path

from goodput.report import from_json
from small_runs import Cli

PROFILE = """
name = "acme"
timestamp = "iso"
stamp = '^(?P<at>\\S+)'
[[rules]]
kind = "step"
pattern = 'step (?P<step>\\d+) took (?P<ms>\\S+) ms'
[[rules]]
kind = "end"
pattern = 'bye(?P<cause>.*)'
outcome = "failed"
"""
LINES = [f"2026-03-01T10:00:{2 * n:02d}Z step {n} took 2000 ms" for n in range(1, 20)]


def written(folder: Path, text: str = PROFILE) -> tuple[Path, Path]:
    profile, log = folder / "my.toml", folder / "run.log"
    profile.write_text(text)
    log.write_text("\n".join([*LINES, "2026-03-01T10:00:40Z iteration 99", "bye " + "x" * 300, ""]))
    return profile, log


def test_what_matched_line_by_line(cli: Cli, tmp_path: Path) -> None:
    ran = cli("train", "profile", *written(tmp_path), "--limit", 3)
    assert ran.code == 0, ran.err
    assert "20 of 21 lines matched" in ran.out
    assert "line 3      step             step=3 seconds=2.0 at=2026-03-01 10:00:06" in ran.out
    assert "... and 17 more" in ran.out
    assert "(a guess): 1" in ran.out
    assert "line 20: 2026-03-01T10:00:40Z iteration 99" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_long_values_fit_80_columns(cli: Cli, tmp_path: Path) -> None:
    ran = cli("train", "profile", *written(tmp_path))
    assert "x" * 20 in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_json(cli: Cli, tmp_path: Path) -> None:
    ran = cli("train", "profile", *written(tmp_path), "--json")
    found = json.loads(ran.out)
    assert [rule["matched"] for rule in found["rules"]] == [19, 1]
    assert found["matches"][0]["values"] == {"step": 1, "seconds": 2.0}


def test_nothing_matched(cli: Cli, tmp_path: Path) -> None:
    profile, log = written(tmp_path)
    log.write_text("hello\n")
    ran = cli("train", "profile", profile, log)
    assert ran.code == 1
    assert "0 of 1 line matched" in ran.out
    assert "rule 1 (step): matched no line" in ran.out


def test_wrong_profiles_and_logs_that_are_not_there(cli: Cli, tmp_path: Path) -> None:
    profile, log = written(tmp_path, PROFILE.replace("<step>", "<steps>"))
    for ran in (
        cli("train", "profile", profile, log),
        cli("train", "report", "--profile", profile, log),
    ):
        assert ran.code == 2
        assert f"{profile}: rules[0].pattern = " in ran.err
    profile.write_text(PROFILE)
    ran = cli("train", "profile", profile, tmp_path / "no.log")
    assert ran.code == 2
    assert "no.log: cannot be read" in ran.err


def test_report(cli: Cli, tmp_path: Path) -> None:
    profile, log = written(tmp_path)
    ran = cli("train", "report", "--profile", profile, log, "--json")
    assert ran.code == 0, ran.err
    ledger = from_json(ran.out)
    assert (ledger.job, ledger.steps.kept, ledger.state) == ("run", 19, "failed")
    assert cli("train", "report", log).code == 2
