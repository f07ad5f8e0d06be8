"""Following a job through its event files."""

from pathlib import Path

import msgspec
import pytest

from goodput.core.errors import InputError
from goodput.core.events import (
    SCHEMA,
    AnyEvent,
    AttemptStart,
    Ended,
    Point,
    Process,
    Resumed,
    Step,
    StepEnd,
)
from goodput.training.faults import JobWatch


def write(path: Path, *events: AnyEvent) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        for event in events:
            file.write(msgspec.json.encode(event) + b"\n")


def header(rank: int, attempt: str, at: int, *, role: str = "worker", job: str = "j") -> Process:
    return Process(
        t=at, m=at, schema=SCHEMA, job=job, role=role, rank=rank, attempt=attempt, pid=at
    )


def settle(watch: JobWatch) -> None:
    for _ in range(11):  # new files are looked for at every tenth poll
        watch.poll()


def test_it_knows_the_running_attempt_and_its_workers(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    watch = JobWatch(folder)
    watch.poll()
    assert (watch.attempt, watch.workers, watch.step) == ("", (), -1)
    launcher = folder / "events-launcher.jsonl"
    write(launcher, header(0, "", 1, role="launcher"), AttemptStart(t=2, m=2, attempt="1"))
    write(folder / "events-a0.jsonl", header(0, "1", 3), Step(t=5, m=5, n=0))
    write(folder / "events-a1.jsonl", header(1, "1", 4), Step(t=6, m=6, n=0), Step(t=7, m=7, n=1))
    settle(watch)
    assert [worker.pid for worker in watch.workers] == [3, 4]
    assert (watch.attempt, watch.step) == ("1", 1)
    assert (watch.launched_at_ns, watch.first_step_at_ns) == (1, 5)
    write(launcher, AttemptStart(t=20, m=20, attempt="2"))
    settle(watch)
    assert (watch.attempt, watch.workers, watch.step) == ("2", (), -1)
    write(
        folder / "events-b0.jsonl",
        header(0, "2", 30),
        Resumed(t=31, m=31, next_step=1),
        Step(t=32, m=32, n=1),
        StepEnd(t=33, m=33, n=1),
        Point(t=34, m=34, name="loss", value=2.5, step=1),
    )
    write(launcher, Ended(t=40, m=40))
    settle(watch)
    assert watch.attempts == ("1", "2")
    assert [launch.attempt for launch in watch.launches] == ["1", "2"]
    assert (watch.resumed["2"].next_step, watch.completed["2"].n) == (1, 1)
    assert [(point.step, point.value) for point in watch.losses] == [(1, 2.5)]
    assert watch.outcome == "completed"
    watch.close()


def test_without_a_launcher_the_newest_process_of_each_rank_is_the_worker(tmp_path: Path) -> None:
    write(tmp_path / "events-z.jsonl", header(0, "", 3))
    write(tmp_path / "events-a.jsonl", header(0, "", 9))
    watch = JobWatch(tmp_path)
    watch.poll()
    assert [worker.pid for worker in watch.workers] == [9]
    watch.close()


def test_torn_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "events-a.jsonl"
    write(path, header(0, "1", 3))
    with path.open("ab") as file:
        file.write(b'{"k":"step","n":0,"t":5,"m":5}\nnot json\n{"k":"news","t":1}\n\xff\n{"k":"st')
    watch = JobWatch(tmp_path)
    watch.poll()
    assert watch.step == 0
    with path.open("ab") as file:
        file.write(b'ep","n":4,"t":6,"m":6}\n')
    watch.poll()
    assert watch.step == 4
    watch.close()


def test_two_jobs_in_a_folder_need_a_name(tmp_path: Path) -> None:
    write(tmp_path / "one" / "events-a.jsonl", header(0, "1", 3, job="one"))
    write(tmp_path / "two" / "events-a.jsonl", header(0, "1", 4, job="two"))
    unnamed = JobWatch(tmp_path)
    with pytest.raises(InputError, match="'one' and 'two'"):
        unnamed.poll()
    unnamed.close()
    watch = JobWatch(tmp_path, job="two")
    watch.poll()
    assert [worker.pid for worker in watch.workers] == [4]
    watch.close()
