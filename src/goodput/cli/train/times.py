"""How a user writes times: ISO 8601 or seconds from the start of the job, and FROM..TO."""

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from goodput.senses.training import Moment, Stretch

NS_PER_S = 1_000_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_moment(text: str) -> "Moment":
    """Return a moment.

    Args:
        text: seconds from the start of the job (`90`, `1.5`), or ISO 8601; UTC without an offset.

    Raises:
        ValueError: it is neither.
    """
    from goodput.senses.training import Moment

    try:
        seconds = float(text)
    except ValueError:
        when = datetime.fromisoformat(text)
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        since = when - EPOCH
        microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        return Moment(microseconds * 1000)
    if not math.isfinite(seconds):
        raise ValueError(f"{text} is not a time")
    return Moment(round(seconds * NS_PER_S), from_start=True)


def parse_stretch(text: str) -> "Stretch":
    """Return a window of time written FROM..TO; either side may be empty.

    Raises:
        ValueError: there is no `..`, or a side is not a time.
    """
    from goodput.senses.training import Stretch

    begin, dots, end = text.partition("..")
    if not dots:
        raise ValueError(f"no '..' in {text!r}")
    return Stretch(*(parse_moment(side) if side else None for side in (begin, end)))


def moment(text: str) -> "Moment":
    """Return a moment for an option.

    Raises:
        click.BadParameter: it is none; click names the option.
    """
    try:
        return parse_moment(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is neither seconds from the start nor ISO 8601 (2026-01-31T12:00:00)"
        ) from error


def stretch(text: str) -> "Stretch":
    """Return a window of time for an option.

    Raises:
        click.BadParameter: it is none; click names the option.
    """
    try:
        return parse_stretch(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is not FROM..TO, each seconds from the start or ISO 8601"
        ) from error
