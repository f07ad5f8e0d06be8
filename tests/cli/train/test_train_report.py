"""`goodput train report`: each option reaches the ledger, and wrong ones are usage errors."""

import json
from pathlib import Path

import msgspec
import pytest

from goodput.report import from_json
from goodput.training.measure.ledger.types import Ledger
from small_runs import RUN_BEGAN_S, Cli, Ran, WriteRun

S = 1_000_000_000
CHIPS = 4


def ledger(ran: Ran) -> Ledger:
    assert ran.code == 0, ran.err
    return from_json(ran.out)


def test_text_fits_80_columns(cli: Cli, write_run: WriteRun) -> None:
    ran = cli("train", "report", write_run("job"))
    assert ran.code == 0, ran.err
    assert "Goodput" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_json_is_a_ledger(cli: Cli, write_run: WriteRun) -> None:
    found = ledger(cli("train", "report", write_run("job"), "--json"))
    assert found.job == "job"
    assert found.waterfall.capacity == CHIPS * 120 * S
    assert found.waterfall.loss("startup") == CHIPS * 20 * S
    assert found.waterfall.useful == CHIPS * 100 * S
    assert found.steps.kept == 10


def test_html(cli: Cli, write_run: WriteRun, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ran = cli("train", "report", write_run("job"), "--html", page)
    assert ran.code == 0, ran.err
    assert page.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    assert str(page) in ran.err


def test_html_in_a_folder_that_is_not_there(cli: Cli, write_run: WriteRun, tmp_path: Path) -> None:
    ran = cli("train", "report", write_run("job"), "--html", tmp_path / "no" / "page.html")
    assert ran.code == 2
    assert "page.html" in ran.err


def test_exclude_by_seconds_and_by_clock_agree(cli: Cli, write_run: WriteRun) -> None:
    run = write_run("job")
    by_seconds = ledger(cli("train", "report", run, "--json", "--exclude", "0..20"))
    by_clock = ledger(
        cli(
            *("train", "report", run, "--json"),
            *("--exclude", "2026-01-01T00:00:00..2026-01-01T00:00:20"),
        )
    )
    assert by_seconds == by_clock
    assert by_seconds.excluded == CHIPS * 20 * S
    assert by_seconds.waterfall.capacity == CHIPS * 100 * S


def test_exclude_is_repeatable(cli: Cli, write_run: WriteRun) -> None:
    found = ledger(
        cli(
            "train",
            "report",
            write_run("job"),
            "--json",
            *["--exclude", "0..5", "--exclude", "10..15"],
        )
    )
    assert found.excluded == CHIPS * 10 * S


def test_window(cli: Cli, write_run: WriteRun) -> None:
    found = ledger(cli("train", "report", write_run("job"), "--json", "--window", "60.."))
    assert found.waterfall.capacity == CHIPS * 60 * S
    assert found.waterfall.loss("startup") == 0


def test_last(cli: Cli, write_run: WriteRun) -> None:
    run = write_run("job")
    last = ledger(cli("train", "report", run, "--json", "--last", "60"))
    assert (
        last.waterfall
        == ledger(cli("train", "report", run, "--json", "--window", "60..")).waterfall
    )


def test_as_of(cli: Cli, write_run: WriteRun) -> None:
    found = ledger(cli("train", "report", write_run("job"), "--json", "--as-of", "50"))
    assert found.ended_at_ns == (RUN_BEGAN_S + 50) * S
    assert found.steps.kept <= 3


def test_chips_and_ideal_step(cli: Cli, write_run: WriteRun) -> None:
    found = ledger(cli("train", "report", write_run("job"), "--json", "--ideal-step", "5"))
    assert found.waterfall.useful == CHIPS * 50 * S
    assert found.steps.ideal_source == "given"


def test_flops(cli: Cli, write_run: WriteRun) -> None:
    words = "--flops-per-step 4e13 --peak-flops 2e12 --json"
    found = ledger(cli("train", "report", write_run("job"), *words.split()))
    assert found.flops is not None
    assert found.flops.mfu == pytest.approx(0.5)  # 4e13 FLOPs / (2e12 FLOP/s x 4 chips x 10 s)


def test_several_jobs_are_reported_one_after_the_other(cli: Cli, write_run: WriteRun) -> None:
    write_run("beta", folder="runs")
    folder = write_run("alpha", folder="runs")
    ran = cli("train", "report", folder, "--json")
    assert [json.loads(line)["job"] for line in ran.out.splitlines()] == ["alpha", "beta"]
    assert ledger(cli("train", "report", folder, "--json", "--job", "beta")).job == "beta"


def test_unknown_job_lists_those_found(cli: Cli, write_run: WriteRun) -> None:
    ran = cli("train", "report", write_run("job"), "--job", "jbo")
    assert ran.code == 2
    assert "found: job" in ran.err


def test_one_page_holds_one_job(cli: Cli, write_run: WriteRun, tmp_path: Path) -> None:
    write_run("beta", folder="runs")
    ran = cli("train", "report", write_run("alpha", folder="runs"), "--html", tmp_path / "x.html")
    assert ran.code == 2
    assert "alpha, beta" in ran.err


@pytest.mark.parametrize(
    "words",
    [
        "--ideal-step -1",
        "--ideal-step nan",
        "--chips 0",
        "--window 20..10",
        "--exclude 5",
        "--as-of soon",
        "--chip NOPE-9000 --flops-per-step 1e12",
        "--attempt nope",
        "--rank 7",
    ],
)
def test_wrong_options_are_usage_errors(cli: Cli, write_run: WriteRun, words: str) -> None:
    ran = cli("train", "report", write_run("job"), *words.split())
    assert ran.code == 2, ran.out
    assert ran.err


def test_nothing_to_read(cli: Cli, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone"):
        ran = cli("train", "report", path)
        assert ran.code == 2
        assert ran.err.startswith("goodput: error: ")
        assert str(path) in ran.err
        assert ran.err.count("\n") == 1


def test_a_saved_ledger_takes_no_options(cli: Cli, write_run: WriteRun, tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    saved.write_text(cli("train", "report", write_run("job"), "--json").out)
    assert cli("train", "report", saved).code == 0
    ran = cli("train", "report", saved, "--ideal-step", "5")
    assert ran.code == 2
    assert "saved.json" in ran.err


def test_same_input_same_bytes(cli: Cli, write_run: WriteRun) -> None:
    run = write_run("job")
    assert cli("train", "report", run, "--json").out == cli("train", "report", run, "--json").out
    msgspec.json.decode(cli("train", "report", run, "--json").out, type=Ledger)
