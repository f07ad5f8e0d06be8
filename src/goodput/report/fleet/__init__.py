"""A fleet ledger as terminal text, one HTML page or JSON; each form is loaded when asked for."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from goodput.cluster.measure.fleet.types import FleetLedger


def fleet_terminal(
    ledger: "FleetLedger", *, width: int | None = None, color: bool | None = None
) -> str:
    """Return a fleet ledger as text for standard output.

    Args:
        ledger: any fleet ledger.
        width: cells, held within 60 and 160; None = the terminal's, or 80 when there is none.
        color: None = only when standard output is a terminal and NO_COLOR is not set.
    """
    import os
    import sys

    from goodput.report.fleet.terminal import render_fleet
    from goodput.report.terminal.screen import detect_screen

    screen = detect_screen(sys.stdout, os.environ, width=width, color=color)
    return render_fleet(ledger, screen=screen)


def fleet_html(ledger: "FleetLedger") -> str:
    """Return a fleet ledger as one self-contained HTML page."""
    from goodput.report.fleet.html import fleet_page

    return fleet_page(ledger)


def fleet_json(ledger: "FleetLedger") -> bytes:
    """Return a fleet ledger as one line of JSON (docs/cluster.md); integers are exact."""
    import msgspec

    return msgspec.json.encode(ledger)


__all__ = ["fleet_html", "fleet_json", "fleet_terminal"]
