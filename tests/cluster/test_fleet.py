"""Job tables of each layout against values worked out by hand."""

import csv
import gzip
import json
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodput.cluster.measure.fleet import (
    FleetLedger,
    Group,
    fleet_ledger,
    open_tables,
    write_parquet,
)
from goodput.core.errors import DataError

HOUR = 3600 * 10**9
ACME = """\
job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,fail_time,\
stop_time,duration,queue,gpu_time
a1,u1,1,8,64,Pretrain,COMPLETED,2023-03-01 00:00:00+08:00,2023-03-01 01:00:00+08:00,\
2023-03-01 11:00:00+08:00,,,36000,3600,288000
a2,u1,1,4,64,Eval,FAILED,2023-03-02 00:00:00+08:00,2023-03-02 00:30:00+08:00,,\
2023-03-02 02:30:00+08:00,,7200,1800,28800
a3,u2,1,2,64,Eval,CANCELLED,2023-03-02 00:00:00+08:00,,2023-03-02 02:00:00+08:00,,,0,7200,0
a4,u2,1,0,64,Eval,COMPLETED,2023-03-02 00:00:00+08:00,2023-03-02 00:00:00+08:00,\
2023-03-02 02:00:00+08:00,,,7200,0,0
a5,u2,1,2,64,Eval,FAILED,2023-03-02 00:00:00+08:00,2023-03-02 03:00:00+08:00,\
2023-03-02 02:00:00+08:00,,,0,7200,0
a6,u2,1,x,64,Eval,FAILED,2023-03-02 00:00:00+08:00,,2023-03-02 02:00:00+08:00,,,0,7200,0
a7,u2,1,16,64,Eval,RUNNING,2023-03-02 00:00:00+08:00,2023-03-02 03:00:00+08:00,,,,0,7200,0
a8,u2,1,1,64,Eval,TIMEOUT,2023-03-02 00:00:00+08:00,2023-03-02 01:00:00+08:00,yesterday,,,0,0,0
"""
SACCT = """\
JobID|User|Partition|State|Submit|Eligible|Start|End|AllocTRES|ReqTRES|
10|u1|gpu|COMPLETED|2025-01-01T00:00:00|2025-01-01T00:00:00|2025-01-01T01:00:00|\
2025-01-01T03:00:00|billing=4,cpu=4,gres/gpu:h100=4,gres/gpu=4,node=1|cpu=4|
10.batch|||COMPLETED|2025-01-01T01:00:00|2025-01-01T00:00:00|2025-01-01T01:00:00|\
2025-01-01T03:00:00|cpu=4,node=1||
11|u1|gpu|CANCELLED by 1001|2025-01-01T00:00:00|2025-01-01T00:00:00|None|2025-01-01T02:00:00||\
cpu=4,gres/gpu:h100=2,gres/gpu:a100=1|
12_[1-10]|u2|gpu|PENDING|2025-01-01T00:00:00|Unknown|Unknown|Unknown||cpu=4,gres/gpu=2|
13|u2|long|NODE_FAIL|2025-01-01T00:00:00|2025-01-01T05:00:00|2025-01-01T06:00:00|\
2025-01-01T07:00:00|gres/gpu=8,node=1|gres/gpu=8|
14|u2|long|TIMEOUT|2025-01-01T00:00:00|2025-0
"""


def attempt(start: str, end: str | None, gpus: int) -> dict[str, object]:
    detail = [{"ip": f"m{i}", "gpus": ["gpu0"]} for i in range(gpus)]
    return {"start_time": start, "end_time": end, "detail": detail}


def philly(job: str, status: str, *attempts: dict[str, object], vc: str = "a") -> dict[str, object]:
    return {
        "status": status,
        "vc": vc,
        "jobid": job,
        "attempts": attempts,
        "submitted_time": "2017-10-07 00:00:00",
        "user": "u",
    }


PHILLY = [
    philly(
        "p1",
        "Pass",
        attempt("2017-10-07 01:00:00", "2017-10-07 02:00:00", 2),
        attempt("2017-10-07 02:30:00", "2017-10-07 05:30:00", 2),
    ),
    philly("p2", "Killed"),
    philly("p3", "Failed", attempt("2017-10-07 00:00:00", "2017-10-07 01:00:00", 4), vc="b"),
    philly("p4", "Killed", attempt("2017-10-07 00:00:00", None, 1)),
    philly("p5", "Failed", attempt("2017-10-07 01:00:00", "2017-10-07 00:30:00", 1)),
]


def account(*paths: Path | str) -> FleetLedger:
    with open_tables([str(path) for path in paths]) as tables:
        return fleet_ledger(tables, name="fleet")


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def losses(ledger: FleetLedger) -> dict[str, int]:
    return {loss.name: loss.amount // HOUR for loss in ledger.waterfall.losses}


def groups(ledger: FleetLedger, name: str) -> dict[str, Group]:
    (found,) = (one for one in ledger.dimensions if one.name == name)
    return {group.key: group for group in found.groups}


def test_acme(tmp_path: Path) -> None:
    ledger = account(write(tmp_path, "trace.csv", ACME))
    jobs = ledger.jobs
    assert (jobs.read, jobs.accounted, jobs.without_chips, jobs.open, jobs.bad) == (8, 3, 1, 1, 3)
    assert ledger.waterfall.capacity == 102 * HOUR
    assert ledger.waterfall.useful == 80 * HOUR
    assert losses(ledger) == {"queue": 14, "failed": 8}
    assert {part.name: part.amount // HOUR for part in ledger.waterfall.losses[0].parts} == {
        "before the first start": 10,
        "jobs that never started": 4,
    }
    assert ledger.scheduling.value == pytest.approx(88 / 102)
    assert ledger.runtime.value is None
    assert ledger.failed == 8 * HOUR
    assert groups(ledger, "user")["u1"].run == 88 * HOUR
    assert list(groups(ledger, "size")) == ["2", "3-4", "5-8"]
    assert list(groups(ledger, "kind")) == ["Pretrain", "Eval"]
    assert list(groups(ledger, "week")) == ["2023-W09"]
    assert ledger.begin_ns == 1_677_600_000 * 10**9  # 2023-02-28 16:00 UTC


def test_bad_rows_name_file_column_row_and_value(tmp_path: Path) -> None:
    path = write(tmp_path, "trace.csv", ACME)
    found = {
        (bad.row, bad.column, bad.value, bad.reason): bad.path for bad in account(path).bad_rows
    }
    assert found == {
        (5, "end", "-3600 s", "ends before it starts"): str(path),
        (6, "gpus", "x", "not a whole number of GPUs"): str(path),
        (8, "end", "yesterday", "not a time"): str(path),
    }


def test_sacct(tmp_path: Path) -> None:
    ledger = account(write(tmp_path, "sacct.txt", SACCT))
    assert (ledger.jobs.read, ledger.jobs.accounted, ledger.jobs.open) == (4, 3, 1)
    # 10: 1 h x 4 queue, 2 h x 4 run; 11: 2 h x 3, never started; 13: held until 5:00, 1 h x 8 each.
    assert losses(ledger) == {"queue": 4 + 6 + 8, "node_fail": 8}
    assert ledger.waterfall.useful == 8 * HOUR
    assert set(groups(ledger, "queue")) == {"gpu", "long"}
    assert any("line 7" in note.text for note in ledger.notes)


def test_philly(tmp_path: Path) -> None:
    ledger = account(write(tmp_path, "cluster_job_log", json.dumps(PHILLY)))
    jobs = ledger.jobs
    assert (jobs.read, jobs.accounted, jobs.without_chips, jobs.open, jobs.bad) == (5, 2, 1, 1, 1)
    assert losses(ledger) == {"queue": 3, "failed": 4}
    assert [part.amount // HOUR for part in ledger.waterfall.losses[0].parts] == [2, 1]
    assert ledger.waterfall.useful == 8 * HOUR
    assert ledger.retried == 2 * HOUR
    assert jobs.restarts == 1
    assert groups(ledger, "queue")["b"].failed == 4 * HOUR


def test_condensed_table_derives_neither_factor(tmp_path: Path) -> None:
    text = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.5,2,133.0,11cb48\n"
    ledger = account(write(tmp_path, "philly.csv", text))
    assert ledger.waterfall.capacity == 133 * 10**9
    assert ledger.waterfall.useful == 0
    assert ledger.scheduling.value is None
    assert ledger.runtime.value is None


def test_export_reads_back_as_the_same_account(tmp_path: Path) -> None:
    paths = [write(tmp_path, "trace.csv", ACME), write(tmp_path, "log", json.dumps(PHILLY))]
    exported = tmp_path / "out" / "jobs.parquet"
    exported.parent.mkdir()
    with open_tables([str(path) for path in paths]) as tables:
        whole = fleet_ledger(tables, name="fleet")
        assert write_parquet(tables.connection, str(exported)) == whole.jobs.read - whole.jobs.bad
    again = account(exported)
    assert again.waterfall == whole.waterfall
    assert again.scheduling == whole.scheduling
    assert again.retried == whole.retried
    assert again.dimensions == whole.dimensions
    assert account(str(exported.parent / "*.parquet")).waterfall == whole.waterfall
    assert account(exported.parent).waterfall == whole.waterfall


def test_the_same_table_twice_counts_once(tmp_path: Path) -> None:
    one, two = write(tmp_path, "a.csv", ACME), write(tmp_path, "b.csv", ACME)
    ledger = account(one, two)
    assert ledger.waterfall == account(one).waterfall
    assert ledger.jobs.copies == 5


def test_folder_with_gzip_and_other_files(tmp_path: Path) -> None:
    (tmp_path / "trace.csv.gz").write_bytes(gzip.compress(ACME.encode()))
    write(tmp_path, "sacct.txt", SACCT)
    write(tmp_path, "notes.md", "# nothing\n")
    write(tmp_path, "other.json", "[]")
    ledger = account(tmp_path)
    assert [Path(source).name for source in ledger.sources] == ["sacct.txt", "trace.csv.gz"]
    assert ledger.waterfall.capacity == (102 + 34) * HOUR
    ignored = [Path(note.where).name for note in ledger.notes if "not a job table" in note.text]
    assert ignored == ["notes.md", "other.json"]


def test_jobs_without_a_name_are_not_copies(tmp_path: Path) -> None:
    text = "timestamp,duration,num_gpus,gpu_time,cluster\n" + "2017-10-09 07:01:55,60,1,60,a\n" * 2
    assert account(write(tmp_path, "philly.csv", text)).waterfall.capacity == 120 * 10**9


def test_condensed_philly_trace() -> None:
    data = Path(os.environ.get("GOODPUT_DATA") or Path(__file__).parents[2].parent / "shared/data")
    path = data / "pollux" / "philly.csv"
    if not path.exists():
        pytest.skip(f"no {path}")
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["timestamp"]]
    ledger = account(path)
    assert ledger.jobs.accounted + ledger.jobs.copies == len(rows)
    assert not ledger.jobs.bad
    total = sum(int(row["num_gpus"]) * round(float(row["duration"]) * 1e9) for row in rows)
    assert ledger.waterfall.capacity == total


def test_useful_time_makes_runtime_goodput_derivable(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "jobs.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT 'j' || i AS job_id, 2 AS gpus, 0 AS submit_ns, 10 AS start_ns, "  # noqa: S608
            "110 AS end_ns, 80 + i AS useful_ns, 'FAILED' AS state FROM range(2) AS t(i)) "
            f"TO '{path}' (FORMAT parquet)"
        )
    ledger = account(path)
    assert ledger.runtime.value == pytest.approx(161 / 200)
    assert ledger.waterfall.useful == 2 * 161
    assert ledger.waterfall.loss("failed") == 2 * 39


def test_amounts_that_cannot_be_are_bad_rows(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "jobs.parquet"
    rows = f"(1, 0, 9, 9), ({2**62}, 0, 1, 1), (1, {-(2**63)}, {2**63 - 1}, {2**63 - 1})"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT *, 'COMPLETED' AS state "  # noqa: S608
            f"FROM (VALUES {rows}) AS t(gpus, submit_ns, end_ns, run_ns)) "
            f"TO '{path}' (FORMAT parquet)"
        )
    ledger = account(path)
    assert (ledger.jobs.accounted, ledger.jobs.bad) == (1, 2)
    assert ledger.waterfall.capacity == 9


def test_sums_beyond_64_bits_are_exact(tmp_path: Path) -> None:
    rows = "\n".join(
        f"j{i},u,65536,COMPLETED,2000-01-01 00:00:00,2000-01-01 00:00:00,2080-01-01 00:00:00"
        for i in range(9)
    )
    head = "job_id,user,gpu_num,state,submit_time,start_time,end_time\n"
    ledger = account(write(tmp_path, "t.csv", head + rows + "\n"))
    amount = 9 * 65_536 * 29_220 * 86_400 * 10**9
    assert ledger.waterfall.useful == amount > 2**63
    assert msgspec.json.decode(msgspec.json.encode(ledger), type=FleetLedger) == ledger


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("job_id,gpu_num,state,start_time\nj,1,FAILED,2020-01-01\n", "submit_time"),
        ("JobID|State|Start|Submit\n1|FAILED|x|y\n", "AllocTRES or ReqTRES"),
        ("hello\n", "not a job table"),
        ("", "not a job table"),
        ('[{"attempts": [], "submitted_time": "x"', "cannot be read"),
        (
            "job_id,gpu_num,state,submit_time,start_time\nj,-1,FAILED,2020-01-01,\n",
            "row 1, gpus -1",
        ),
    ],
)
def test_what_is_no_table_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, "table.csv", text)
    with pytest.raises(DataError) as caught:
        account(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


def test_no_such_file_or_match(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path / "*.none", tmp_path):
        with pytest.raises(DataError):
            account(path)


CELLS = st.sampled_from(
    ["", "None", "0", "8", "-3", "1e40", "nan", "0.5", "2023-03-01 00:00:00",
     "2023-03-01 09:00:00+08:00", "9999-12-31 00:00:00", "infinity", "FAILED",
     "COMPLETED", '"', "\x00", "é"]
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.lists(CELLS, min_size=6, max_size=8), max_size=6))
def test_whatever_the_cells_hold_the_sum_is_exact(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]
) -> None:
    head = "job_id,gpu_num,state,submit_time,start_time,end_time,duration"
    text = f"{head}\nj,2,COMPLETED,2023-01-01,2023-01-02,2023-01-03,\n"
    text += "".join(",".join(row) + "\n" for row in rows)
    path = write(tmp_path_factory.mktemp("t"), "t.csv", text)
    ledger = account(path)  # a Waterfall refuses sums that are off
    assert ledger.jobs.accounted + ledger.jobs.without_chips + ledger.jobs.open > 0
    for dimension in ledger.dimensions:
        total = sum(group.queue + group.run for group in dimension.groups)
        assert total == ledger.waterfall.capacity
