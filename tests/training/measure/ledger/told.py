"""Event files from a few words: for examples that are told in full."""

import json
from pathlib import Path
from typing import Any, Final

from goodput.core.events import SCHEMA
from goodput.training.measure.ledger import Ledger, Options, account
from goodput.training.measure.readers import read

ORIGIN_NS: Final = 1_790_000_000_000_000_000
S: Final = 1_000_000_000
"""Nanoseconds of a second."""

Line = dict[str, Any]


def at(seconds: float) -> int:
    """Unix ns of an instant."""
    return ORIGIN_NS + round(seconds * S)


def event(kind: str, seconds: float, **fields: object) -> Line:
    ns = round(seconds * S)
    return {"k": kind} | fields | {"t": ORIGIN_NS + ns, "m": 1000 * S + ns}


def header(seconds: float = 0, **fields: object) -> Line:
    return event("process", seconds, schema=SCHEMA, job="j", boot="b", **fields)


def step(seconds: float, n: int, **fields: object) -> Line:
    return event("step", seconds, n=n, **fields)


def done(seconds: float, n: int) -> Line:
    return event("step_end", seconds, n=n)


def marks(seconds: float, *numbers: int) -> list[Line]:
    """Bare marks of steps of one second each."""
    return [step(seconds + index, n) for index, n in enumerate(numbers)]


def closed(seconds: float, *numbers: int) -> list[Line]:
    """Closed steps of one second each."""
    pairs = [(step(seconds + i, n), done(seconds + i + 1, n)) for i, n in enumerate(numbers)]
    return [line for pair in pairs for line in pair]


def tell(folder: Path, *files: list[Line]) -> None:
    """Write one file for each process."""
    for number, lines in enumerate(files):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"events-{number}.jsonl").write_text(text)


def ledger_of(folder: Path, *files: list[Line], **options: Any) -> Ledger:
    """The account of a job told by these files."""
    tell(folder, *files)
    return account(read([folder]), Options(**options))


def kept(ledger: Ledger) -> list[int]:
    """Kept steps of each attempt."""
    return [attempt.kept_steps for attempt in ledger.attempts]
