"""A realistic folder of event files, ways to damage it, and what "the same log" means."""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from goodput.core.events import SCHEMA
from goodput.training.measure.eventlog import EventLog, ProcessLog

ORIGIN_NS: Final = 1_790_000_000_000_000_000
MONOTONIC_NS: Final = 1_000_000_000_000

SPICE: Final = (b"0", b"9", b"-", b"99999999999", b"\n", b'"', b"{", b"e9", b"\0")
"""What hurts most in numbers and lines."""

Line = dict[str, Any]


def at(seconds: float) -> Line:
    """Both clocks of an instant."""
    ns = round(seconds * 1e9)
    return {"t": ORIGIN_NS + ns, "m": MONOTONIC_NS + ns}


def header(seconds: float = 0, **fields: object) -> Line:
    """A `process` record."""
    return {"k": "process", "schema": SCHEMA, "job": "j", "boot": "b"} | fields | at(seconds)


def event(kind: str, seconds: float, **fields: object) -> Line:
    return {"k": kind} | fields | at(seconds)


def step(seconds: float, n: int, **fields: object) -> Line:
    return {"k": "step", "n": n} | fields | at(seconds)


def as_bytes(lines: Iterable[Line | bytes]) -> bytes:
    """Lines as a file holds them; bytes are lines that are damaged already."""
    return b"".join(
        (x if isinstance(x, bytes) else json.dumps(x, separators=(",", ":")).encode()) + b"\n"
        for x in lines
    )


def write(folder: Path, name: str, lines: Iterable[Line | bytes]) -> Path:
    path = folder / name
    path.write_bytes(as_bytes(lines))
    return path


def realistic(seed: int = 0) -> dict[str, bytes]:
    """Files of a job of two attempts and two ranks with everything that a recorder writes."""
    dice = random.Random(seed)
    files: dict[str, bytes] = {}
    first_step, now = 0, 10.0
    launcher = [header(0, role="launcher", pid=1), event("submitted", 0, chips=4)]
    launcher.append(event("allocated", 5, chips=4, requested=8, available=6))
    for attempt in range(2):
        key, begun, steps = f"a{attempt}", now, dice.randint(70, 130)
        launcher.append(event("attempt_start", now, attempt=key, world=2))
        for rank in range(2):
            pid = 10 * attempt + rank + 2
            files[f"events-{attempt}-{rank}.jsonl"] = as_bytes(
                _worker(dice, begun, first_step, steps, rank=rank, pid=pid, attempt=key)
            )
        now = begun + 5 + steps + 12
        first_step += steps - steps % 10
        known = {"outcome": "failed", "signal": 9, "rank": 1, "evidence": "rank 1: SIGKILL"}
        fault = {"fault_t": at(now - 10)["t"], "noticed_t": at(now - 5)["t"]}
        launcher.append(event("attempt_end", now, attempt=key, **known, **fault))
    launcher.append(event("ended", now + 1, outcome="failed"))
    files["events-launcher.jsonl"] = as_bytes(launcher)
    return files


def _worker(
    dice: random.Random, begun: float, first: int, steps: int, *, rank: int, pid: int, attempt: str
) -> list[Line]:
    who = {"rank": rank, "world": 2, "pid": pid, "attempt": attempt, "host": "node1"}
    lines = [header(begun, **who, started=at(begun - 1)["t"], writer="test 1")]
    lines.append(event("span", begun, name="init", d=2_000_000_000, id=1))
    lines.append(event("resumed", begun + 2, next_step=first))
    lines.append(event("work", begun + 2, flops_per_step=1e12, chip="H100-SXM", dtype="bf16"))
    closed = rank == 0
    for index in range(steps):
        n, now = first + index, begun + 5 + index
        lines.append(step(now, n))
        if index % 7 == 3:
            lines.append(event("span", now + 0.1, name="data", d=dice.randint(1, 10**8)))
        if index % 5 == 0:
            lines.append(event("point", now + 0.2, name="loss", value=dice.random(), step=n))
        if closed:
            lines.append(event("step_end", now + 0.9, n=n, comm=dice.randint(0, 10**8)))
        if index % 10 == 9 and rank == 0:
            lines.append(event("begin", now + 0.91, name="checkpoint", id=100 + index))
            lines.append(event("span", now + 0.91, name="checkpoint", d=50_000_000, id=100 + index))
            lines.append(event("committed", now + 0.97, last_step=n, path=f"ckpt/{n}"))
    after = begun + 5 + steps
    if rank == 1:
        lines.append(event("window", begun + 5, first=first, last=first + 9, steps=10, d=10**10))
        lines.append(event("dropped", after, count=3, reason="disk full"))
    lines.append(event("begin", after, name="evaluation", id=9))
    lines.append(event("process_end", after + 8, outcome="failed", error="RuntimeError: gone"))
    return lines


def contents(log: EventLog, *, notes: bool = True) -> dict[str, object]:
    """Everything that a log says, as plain values that can be compared."""
    out: dict[str, object] = {"processes": [_process(p) for p in log.processes]}
    if notes:
        out["notes"] = sorted((n.level, n.text, n.where, n.count) for n in log.notes)
    return out


def _process(process: ProcessLog) -> dict[str, object]:
    return {name: _plain(getattr(process, name)) for name in process.__struct_fields__}


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, msgspec.Struct):
        return repr(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def mutate(data: bytes, dice: random.Random) -> bytes:
    """One random change of bytes: flip, insertion, deletion, truncation, repetition, garbage."""
    at_byte = dice.randrange(len(data) + 1)
    length = dice.choice((1, 1, 1, 2, 5, 40, 300))
    rest = data[at_byte + length :]
    kind = dice.choice(("flip", "cut", "end", "add", "garbage", "repeat", "spice", "shuffle"))
    match kind:
        case "flip":
            middle = bytes(b ^ (1 << dice.randrange(8)) for b in data[at_byte : at_byte + length])
        case "end":
            middle, rest = b"", b""
        case "add":
            middle, rest = dice.randbytes(length), data[at_byte:]
        case "garbage":
            middle = dice.randbytes(length)
        case "repeat":
            middle = data[at_byte : at_byte + length] * dice.randint(2, 4)
        case "spice":
            middle, rest = dice.choice(SPICE), data[at_byte:]
        case "shuffle":
            lines = data.splitlines(keepends=True)
            dice.shuffle(lines)
            return b"".join(lines)
        case _:
            middle = b""
    return data[:at_byte] + middle + rest
