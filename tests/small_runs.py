"""What tests of the command line share: results of a command, and small recorded runs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

NS_PER_S = 1_000_000_000
RUN_BEGAN_S = 1_767_225_600
"""2026-01-01T00:00:00Z."""


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Cli = Callable[..., Ran]
WriteRun = Callable[..., Path]


def write_small_run(place: Path, job: str, *, steps: int = 10, step_s: int = 10) -> Path:
    """Write a folder of one process that made `steps` steps, the first after 20 s; return it."""
    place.mkdir(parents=True, exist_ok=True)

    def at(second: int) -> dict[str, int]:
        return {"t": (RUN_BEGAN_S + second) * NS_PER_S, "m": (5 + second) * NS_PER_S}

    first, last = 20, 20 + steps * step_s
    lines: list[dict[str, object]] = [
        {"k": "process", **at(0), "schema": "goodput.events/1.0", "job": job, "boot": "b"},
        {"k": "allocated", **at(0), "chips": 4},
        *(
            {"k": "step", **at(first + n * step_s), "n": n, "d": step_s * NS_PER_S, "c": 1}
            for n in range(steps)
        ),
        {"k": "committed", **at(last), "last_step": steps - 1},
        {"k": "process_end", **at(last)},
        {"k": "ended", **at(last)},
    ]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (place / f"events-{job}.jsonl").write_text(text)
    return place
