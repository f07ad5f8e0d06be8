"""How long from a table of a million jobs to a fleet report?

Makes a table in the layout of Acme's (`job_id,user,...,gpu_time`) and one in that of `sacct -P`,
runs `goodput cluster report` on each in a fresh process, and checks the sums of the first against
a plain loop over the rows. Floor 10 s, aim 3 s.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Final

import duckdb

NS: Final = 1_000_000_000
FLOOR_S: Final = 10.0
_JOBS: Final = """
    SELECT i, 'user' || (hash(i) % 700) AS who, 1 << (hash(i, 1) % 9)::BIGINT AS gpus,
        ['COMPLETED', 'FAILED', 'CANCELLED', 'TIMEOUT', 'NODE_FAIL'][
            (1 + hash(i, 2) % 5)::BIGINT] AS state,
        ['Pretrain', 'Evaluation', 'SFT', 'Debug'][(1 + hash(i, 3) % 4)::BIGINT] AS kind,
        TIMESTAMP '2023-03-01 00:00:00' + to_seconds((i * 15)::BIGINT) AS submitted,
        (hash(i, 4) % 7200)::BIGINT AS waited, (hash(i, 5) % 40000)::BIGINT AS ran
    FROM range($jobs) AS jobs(i)"""
_ACME: Final = f"""
    SELECT 'dlc' || i AS job_id, who AS "user", (gpus + 7) // 8 AS node_num, gpus AS gpu_num,
        gpus * 16 AS cpu_num, kind AS "type", state,
        strftime(submitted, '%Y-%m-%d %H:%M:%S+08:00') AS submit_time,
        strftime(submitted + to_seconds(waited), '%Y-%m-%d %H:%M:%S+08:00') AS start_time,
        strftime(submitted + to_seconds(waited + ran), '%Y-%m-%d %H:%M:%S+08:00') AS end_time,
        NULL AS fail_time, NULL AS stop_time, ran AS duration, waited AS queue,
        ran * gpus AS gpu_time
    FROM ({_JOBS})"""  # noqa: S608
_SACCT: Final = f"""
    SELECT i AS "JobID", who AS "User", kind AS "Partition", state AS "State",
        strftime(submitted, '%Y-%m-%dT%H:%M:%S') AS "Submit",
        strftime(submitted, '%Y-%m-%dT%H:%M:%S') AS "Eligible",
        strftime(submitted + to_seconds(waited), '%Y-%m-%dT%H:%M:%S') AS "Start",
        strftime(submitted + to_seconds(waited + ran), '%Y-%m-%dT%H:%M:%S') AS "End",
        'billing=16,cpu=16,gres/gpu=' || gpus || ',mem=64G,node=1' AS "AllocTRES"
    FROM ({_JOBS})"""  # noqa: S608


def make(folder: Path, jobs: int) -> tuple[Path, Path]:
    """Write both tables and return their paths."""
    acme, sacct = folder / "trace.csv", folder / "sacct.txt"
    with duckdb.connect() as connection:
        for path, query, options in ((acme, _ACME, ""), (sacct, _SACCT, ", DELIM '|', QUOTE ''")):
            text = query.replace("$jobs", str(jobs))
            connection.execute(f"COPY ({text}) TO '{path}' (FORMAT csv, HEADER{options})")
    return acme, sacct


def by_hand(path: Path) -> tuple[int, int, int]:
    """Return chip-ns of the queue, of all runs and of completed runs, one row after the other."""
    queued = run = completed = 0
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            begin, start, end = (
                datetime.fromisoformat(row[name])
                for name in ("submit_time", "start_time", "end_time")
            )
            gpus = int(row["gpu_num"])
            ran = gpus * round((end - start).total_seconds())
            queued += gpus * round((start - begin).total_seconds())
            run += ran
            completed += ran * (row["state"] == "COMPLETED")
    return queued * NS, run * NS, completed * NS


def report(path: Path, *options: str) -> tuple[float, bytes]:
    """Run the report in a fresh process; return wall seconds and what it printed."""
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "goodput", "cluster", "report", str(path), *options],
        check=True,
        capture_output=True,
        env=os.environ,
    )
    return time.perf_counter() - begin, done.stdout


def main() -> None:
    """Make the tables, time the reports, check the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        tables = make(Path(name), args.jobs)
        ledger = json.loads(report(tables[0], "--json")[1])
        losses = {loss["name"]: loss["amount"] for loss in ledger["waterfall"]["losses"]}
        capacity, useful = ledger["waterfall"]["capacity"], ledger["waterfall"]["useful"]
        found = (losses["queue"], capacity - losses["queue"], useful)
        assert found == by_hand(tables[0]), found
        exported = Path(name) / "jobs.parquet"
        report(tables[0], "--export", str(exported))
        slowest = 0.0
        for table in (*tables, exported):
            median = statistics.median(report(table)[0] for _ in range(args.runs))
            slowest = max(slowest, median)
            size = table.stat().st_size / 1e6
            print(f"{table.name:14} {size:6.0f} MB  {args.jobs:,} jobs  {median:.2f} s to a report")
    print("sums equal those of a loop over the rows")
    assert slowest <= FLOOR_S, f"{slowest:.1f} s, the floor is {FLOOR_S:.0f} s"


if __name__ == "__main__":
    main()
