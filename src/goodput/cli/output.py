"""How a command shows its result: bytes on stdout, a page in a file, words on stderr."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from goodput.senses import Account


def emit(data: bytes | str) -> None:
    """Write a result to stdout, ending in one newline."""
    raw = data.encode() if isinstance(data, str) else data
    sys.stdout.flush()
    sys.stdout.buffer.write(raw.rstrip(b"\n") + b"\n")
    sys.stdout.buffer.flush()


def show(accounts: "Sequence[Account]", *, html: Path | None, as_json: bool) -> None:
    """Print accounts one after the other, as text or as one line of JSON each.

    Args:
        accounts: at least one.
        html: also write the page of the only account to this file.
        as_json: print JSON.

    Raises:
        click.UsageError: `html` is given and there are several accounts.
        click.FileError: `html` cannot be written.
    """
    if html is not None and len(accounts) > 1:
        names = ", ".join(account.name for account in accounts)
        raise click.UsageError(f"--html holds one account, found {len(accounts)}: {names}")
    for number, account in enumerate(accounts):
        emit(account.json() if as_json else "\n" * (number > 0) + account.terminal())
    if html is not None:
        write_file(html, accounts[0].html())


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
