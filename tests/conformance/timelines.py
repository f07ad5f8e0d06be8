"""Turns a conformance case's timeline into real event files: the notation of cases/README.md."""

import json
from pathlib import Path
from typing import Any

from goodput.core.events import SCHEMA

ORIGIN_NS = 1_790_000_000_000_000_000
MONOTONIC_NS = 1_000_000_000_000


def instant(seconds: float) -> int:
    """Unix ns of an instant of a timeline."""
    return ORIGIN_NS + round(seconds * 1e9)


def write_events(folder: Path, timeline: list[str]) -> None:
    """Write one event file for each process of a timeline; lines go to the latest of their rank."""
    lines: dict[int, list[str]] = {}
    latest: dict[int, int] = {}
    for text in timeline:
        when, what, *rest = text.split()
        options = dict(part.split("=", 1) for part in rest if "=" in part)
        words = [part for part in rest if "=" not in part]
        rank = int(options.pop("rank", 0))
        seconds = float(when)
        stamp = {"t": instant(seconds), "m": MONOTONIC_NS + round(seconds * 1e9)}
        if what == "start":
            latest[rank] = len(lines)
            header: dict[str, Any] = {"k": "process", "schema": SCHEMA, "job": "case", "boot": "b"}
            header |= {"rank": rank, "world": int(options.pop("world", 1)), "pid": len(lines) + 1}
            lines[len(lines)] = [json.dumps(header | options | stamp)]
        else:
            lines[latest[rank]].append(json.dumps(_event(what, words, options) | stamp))
    for number, content in lines.items():
        (folder / f"events-{number:03d}.jsonl").write_text("\n".join(content) + "\n")


def _event(what: str, words: list[str], options: dict[str, str]) -> dict[str, Any]:
    """The record of one line of a timeline, without its time."""
    first = words[0] if words else ""
    if what == "span":
        return {"k": "span", "name": first, "d": round(float(words[1]) * 1e9), **options}
    if what == "end":
        return {"k": "process_end", "outcome": first or "completed"}
    kind, field = {
        "step": ("step", "n"),
        "done": ("step_end", "n"),
        "saved": ("committed", "last_step"),
        "resumed": ("resumed", "next_step"),
        "chips": ("allocated", "chips"),
        "queue": ("submitted", "chips"),
    }[what]
    return {"k": kind, field: int(first), **{key: int(value) for key, value in options.items()}}
