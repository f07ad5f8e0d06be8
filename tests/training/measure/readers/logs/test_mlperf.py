"""MLPerf result logs: rank prefixes, steps by record or by block, evaluations, status."""

import json
from pathlib import Path

import pytest
from samples import NS, Told, sample, tell, told

from goodput.core.events import Allocated, AttemptEnd, Resumed

T0 = 1_790_000_000_000


def record(key: str, ms: int, value: object = None, prefix: str = "", **meta: object) -> str:
    kind = {"start": "INTERVAL_START", "stop": "INTERVAL_END"}.get(key.rsplit("_", maxsplit=1)[-1])
    body = {
        "namespace": "",
        "time_ms": T0 + ms,
        "event_type": kind or "POINT_IN_TIME",
        "key": key,
        "value": value,
        "metadata": {"file": "train.py", "lineno": 1, **meta},
    }
    return f"{prefix}:::MLLOG {json.dumps(body)}"


def span_s(told: Told, name: str) -> float:
    return sum(seconds for _, seconds in told.spans(name))


def test_ranks_that_say_the_same_count_once(tmp_path: Path) -> None:
    lines = [record("init_start", rank, prefix=f"{rank}: ") for rank in range(4)]
    lines += [record("init_stop", 9000, prefix="0: "), record("run_start", 9000, prefix="0: ")]
    lines += [record("eval_start", 20_000 + r, prefix=f"{r}: ", samples_count=64) for r in range(2)]
    lines += [record("eval_stop", 25_000 + r, prefix=f"{r}: ", samples_count=64) for r in range(2)]
    log = told(tmp_path, lines)
    assert len(log.logs) == 1
    assert log.logs[0].header.world == 4
    assert log.spans("init") == [(T0 / 1000, 9.0)]
    assert log.spans("evaluation") == [(T0 / 1000 + 20, 5.0)]


def test_steps_of_their_own_beat_blocks(tmp_path: Path) -> None:
    lines = [record("init_start", 0), record("global_batch_size", 1, 32)]
    lines += [record("run_start", 1000), record("block_start", 1000, samples_count=0)]
    for n in range(1, 4):
        stats = {"train_step_time": 2.0, "reduced_train_loss": 7.0}
        lines.append(record("tracked_stats", 1000 + 2000 * n, stats, step=32.0 * n))
    whole = {"throughput": 16.0, "train_step_time": 2.0}
    lines += [record("tracked_stats", 7000, whole, step=0)]
    lines += [record("block_stop", 7000, samples_count=0)]
    lines += [record("eval_start", 7000, samples_count=96)]
    log = told(tmp_path, lines)
    assert [(n, c, d) for n, c, _, d in log.steps()] == [(1, 1, 2.0), (2, 1, 2.0), (3, 1, 2.0)]


def test_without_steps_the_samples_between_evaluations_tell(tmp_path: Path) -> None:
    lines = [
        record("init_start", 0),
        record("init_checkpoint_step", 1, 100),
        record("global_batch_size", 1, 32),
        record("run_start", 1000),
        record("block_start", 2000, first_epoch_num=0),
        record("eval_start", 12_000, epoch_num=320),
        record("eval_stop", 15_000, epoch_num=320),
        record("eval_start", 25_000, epoch_num=640),
        record("eval_stop", 28_000, epoch_num=640),
        record("run_stop", 28_000, status="success"),
    ]
    log = told(tmp_path, lines)
    assert [(n, c, d) for n, c, _, d in log.steps()] == [(101, 10, 10.0), (111, 10, 10.0)]
    assert [e.next_step for e in log.events(Resumed)] == [101]  # type: ignore[attr-defined]
    assert log.noted("by blocks only") == 2
    assert log.ledger.state == "completed"


@pytest.mark.parametrize(("status", "outcome"), [("success", "completed"), ("aborted", "stopped")])
def test_status_of_the_run(tmp_path: Path, status: str, outcome: str) -> None:
    log = told(tmp_path, [record("init_start", 0), record("run_stop", 5000, status=status)])
    (end,) = log.events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert end.outcome == outcome
    assert end.t == (T0 + 5000) * 1_000_000


def test_a_start_after_the_run_is_another_launch(tmp_path: Path) -> None:
    once = [record("init_start", 0), record("init_stop", 5), record("run_start", 10)]
    again = [record("init_start", 60_000), record("init_stop", 60_005)]
    assert len(told(tmp_path, once + again).logs) == 2


def test_unix_times_need_no_zone_and_bad_records_are_counted(tmp_path: Path) -> None:
    lines = [record("init_start", 0), ':::MLLOG {"key": 3', record("run_start", 9)]
    log = told(tmp_path, lines)
    assert log.noted("cannot be decoded") == 1
    assert log.noted("time zone") == 0


def test_nodes_and_chips_of_the_harness(tmp_path: Path) -> None:
    system = ':::SYSJSON {"number_of_nodes":"4","accelerators_per_node":"8"}'
    harness = ":::DLPAL /images/llm.sqsh 9114 4 worker-[1-4] 'unknown' config"
    log = told(tmp_path, [harness, f"+ echo '{system}'", system, record("init_start", 0)])
    assert log.logs[0].aliases == ("slurm:9114",)
    assert [e.chips for e in log.events(Allocated)] == [32]  # type: ignore[attr-defined]


def test_sample_nebius() -> None:
    log = tell(sample("mlperf/v5.1-nebius-llama31_405b-n128-result_2.txt"))
    assert span_s(log, "init") == pytest.approx(914.8, abs=1)
    assert len(log.spans("evaluation")) == 6
    assert span_s(log, "evaluation") == pytest.approx(273.5, abs=1)
    (end,) = log.events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    first = log.spans("init")[0]
    assert end.t / NS - first[0] - first[1] == pytest.approx(6399.6, abs=1)
    assert len(log.steps()) == 240
    assert log.logs[0].header.world == 1024


def test_sample_habana() -> None:
    log = tell(sample("mlperf/v3.0-habana-gpt3-n48-result_0.txt"))
    assert span_s(log, "init") == pytest.approx(252.0, abs=1)
    assert len(log.spans("evaluation")) == 24
    assert span_s(log, "evaluation") == pytest.approx(1490.8, abs=1)
    run_s = 18679.3
    assert span_s(log, "evaluation") / run_s == pytest.approx(0.0798, rel=0.005)
    (end,) = log.events(AttemptEnd)
    assert isinstance(end, AttemptEnd)
    assert end.t / NS - 1683982105.246 == pytest.approx(run_s, abs=1)
    assert sum(c for _, c, _, _ in log.steps()) == 384
