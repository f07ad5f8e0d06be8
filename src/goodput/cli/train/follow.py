"""`goodput train report --follow`: the report of running jobs, again whenever their files grew."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from goodput.cli.output import emit, show, write_file

if TYPE_CHECKING:
    from goodput.senses.training import JobAccount, Query, Watch

CLEAR = "\x1b[H\x1b[2J\x1b[3J"


def follow_jobs(
    paths: Sequence[Path], query: "Query", *, every_s: float, html: Path | None, as_json: bool
) -> None:
    """Report jobs until every one is over, or until Ctrl-C; the last state stays on the screen.

    Args:
        paths: what to read, again and again.
        query: what part of it.
        every_s: seconds between two looks, > 0.
        html: page to write in the end.
        as_json: print each new state as JSON lines in place of a report.

    Raises:
        KeyboardInterrupt: Ctrl-C, after the last state was printed.
        DataError: a path does not exist.
    """
    from goodput.senses.training import Watch

    watch = Watch(paths, query)
    view = _View(live=sys.stdout.isatty() and not as_json, as_json=as_json, every_s=every_s)
    try:
        grew = watch.poll()
        while True:
            if grew:
                view.take(watch)
            if watch.over:
                break
            time.sleep(every_s)
            grew = _looked(watch, view)
    finally:
        view.close(html)


def _looked(watch: "Watch", view: "_View") -> bool:
    """Look for what is new; a path that is gone for a while does not end it."""
    from goodput.core.errors import DataError

    try:
        return watch.poll()
    except DataError as error:
        view.say(str(error))
        return False


class _View:
    """What the user sees: a screen that is drawn again, or lines."""

    def __init__(self, *, live: bool, as_json: bool, every_s: float) -> None:
        self._live = live
        self._as_json = as_json
        self._every_s = every_s
        self._accounts: tuple[JobAccount, ...] = ()
        self._said = ""

    def take(self, watch: "Watch") -> None:
        """Show the jobs as they are now, or what is still missing."""
        from goodput.core.errors import DataError

        try:
            self._accounts = watch.accounts()
        except DataError as error:
            self.say(f"waiting: {error}")
            return
        if self._live:
            text = "\n\n".join(one.terminal().rstrip("\n") for one in self._accounts)
            emit(f"{CLEAR}{text}\n\nlooks again every {self._every_s:g} s; Ctrl-C ends")
        else:
            for one in self._accounts:
                emit(one.json() if self._as_json else line_of(one))

    def say(self, text: str) -> None:
        """Say something on stderr, once."""
        if text != self._said:
            click.echo(f"goodput: {text}", err=True)
        self._said = text

    def close(self, html: Path | None) -> None:
        """Leave the last state behind."""
        if not self._accounts:
            return
        if self._live:
            emit(CLEAR)
        if not self._as_json:
            show(self._accounts, html=html, as_json=False)
        elif html is not None and len(self._accounts) == 1:
            write_file(html, self._accounts[0].html())
        elif html is not None:
            self.say(f"{html} is not written: a page holds one job, found {len(self._accounts)}")


def line_of(account: "JobAccount") -> str:
    """Return a job's state in one line."""
    from goodput.report.units import count, instant, share

    ledger = account.ledger
    done = ledger.waterfall
    return (
        f"{instant(ledger.ended_at_ns)}  {ledger.job}: goodput "
        f"{share(done.useful, done.capacity)}, {count(ledger.steps.kept, 'step')} kept, "
        f"{count(len(ledger.attempts), 'attempt')}, {ledger.state}"
    )
