"""Records that make no sense together: the account is made all the same, and it adds up."""

import json
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_strategies import tries
from test_ledger_conservation import check_sums

from goodput.core.events import SCHEMA, SPAN_CLASSES
from goodput.training.measure.ledger import Options, account, keep_books
from goodput.training.measure.readers import read

pytestmark = pytest.mark.proof

Line = dict[str, Any]
ORIGIN_NS = 1_790_000_000_000_000_000
SECOND_NS = 1_000_000_000

seconds = st.integers(0, 60)
walls = seconds.map(lambda s: ORIGIN_NS + s * SECOND_NS)
lengths = st.integers(0, 20).map(lambda s: s * SECOND_NS)
names = st.sampled_from([*SPAN_CLASSES, "mine"])
classes = st.sampled_from(["", "", "data", "recovery", "communication", "nonsense"])
outcomes = st.sampled_from(["completed", "failed", "preempted", "stopped", "cancelled", "odd"])
keys = st.sampled_from(["", "a", "b", "a.1"])
steps = st.integers(-2, 12)


def kind(name: str, /, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Line]:
    """Events of one kind; a field is there or not, but for those that must be."""
    must = {"n", "name", "d", "id", "chips", "last_step", "next_step", "count", "flops_per_step"}
    if name == "window":
        must |= set(fields)
    if name == "attempt_start":
        must.add("attempt")
    needed = {k: v for k, v in fields.items() if k in must}
    optional = {k: v for k, v in fields.items() if k not in must}
    return st.fixed_dictionaries({"k": st.just(name)} | needed, optional=optional)


events = st.one_of(
    kind("step", n=steps),
    kind("step", n=steps),
    kind(
        "step", n=steps, d=lengths, c=st.integers(0, 4),
        shape=st.sampled_from(["", "long"]), comm=lengths,
    ),
    kind("step_end", n=steps, comm=lengths),
    kind("begin", name=names, id=st.integers(1, 3), counts_as=classes),
    kind(
        "span", name=names, d=lengths, id=st.integers(0, 3), counts_as=classes,
        background=st.booleans(), failed=st.booleans(),
    ),
    kind("committed", last_step=steps),
    kind("resumed", next_step=steps),
    kind("noticed", rank=st.integers(-1, 3), fault_t=walls),
    kind("submitted", chips=st.integers(0, 5)),
    kind("allocated", chips=st.integers(0, 5), requested=st.integers(0, 7)),
    kind("attempt_start", attempt=keys, world=st.integers(0, 3), next_step=steps),
    kind(
        "attempt_end", attempt=keys, outcome=outcomes,
        fault_t=walls,
        noticed_t=walls,
    ),
    kind("process_end", outcome=outcomes),
    kind("ended", outcome=outcomes),
    kind(
        "window", first=steps, last=steps, steps=st.integers(0, 5), d=lengths,
        work=lengths, comm=lengths,
    ),
    kind(
        "work", flops_per_step=st.sampled_from([0.0, 1.0, 1e15]),
        peak_flops_per_chip=st.sampled_from([0.0, 1e12]),
        ideal_step_s=st.sampled_from([0.0, 0.5, 3.0]),
        shape=st.sampled_from(["", "long"]),
    ),
    kind("dropped", count=st.integers(0, 9)),
)  # fmt: skip
headers = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["worker", "worker", "worker", "launcher"]),
        "rank": st.integers(0, 2),
        "world": st.integers(1, 3),
        "attempt": keys,
        "boot": st.sampled_from(["", "b", "c"]),
        "detail": st.sampled_from(["steps", "steps", "windows"]),
    },
    optional={"started": walls},
)
files = st.lists(
    st.tuples(headers, seconds, st.lists(st.tuples(seconds, events), max_size=14), st.booleans()),
    min_size=1,
    max_size=5,
)
"""(header, when, lines with when, with a monotonic clock)"""


def write(folder: Path, found: list[tuple[Line, int, list[tuple[int, Line]], bool]]) -> None:
    for number, (header, begun, lines, monotonic) in enumerate(found):
        first = {"k": "process", "schema": SCHEMA, "job": "j", "pid": number + 1} | header
        text = ""
        for when, line in [(begun, first), *lines]:
            stamp = {"t": ORIGIN_NS + when * SECOND_NS}
            if monotonic:
                stamp["m"] = (when + 5) * SECOND_NS
            text += json.dumps(line | stamp) + "\n"
        (folder / f"events-{number}.jsonl").write_text(text)


@tries(250)
@given(
    files,
    st.none() | seconds,
    st.lists(st.tuples(seconds, st.integers(0, 9)), max_size=2),
    st.none() | st.integers(1, 5),
    st.sampled_from([None, 0.5, 1e6]),
)
def test_any_set_of_records_adds_up(
    found: list[tuple[Line, int, list[tuple[int, Line]], bool]],
    as_of: int | None,
    exclude: list[tuple[int, int]],
    chips: int | None,
    ideal_step_s: float | None,
) -> None:
    with TemporaryDirectory() as place:
        write(Path(place), found)
        log = read([place])
    first = min(p.at_ns(p.header) for p in log.processes)
    options = Options(
        as_of_ns=None if as_of is None else max(ORIGIN_NS + as_of * SECOND_NS, first + 1),
        exclude=tuple(
            (ORIGIN_NS + a * SECOND_NS, ORIGIN_NS + (a + n) * SECOND_NS) for a, n in exclude
        ),
        chips=chips,
        ideal_step_s=ideal_step_s,
        windows=9,
    )
    ledger = account(log, options)
    check_sums(ledger)
    books = keep_books(log, options)
    low, high = books.plan.start_ns, books.plan.end_ns
    edges = [low, *books.plan.chips.edges(low, high), high]
    paid = sum((b - a) * books.plan.chips.at(a) for a, b in pairwise(edges))
    assert ledger.waterfall.capacity + ledger.excluded == paid
    world = max((t.world for t in books.plan.trials), default=0)
    ranks = [books.totals(low, high, rank=rank) for rank in range(world)]
    begun = min((t.started_at_ns for t in books.plan.trials), default=high)
    before = books.totals(low, min(begun, high))
    assert sum(sum(r.values()) for r in [before, *ranks]) == paid
    for incident in ledger.incidents:
        assert low <= incident.at_ns <= high
        assert min(incident.detection_ns, incident.recovery_ns, incident.rework_ns) >= 0
    for track in ledger.timeline:
        for band in track.bands:
            assert low <= band.start_ns <= band.end_ns <= high
