"""Inside steps: communication, stragglers, shapes and FLOPs against plain loops over every step."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_strategies import tries

from goodput.core.events import SCHEMA
from goodput.training.measure.ledger import Ledger, Options, account
from goodput.training.measure.readers import read

pytestmark = pytest.mark.proof

ORIGIN_NS = 1_790_000_000_000_000_000
TICK_NS = 1_000_000_000
SHAPES = ("", "long")


class Step(NamedTuple):
    """One step of one rank, ticks."""

    work: int
    comm: int


class Row(NamedTuple):
    """One step of all ranks."""

    shape: str
    ranks: tuple[Step, ...]


def rows(ranks: int) -> st.SearchStrategy[list[Row]]:
    one = st.builds(Step, st.integers(1, 9), st.integers(0, 6))
    row = st.builds(Row, st.sampled_from(SHAPES), st.tuples(*[one] * ranks))
    return st.lists(row, min_size=1, max_size=12)


matrices = st.integers(1, 4).flatmap(rows)


def record(folder: Path, found: list[Row], more: list[dict[str, object]]) -> int:
    """One file a rank; a slot of time for each step, as long as its slowest rank takes."""
    end = 1
    for rank in range(len(found[0].ranks)):
        head = {"k": "process", "schema": SCHEMA, "job": "j", "rank": rank, "pid": rank + 1}
        lines = [head | {"world": len(found[0].ranks), "t": ORIGIN_NS}]
        lines += [line | {"t": ORIGIN_NS} for line in more if rank == 0]
        now = 1
        for n, row in enumerate(found):
            step = row.ranks[rank]
            begin = ORIGIN_NS + now * TICK_NS
            lines.append({"k": "step", "n": n, "shape": row.shape, "t": begin})
            finish = begin + (step.work + step.comm) * TICK_NS
            lines.append({"k": "step_end", "n": n, "comm": step.comm * TICK_NS, "t": finish})
            now += max(s.work + s.comm for s in row.ranks) + 1
        end = now
        lines.append({"k": "process_end", "t": ORIGIN_NS + end * TICK_NS})
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"events-{rank}.jsonl").write_text(text)
    return end


def ledger_of(found: list[Row], options: Options, more: list[dict[str, object]]) -> Ledger:
    with TemporaryDirectory() as place:
        record(Path(place), found, more)
        return account(read([place]), options)


def fast(found: list[Row]) -> dict[str, int]:
    """The lower tenth of each shape, over all ranks; first steps count where there is no other."""
    out = {}
    for shape in SHAPES:
        for some in (found[1:], found[:1]):
            works = sorted(s.work for row in some if row.shape == shape for s in row.ranks)
            if works:
                out[shape] = works[int(0.1 * (len(works) - 1))]
                break
    return out


def divided(found: list[Row], ideals: dict[str, int]) -> dict[str, int]:
    """Ticks by class of all ranks' steps."""
    out = dict.fromkeys(("startup", "straggler", "slow", "communication", "useful"), 0)
    for n, row in enumerate(found):
        works = sorted(s.work for s in row.ranks)
        middle, slowest = works[(len(works) - 1) // 2], works[-1]
        ideal = ideals.get(row.shape, 0)
        for step in row.ranks:
            work, comm = step.work, step.comm
            if n == 0 and ideal:
                warm = max(work - ideal, 0)
                out["startup"] += warm
                work -= warm
            if len(works) > 1:
                late = min(max(step.work - middle, 0), work)
                waited = min(max(slowest - max(step.work, middle), 0), comm)
                out["straggler"] += late + waited
                work, comm = work - late, comm - waited
            useful = min(work, ideal) if ideal else work
            out["useful"] += useful
            out["slow"] += work - useful
            out["communication"] += comm
    return out


@tries(200)
@given(matrices, st.sampled_from([None, 2.0, 5.0]))
def test_steps_are_divided_as_a_loop_would(found: list[Row], given_s: float | None) -> None:
    ledger = ledger_of(found, Options(ideal_step_s=given_s, views=False), [])
    ideals = dict.fromkeys(SHAPES, int(given_s)) if given_s else fast(found)
    expected = divided(found, ideals)
    ranks = len(found[0].ranks)
    measured = ranks > 1 or None  # one rank has nobody to wait for
    assert ledger.waterfall.loss("straggler") == expected["straggler"] * TICK_NS
    assert ledger.waterfall.loss("communication") == expected["communication"] * TICK_NS
    assert ledger.waterfall.loss("slow") == expected["slow"] * TICK_NS
    assert ledger.waterfall.useful == expected["useful"] * TICK_NS
    assert ledger.waterfall.loss("startup") == (expected["startup"] + ranks) * TICK_NS
    straggler = next(x for x in ledger.waterfall.losses if x.name == "straggler")
    assert (straggler.provenance != "not measured") == (measured is True)


@tries(100)
@given(matrices, st.integers(1, 9), st.integers(1, 3))
def test_model_flops_bound_what_is_useful(found: list[Row], at_peak: int, chips: int) -> None:
    """A step that would take `at_peak` ticks at peak does no more than that."""
    ranks = len(found[0].ranks)
    held = chips * ranks
    more: list[dict[str, object]] = [
        {"k": "allocated", "chips": held},
        {"k": "work", "flops_per_step": 1e12 * at_peak * held, "peak_flops_per_chip": 1e12},
    ]
    ledger = ledger_of(found, Options(views=False), more)
    plain = divided(found, fast(found))
    known = [f for f in fast(found).values() if f > 0]
    flops = ledger.flops
    assert flops is not None
    if known and at_peak > min(known):
        assert flops.mfu is None
        assert "MFU would be" in flops.refused
        assert ledger.waterfall.useful == plain["useful"] * chips * TICK_NS
        return
    assert flops.refused == ""
    assert flops.mfu == ledger.factors.program
    inefficiency = ledger.waterfall.loss("inefficiency")
    assert ledger.waterfall.useful + inefficiency == plain["useful"] * chips * TICK_NS
    steps = ranks * len(found)
    assert ledger.waterfall.useful <= steps * at_peak * chips * TICK_NS
