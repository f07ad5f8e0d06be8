"""`goodput demo`: the report of a recorded run that ships with the package."""

from pathlib import Path

import click

from goodput.cli.options import html_option, json_option
from goodput.cli.output import show


@click.command()
@html_option
@json_option
def demo(*, html: Path | None, as_json: bool) -> None:
    """Report a recorded training job that two faults hit; nothing is trained, torch is not needed.

    The events are real: a small transformer on two processes, killed once and hung once. `make
    demo` in a checkout trains and breaks it again.
    """
    from goodput.demo import recorded_run
    from goodput.senses import sense

    run = recorded_run()
    click.echo(f"A recorded run: goodput train report {run}\n", err=True)
    show(sense("training").accounts([run]), html=html, as_json=as_json)
