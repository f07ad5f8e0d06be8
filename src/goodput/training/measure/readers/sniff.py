"""Telling our event files from everything else by their first bytes."""

from pathlib import Path
from typing import Final

_HEADER: Final = b'{"k":"process"'


def looks_like_events(path: Path, head: bytes) -> bool:
    """Return whether a file is ours: by its first record, or its name if that is damaged."""
    first = head.lstrip()[: len(_HEADER)]
    named = path.name.startswith("events-") and path.suffix == ".jsonl"
    return first == _HEADER or (named and bool(head))


def skip_reason(path: Path, head: bytes) -> str:
    """Return why a file is ignored, in words for the report."""
    if not head:
        return "empty file; ignored"
    if b"\0" in head:
        return "binary file, not of a kind that goodput reads; ignored"
    return f"not of a kind that goodput reads ({path.suffix or 'no suffix'}); ignored"
