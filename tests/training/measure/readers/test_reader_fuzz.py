"""Random damage to realistic files: no crash, no hang, and whatever is accounted for adds up."""

import os
import random
import time
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from damage import mutate, realistic

from goodput.core.errors import DataError, GoodputError
from goodput.training.measure.eventlog import EventLog
from goodput.training.measure.ledger import Options, account, keep_books
from goodput.training.measure.readers import read

HEAVY: Final = bool(os.environ.get("GOODPUT_HEAVY") or os.environ.get("GOODPUT_PROOF"))
ROUNDS: Final = 100_000 if HEAVY else 300
PARTS: Final = 4
LONGEST_S: Final = 5.0
"""A round takes some 10 ms; one that takes this long hangs."""

pytestmark = pytest.mark.proof


def damaged_folder(folder: Path, dice: random.Random) -> None:
    files = realistic(dice.randrange(5))
    victims = dice.sample(sorted(files), dice.randint(1, 3))
    for name in victims:
        for _ in range(dice.choice((1, 1, 2, 5, 20))):
            files[name] = mutate(files[name], dice)
    for name, data in files.items():
        (folder / name).write_bytes(data)


def check(log: EventLog, dice: random.Random) -> None:
    """Every number of the account of what was read; the waterfall checks its own sum."""
    for note in log.notes:
        assert note.where
        assert note.count > 0
    for job in log.jobs:
        one = log.job(job)
        middle = dice.choice(one.processes).last_at_ns - dice.randrange(10**11)
        for options in (Options(windows=10), Options(as_of_ns=middle, windows=3)):
            try:
                ledger = account(one, options)
            except GoodputError as error:
                assert "nothing had been recorded" in str(error)  # noqa: PT017
                continue
            assert 0 <= ledger.factors.goodput <= 1
            assert 0 <= ledger.steps.kept <= ledger.steps.executed
            assert sum(ledger.series.capacity) == ledger.waterfall.capacity
            check_capacity(one, options)


def check_capacity(log: EventLog, options: Options) -> None:
    """Time times chips, from the allocations alone."""
    books = keep_books(log, options)
    low, high = books.plan.start_ns, books.plan.end_ns
    edges = [low, *books.plan.chips.edges(low, high), high]
    paid = sum((b - a) * books.plan.chips.at(a) for a, b in pairwise(edges))
    assert sum(books.totals(low, high).values()) == paid


@pytest.mark.parametrize("part", range(PARTS))
def test_damage_never_crashes_and_never_breaks_the_sum(part: int, tmp_path: Path) -> None:
    for round_ in range(part, ROUNDS, PARTS):
        dice = random.Random(round_)
        damaged_folder(tmp_path, dice)
        began = time.monotonic()
        try:
            log = read([tmp_path])
        except DataError as error:
            assert str(tmp_path) in str(error)  # noqa: PT017 (not every folder is so badly hurt)
            continue
        try:
            check(log, dice)
        except Exception as error:
            raise AssertionError(f"round {round_}: random.Random({round_})") from error
        assert time.monotonic() - began < LONGEST_S, f"round {round_} hangs"
