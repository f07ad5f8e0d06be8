"""`goodput report` and `goodput compare`: any run, its sense detected."""

import json
from pathlib import Path

from small_runs import Cli, WriteRun


def test_report_is_the_training_report(cli: Cli, write_run: WriteRun) -> None:
    run = write_run("job")
    assert cli("report", run) == cli("train", "report", run)
    assert cli("report", run, "--json") == cli("train", "report", run, "--json")


def test_a_saved_report_renders_as_the_run_does(
    cli: Cli, write_run: WriteRun, tmp_path: Path
) -> None:
    run = write_run("job")
    saved = tmp_path / "saved.json"
    saved.write_text(cli("report", run, "--json").out)
    assert cli("report", saved).out == cli("report", run).out


def test_nothing_to_report(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello\n")
    ran = cli("report", tmp_path)
    assert ran.code == 2
    assert "notes.txt" in ran.err


def test_no_path_is_a_usage_error(cli: Cli) -> None:
    assert cli("report").code == 2


def test_compare(cli: Cli, write_run: WriteRun, tmp_path: Path) -> None:
    slow, fast = write_run("slow", step_s=12), write_run("fast", step_s=10)
    ran = cli("compare", slow, fast)
    assert ran.code == 0, ran.err
    assert "slow" in ran.out
    assert "fast" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    page = tmp_path / "both.html"
    ran = cli("compare", slow, fast, "--json", "--html", page)
    assert json.loads(ran.out)["schema"].startswith("goodput.training-comparison/")
    assert page.exists()


def test_compare_names_runs(cli: Cli, write_run: WriteRun) -> None:
    run = write_run("job")
    ran = cli("compare", run, run, "--name", "before", "--name", "after")
    assert "before" in ran.out
    assert "after" in ran.out
    assert cli("compare", run, run, "--name", "before").code == 2


def test_compare_wants_one_run_on_each_side(cli: Cli, write_run: WriteRun) -> None:
    write_run("beta", folder="runs")
    both = write_run("alpha", folder="runs")
    ran = cli("compare", both, write_run("gamma"))
    assert ran.code == 2
    assert "alpha, beta" in ran.err


def test_compare_wants_two(cli: Cli, write_run: WriteRun) -> None:
    assert cli("compare", write_run("job")).code == 2
