"""The wall at the top of the command line: every way a command can end, as an exit code.

Expected errors are one line on stderr. Anything else is our fault: one line and a file with the
traceback. GOODPUT_DEBUG=1 prints tracebacks in place.
"""

import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path

import click

from goodput.core.errors import GoodputError, InputError, MissingExtraError


class ExitCode(IntEnum):
    """What the shell gets to see."""

    OK = 0
    FAILED = 1
    USAGE = 2
    MISSING_EXTRA = 3
    INTERRUPTED = 130
    READER_GONE = 141


def guarded(run: Callable[[], object]) -> int:
    """Return the exit code of a command, whatever happens inside it.

    Args:
        run: runs the command; returns its exit code, or None for success.
    """
    try:
        code = run()
        sys.stdout.flush()
    except (click.Abort, EOFError, KeyboardInterrupt):
        _say("interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Python flushes stdout once more at exit: give it a place that takes everything.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.READER_GONE
    except Exception as error:  # noqa: BLE001 - the wall (STYLE 16): one of three broad handlers
        return _explain(error)
    return code if isinstance(code, int) else ExitCode.OK


def _explain(error: Exception) -> int:
    """Tell the user about an error; return the exit code that belongs to it."""
    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case click.ClickException():
            error.show()
            return ExitCode.USAGE
        case GoodputError():
            _say(f"error: {error}")
            return _code_of(error)
        case _:
            _report_unexpected(error)
            return ExitCode.FAILED


def _code_of(error: GoodputError) -> ExitCode:
    if isinstance(error, MissingExtraError):
        return ExitCode.MISSING_EXTRA
    return ExitCode.USAGE if isinstance(error, InputError) else ExitCode.FAILED


def _say(text: str) -> None:
    """Write one line about the error being handled, with its traceback when debugging."""
    click.echo(f"goodput: {text}", err=True)
    if os.environ.get("GOODPUT_DEBUG") == "1":
        click.echo(traceback.format_exc(), err=True)


def _report_unexpected(error: Exception) -> None:
    line = f"{type(error).__name__}: {error}".splitlines()[0]
    text = "".join(traceback.format_exception(error))
    if os.environ.get("GOODPUT_DEBUG") == "1":
        where = "traceback below"
        click.echo(text, err=True)
    else:
        where = f"traceback in {_keep(text)}"
    click.echo(f"goodput: unexpected error: {line} ({where}; please report it)", err=True)


def _keep(text: str) -> str:
    """Write a traceback to a file of its own; return its path, or why there is none."""
    try:
        handle, name = tempfile.mkstemp(prefix="goodput-error-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{' '.join(sys.argv)}\nPython {sys.version}\n\n{text}")
    except OSError as problem:
        return f"no file: {problem}"
    return str(Path(name))
