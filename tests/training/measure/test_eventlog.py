"""Several jobs in one log: each gets its own processes, and the notes that concern it."""

import json
from pathlib import Path

import pytest

from goodput.core.errors import InputError
from goodput.core.events import SCHEMA
from goodput.training.measure.readers import read

START = 1_790_000_000_000_000_000


def write(path: Path, job: str, pid: int, *lines: str) -> None:
    header = {"k": "process", "schema": SCHEMA, "job": job, "pid": pid, "t": START + pid}
    path.write_text("".join(line + "\n" for line in (json.dumps(header), *lines)))


def test_a_job_has_its_own_files_and_notes_and_those_of_nobody(tmp_path: Path) -> None:
    write(tmp_path / "events-a.jsonl", "a", 1, "damaged")
    write(tmp_path / "events-b.jsonl", "b", 2)
    (tmp_path / "notes.txt").write_text("nothing of ours")
    log = read([tmp_path])
    assert log.jobs == ("a", "b")
    where_a = [note.where for note in log.job("a").notes]
    where_b = [note.where for note in log.job("b").notes]
    assert any(where.endswith("events-a.jsonl:2") for where in where_a)
    assert not any("events-a.jsonl" in where for where in where_b)
    assert all(any("notes.txt" in w for w in wheres) for wheres in (where_a, where_b))


def test_a_job_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    write(tmp_path / "events-a.jsonl", "a", 1)
    with pytest.raises(InputError, match=r"no job 'c' in the log; found: a"):
        read([tmp_path]).job("c")
