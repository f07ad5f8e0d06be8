"""TensorBoard event files: framing and damage, which scalar tells steps, sessions, the library."""

import struct
from pathlib import Path

import numpy as np
import pytest
from foreign import jobs, told_by
from hypothesis import given
from hypothesis import strategies as st
from tracker_files import event, framed, session, tfevents

from goodput.training.measure.eventlog import EventLog
from goodput.training.measure.ledger import account
from goodput.training.measure.readers.series import first_number, stride_of
from goodput.training.measure.readers.tensorboard import job_of, lead_tag
from goodput.training.measure.readers.tfrecord import Damage, events_of

T0 = 1_780_000_000.0
NAME = "events.out.tfevents.1.host.1.0"


def scalars(path: Path) -> list[tuple[float, int, str, float]]:
    """Everything that our reader finds in a file."""
    return [
        (e.wall_time, e.step, v.tag, v.number)
        for e in events_of(path.read_bytes(), Damage())
        for v in e.values
        if v.number is not None
    ]


def test_steps_are_dated_by_their_records(tmp_path: Path) -> None:
    told = told_by(session(tmp_path / "job" / NAME, T0, 1, 40).parent)
    assert jobs(told) == ["job"]
    assert [(n, c) for n, c, _, _ in told.steps()] == [(1, 10), (11, 10), (21, 10), (31, 10)]
    assert [d for _, _, _, d in told.steps()] == [40.0, 10.0, 10.0, 10.0]  # the first from 30 s on
    assert told.logs[0].started_at_ns == T0 * 1e9


def test_two_sessions_are_two_attempts_and_rework(tmp_path: Path) -> None:
    session(tmp_path / "job" / NAME, T0, 1, 100)
    session(tmp_path / "job" / (NAME + ".2"), T0 + 500, 51, 120)
    told = told_by(tmp_path)
    ledger = account(EventLog(processes=tuple(told.logs), notes=(), sources=()))
    assert len(ledger.attempts) == 2
    assert (ledger.steps.kept, ledger.steps.lost) == (120, 50)


def test_a_rollback_inside_one_file(tmp_path: Path) -> None:
    rows = [event(T0 + i, n, {"loss": 1.0}) for i, n in enumerate([1, 2, 3, 4, 3, 4, 5])]
    told = told_by(tfevents(tmp_path / NAME, T0 - 1, rows))
    assert [n for n, _, _, _ in told.steps()] == [1, 2, 3, 4, 3, 4, 5]
    assert told.noted("rolled back") == 1


def test_tensors_are_scalars_and_evaluations_have_a_length(tmp_path: Path) -> None:
    rows = [event(T0 + n, n, {"loss": 1.0}, tensor=True) for n in range(1, 5)]
    rows.append(event(T0 + 9, 4, {"eval/runtime": 5.0}))
    told = told_by(tfevents(tmp_path / NAME, T0, rows))
    assert len(told.steps()) == 4
    assert told.spans("evaluation") == [(T0 + 4, 5.0)]


def test_which_scalar_is_taken() -> None:
    def series(n: int) -> tuple[list[int], list[int]]:
        return list(range(n)), [0] * n

    tags = {"eval/loss": series(9), "train/lr": series(5), "train/loss": series(5)}
    assert lead_tag(tags) == "train/loss"
    assert lead_tag({**tags, "lm-loss vs samples": series(99), "epoch": series(99)}) == "train/loss"
    assert lead_tag({"val_loss": series(4)}) == ""


@pytest.mark.parametrize(
    ("steps", "stride", "base"),
    [([10, 20, 30], 10, 1), ([49, 99, 149], 50, 0), ([0, 1, 2], 1, 0), ([1, 10, 20, 30], 10, 1)],
)
def test_numbering(steps: list[int], stride: int, base: int) -> None:
    column = np.array(steps, np.int64)
    assert stride_of(column) == stride
    assert first_number(column, stride) == base


def test_job_is_named_after_the_first_telling_folder() -> None:
    assert job_of(Path("/data/bert/lightning_logs/version_3/" + NAME)) == "bert"
    assert job_of(Path("/data/bert/tb/" + NAME)) == "bert"


def test_torn_end_and_bad_checksums(tmp_path: Path) -> None:
    path = session(tmp_path / NAME, T0, 1, 50)
    data = path.read_bytes()
    path.write_bytes(data[:-9])
    told = told_by(path)
    assert len(told.steps()) == 4
    assert told.noted("ends inside a record") == 1
    broken = bytearray(data)
    broken[-6] ^= 0xFF  # in the last record's data
    path.write_bytes(bytes(broken))
    told = told_by(path)
    assert len(told.steps()) == 4
    assert told.noted("wrong checksum") == 1


def test_a_broken_length_stops_the_reading(tmp_path: Path) -> None:
    path = session(tmp_path / NAME, T0, 1, 50)
    first = len(framed(event(T0 + 40, 10, {"train/loss": 1.0, "train/lr": 0.1})))
    data = bytearray(path.read_bytes())
    data[len(data) - first] ^= 0xFF
    path.write_bytes(bytes(data))
    told = told_by(path)
    assert len(told.steps()) == 4
    assert told.noted("length has a wrong checksum") == 1


@given(st.binary(max_size=200), st.integers(0, 2000), st.integers(0, 255))
def test_no_bytes_crash_the_reader(noise: bytes, at: int, flip: int) -> None:
    rows = b"".join(framed(event(T0 + n, n, {"loss": 1.0})) for n in range(1, 20))
    data = bytearray(rows + framed(noise) + noise)
    data[at % len(data)] ^= flip
    damage = Damage()
    for one in events_of(bytes(data), damage):
        assert isinstance(one.step, int)


def test_records_of_garbage_with_right_checksums_are_counted() -> None:
    damage = Damage()
    assert list(events_of(framed(b"\xff\xff\xff"), damage)) == []
    assert damage.undecodable == 1


@pytest.mark.integration
def test_same_scalars_as_the_library(tmp_path: Path) -> None:
    """Oracle: files of tensorboard's writer, read by its EventAccumulator and by us."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    writer_module = pytest.importorskip("tensorboard.summary.writer.event_file_writer")
    protos = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    tensors = pytest.importorskip("tensorboard.util.tensor_util")
    writer = writer_module.EventFileWriter(str(tmp_path))
    for n in range(1, 200):
        one = protos.Event(wall_time=T0 + n * 0.25, step=n * 7)
        one.summary.value.add(tag="train/loss", simple_value=1.0 / n)
        if n % 3 == 0:
            value = one.summary.value.add(tag="as tensor")
            value.tensor.CopyFrom(tensors.make_tensor_proto(n / 8, dtype="float32"))
            value.metadata.plugin_data.plugin_name = "scalars"
        writer.add_event(one)
    writer.close()
    (path,) = tmp_path.glob("events.out.tfevents.*")
    theirs = accumulator.EventAccumulator(str(path), size_guidance={"scalars": 0, "tensors": 0})
    theirs.Reload()
    expected = {
        tag: [(e.wall_time, e.step, e.value) for e in theirs.Scalars(tag)]
        for tag in theirs.Tags()["scalars"]
    }
    for tag in theirs.Tags()["tensors"]:
        expected[tag] = [
            (e.wall_time, e.step, float(tensors.make_ndarray(e.tensor_proto)))
            for e in theirs.Tensors(tag)
        ]
    ours: dict[str, list[tuple[float, int, float]]] = {}
    for wall, step, tag, number in scalars(path):
        ours.setdefault(tag, []).append((wall, step, number))
    assert ours == expected
    assert set(ours) == {"train/loss", "as tensor"}


@pytest.mark.integration
def test_the_library_reads_what_our_writer_wrote(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    path = session(tmp_path / NAME, T0, 1, 100)
    theirs = accumulator.EventAccumulator(str(path), size_guidance={"scalars": 0})
    theirs.Reload()
    told = [(e.wall_time, e.step, "train/loss", e.value) for e in theirs.Scalars("train/loss")]
    assert [row for row in scalars(path) if row[2] == "train/loss"] == told
    assert struct.calcsize("<QI") == 12


@given(
    st.integers(-(2**63), 2**63 - 1), st.text(min_size=1, max_size=120), st.floats(width=32),
    st.booleans(),
)  # fmt: skip
def test_every_event_is_read_back(step: int, tag: str, number: float, tensor: bool) -> None:
    name = tag.encode("utf-8", "replace").decode()
    record = event(T0, step, {name: number}, tensor=tensor)
    (back,) = events_of(framed(record), Damage())
    assert (back.wall_time, back.step) == (T0, step)
    ((told, value),) = back.values
    assert told == name
    assert value is not None
    assert struct.pack("<f", value) == struct.pack("<f", number)
