"""A job that is watched: files grow, a memo carries over, and every answer is the fresh one."""

import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_simulator import Job
from job_strategies import jobs, recordings, tries
from job_writer import Recording, write_job
from test_ledger_conservation import check_sums

from goodput.training.measure.ledger import Options, account
from goodput.training.measure.ledger.memo import Memo
from goodput.training.measure.readers import Folder

pytestmark = pytest.mark.proof


def pieces(job: Job, how: Recording, dice: random.Random) -> list[tuple[str, str]]:
    """(file, lines) in the order in which they were written, some lines at a time."""
    with TemporaryDirectory() as place:
        write_job(job, Path(place), how)
        files = {f.name: f.read_text().splitlines(keepends=True) for f in Path(place).iterdir()}
    told: list[tuple[int, int, str, str]] = []
    for name, lines in sorted(files.items()):
        latest = 0
        for line in lines:
            record = json.loads(line)
            # A span is written when it is over.
            latest = max(latest, record["t"] + max(record.get("d", 0), 0))
            told.append((latest, len(told), name, line))
    out: list[tuple[str, str]] = []
    for _, _, name, line in sorted(told):
        if out and out[-1][0] == name and dice.random() < 0.3:
            out[-1] = (name, out[-1][1] + line)
        else:
            out.append((name, line))
    return out


@tries(25)
@given(jobs(), recordings, st.integers(0, 2**32))
def test_a_memo_changes_nothing(job: Job, how: Recording, seed: int) -> None:
    dice = random.Random(seed)
    memos = {live: Memo() for live in (True, False)}
    with TemporaryDirectory() as place:
        reader = Folder([place])
        for name, text in pieces(job, how, dice):
            with (Path(place) / name).open("a") as file:
                file.write(text)
            if dice.random() < 0.5:
                continue
            reader.poll()
            log = reader.log()
            now = max(p.last_at_ns for p in log.processes) + 1
            if not any(p.header.role == "worker" for p in log.processes):
                continue
            for live, memo in memos.items():
                options = Options(as_of_ns=now if live else None, windows=5)
                watched = account(log, options, memo)
                assert watched == account(log, options)
                check_sums(watched)
