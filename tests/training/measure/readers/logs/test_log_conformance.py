"""What holds for every text log: steps count once, growth changes nothing, damage is no end."""

import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import Told, at, tell, told
from small_logs import SMALL_LOGS, TORCHELASTIC

from goodput.training.measure.readers.logs.registry import formats_of, open_log

ALL = {**SMALL_LOGS, "torchelastic": TORCHELASTIC}


@pytest.mark.parametrize("name", SMALL_LOGS)
def test_three_steps_and_an_account_that_sums(name: str, tmp_path: Path) -> None:
    result = told(tmp_path, SMALL_LOGS[name])
    assert formats_of(tmp_path / "job.log", b"")[0].name == name
    assert len(result.logs) == 1
    assert [covers for _, covers, _, _ in result.steps()] == [1, 1, 1]
    steps = result.steps()
    assert all(
        start + lasted <= following + 1e-6
        for (_, _, start, lasted), (_, _, following, _) in pairwise(steps)
    )
    ledger = result.ledger
    assert ledger.steps.kept == 3
    assert ledger.waterfall.useful > 0


@pytest.mark.parametrize("name", ALL)
def test_a_file_that_grows_tells_the_same_in_the_end(name: str, tmp_path: Path) -> None:
    whole = ALL[name].encode()
    path = tmp_path / "job.log"
    path.write_bytes(whole)
    os.utime(path, (at("2025-06-01"), at("2025-06-01")))
    once = tell(path)
    grown = tmp_path / "grown"
    grown.mkdir()
    copy = grown / "job.log"
    copy.write_bytes(whole)
    os.utime(copy, (at("2025-06-01"), at("2025-06-01")))
    log = open_log(copy, "job.log")  # what it is was seen when it was opened
    for end in [*range(0, len(whole), 97), len(whole)]:
        copy.write_bytes(whole[:end])
        log.poll()
    result = Told([build(0) for build in log.logs()], log.finish())
    assert [one.steps.n.tolist() for one in result.logs] == [
        one.steps.n.tolist() for one in once.logs
    ]
    for i in range(len(once.logs)):
        assert result.steps(i) == once.steps(i)
    assert {note.text for note in result.notes} == {note.text for note in once.notes}


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_damage_is_never_fatal_and_the_account_still_sums(
    name: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = bytearray(ALL[name].encode())
    wild = st.sampled_from(
        [b"-1", b"9" * 19, b"1e400", b"nan", b".", b"\n", b"\r", b"\x1b[3", b"\xff"]
    )
    for _ in range(data.draw(st.integers(1, 10))):
        where = data.draw(st.integers(0, len(whole)))
        kind = data.draw(st.integers(0, 2))
        if kind == 0:
            whole[where:where] = data.draw(wild)
        elif kind == 1:
            del whole[where : where + data.draw(st.integers(1, 80))]
        else:
            length = data.draw(st.integers(1, 300))
            whole[where:where] = whole[max(where - length, 0) : where]
    path = tmp_path_factory.mktemp("damaged") / "job.log"
    path.write_bytes(bytes(whole))
    log = open_log(path, "job.log")
    log.poll()
    result = Told([build(0) for build in log.logs()], log.finish())
    if result.logs:
        assert result.ledger.waterfall.capacity >= 0  # conservation is asserted where it is built


def test_lines_that_cannot_be_are_counted(tmp_path: Path) -> None:
    broken = SMALL_LOGS["megatron"].replace("(ms): 2000.0", "(ms): 2.0.0")
    result = told(tmp_path, broken)
    assert result.noted("numbers that cannot be") == 2
    assert [row[0] for row in result.steps()] == [1]


def test_restart_stall_and_cancellation_in_one_file(tmp_path: Path) -> None:
    """A killed worker, a restart, a stalled collective, and Slurm's last word."""
    result = told(tmp_path, TORCHELASTIC)
    assert len(result.logs) == 2
    causes = [incident.cause for incident in result.ledger.incidents]
    assert causes == ["killed", "collective_timeout"]
