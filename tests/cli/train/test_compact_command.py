"""`goodput train compact`: the result reports what the event files report."""

import json
from pathlib import Path

import pytest

from goodput.cli.progress import progress_bar
from small_runs import Cli, WriteRun


def same_but_sources(left: str, right: str) -> bool:
    def bare(text: str) -> dict[str, object]:
        ledger: dict[str, object] = json.loads(text)
        return {key: value for key, value in ledger.items() if key != "sources"}

    return bare(left) == bare(right)


def test_compacted_reports_the_same(cli: Cli, write_run: WriteRun) -> None:
    run = write_run("job")
    before = cli("report", run, "--json").out
    ran = cli("train", "compact", run)
    assert ran.code == 0, ran.err
    assert "from 1 event file\n" in ran.out
    assert (run / "events-job.jsonl").exists()
    assert same_but_sources(cli("report", run / "compacted.parquet", "--json").out, before)


def test_remove(cli: Cli, write_run: WriteRun) -> None:
    run = write_run("job")
    before = cli("report", run, "--json").out
    result = json.loads(cli("train", "compact", run, "--remove", "--json").out)
    assert result["files"] == 1
    assert [Path(path).name for path in result["removed"]] == ["events-job.jsonl"]
    assert [path.name for path in run.iterdir()] == ["compacted.parquet"]
    assert same_but_sources(cli("report", run, "--json").out, before)


def test_out(cli: Cli, write_run: WriteRun, tmp_path: Path) -> None:
    out = tmp_path / "elsewhere.parquet"
    assert cli("train", "compact", write_run("job"), "--out", out).code == 0
    assert out.exists()


def test_nothing_to_compact(cli: Cli, tmp_path: Path) -> None:
    ran = cli("train", "compact", tmp_path)
    assert ran.code == 2
    assert ran.err.startswith("goodput: error: ")


def test_progress_is_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("working") as progress:
        progress(1, 2)
    assert capsys.readouterr().err == ""


def test_progress_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress_bar("working") as progress:
        for done in range(3):
            progress(done, 2)
    err = capsys.readouterr().err
    assert "working" in err
    assert "100%" in err
