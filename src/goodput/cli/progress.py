"""A progress bar with the time that is left, on stderr, for work that reports (done, of all)."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function that shows how far the work is; silent when stderr is not a terminal.

    Args:
        label: what is being done.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    bars: list[Any] = []

    def show(done: int, total: int) -> None:
        if not bars:
            bars.append(click.progressbar(length=total, label=label, file=sys.stderr, width=30))
            bars[0].render_progress()
        bars[0].update(done - bars[0].pos)

    try:
        yield show
    finally:
        for bar in bars:
            bar.render_finish()
