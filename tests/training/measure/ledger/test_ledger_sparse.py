"""Logs of every k-th step: the same job as if every step were told."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_strategies import tries
from told import S, event, header, ledger_of, step

from goodput.training.measure.ledger import Ledger

pytestmark = pytest.mark.proof

attempts = st.lists(
    st.tuples(st.integers(0, 6), st.integers(1, 6), st.booleans()), min_size=1, max_size=4
)
"""(where it resumes, in groups of k steps; groups it runs; whether it records durations)"""


def told(every: int, plan: list[tuple[int, int, bool]], *, each: bool) -> Ledger:
    """Steps of one second; each attempt saves all its groups, and dies half-way into another."""
    files = []
    now, reached = 0, 0
    for number, (source, groups, lasts) in enumerate(plan):
        first = min(source, reached)
        lines = [header(now, pid=number + 1)]
        for group in range(first, first + groups):
            begin, n = now + (group - first) * every, group * every
            if each:
                lines += [step(begin + i, n + i) for i in range(every)]
            elif lasts:
                lines.append(step(begin, n, d=every * S, c=every))
            else:
                lines.append(step(begin, n))
            lines.append(event("committed", begin + every, last_step=n + every - 1))
        reached = first + groups
        now += groups * every
        lines.append(step(now, reached * every))
        if number == len(plan) - 1:
            lines.append(event("process_end", now))
        files.append(lines)
        now += every // 2 + 5
    with TemporaryDirectory() as place:
        return ledger_of(Path(place), *files)


@tries(150)
@given(st.integers(2, 7), attempts)
def test_every_kth_step_tells_the_same_story(every: int, plan: list[tuple[int, int, bool]]) -> None:
    full, sparse = told(every, plan, each=True), told(every, plan, each=False)
    assert sparse.steps.last_step == full.steps.last_step
    assert sparse.steps.kept == full.steps.kept
    assert [a.kept_steps for a in sparse.attempts] == [a.kept_steps for a in full.attempts]
    assert sparse.waterfall.capacity == full.waterfall.capacity
    assert sparse.waterfall.loss("rework") == full.waterfall.loss("rework")
    assert sparse.waterfall.useful == full.waterfall.useful
    assert sparse.saved.useful == full.saved.useful
