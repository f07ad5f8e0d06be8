"""What the command line calls: one function per form of report, each loading only what it needs."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from goodput.report.terminal.screen import Screen
    from goodput.training.measure.ledger.types import Ledger


def render_terminal(
    ledger: "Ledger", *, width: int | None = None, color: bool | None = None
) -> str:
    """Return a training ledger as text for standard output.

    Args:
        ledger: any training ledger.
        width: cells, held within 60 and 160; None = the terminal's, or 80 when there is none.
        color: None = only when standard output is a terminal and NO_COLOR is not set.
    """
    from goodput.report.terminal.training import render_training

    return render_training(ledger, screen=_screen(width=width, color=color))


def render_html(ledger: "Ledger") -> str:
    """Return a training ledger as one self-contained HTML page, under 1.5 MB."""
    from goodput.report.html.training import training_page

    return training_page(ledger)


def compare_terminal(
    ledgers: "Sequence[Ledger]",
    names: Sequence[str] = (),
    *,
    width: int | None = None,
    color: bool | None = None,
) -> str:
    """Return two or more runs side by side as text for standard output; the first is the baseline.

    Args:
        ledgers: at least two.
        names: one per ledger; empty = the job names.
        width: as in `render_terminal`.
        color: as in `render_terminal`.

    Raises:
        InputError: fewer than two runs, or a run without capacity.
    """
    from goodput.report.compare import compare
    from goodput.report.terminal.compare import render_comparison

    return render_comparison(
        compare(*ledgers, names=names), screen=_screen(width=width, color=color)
    )


def compare_html(ledgers: "Sequence[Ledger]", names: Sequence[str] = ()) -> str:
    """Return two or more runs side by side as one self-contained HTML page.

    Raises:
        InputError: fewer than two runs, or a run without capacity.
    """
    from goodput.report.html.compare import comparison_page

    return comparison_page(ledgers, names=names)


def compare_json(ledgers: "Sequence[Ledger]", names: Sequence[str] = ()) -> bytes:
    """Return the comparison as JSON, schema `goodput.training-comparison/1.0`.

    Raises:
        InputError: fewer than two runs, or a run without capacity.
    """
    from goodput.report.compare import compare, comparison_to_json

    return comparison_to_json(compare(*ledgers, names=names))


def _screen(*, width: int | None, color: bool | None) -> "Screen":
    from goodput.report.terminal.screen import detect_screen

    return detect_screen(sys.stdout, os.environ, width=width, color=color)
