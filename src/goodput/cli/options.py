"""Options and arguments that many commands share."""

import os
from pathlib import Path

import click

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as JSON, for programs."
)
"""Decorator: adds `--json`, passed on as `as_json`."""

html_option = click.option(
    "--html",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write a self-contained page to FILE.",
)
"""Decorator: adds `--html FILE`, passed on as `html`."""

paths_argument = click.argument(
    "paths", metavar="PATH...", type=click.Path(path_type=Path), nargs=-1, required=True
)
"""Decorator: adds one or more PATH, passed on as `paths`."""


def runs_dir() -> Path:
    """Return where runs land: GOODPUT_DIR, or ./goodput-runs."""
    return Path(os.environ.get("GOODPUT_DIR") or "goodput-runs")
