"""Entries of ml-goodput-measurement: their timeline C6, custom events, exports, elastic slices."""

import json
from pathlib import Path

import pytest
from foreign import told_by
from samples import NS

from goodput.core.events import Allocated, Committed, ProcessEnd

T0 = 1_780_000_000.0


def entries(tmp_path: Path, *rows: dict[str, object], wrap: str = "") -> Path:
    path = tmp_path / "job_timeline.jsonl"
    named = [{"job_name": "mine", **row} for row in rows]
    path.write_text("".join(json.dumps({wrap: r} if wrap else r) + "\n" for r in named))
    return path


def steps(*rows: tuple[int, float]) -> list[dict[str, object]]:
    return [{"step_count": n, "step_start_time": T0 + at} for n, at in rows]


def c6() -> list[dict[str, object]]:
    """Init 0-1, preparation 1-3, data 3-5; steps; a crash; steps 2-4 again; end at 49 s."""
    return [
        {"job_start_time": T0},
        {"tpu_init_start_time": T0},
        {"tpu_init_end_time": T0 + 1},
        {"training_prep_start_time": T0 + 1},
        {"training_prep_end_time": T0 + 3},
        {"data_loading_start_time": T0 + 3},
        {"data_loading_end_time": T0 + 5},
        *steps((0, 5), (1, 13), (2, 16), (3, 19), (4, 22)),
        {"job_start_time": T0 + 30},
        *steps((2, 35), (3, 43), (4, 46)),
        {"job_end_time": T0 + 49},
    ]


@pytest.mark.parametrize("wrap", ["", "jsonPayload"])
def test_a_crash_and_its_rework(tmp_path: Path, wrap: str) -> None:
    rows = c6()
    told = told_by(entries(tmp_path, *rows, wrap=wrap)) if not wrap else None
    if told is None:
        path = entries(tmp_path, *rows)
        text = path.read_text().splitlines()
        wrapped = [json.dumps({"timestamp": "x", "jsonPayload": json.loads(r)}) for r in text]
        path.write_text("\n".join(wrapped))
        told = told_by(path)
    assert len(told.logs) == 2
    assert told.spans("tpu_init") == [(T0, 1.0)]
    assert told.spans("data") == [(T0 + 3, 2.0)]
    ledger = told.ledger
    assert (ledger.started_at_ns, ledger.ended_at_ns) == (T0 * NS, (T0 + 49) * NS)
    assert (ledger.steps.kept, ledger.steps.lost) == (5, 2)  # step 4 was torn, not lost
    assert ledger.state == "completed"
    assert len(told.events(ProcessEnd, 1)) == 1


def test_custom_events_and_saves(tmp_path: Path) -> None:
    told = told_by(
        entries(
            tmp_path,
            {"job_start_time": T0},
            *steps((0, 5), (1, 6)),
            {"custom_badput_event_type": "eval_step", "custom_badput_event_start_time": T0 + 7},
            {"custom_badput_event_type": "eval_step", "custom_badput_event_end_time": T0 + 9},
            {
                "event_type": "save", "step": 1, "directory": "gs://b",
                "checkpoint_manager_blocking_start_time": T0 + 9,
                "checkpoint_manager_blocking_duration_secs": 2.0,
            },
        )
    )  # fmt: skip
    assert told.spans("eval_step") == [(T0 + 7, 2.0)]
    assert told.logs[0].labels[0].counts_as == "evaluation"
    assert told.spans("checkpoint") == [(T0 + 9, 2.0)]
    assert [e.last_step for e in told.events(Committed)] == [1]  # type: ignore[attr-defined]


def test_elastic_slices(tmp_path: Path) -> None:
    counts = {"active_slices": 3, "total_slices": 4, "available_slices": 3}
    told = told_by(
        entries(
            tmp_path, {"job_start_time": T0}, {**counts, "elastic_slice_counts_timestamp": T0 + 1}
        )
    )
    (held,) = told.events(Allocated)
    assert isinstance(held, Allocated)
    assert (held.chips, held.requested, held.available) == (3, 4, 3)
    assert told.noted("slices are counted as chips") == 1


def test_bad_lines_are_counted(tmp_path: Path) -> None:
    path = entries(tmp_path, *c6())
    path.write_text(path.read_text() + "{broken\n[1]\n")
    assert told_by(path).noted("no entries") == 2


def test_what_the_recorder_writes(tmp_path: Path) -> None:
    """The real GoodputRecorder, where it is installed, with a logger that keeps a list."""
    library = pytest.importorskip("ml_goodput_measurement.src.goodput")

    class Kept:
        job_name = "mine"

        def __init__(self) -> None:
            self.rows: list[dict[str, object]] = []

        def write_cloud_logging_entry(self, entry: dict[str, object]) -> None:
            self.rows.append(entry)

        def flush(self) -> None: ...

    kept = Kept()
    recorder = library.GoodputRecorder("mine", "log", True, cloud_logger=kept)
    recorder.record_job_start_time()
    for n in range(3):
        recorder.record_step_start_time(n)
    recorder.record_custom_badput_event_start_time(custom_badput_event_type="eval")
    recorder.record_custom_badput_event_end_time(custom_badput_event_type="eval")
    recorder.record_job_end_time()
    told = told_by(entries(tmp_path, *kept.rows))
    assert told.logs[0].steps.n.tolist() == [0, 1, 2]
    assert len(told.spans("eval")) == 1
    assert told.ledger.state == "completed"
