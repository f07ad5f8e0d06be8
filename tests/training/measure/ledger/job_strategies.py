"""Random jobs, and random ways to record one. GOODPUT_HEAVY=1 tries many more of them."""

import os
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from job_simulator import Job, Launch, Turn, simulate
from job_writer import Recording

HEAVY: Final = bool(os.environ.get("GOODPUT_HEAVY") or os.environ.get("GOODPUT_PROOF"))


def tries(everyday: int) -> settings:
    """How many examples a property gets: a soak takes 50 times the everyday number."""
    return settings(max_examples=everyday * 20 if HEAVY else everyday, report_multiple_bugs=False)


WHAT: Final = (
    "step", "step", "step", "step", "evaluated step", "data", "evaluation", "save", "save",
    "idle", "own", "back", "resize", "aside", "over", "over",
)  # fmt: skip
PROGRESS: Final = ("step", "step", "step", "save", "save", "back")
"""Steps and checkpoints only: jobs whose history is long for their length."""
ENDS: Final = (
    "crash", "step", "save", "evaluation", "step", "completed", "preempted", "stopped",
)  # fmt: skip


def launches(*, worlds: tuple[int, ...], what: tuple[str, ...]) -> st.SearchStrategy[Launch]:
    """Attempts of every kind, those that reach no step among them."""
    turns = st.builds(Turn, st.sampled_from(what), st.integers(1, 3), st.integers(0, 3))
    return st.builds(
        Launch,
        queue=st.sampled_from((0, 0, 2)),
        wait=st.integers(0, 2),
        world=st.sampled_from(worlds),
        per_rank=st.integers(1, 2),
        source=st.sampled_from((0, 0, 0, 1, 2, 3)),
        boot=st.integers(0, 3),
        turns=st.lists(turns, max_size=9).map(tuple),
        end=st.sampled_from(ENDS),
        length=st.integers(0, 2),
        notice=st.integers(0, 2),
    )


def jobs(
    *,
    worlds: tuple[int, ...] = (1, 2, 3),
    what: tuple[str, ...] = WHAT,
    at_most: int = 4,
    wait: int = 0,
) -> st.SearchStrategy[Job]:
    """Jobs of one attempt or several.

    Args:
        worlds: how many ranks an attempt may have.
        what: the turns that a process may do.
        at_most: attempts of a job.
        wait: ticks that every attempt waits at least.
    """
    return st.builds(
        lambda plans, says_end: simulate(
            [p._replace(wait=p.wait + wait) for p in plans], says_end=says_end
        ),
        st.lists(launches(worlds=worlds, what=what), min_size=1, max_size=at_most),
        st.booleans(),
    )


ranks = st.sampled_from([(0, 1, 2, 3), (0,), (0, 1), (0, 2)])

recordings = st.builds(
    lambda ranks, **ways: Recording(ranks=ranks, **ways),
    ranks,
    closed=st.booleans(),
    launcher=st.booleans(),
    says_goodbye=st.booleans(),
    commits=st.booleans(),
    resumes=st.booleans(),
    chips=st.booleans(),
    monotonic=st.booleans(),
)
"""How a job may be recorded, completely or in part."""
