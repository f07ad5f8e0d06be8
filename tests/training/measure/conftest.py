"""For tests of instrument() and of the integrations: a recorded job, told back in short words."""

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from goodput.core import events
from goodput.training.measure.instrument import instrument, uninstrument
from goodput.training.measure.run import Run

_decoder = msgspec.json.Decoder(events.AnyEvent)


class Job:
    """A job's folder: attempts write into it one after the other, in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def attempt(self, **options: object) -> Iterator[Run]:
        """Record one launch of the job; its file is closed at the end."""
        run = instrument(job="job", dir=self.folder, **options)  # type: ignore[arg-type]
        try:
            yield run
        finally:
            uninstrument()
            run.close()

    def attempts(self) -> list[list[events.Event]]:
        """The events of each file, oldest file first."""
        files: list[list[events.Event]] = [
            [_decoder.decode(line) for line in file.read_bytes().splitlines()]
            for file in self.folder.rglob("events-*.jsonl")
        ]
        return sorted(files, key=lambda recorded: recorded[0].m)

    def recorded(self) -> list[events.Event]:
        """The events of the latest file."""
        return self.attempts()[-1]

    def story(self, *without: str) -> list[str]:
        """The latest file in short words, without its first and last line, and without some."""
        words = [_word(event) for event in self.recorded()]
        return [word for word in words if word and word.split()[0] not in without]

    def spans(self, name: str) -> list[events.Span]:
        """The finished spans of one name in the latest file."""
        return [e for e in self.recorded() if isinstance(e, events.Span) and e.name == name]


def _word(event: events.Event) -> str:
    words: dict[type, Callable[[Any], str]] = {
        events.Step: lambda e: f"step {e.n}",
        events.StepEnd: lambda e: f"end {e.n}",
        events.Committed: lambda e: f"committed {e.last_step}",
        events.Resumed: lambda e: f"resumed {e.next_step}",
        events.Begin: lambda e: f"begin {e.name}",
        events.Span: lambda e: f"{e.name} failed" if e.failed else str(e.name),
        events.Point: lambda e: str(e.name),
    }
    return words.get(type(event), lambda _: "")(event)


@pytest.fixture
def job(tmp_path: Path) -> Generator[Job]:
    """An empty job."""
    yield Job(tmp_path / "runs")
    uninstrument()


Attempt = Callable[..., AbstractContextManager[Run]]


@pytest.fixture
def steps_of() -> Callable[..., list[str]]:
    """The words of whole steps `first` to `last`, and of the one that begins after them."""

    def words(first: int, last: int) -> list[str]:
        marks = [word for n in range(first, last + 1) for word in (f"step {n}", f"end {n}")]
        return [*marks, f"step {last + 1}"]

    return words
