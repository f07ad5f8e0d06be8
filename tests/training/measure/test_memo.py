"""A job that is watched while it grows: remembered parts give the account that fresh ones give."""

import json
from pathlib import Path

from goodput.core.events import SCHEMA
from goodput.training.measure.ledger import Memo, Options, account
from goodput.training.measure.readers import Folder, read

START = 1_790_000_000_000_000_000
S = 1_000_000_000


def append(path: Path, *records: dict[str, object]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def at(seconds: float) -> dict[str, int]:
    return {"t": START + round(seconds * S), "m": S + round(seconds * S)}


def header(pid: int, seconds: float) -> dict[str, object]:
    return {"k": "process", "schema": SCHEMA, "job": "j", "boot": "b", "pid": pid, **at(seconds)}


def test_every_poll_of_a_growing_job_agrees_with_a_fresh_account(tmp_path: Path) -> None:
    memo, folder = Memo(), Folder([tmp_path])
    now, step = 0.0, 0
    for attempt in range(1, 5):
        path = tmp_path / f"events-{attempt}.jsonl"
        append(path, header(attempt, now))
        step = max(0, step - 3)
        for k in range(7):
            now += 1.0 + (k == 4)
            append(path, {"k": "step", "n": step, **at(now)})
            if k == 3:
                append(path, {"k": "span", "name": "checkpoint", "d": S // 4, **at(now + 0.5)})
                append(path, {"k": "committed", "last_step": step - 1, **at(now + 0.75)})
            step += 1
            folder.poll()
            remembered = account(folder.log(), Options(views=False), memo)
            assert remembered == account(read([tmp_path]), Options(views=False))
        now += 20


def test_what_did_not_change_is_not_computed_again(tmp_path: Path) -> None:
    path = tmp_path / "events-1.jsonl"
    append(path, header(1, 0), *({"k": "step", "n": n, **at(n)} for n in range(9)))
    folder = Folder([tmp_path])
    folder.poll()
    assert folder.log().processes[0] is folder.log().processes[0]
    before = folder.log().processes[0]
    append(path, {"k": "step", "n": 9, **at(9)})
    folder.poll()
    assert folder.log().processes[0] is not before


def test_a_memo_remembers_by_identity_and_forgets_what_is_not_used() -> None:
    memo, made = Memo(), []

    def make() -> list[int]:
        made.append(1)
        return [len(made)]

    one, twin = [1], [1]
    memo.turn()
    assert memo.recall("k", (one,), make) is memo.recall("k", (one,), make)
    assert memo.recall("k", (twin,), make) is not memo.recall("k", (one,), make)
    memo.turn()
    memo.turn()
    memo.recall("k", (one,), make)
    assert len(made) == 3
