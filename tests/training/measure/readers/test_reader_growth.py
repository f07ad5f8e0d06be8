"""A file that is read while it grows says in the end what it says when it is read at once."""

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from damage import as_bytes, contents, event, header, mutate, realistic, step
from hypothesis import given, settings
from hypothesis import strategies as st

from goodput.core.errors import DataError
from goodput.training.measure.ledger import account
from goodput.training.measure.readers import Folder, read

seeds = st.integers(0, 2**32)


def grown(folder: Path, data: dict[str, bytes], dice: random.Random) -> Folder:
    """Append to all files in turns, in pieces of any size, and poll in between."""
    reader = Folder([folder])
    written = dict.fromkeys(data, 0)
    while left := [name for name, at in written.items() if at < len(data[name])]:
        name = dice.choice(left)
        size = dice.choice((1, 7, 80, 500, 4000))
        with (folder / name).open("ab") as file:
            file.write(data[name][written[name] : written[name] + size])
        written[name] += size
        if dice.random() < 0.7:
            reader.poll()
        if dice.random() < 0.1:
            try:
                reader.log()
            except DataError as error:
                assert "no goodput events found" in str(error)  # noqa: PT017 (a race on purpose)
    reader.poll()
    return reader


@settings(max_examples=20)
@given(seeds)
def test_growing_files_are_read_as_if_at_once(seed: int) -> None:
    dice = random.Random(seed)
    with TemporaryDirectory() as place:
        log = grown(Path(place), realistic(seed), dice).log()
        assert contents(log) == contents(read([place]))


@settings(max_examples=20)
@given(seeds)
def test_damaged_files_too(seed: int) -> None:
    dice = random.Random(seed)
    files = realistic(seed)
    for name in list(files):
        for _ in range(dice.randrange(4)):
            files[name] = mutate(files[name], dice)
    with TemporaryDirectory() as place:
        reader = grown(Path(place), files, dice)
        try:
            at_once = read([place])
        except DataError:
            with pytest.raises(DataError):
                reader.log()
        else:
            assert contents(reader.log()) == contents(at_once)


def test_every_prefix_of_a_file_can_be_accounted_for(tmp_path: Path) -> None:
    """Cut after each byte, as a kill would: whole lines count, the rest is torn."""
    lines = [
        header(pid=1),
        event("allocated", 0, chips=2),
        step(1, 0),
        step(2, 1),
        event("span", 2.5, name="data", d=10**8),
        event("committed", 2.9, last_step=0),
        step(3, 2),
        event("process_end", 4),
    ]
    data = as_bytes(lines)
    path = tmp_path / "events-0.jsonl"
    reader = Folder([tmp_path])
    for size in range(1, len(data) + 1):
        with path.open("ab") as file:
            file.write(data[size - 1 : size])
        reader.poll()
        if data.count(b"\n", 0, size) < 1:
            continue
        ledger = account(reader.log())
        assert ledger.steps.executed <= 3
        torn = any("torn" in note.text for note in ledger.notes)
        assert torn == (data[size - 1 : size] != b"\n")
    assert contents(reader.log()) == contents(read([tmp_path]))


def test_a_poll_without_news_says_so(tmp_path: Path) -> None:
    path = tmp_path / "events-0.jsonl"
    path.write_bytes(as_bytes([header(), step(1, 0)]))
    reader = Folder([tmp_path])
    assert reader.poll() is True
    assert reader.poll() is False
    with path.open("ab") as file:
        file.write(as_bytes([step(2, 1)]))
    assert reader.poll() is True
    (tmp_path / "events-1.jsonl").write_bytes(as_bytes([header(rank=1)]))
    assert reader.poll() is True
    assert len(reader.log().processes) == 2


def test_a_log_that_was_handed_out_does_not_change_when_the_file_grows(tmp_path: Path) -> None:
    path = tmp_path / "events-0.jsonl"
    path.write_bytes(as_bytes([header(), event("begin", 0.5, name="data", id=1), step(1, 0)]))
    reader = Folder([tmp_path])
    reader.poll()
    log = reader.log()
    before = contents(log)
    more = [
        event("span", 0.5, name="data", d=10**8, id=1),
        *(step(2 + n, n + 1) for n in range(999)),
    ]
    with path.open("ab") as file:
        file.write(as_bytes(more))
    reader.poll()
    assert reader.log().processes[0].steps.n.size == 1000
    assert contents(log) == before
