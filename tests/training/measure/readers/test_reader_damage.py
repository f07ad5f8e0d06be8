"""One kind of damage a test: the damage is named with file and line, the rest is read."""

import os
import sys
import tempfile
from pathlib import Path

import pytest
from damage import ORIGIN_NS, as_bytes, at, contents, event, header, realistic, step, write

from goodput.core.errors import DataError, GoodputError, InputError
from goodput.core.notes import Note
from goodput.training.measure.eventlog import EventLog
from goodput.training.measure.ledger import account
from goodput.training.measure.readers import Folder, read

GOOD = [header(), step(1, 0), step(2, 1), step(3, 2), event("process_end", 4)]


def note(log: EventLog, *words: str) -> Note:
    """The one note that has these words."""
    found = [n for n in log.notes if all(w in n.text for w in words)]
    assert len(found) == 1, [(n.text, n.where) for n in log.notes]
    return found[0]


def steps_of(log: EventLog) -> list[int]:
    return [n for process in log.processes for n in process.steps.n.tolist()]


def damaged(folder: Path, bad: bytes) -> EventLog:
    """A file whose third line is damaged."""
    write(folder, "events-0.jsonl", [GOOD[0], GOOD[1], bad, *GOOD[2:]])
    return read([folder])


NOT_JSON = (
    b'{"k":"step","n":1,"t":17900',
    b"\x00\x00\x00\x00",
    b"\xff\xfe\xfa\x80",
    bytes(range(11, 256)),
    b"Traceback (most recent call last):",
    b'{"k":"point","name":"loss","value":NaN,"t":1}',
    b'{"k":"point","name":"loss","value":Infinity,"t":1}',
    b'{"k":"point","name":"lo\xc3\x28ss","value":1,"t":1}',
    b'{"k":"point","x":' + b"[" * 100_000,
    b'{"k":"step","n":007,"t":1790000001000000000}',
)


@pytest.mark.parametrize("bad", NOT_JSON, ids=range(len(NOT_JSON)))
def test_a_line_that_is_not_json_is_counted_and_skipped(tmp_path: Path, bad: bytes) -> None:
    log = damaged(tmp_path, bad)
    assert steps_of(log) == [0, 1, 2]
    assert note(log, "not valid JSON").where == f"{tmp_path / 'events-0.jsonl'}:3"


NOT_EVENTS = (
    b"[1,2,3]",
    b"null",
    b"42",
    b'"a line"',
    b"{}",
    b'{"k":7}',
    b'{"k":"step"}',
    b'{"k":"step","n":1}',
    b'{"k":"step","n":"one","t":1}',
    b'{"k":"step","n":1.5,"t":1}',
    b'{"k":"step","n":99999999999999999999,"t":1790000001000000000}',
    b'{"k":"step","n":1,"t":99999999999999999999999}',
    b'{"k":"step","n":-9223372036854775809,"t":1790000001000000000}',
    b'{"k":"span","name":"data","t":1790000001000000000,"d":9223372036854775807}',
    b'{"k":"allocated","t":1790000001000000000,"chips":-3}',
    b'{"k":"work","t":1790000001000000000,"ideal_step_s":1e300}',
    b'{"k":"point","name":"loss","value":null,"t":1790000001000000000}',
    b'{"k":"point","name":"loss","value":1e999,"t":1790000001000000000}',
)


@pytest.mark.parametrize("bad", NOT_EVENTS, ids=range(len(NOT_EVENTS)))
def test_a_line_that_is_no_event_is_counted_and_skipped(tmp_path: Path, bad: bytes) -> None:
    log = damaged(tmp_path, bad)
    assert steps_of(log) == [0, 1, 2]
    assert len(log.notes) == 1
    assert log.notes[0].where == f"{tmp_path / 'events-0.jsonl'}:3"
    assert account(log).steps.kept == 3


def test_unknown_kinds_and_fields_are_counted_each(tmp_path: Path) -> None:
    alien = {"k": "hologram", "t": ORIGIN_NS, "depth": 3}
    richer = [line | {"colour": "red"} for line in GOOD[1:]]
    write(tmp_path, "events-0.jsonl", [GOOD[0], alien, *richer, alien])
    log = read([tmp_path])
    assert note(log, "kind", "hologram").count == 2
    assert note(log, "field", "colour").count == 4
    assert steps_of(log) == [0, 1, 2]


def test_a_torn_last_line_is_the_writers_death_not_damage(tmp_path: Path) -> None:
    path = write(tmp_path, "events-0.jsonl", GOOD)
    path.write_bytes(path.read_bytes() + b'{"k":"step","n":3,"t":179')
    log = read([tmp_path])
    torn = note(log, "last line is torn")
    assert (torn.level, torn.where) == ("info", f"{path}:6")
    assert steps_of(log) == [0, 1, 2]


@pytest.mark.parametrize("ending", [b"\r\n", b" \n", b"\n\n", b"\n \t\n"])
def test_line_ends_and_blank_lines_mean_nothing(tmp_path: Path, ending: bytes) -> None:
    path = tmp_path / "events-0.jsonl"
    path.write_bytes(as_bytes(GOOD))
    plain = read([tmp_path])
    path.write_bytes(b"\n" + as_bytes(GOOD).replace(b"\n", ending))
    assert contents(read([tmp_path])) == contents(plain)


def test_a_line_of_many_megabytes_costs_only_itself(tmp_path: Path) -> None:
    log = damaged(tmp_path, b'{"k":"point","name":"' + b"x" * (20 << 20))
    assert steps_of(log) == [0, 1, 2]
    assert note(log, "longer than").where == f"{tmp_path / 'events-0.jsonl'}:3"


def test_an_endless_line_is_not_kept_in_memory(tmp_path: Path) -> None:
    """64 MiB of zeros without a line end, then a good record."""
    path = write(tmp_path, "events-0.jsonl", GOOD[:2])
    with path.open("ab") as file:
        for _ in range(64):
            file.write(b"\0" * (1 << 20))
        file.write(b"\n" + as_bytes(GOOD[2:]))
    folder = Folder([tmp_path])
    folder.poll()
    assert steps_of(folder.log()) == [0, 1, 2]


def test_files_of_other_programs_are_left_alone_and_listed(tmp_path: Path) -> None:
    write(tmp_path, "events-0.jsonl", GOOD)
    (tmp_path / "notes.txt").write_text("remember the milk\n")
    (tmp_path / "plot.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(100))
    (tmp_path / "metrics.jsonl").write_text('{"loss": 1.0}\n')
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / ".hidden.jsonl").write_text("{}\n")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    write(tmp_path / "deep" / "er", "events-1.jsonl", [header(0, rank=1), *GOOD[1:]])
    log = read([tmp_path])
    assert len(log.processes) == 2
    assert {Path(n.where).name for n in log.notes} == {
        "notes.txt", "plot.png", "metrics.jsonl", "empty.jsonl",
    }  # fmt: skip
    assert {n.level for n in log.notes} == {"info"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.txt", b"remember the milk\n"),
        ("plot.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
        ("metrics.jsonl", b'{"loss": 1.0}\n'),
        ("empty.jsonl", b""),
        ("events-1.jsonl", b""),
        ("events-1.jsonl", b'{"k":"step","n":1,"t":5}\n'),
        ("events-1.jsonl", b"\0" * 5000),
        ("events-1.jsonl", b'{"k":"process","t":1}\n'),
        ("events-1.jsonl", b'{"k":"process","schema":"goodput.events/1.0","jo'),
    ],
)
def test_nothing_at_all_to_read_is_an_error_that_names_the_file(
    tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    for asked in (tmp_path, tmp_path / name):
        with pytest.raises(DataError) as caught:
            read([asked])
        assert name in str(caught.value)
        assert "events-*.jsonl" in str(caught.value)


def test_an_empty_folder_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no goodput events found.*events-\*\.jsonl"):
        read([tmp_path])


def test_a_path_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere: no such file or folder"):
        read([tmp_path / "nowhere"])


def test_a_schema_of_a_later_major_is_refused_with_file_and_line(tmp_path: Path) -> None:
    write(tmp_path, "events-0.jsonl", GOOD)
    later = header(0, rank=1) | {"schema": "goodput.events/2.0"}
    path = write(tmp_path, "events-1.jsonl", [later, *GOOD[1:]])
    log = read([tmp_path])
    assert len(log.processes) == 1
    refused = note(log, "goodput.events/2.0", "newer", "upgrade")
    assert refused.where == f"{path}:1"


def test_a_schema_of_a_later_minor_is_read_as_far_as_it_is_known(tmp_path: Path) -> None:
    later = GOOD[0] | {"schema": "goodput.events/1.7", "mood": "good"}
    write(tmp_path, "events-0.jsonl", [later, GOOD[1] | {"colour": 1}, {"k": "new"}, *GOOD[2:]])
    log = read([tmp_path])
    assert steps_of(log) == [0, 1, 2]
    assert note(log, "goodput.events/1.7", "newer").level == "info"
    assert note(log, "'colour'").count == 1
    assert note(log, "'mood'").count == 1
    assert note(log, "'new'").count == 1


@pytest.mark.parametrize(
    "schema", ["", "other/1.0", "goodput.events/x", "goodput.events/" + "1" * 5000]
)
def test_a_header_of_no_known_schema_is_refused(tmp_path: Path, schema: str) -> None:
    write(tmp_path, "events-0.jsonl", GOOD)
    path = write(tmp_path, "events-1.jsonl", [header() | {"schema": schema}, *GOOD[1:]])
    log = read([tmp_path])
    assert len(log.processes) == 1
    assert [n.where for n in log.notes] == [f"{path}:1"]


def test_a_second_header_in_a_file_is_a_second_process(tmp_path: Path) -> None:
    """Two recorders that append to one file: not what ours does, and readable all the same."""
    again = header(10, pid=2)
    write(tmp_path, "events-0.jsonl", [*GOOD, again, step(11, 3), step(12, 4)])
    log = read([tmp_path])
    assert [p.steps.n.tolist() for p in log.processes] == [[0, 1, 2], [3, 4]]
    assert len(account(log).attempts) == 2


def test_a_header_that_was_lost_costs_its_file_only(tmp_path: Path) -> None:
    write(tmp_path, "events-0.jsonl", GOOD)
    path = write(tmp_path, "events-1.jsonl", GOOD[1:])
    log = read([tmp_path])
    assert len(log.processes) == 1
    assert note(log, "does not begin with").where == f"{path}:1"


def test_two_jobs_in_one_folder_are_told_apart(tmp_path: Path) -> None:
    write(tmp_path, "events-0.jsonl", GOOD)
    write(tmp_path, "events-1.jsonl", [header(0, pid=2) | {"job": "other"}, *GOOD[1:]])
    log = read([tmp_path])
    assert log.jobs == ("j", "other")
    with pytest.raises(InputError, match=r"expected one job, found 2 \(j, other\)"):
        account(log)
    assert account(log.job("other")).steps.kept == 3
    with pytest.raises(InputError, match=r"no job 'third'.*j, other"):
        log.job("third")


def test_a_copy_of_a_file_counts_once(tmp_path: Path) -> None:
    lines = [GOOD[0] | {"pid": 7}, *GOOD[1:]]
    write(tmp_path, "events-0.jsonl", lines)
    alone = account(read([tmp_path]))
    write(tmp_path, "events-0 (copy).jsonl", lines)
    write(tmp_path, "old-events-0.jsonl", lines[:3])
    log = read([tmp_path])
    assert len(log.processes) == 1
    assert len([n for n in log.notes if "copy" in n.text]) == 2
    assert account(log).waterfall == alone.waterfall


def test_parts_of_a_record_with_the_same_header_are_not_copies(tmp_path: Path) -> None:
    first = GOOD[0] | {"pid": 7, "attempt": "a"}
    write(tmp_path, "events-0.jsonl", [first, *GOOD[1:3]])
    write(tmp_path, "events-1.jsonl", [first, *GOOD[3:]])
    log = read([tmp_path])
    assert sorted(steps_of(log)) == [0, 1, 2]
    assert [n for n in log.notes if "copy" in n.text] == []
    assert len(account(log).attempts) == 1


def test_one_file_asked_for_in_two_ways_counts_once(tmp_path: Path) -> None:
    path = write(tmp_path, "events-0.jsonl", [GOOD[0] | {"pid": 7}, *GOOD[1:]])
    (tmp_path / "link.jsonl").symlink_to(path)
    relative = Path(os.path.relpath(path))
    log = read([tmp_path, path, relative])
    assert len(log.processes) == 1


def test_a_file_that_vanishes_keeps_what_was_read(tmp_path: Path) -> None:
    write(tmp_path, "events-0.jsonl", GOOD)
    path = write(tmp_path, "events-1.jsonl", [header(0, rank=1), *GOOD[1:]])
    folder = Folder([tmp_path])
    folder.poll()
    path.unlink()
    folder.poll()
    log = folder.log()
    assert len(log.processes) == 2
    assert note(log, "cannot be read any more").where == str(path)


def test_a_folder_that_vanishes_is_an_error_with_its_name(tmp_path: Path) -> None:
    place = tmp_path / "run"
    place.mkdir()
    path = write(place, "events-0.jsonl", GOOD)
    folder = Folder([place])
    folder.poll()
    path.unlink()
    place.rmdir()
    with pytest.raises(GoodputError, match="run"):
        folder.poll()


def test_names_that_are_no_text_can_be_reported(tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path) + b"/events-\xff\xfe.jsonl"
    Path(os.fsdecode(raw)).write_bytes(as_bytes(GOOD))
    log = read([tmp_path])
    for name in log.sources:
        name.encode()


def test_clocks_at_zero_count_time_all_the_same(tmp_path: Path) -> None:
    for start in (0, 1):
        lines = [{"k": "process", "schema": "goodput.events/1.0", "job": "j", "t": start}]
        lines += [{"k": "step", "n": n, "t": start + 10 * n} for n in range(4)]
        write(tmp_path, "events-0.jsonl", lines)
        ledger = account(read([tmp_path]))
        assert (ledger.waterfall.capacity, ledger.waterfall.useful) == (30, 30)


def test_negative_step_numbers_are_no_progress(tmp_path: Path) -> None:
    write(tmp_path, "events-0.jsonl", [header(), *(step(10 + n, n) for n in range(-3, 4))])
    ledger = account(read([tmp_path]))
    assert ledger.waterfall.capacity == 13_000_000_000
    assert ledger.steps.last_step == 2


def test_an_unset_monotonic_clock_leaves_the_wall_clock(tmp_path: Path) -> None:
    wall = [{k: v for k, v in line.items() if k != "m"} for line in GOOD]
    write(tmp_path, "events-0.jsonl", wall)
    log = read([tmp_path])
    assert log.processes[0].steps.at_ns.tolist() == [at(s)["t"] for s in (1, 2, 3)]
    assert log.processes[0].offset_ns == 0


def test_a_wall_clock_that_steps_back_is_named_and_corrected(tmp_path: Path) -> None:
    stepped = [line | {"t": line["t"] - 3_600 * 10**9} for line in GOOD[2:]]
    write(tmp_path, "events-0.jsonl", [*GOOD[:2], *stepped])
    log = read([tmp_path])
    assert log.processes[0].steps.at_ns.tolist() == [at(s)["t"] for s in (1, 2, 3)]
    assert "3600.0 s" in note(log, "wall clock was stepped").text


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_file_without_permission_costs_itself_only() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        write(place, "events-0.jsonl", GOOD)
        write(place, "events-1.jsonl", [header(0, rank=1), *GOOD[1:]]).chmod(0)
        before = os.geteuid()
        if before == 0:  # root may read everything: ask as somebody else
            os.seteuid(65_534)
        try:
            log = read([place])
        finally:
            os.seteuid(before)
    assert len(log.processes) == 1
    assert "events-1.jsonl" in str(log.notes)


def test_a_realistic_folder_has_nothing_to_complain_of(tmp_path: Path) -> None:
    for name, data in realistic().items():
        (tmp_path / name).write_bytes(data)
    log = read([tmp_path])
    assert log.notes == ()
    assert len(log.processes) == 5
    ledger = account(log)
    assert [a.outcome for a in ledger.attempts] == ["failed", "failed"]
    assert 0 < ledger.factors.goodput < 1
