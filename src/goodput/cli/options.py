"""Options that many commands share, and the one way to print a result."""

import sys
from pathlib import Path
from typing import Final

import click

NARROWEST: Final = 60
WIDEST: Final = 100


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as JSON, for programs."
)
"""Decorator: adds `--json`, passed on as `as_json`."""


def emit(data: bytes | str) -> None:
    """Write a result to stdout, ending in one newline."""
    raw = data.encode() if isinstance(data, str) else data
    sys.stdout.flush()
    sys.stdout.buffer.write(raw.rstrip(b"\n") + b"\n")
    sys.stdout.buffer.flush()


def write_file(path: Path, data: str) -> None:
    """Write a file that the user asked for and say so on stderr.

    Raises:
        click.FileError: it cannot be written.
    """
    try:
        path.write_text(data, encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(path), hint=error.strerror or str(error)) from error
    click.echo(f"wrote {path} ({len(data.encode()):,} bytes)", err=True)


def terminal_width() -> int:
    """Return the columns to use: those of the terminal within reason, 80 when there is none."""
    import shutil

    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size((80, 24)).columns))


def runs_dir() -> Path:
    """Return where runs land: GOODPUT_DIR, or ./goodput-runs."""
    import os

    return Path(os.environ.get("GOODPUT_DIR") or "goodput-runs")


def use_color() -> bool:
    """Return whether stdout takes colour: a terminal, and NO_COLOR is not set."""
    import os

    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
