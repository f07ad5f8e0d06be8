"""What each call of the recorder writes, and which Run a process gets."""

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from recordings import events_of, files, kinds

import goodput
from goodput.core import events
from goodput.core.errors import ConfigError
from goodput.core.events import AnyEvent
from goodput.training.measure.identity import identify
from goodput.training.measure.recorder import current, open_run, start_held
from goodput.training.measure.run import Run


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    for name in ("RANK", "WORLD_SIZE", "GOODPUT_JOB", "GOODPUT_ATTEMPT", "GOODPUT_DETAIL"):
        monkeypatch.delenv(name, raising=False)
    run = goodput.start("job", dir=tmp_path)
    yield run
    run.close()


def test_a_file_begins_with_the_process_and_ends_with_its_end(run: Run, tmp_path: Path) -> None:
    run.close()
    first, last = events_of(tmp_path)
    assert isinstance(first, events.Process)
    assert (first.schema, first.job, first.rank, first.world) == (events.SCHEMA, "job", 0, 1)
    assert (first.detail, first.role, first.origin) == ("steps", "worker", "recorded")
    assert first.started <= first.t
    assert first.writer == f"goodput-ml {goodput.__version__}"
    assert isinstance(last, events.ProcessEnd)
    assert last.outcome == "completed"
    assert run.path.parent == tmp_path / "job"


def test_a_step_in_a_with_gets_an_end_and_a_bare_mark_none(run: Run, tmp_path: Path) -> None:
    with run.step(7):
        pass
    run.step(8)
    run.step_end(8, comm_ns=5)
    run.close()
    marks = events_of(tmp_path)[1:-1]
    assert [(e.n, e.__struct_config__.tag) for e in marks if isinstance(e, events.Step)] == [
        (7, "step"),
        (8, "step"),
    ]
    assert [(e.n, e.comm) for e in marks if isinstance(e, events.StepEnd)] == [(7, -1), (8, 5)]
    assert all(b.m >= a.m for a, b in itertools.pairwise(marks))


def test_a_step_that_raised_has_no_end(run: Run, tmp_path: Path) -> None:
    with pytest.raises(KeyError), run.step(1):
        raise KeyError
    run.close()
    assert kinds(events_of(tmp_path)) == ["step", "process_end"]


def test_a_span_has_a_begin_and_lasts_as_long_as_its_body(run: Run, tmp_path: Path) -> None:
    with run.span("data", step=3, counts_as="data"):
        pass
    run.close()
    begin, span = events_of(tmp_path)[1:3]
    assert isinstance(begin, events.Begin)
    assert isinstance(span, events.Span)
    assert (begin.id, begin.t, begin.m) == (span.id, span.t, span.m)
    assert (span.name, span.step, span.counts_as, span.failed) == ("data", 3, "data", False)
    assert 0 <= span.d < 1_000_000_000


def test_a_span_that_raised_says_so_and_a_communication_span_has_no_begin(
    run: Run, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="x"), run.span("communication"):
        raise ValueError("x")
    run.close()
    (span,) = events_of(tmp_path)[1:-1]
    assert isinstance(span, events.Span)
    assert span.failed
    assert span.id == 0


def test_a_decorated_function_is_a_new_span_each_time_and_keeps_its_value(
    run: Run, tmp_path: Path
) -> None:
    @run.span("evaluation", background=True)
    def double(x: int) -> int:
        return 1 if x == 0 else 2 * double(x - 1)

    assert double(2) == 4
    assert double.__name__ == "double"
    run.close()
    spans = [e for e in events_of(tmp_path) if isinstance(e, events.Span)]
    assert len({s.id for s in spans}) == 3
    assert all(s.background for s in spans)


def test_a_checkpoint_is_committed_only_if_its_body_succeeded(run: Run, tmp_path: Path) -> None:
    with run.checkpoint(4, "here"):
        pass
    with pytest.raises(OSError, match="full"), run.checkpoint(9):
        raise OSError("full")
    run.close()
    written = events_of(tmp_path)
    assert [e.last_step for e in written if isinstance(e, events.Committed)] == [4]
    assert [e.failed for e in written if isinstance(e, events.Span)] == [False, True]


def test_every_other_call_writes_the_event_of_its_name(run: Run, tmp_path: Path) -> None:
    run.submitted(8, at_ns=5)
    run.allocated(4, requested=8, available=6)
    run.attempt_start("3", world=4, next_step=10)
    run.resumed(10, "there")
    run.work(flops_per_step=1e12, chip="H100-SXM", dtype="bf16")
    run.point("loss", 0.5, step=10)
    run.record_span("data", 100, 7, 50, step=10)
    run.committed(11)
    run.noticed(cause="hang", rank=2)
    run.attempt_end("3", outcome="failed", cause="hang", exit_code=1, rank=2)
    run.ended("failed")
    run.close("failed")
    want = [
        events.Submitted(t=5, chips=8),
        events.Allocated(t=0, chips=4, requested=8, available=6),
        events.AttemptStart(t=0, attempt="3", world=4, next_step=10),
        events.Resumed(t=0, next_step=10, path="there"),
        events.Work(t=0, flops_per_step=1e12, chip="H100-SXM", dtype="bf16", source="given"),
        events.Point(t=0, name="loss", value=0.5, step=10),
        events.Span(t=100, m=7, name="data", d=50, step=10),
        events.Committed(t=0, last_step=11),
        events.Noticed(t=0, cause="hang", rank=2),
        events.AttemptEnd(t=0, attempt="3", outcome="failed", cause="hang", exit_code=1, rank=2),
        events.Ended(t=0, outcome="failed"),
        events.ProcessEnd(t=0, outcome="failed"),
    ]
    got = events_of(tmp_path)[1:]
    timeless = [msgspec.structs.replace(e, t=w.t, m=w.m) for e, w in zip(got, want, strict=True)]
    assert timeless == want
    assert got[0].t == 5
    assert got[0].m == 0, "a time that was given has no monotonic twin"


def test_names_of_any_kind_stay_valid_json(run: Run, tmp_path: Path) -> None:
    name = 'a "%d" \\ \n é \x00'
    with run.span(name, counts_as=name):
        pass
    run.step(1, shape=name)
    run.point(name, 1)
    run.close()
    spans = [e for e in events_of(tmp_path) if isinstance(e, events.Span)]
    assert (spans[0].name, spans[0].counts_as) == (name, name)


@pytest.mark.parametrize(
    "call",
    [
        lambda run: run.step("x"),
        lambda run: run.step(None, shape="y"),
        lambda run: run.step_end([]),
        lambda run: run.point("loss", float("nan")),
        lambda run: run.point("loss", "many"),
        lambda run: run.committed(None),
        lambda run: run.work(flops_per_step=float("inf")),
        lambda run: run.record_span("data", "yesterday", 0, 1),
        lambda run: run.span(object(), step="first").__enter__(),
    ],
)
def test_a_value_that_cannot_be_recorded_is_counted_and_nothing_raises(
    run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str], call: object
) -> None:
    assert callable(call)
    call(run)
    run.step(1)
    assert run.dropped == 1
    run.close()
    written = events_of(tmp_path)
    (lost,) = [e for e in written if isinstance(e, events.Dropped)]
    assert lost.count == 1
    assert lost.reason
    assert [e.n for e in written if isinstance(e, events.Step)] == [1]
    assert len(capfd.readouterr().err.splitlines()) == 2, "once when it happens, once at the end"


def test_numbers_of_other_libraries_are_numbers(run: Run, tmp_path: Path) -> None:
    import numpy as np

    with run.step(np.int64(3)):  # type: ignore[arg-type]
        run.point("loss", np.float32(0.5), step=np.int64(3))  # type: ignore[arg-type]
    run.close()
    assert run.dropped == 0
    assert kinds(events_of(tmp_path)) == ["step", "point", "step_end", "process_end"]


def test_after_close_calls_do_nothing(run: Run, tmp_path: Path) -> None:
    run.close()
    run.close("failed")
    run.step(1)
    run.point("loss", float("nan"))
    with run.span("data"):
        pass
    assert kinds(events_of(tmp_path)) == ["process_end"]
    assert run.dropped == 0
    assert not run.enabled


def test_a_run_in_a_with_ends_as_its_body_did(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), goodput.start("r", dir=tmp_path):
        raise RuntimeError("first\nsecond")
    end = events_of(tmp_path)[-1]
    assert isinstance(end, events.ProcessEnd)
    assert (end.outcome, end.error) == ("failed", "RuntimeError: first")


def test_start_gives_the_open_run_again_and_a_new_one_for_another_job(
    run: Run, tmp_path: Path
) -> None:
    assert goodput.start("job", dir=tmp_path) is run
    assert current() is run
    other = goodput.start("other", dir=tmp_path)
    assert other is not run
    assert not run.enabled
    assert current() is other
    other.close()
    again = goodput.start("other", dir=tmp_path)
    assert again is not other
    again.close()
    assert len(files(tmp_path)) == 3


def test_two_attempts_append_to_one_folder_without_touching_each_other(tmp_path: Path) -> None:
    for attempt in ("1", "2"):
        run = goodput.start("job", dir=tmp_path, attempt=attempt)
        run.step(0)
        run.close()
    first, second = files(tmp_path)
    assert first.parent == second.parent
    for path in (first, second):
        assert path.read_bytes().count(b'"step"') == 1


def test_chips_are_recorded_by_rank_0_only(tmp_path: Path) -> None:
    for rank in (0, 1):
        run = goodput.start("job", dir=tmp_path / str(rank), rank=rank, world=2, chips=16)
        run.close()
    assert kinds(events_of(tmp_path / "0")) == ["allocated", "process_end"]
    assert kinds(events_of(tmp_path / "1")) == ["process_end"]


@pytest.mark.parametrize(
    "case",
    [
        (0, "auto", None, "steps"),
        (1, "auto", None, "windows"),
        (1, "steps", "windows", "steps"),
        (0, "auto", "windows", "windows"),
        (1, "auto", "steps", "steps"),
        (1, "auto", "nonsense", "windows"),
    ],
)
def test_detail_is_asked_for_else_from_the_environment_else_by_rank(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[int, str, str | None, str],
) -> None:
    rank, asked, variable, detail = case
    monkeypatch.delenv("GOODPUT_DETAIL", raising=False)
    if variable is not None:
        monkeypatch.setenv("GOODPUT_DETAIL", variable)
    run = goodput.start("job", dir=tmp_path, rank=rank, world=2, detail=asked)  # type: ignore[arg-type]
    run.close()
    assert run.detail == detail


def test_an_unknown_detail_is_an_error_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="detail='all'"):
        goodput.start("job", dir=tmp_path, detail="all")  # type: ignore[arg-type]
    assert files(tmp_path) == []


def test_a_rank_with_windows_writes_its_first_step_a_summary_and_the_open_step(
    tmp_path: Path,
) -> None:
    run = goodput.start("job", dir=tmp_path, rank=1, world=2)
    for n in range(10, 16):
        run.step(n)
        with run.span("data"):
            pass
    with run.span("evaluation"):
        pass
    run.close()
    written = events_of(tmp_path)
    (window,) = [e for e in written if isinstance(e, events.Window)]
    assert (window.first, window.last, window.steps) == (11, 14, 4)
    assert window.data > 0
    assert [(e.n, e.d) for e in written if isinstance(e, events.Step)] == [(10, -1), (15, -1)]
    # The first and the last step have records of their own, and so have their waits.
    assert [e.name for e in written if isinstance(e, events.Span)] == ["data", "evaluation", "data"]


def test_both_clocks_are_recorded_as_they_are_when_the_wall_clock_steps_back(
    tmp_path: Path,
) -> None:
    wall = iter([1000, 2000, 500, 600, 700])
    mono = iter(range(0, 100, 10))
    run = Run(
        identify(job="job", directory=tmp_path, rank=0, world=1, attempt=""),
        path=tmp_path / "events-clock.jsonl",
        detail="steps",
        wall_ns=lambda: next(wall),
        mono_ns=lambda: next(mono),
    )
    run.step(1)
    run.step(2)
    run.close()
    steps = [e for e in events_of(tmp_path) if isinstance(e, events.Step)]
    assert [e.t for e in steps] == [2000, 500]
    assert steps[0].m < steps[1].m


def test_threads_lose_nothing_and_tear_nothing(run: Run, tmp_path: Path) -> None:
    per_thread, threads = 2000, 6

    def record(thread: int) -> None:
        for i in range(per_thread):
            with run.span("data", step=thread * per_thread + i):
                pass

    workers = [threading.Thread(target=record, args=(k,)) for k in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    run.close()
    spans = [e for e in events_of(tmp_path) if isinstance(e, events.Span)]
    begins = [e for e in events_of(tmp_path) if isinstance(e, events.Begin)]
    assert sorted(s.step for s in spans) == list(range(per_thread * threads))
    assert {b.id for b in begins} == {s.id for s in spans}
    assert len({s.id for s in spans}) == per_thread * threads


def test_a_held_run_makes_no_file_until_a_step_shows_that_it_trains(tmp_path: Path) -> None:
    identity = identify(job="job", directory=tmp_path, rank=0, world=1, attempt="")
    run = open_run(identity, held=True)
    with run.span("init"):
        pass
    assert files(tmp_path) == []
    run.step(0)
    assert kinds(events_of(tmp_path)) == ["begin", "span", "step"]
    run.step(1)
    run.close()
    written = events_of(tmp_path)
    assert kinds(written) == ["begin", "span", "step", "step", "process_end"]
    assert written[0].t <= written[1].t


def test_a_held_run_that_never_trained_leaves_nothing(tmp_path: Path) -> None:
    identity = identify(job="job", directory=tmp_path, rank=0, world=1, attempt="")
    run = open_run(identity, held=True)
    run.point("loss", 1.0)
    run.close()
    assert not (tmp_path / "job").exists()


def test_an_explicit_start_releases_a_held_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOODPUT_DIR", str(tmp_path))
    held = start_held()
    held.point("loss", 1.0)
    assert goodput.start() is held
    assert kinds(events_of(tmp_path)) == ["point"]
    assert start_held() is held
    held.close()


def test_the_frequent_lines_are_what_msgspec_would_write(run: Run) -> None:
    with run.step(3), run.span("data", step=1, counts_as="x", background=True):
        pass
    run.close()
    lines = run.path.read_bytes().splitlines()
    frequent = [msgspec.json.decode(x, type=AnyEvent) for x in lines[1:-1]]
    # `begin` and `step` fields of `Event` come last, and defaults are left out, as readers expect.
    assert [msgspec.json.encode(event) for event in frequent] == lines[1:-1]
