"""Data-quality notes: what a reader of a report should know about how far to trust it."""

from typing import Literal

import msgspec


class Note(msgspec.Struct, frozen=True):
    """One thing that was found about the data, and how often."""

    level: Literal["info", "warning", "error"]
    text: str
    where: str = ""
    """file:line, rank or attempt."""
    count: int = 1
