"""`goodput cluster report`: text, page, JSON, export, and the detection by `goodput report`."""

import json
import re
from pathlib import Path

import pytest

from goodput import senses
from goodput.cli import main
from goodput.core.errors import InputError

HEAD = "job_id,user,gpu_num,type,state,submit_time,start_time,end_time\n"
ROWS = "".join(
    f"j{i},<b>user{i % 20}</b>,{1 << i % 5},Eval,{('COMPLETED', 'FAILED')[i % 2]},"
    f"2023-0{1 + i % 9}-01 00:00:00,2023-0{1 + i % 9}-01 01:00:00,2023-0{1 + i % 9}-01 03:00:00\n"
    for i in range(60)
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(HEAD + ROWS)
    return path


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(args))
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


def test_text_fits_80_columns(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "cluster", "report", str(table))
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "Scheduling goodput  66.7 %" in out
    assert "Runtime goodput     not derivable" in out
    assert "By week of submission" in out
    assert "and 12 more: --json" in out


def test_page_is_whole_and_escaped(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = table.with_suffix(".html")
    assert run(capsys, "cluster", "report", str(table), "--html", str(page))[0] == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("<section") == text.count("</section>") >= 6
    assert "<b>user" not in text
    assert "not derivable" in text
    assert not re.search(r'(?:src|href)="http', text)


def test_json_is_one_versioned_line(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "cluster", "report", str(table), "--json", "--name", "kalos")
    ledger = json.loads(out)
    assert out.count("\n") == 1
    assert (ledger["schema"], ledger["name"]) == ("goodput.fleet-ledger/1.0", "kalos")
    lost = sum(loss["amount"] for loss in ledger["waterfall"]["losses"])
    assert lost + ledger["waterfall"]["useful"] == ledger["waterfall"]["capacity"]


def test_export_is_found_by_the_general_report(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exported = table.with_name("jobs.parquet")
    _, first, said = run(
        capsys, "cluster", "report", str(table), "--export", str(exported), "--name", "x"
    )
    assert f"wrote {exported} (60 jobs)" in said
    _, again, _ = run(capsys, "cluster", "report", str(exported), "--name", "x")
    assert again == first
    assert senses.detect([exported]) is senses.sense("cluster") is senses.detect([table])
    assert run(capsys, "report", str(exported))[0] == 0


def test_table_without_gpus_reports_nothing_to_divide(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table.write_text(HEAD + "j,u,0,Eval,FAILED,2023-01-01,2023-01-02,2023-01-03\n")
    page = table.with_suffix(".html")
    code, out, _ = run(capsys, "cluster", "report", str(table), "--html", str(page))
    assert code == 0
    assert "1 without GPUs" in out
    assert out.count("not derivable") == 3


def test_strict_refuses_the_first_bad_row(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table.write_text(HEAD + ROWS + "bad,u,1,Eval,FAILED,2023-01-02,2023-01-01,2023-01-03\n")
    code, _, said = run(capsys, "cluster", "report", str(table), "--strict")
    assert code == 2
    assert f"{table}: row 61, column start" in said
    assert run(capsys, "cluster", "report", str(table))[0] == 0


def test_export_that_cannot_be_written_is_an_error(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = table.parent / "no" / "jobs.parquet"
    code, _, said = run(capsys, "cluster", "report", str(table), "--export", str(target))
    assert code == 2
    assert str(target) in said


def test_fleets_are_not_compared(table: Path) -> None:
    with pytest.raises(InputError, match="cannot be compared"):
        senses.sense("cluster").comparison([[table], [table]], [])
