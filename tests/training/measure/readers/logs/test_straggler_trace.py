"""StragglerAnalysis traces: work per rank and step, and the published result beside the sample."""

import json
from pathlib import Path

import duckdb
import pytest
from foreign import jobs, told_by
from samples import sample

TABLE = """
copy (select * from (values
  (0, 5, 'forward-compute', 0.0, 1.0), (0, 5, 'forward-send', 1.0, 1.0),
  (1, 5, 'forward-recv', 0.0, 1.0), (1, 5, 'backward-compute', 0.5, 1.5),
  (0, 9, 'forward-compute', 0.0, 2.0), (1, 9, 'optimizer', 0.0, 3.0)
) as t(rank, step, optype, start_ts, duration)) to '{path}' (format parquet)
"""


def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace-mine.parquet"
    with duckdb.connect() as connection:
        connection.execute(TABLE.format(path=path))
    return path


def test_steps_last_as_long_as_their_slowest_rank(tmp_path: Path) -> None:
    (tmp_path / "meta-mine.yaml").write_text("trial_name: mine\nworld_size: 16\n")
    told = told_by(trace(tmp_path))
    assert jobs(told) == ["mine"]
    assert [log.header.rank for log in told.logs] == [0, 1]
    assert told.logs[0].header.world == 16
    assert [(n, c, d) for n, c, _, d in told.steps(0)] == [(5, 1, 2.0), (9, 1, 3.0)]
    waits = [log.steps.comm_ns for log in told.logs]
    assert [column.tolist() for column in waits if column is not None] == [
        [1_000_000_000, 1_000_000_000],
        [500_000_000, 0],
    ]
    assert told.noted("put one after the other") == 2


def test_a_damaged_trace_is_ignored(tmp_path: Path) -> None:
    path = trace(tmp_path)
    path.write_bytes(path.read_bytes()[:-8])
    (tmp_path / "more.parquet").write_bytes(b"PAR1 no table")
    trace(tmp_path / "..").rename(tmp_path / "trace-whole.parquet")
    assert jobs(told_by(tmp_path)) == ["whole"]


def test_sample_step_times_are_the_published_ones() -> None:
    told = told_by(sample("bytedance-straggler/trace-SE.parquet"))
    result = json.loads(sample("bytedance-straggler/result-SE.json").read_bytes())
    published = {int(n): seconds for n, seconds in result["step_t_base"].items()}
    assert {n: d for n, _, _, d in told.steps(0)} == pytest.approx(published, abs=0.001)
    assert len(told.logs) == 64
    assert told.logs[0].header.world == 128
