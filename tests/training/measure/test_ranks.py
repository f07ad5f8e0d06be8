"""Stragglers: the slowest rank's work over the median, from full records and from summaries."""

import json
from pathlib import Path

import pytest

from goodput.core.events import SCHEMA
from goodput.training.measure.ledger import Ledger, account
from goodput.training.measure.readers import read

START = 1_790_000_000_000_000_000
MS = 1_000_000


def at(ms: float) -> dict[str, int]:
    return {"t": START + round(ms * MS), "m": 1_000 * MS + round(ms * MS)}


def write_rank(folder: Path, rank: int, world: int, records: list[dict[str, object]]) -> None:
    header = {"k": "process", "schema": SCHEMA, "job": "j", "boot": "b", "pid": rank + 1}
    lines = [{**header, "rank": rank, "world": world, **at(0)}, *records]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / f"events-r{rank}.jsonl").write_text(text)


def full(works_ms: list[float], total_ms: float) -> list[dict[str, object]]:
    """Steps that all take `total_ms`, with what is not work spent waiting in communication."""
    out: list[dict[str, object]] = []
    for n, work in enumerate(works_ms):
        comm = round((total_ms - work) * MS)
        out.append({"k": "step", "n": n, **at(n * total_ms)})
        out.append({"k": "step_end", "n": n, "comm": comm, **at((n + 1) * total_ms)})
    out.append({"k": "process_end", **at(len(works_ms) * total_ms)})
    return out


def straggler_ms(ledger: Ledger) -> float:
    return ledger.waterfall.loss("straggler") / MS


def test_a_slow_rank_costs_every_rank_its_excess_over_the_median(tmp_path: Path) -> None:
    # Ranks 0-2 work 100 ms, rank 3 works 150 ms, collectives take 10 ms more: a step takes 160 ms.
    for rank, work in enumerate([100.0, 100.0, 100.0, 150.0]):
        write_rank(tmp_path, rank, 4, full([work] * 10, 160.0))
    ledger = account(read([tmp_path]))
    assert straggler_ms(ledger) == pytest.approx(4 * 9 * 50, abs=4 * 60)
    assert ledger.waterfall.loss("communication") / MS == pytest.approx(4 * 10 * 10, abs=1)
    assert [round(rank.slowdown, 2) for rank in ledger.ranks] == [1.0, 1.0, 1.0, 1.5]


def test_without_communication_times_a_straggler_is_not_measured(tmp_path: Path) -> None:
    for rank in range(2):
        marks = [{"k": "step", "n": n, **at(100 * n)} for n in range(10)]
        write_rank(tmp_path, rank, 2, [*marks, {"k": "process_end", **at(1000)}])
    row = next(x for x in account(read([tmp_path])).waterfall.losses if x.name == "straggler")
    assert (row.amount, row.provenance) == (0, "not measured")


def test_summaries_and_outliers_of_other_ranks_are_enough(tmp_path: Path) -> None:
    # Rank 0 writes every step; rank 1 a summary of nine ordinary steps and the slow one by itself.
    works = [100.0] * 4 + [100.0] + [100.0] * 5
    totals = [110.0] * 4 + [310.0] + [110.0] * 5
    now, lead = 0.0, []
    for n, (work, total) in enumerate(zip(works, totals, strict=True)):
        lead.append({"k": "step", "n": n, **at(now)})
        now += total
        lead.append({"k": "step_end", "n": n, "comm": round((total - work) * MS), **at(now)})
    write_rank(tmp_path, 0, 2, [*lead, {"k": "process_end", **at(now)}])
    window = {"k": "window", "first": 0, "last": 9, "steps": 9, "d": round(now * MS)}
    window |= {"work": round(9 * 100 * MS), "comm": round(9 * 10 * MS)}
    slow = {"k": "step", "n": 4, "d": 310 * MS, "c": 1, "comm": 10 * MS, **at(440)}
    header_detail = tmp_path / "events-r1.jsonl"
    write_rank(tmp_path, 1, 2, [{**window, **at(0)}, slow, {"k": "process_end", **at(now)}])
    header_detail.write_text(
        header_detail.read_text().replace('"rank": 1', '"detail": "windows", "rank": 1', 1)
    )
    ledger = account(read([tmp_path]))
    assert straggler_ms(ledger) == pytest.approx(2 * 200, abs=1)
