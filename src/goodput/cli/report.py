"""`goodput report`: any run, its sense detected."""

from pathlib import Path

import click

from goodput.cli.options import html_option, json_option, paths_argument
from goodput.cli.output import show


@click.command()
@paths_argument
@html_option
@json_option
def report(paths: tuple[Path, ...], *, html: Path | None, as_json: bool) -> None:
    """Report where the time went in each PATH: a run's folder, event files or a saved report.

    What kind of run it is (training) is detected. The options of one kind are with its own command,
    such as `goodput train report`.
    """
    from goodput.senses import detect

    show(detect(paths).accounts(paths), html=html, as_json=as_json)
