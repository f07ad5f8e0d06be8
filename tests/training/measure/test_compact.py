"""Compaction: one Parquet file that says exactly what the event files say."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest
from event_files import (
    GOODBYE,
    MONOTONIC_NS,
    ORIGIN_NS,
    event_folders,
    recording,
    steps,
    write_files,
)
from hypothesis import given, settings

from goodput.core.errors import DataError, InputError
from goodput.training.measure.compact import DEFAULT_NAME, QUIET_NS, compact, fingerprint
from goodput.training.measure.eventlog import EventLog
from goodput.training.measure.ledger import Ledger, account
from goodput.training.measure.readers import Folder, read

LATER_NS = 10**20
"""Long after any file was written."""


def ledgers(log: EventLog) -> list[Ledger]:
    """One ledger for each job, without the names of the files."""
    return [msgspec.structs.replace(account(log.job(name)), sources=()) for name in log.jobs]


def pack(folder: Path, **options: object) -> Path:
    """Compact a folder that nobody writes to."""
    return compact(folder, now_ns=LATER_NS, **options).path  # type: ignore[arg-type]


def kept_steps(paths: Sequence[Path]) -> int:
    """Kept steps of the one job in there."""
    (only,) = ledgers(read(paths))
    return only.steps.kept


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two attempts of two ranks, ended."""
    folder = tmp_path / "run"
    for attempt, first in enumerate((0, 6)):
        for rank in range(2):
            end = {"k": "committed", "last_step": first + 5}
            content = recording(
                *steps(first, first + 6), end, GOODBYE,
                rank=rank, begin_s=100 * attempt, pid=10 * attempt + rank + 1,
            )  # fmt: skip
            write_files(folder, {f"events-r{rank}-{attempt}.jsonl": content})
    return folder


@given(files=event_folders())
@settings(max_examples=max(40, settings().max_examples // 5))
def test_the_ledger_is_the_same(
    files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("run")
    write_files(folder, files)
    before = read([folder])
    target = pack(folder)
    after = read([target])
    assert [fingerprint(p) for p in after.processes] == [fingerprint(p) for p in before.processes]
    assert [p.path for p in after.processes] == [p.path for p in before.processes]
    assert sorted(map(repr, after.notes)) == sorted(map(repr, before.notes))
    assert ledgers(after) == ledgers(before)
    assert ledgers(read([folder])) == ledgers(before)


def test_every_kind_of_event_is_carried(tmp_path: Path) -> None:
    kinds: list[dict[str, Any]] = [
        {"k": "submitted", "chips": 2},
        {"k": "allocated", "chips": 2, "requested": 4, "available": 3},
        {"k": "attempt_start", "attempt": "a", "world": 2, "next_step": 0},
        {"k": "begin", "name": "init", "id": 1},
        {"k": "span", "name": "init", "d": 5, "id": 1},
        {"k": "begin", "name": "mine", "id": 2, "counts_as": "data"},
        {"k": "resumed", "next_step": 0, "path": "x"},
        {"k": "work", "flops_per_step": 1.5e15, "chip": "H100-SXM", "dtype": "bf16"},
        {"k": "step", "n": 0, "d": 7, "c": 2, "shape": "8x512", "comm": 3},
        {"k": "step_end", "n": 0, "comm": 4},
        {"k": "step", "n": 2},
        {"k": "span", "name": "checkpoint", "d": 5, "background": True},
        {"k": "committed", "last_step": 1, "path": "ckpt/1"},
        {"k": "window", "first": 0, "last": 1, "steps": 2, "d": 9, "work": 5, "longest": 4},
        {"k": "point", "name": "loss", "value": 2.31, "step": 1},
        {"k": "noticed", "cause": "gpu", "evidence": "Xid 79", "rank": 1, "fault_t": ORIGIN_NS},
        {"k": "dropped", "count": 3, "reason": "disk full"},
        {"k": "attempt_end", "attempt": "a", "outcome": "failed", "exit_code": 1, "signal": 9},
        {"k": "process_end", "outcome": "failed", "error": "RuntimeError: é", "signal": 15},
        {"k": "ended", "outcome": "failed"},
    ]
    write_files(tmp_path, {"events-0.jsonl": recording(*kinds)})
    (before,) = read([tmp_path]).processes
    target = pack(tmp_path, keep=False)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    (after,) = read([tmp_path]).processes
    assert (after.header, after.offset_ns, after.last_at_ns) == (
        before.header,
        ORIGIN_NS - MONOTONIC_NS,
        before.last_at_ns,
    )
    assert after.windows == before.windows
    assert after.events == before.events
    assert (after.labels, after.shapes) == (before.labels, before.shapes)
    for name in ("steps", "ends", "spans"):
        for new, old in zip(getattr(after, name), getattr(before, name), strict=True):
            assert (new is None and old is None) or new.tolist() == old.tolist()
            assert new is None or new.dtype == old.dtype


def test_columns_that_say_nothing_come_back_as_none(run: Path) -> None:
    for process in read([pack(run, keep=False)]).processes:
        assert process.steps[2:] == (None, None, None, None)


def test_a_folder_with_both_reads_each_event_once(run: Path) -> None:
    before = ledgers(read([run]))
    pack(run)
    assert len(list(run.iterdir())) == 5
    assert ledgers(read([run])) == before


def test_an_event_file_that_is_held_is_not_read_at_all(run: Path) -> None:
    before = ledgers(read([run]))
    pack(run)
    for path in run.glob("*.jsonl"):
        path.write_bytes(b"?" * path.stat().st_size)
    assert ledgers(read([run])) == before
    assert ledgers(read([run / ".." / run.name])) == ledgers(
        read([run / ".." / run.name / DEFAULT_NAME])
    )


def test_a_file_of_the_same_name_and_size_elsewhere_is_another(run: Path) -> None:
    other = run.with_name("other")
    other.mkdir()
    text = (run / "events-r0-1.jsonl").read_bytes()
    (other / "events-r0-1.jsonl").write_bytes(text.replace(b'"pid":11', b'"pid":77'))
    pack(run)
    assert len(read([run, other]).processes) == 5


def test_an_event_file_that_grew_is_read_itself(run: Path) -> None:
    grows = run / "events-r0-1.jsonl"
    text = grows.read_bytes()
    grows.write_bytes(text[: text.index(b'{"k":"committed"')])
    target = pack(run)
    watched = Folder([run])
    watched.poll()
    assert kept_steps([target]) == 12
    more = recording(*steps(12, 15), begin_s=110, pid=11).split(b"\n", 1)[1]
    with grows.open("ab") as file:
        file.write(more)
    assert watched.poll()
    assert account(watched.log()).steps.kept == 15
    assert kept_steps([run]) == kept_steps([target]) == 15
    assert not [note for note in watched.log().notes if "copy" in note.text]


def test_a_file_made_anew_under_the_same_name_counts_beside_what_is_held(run: Path) -> None:
    pack(run, keep=False)
    anew = recording(*steps(12, 20), GOODBYE, begin_s=300, pid=11)
    write_files(run, {"events-r0-1.jsonl": anew})
    assert kept_steps([run]) == 20


def test_originals_go_only_when_asked(run: Path) -> None:
    names = sorted(path.name for path in run.iterdir())
    kept = compact(run, now_ns=LATER_NS)
    assert kept.removed == ()
    assert sorted(path.name for path in run.iterdir()) == [DEFAULT_NAME, *names]
    gone = compact(run, keep=False, now_ns=LATER_NS)
    assert sorted(path.name for path in gone.removed) == names
    assert [path.name for path in run.iterdir()] == [DEFAULT_NAME]
    assert (gone.files, gone.processes, gone.rows) == (4, 4, 4 * 8)
    assert gone.size == (run / DEFAULT_NAME).stat().st_size


def test_a_file_that_holds_what_cannot_be_read_stays(run: Path) -> None:
    odd, future = run / "events-odd.jsonl", run / "events-future.jsonl"
    odd.write_bytes(recording(*steps(0, 3), rank=1, begin_s=500, pid=7) + b'{"k":"hologram"}\n')
    future.write_bytes(recording(*steps(0, 3), pid=8, schema="goodput.events/9.0"))
    before = ledgers(read([run]))
    done = compact(run, keep=False, now_ns=LATER_NS)
    assert {one.path.name: one.reason.split()[0] for one in done.left} == {
        "events-odd.jsonl": "it",
        "events-future.jsonl": "schema",
    }
    assert sorted(path.name for path in run.iterdir()) == [DEFAULT_NAME, future.name, odd.name]
    (after,) = ledgers(read([run]))
    assert msgspec.structs.replace(after, notes=()) == msgspec.structs.replace(before[0], notes=())
    assert set(after.notes) == set(before[0].notes)


def test_a_torn_last_line_is_noted_and_does_not_keep_the_file(run: Path) -> None:
    torn = run / "events-r0-1.jsonl"
    torn.write_bytes(torn.read_bytes() + b'{"k":"step","n":99')
    (note,) = read([run]).notes
    target = pack(run, keep=False)
    assert not torn.exists()
    assert read([target]).notes == (note,)
    assert note.where == f"{torn}:10"


def test_a_running_job_is_refused_unless_asked(run: Path) -> None:
    alive = run / "events-r0-2.jsonl"
    alive.write_bytes(recording(*steps(12, 14), begin_s=200, pid=21))
    with pytest.raises(InputError, match=r"events-r0-2\.jsonl.*job may be running"):
        compact(run)
    before = kept_steps([run])
    done = compact(run, running=True, keep=False)
    assert [path for path, _ in done.left] == [alive]
    assert sorted(path.name for path in run.iterdir()) == [DEFAULT_NAME, alive.name]
    assert kept_steps([run]) == before
    silent_ns = alive.stat().st_mtime_ns + QUIET_NS + 1
    assert compact(run, keep=False, now_ns=silent_ns).removed == (alive,)
    assert kept_steps([run]) == before


def test_a_file_that_grows_again_after_compaction_is_not_removed(run: Path) -> None:
    alive = run / "events-r0-2.jsonl"
    alive.write_bytes(recording(*steps(12, 14), begin_s=200, pid=21))
    pack(run)
    with pytest.raises(InputError, match="is written to again"):
        compact(run, running=True, keep=False)
    assert alive.exists()


def test_compacting_again_takes_in_new_attempts(run: Path) -> None:
    pack(run, keep=False)
    write_files(run, {"events-r0-2.jsonl": recording(*steps(12, 18), GOODBYE, begin_s=200, pid=21)})
    before = ledgers(read([run]))
    assert before[0].steps.kept == 18
    done = compact(run, keep=False, now_ns=LATER_NS)
    assert done.files == 5
    assert [path.name for path in run.iterdir()] == [DEFAULT_NAME]
    assert ledgers(read([run])) == before


def test_the_result_may_be_elsewhere(run: Path, tmp_path: Path) -> None:
    before = ledgers(read([run]))
    target = tmp_path / "archive" / "job.parquet"
    pack(run, out=target, keep=False)
    assert list(run.iterdir()) == []
    assert ledgers(read([target])) == before


def test_two_compacted_runs_of_the_same_files_are_refused(run: Path) -> None:
    pack(run)
    with pytest.raises(InputError, match="holds these events already"):
        pack(run, out=run / "other.parquet")
    assert pack(run, out=run / "other.parquet", keep=False)
    assert [path.name for path in run.iterdir()] == ["other.parquet"]


def test_a_name_that_would_not_be_read_is_refused(run: Path) -> None:
    with pytest.raises(InputError, match=r"must end in \.parquet"):
        pack(run, out=run / "job.pq")


def test_nothing_to_compact(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no goodput events"):
        pack(tmp_path)
    (tmp_path / "events-0.jsonl").write_bytes(b"garbage\n")
    with pytest.raises(DataError, match=r"events-0\.jsonl: does not begin with"):
        pack(tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        pack(tmp_path / "nowhere")
    assert [path.name for path in tmp_path.iterdir()] == ["events-0.jsonl"]


def test_an_interrupted_compaction_leaves_everything_as_it_was(run: Path) -> None:
    target = pack(run)
    content = target.read_bytes()
    names = sorted(path.name for path in run.iterdir())

    def interrupt(done: int, of: int) -> None:
        if done == of:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pack(run, keep=False, progress=interrupt)
    assert sorted(path.name for path in run.iterdir()) == names
    assert target.read_bytes() == content


def test_progress_counts_files(run: Path) -> None:
    seen: list[tuple[int, int]] = []
    pack(run, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_same_events_same_bytes(run: Path, tmp_path: Path) -> None:
    twin = tmp_path / "twin"
    shutil.copytree(run, twin)
    assert pack(run).read_bytes() == pack(twin).read_bytes()


@pytest.mark.parametrize("damage", ["truncated", "flipped", "emptied"])
def test_a_damaged_file_is_named_and_the_event_files_are_used(run: Path, damage: str) -> None:
    before = ledgers(read([run]))
    target = pack(run)
    content = target.read_bytes()
    bad = {
        "truncated": content[: len(content) // 2],
        "flipped": content[:100] + bytes(255 - b for b in content[100:600]) + content[600:],
        "emptied": content[:4],
    }
    target.write_bytes(bad[damage])
    log = read([run])
    assert [note.level for note in log.notes if note.where == str(target)] == ["error"]
    (after,) = ledgers(log)
    assert msgspec.structs.replace(after, notes=()) == msgspec.structs.replace(before[0], notes=())
    with pytest.raises(DataError, match="Move it away"):
        pack(run)


def test_only_a_damaged_file_is_an_error_that_names_it(run: Path) -> None:
    target = pack(run, keep=False)
    target.write_bytes(target.read_bytes()[:300])
    with pytest.raises(DataError, match=f"{DEFAULT_NAME}: cannot be read as a compacted run"):
        read([run])


def contents_of(target: Path) -> dict[str, Any]:
    """The table of contents, as it is written."""
    with duckdb.connect() as connection:
        query = "SELECT value FROM parquet_kv_metadata(?)"
        (text,) = connection.execute(query, [str(target)]).fetchall()[0]
    contents: dict[str, Any] = msgspec.json.decode(text)
    return contents


def rewrite(target: Path, **changes: object) -> None:
    """Give a compacted run another table of contents."""
    text = msgspec.json.encode(contents_of(target) | changes).decode().replace("'", "''")
    other = target.with_suffix(".new")
    options = f"FORMAT parquet, KV_METADATA {{goodput: '{text}'}}"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (FROM '{target}') TO '{other}' ({options})")
    other.replace(target)


def test_a_schema_from_the_future_is_refused(run: Path) -> None:
    target = pack(run, keep=False)
    rewrite(target, schema="goodput.compacted/2.0")
    with pytest.raises(DataError, match=r"goodput\.compacted/2\.0' is newer"):
        read([run])


def test_a_later_minor_version_is_read(run: Path) -> None:
    before = ledgers(read([run]))
    target = pack(run, keep=False)
    contents = contents_of(target)
    for process in contents["processes"]:
        process["header"]["aura"] = 7
    rewrite(target, schema="goodput.compacted/1.7", mood="good", processes=contents["processes"])
    assert ledgers(read([run])) == before


def test_contents_that_do_not_fit_the_rows_are_refused(run: Path) -> None:
    target = pack(run, keep=False)
    rewrite(target, processes=[])
    with pytest.raises(DataError, match="no goodput events found"):
        read([run])


def test_a_foreign_parquet_file_is_no_concern(run: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 1 AS a) TO '{run / 'data.parquet'}' (FORMAT parquet)")
    before = ledgers(read([run]))
    (note,) = [note for note in before[0].notes if "data.parquet" in note.where]
    assert note.level == "info"
    assert note.text == "binary file, not of a kind that goodput reads; ignored"
    pack(run, keep=False)
    assert sorted(path.name for path in run.iterdir()) == [DEFAULT_NAME, "data.parquet"]


@pytest.mark.parametrize("name", ["it's", "a [b]*?", "ünï cøde", "with space"])
def test_names_that_mean_something_to_sql_or_a_shell(run: Path, name: str) -> None:
    folder = run.rename(run.with_name(name))
    before = ledgers(read([folder]))
    pack(folder, keep=False)
    assert ledgers(read([folder])) == before


def test_a_moved_folder_reads_the_same(run: Path) -> None:
    before = ledgers(read([run]))
    pack(run)
    moved = run.rename(run.with_name("moved"))
    assert ledgers(read([moved])) == before


def test_sql_reads_it(run: Path) -> None:
    target = pack(run)
    query = (
        "SELECT rank, kind, count(*), min(n), max(n) FROM read_parquet(?) GROUP BY ALL ORDER BY ALL"
    )
    with duckdb.connect() as connection:
        rows = connection.execute(query, [str(target)]).fetchall()
    assert rows == [
        (0, "event", 4, None, None),
        (0, "step", 12, 0, 11),
        (1, "event", 4, None, None),
        (1, "step", 12, 0, 11),
    ]


def test_hidden_files_and_names_that_are_no_text(run: Path) -> None:
    (run / ".hidden.jsonl").write_bytes(recording(*steps(50, 60), pid=31))
    odd = os.fsencode(run) + b"/events-\xff.jsonl"
    with open(odd, "wb") as file:  # noqa: PTH123 (bytes)
        file.write(recording(*steps(12, 14), GOODBYE, begin_s=300, pid=31))
    done = compact(run, keep=False, now_ns=LATER_NS)
    assert [one.reason for one in done.left] == ["its name is not valid UTF-8"]
    assert done.files == 4
    assert kept_steps([run]) == 14
