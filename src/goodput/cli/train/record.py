"""`goodput train record`: run a training command and record it."""

import json
from pathlib import Path
from typing import Literal

import click

from goodput.cli.options import json_option
from goodput.cli.output import emit


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", metavar="-- CMD...", nargs=-1, type=click.UNPROCESSED, required=True)
@click.option("--job", help="Name of the job.  [default: $GOODPUT_JOB, else run]")
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of all jobs.  [default: $GOODPUT_DIR, else ./goodput-runs]",
)
@click.option("--chips", type=click.IntRange(min=1), help="Chips held, when CMD does not say.")
@click.option(
    "--relaunch",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Start CMD again after a failure, up to N times.",
)
@click.option(
    "--relaunch-delay",
    "relaunch_delay_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="Pause before each relaunch.",
)
@click.option(
    "--instrument/--no-instrument",
    default=True,
    show_default=True,
    help="Switch on the hooks of goodput.instrument() in CMD's Python processes.",
)
@click.option(
    "--detail",
    type=click.Choice(["auto", "steps", "windows"]),
    default="auto",
    show_default=True,
    help="Every step, or summaries; auto: every step of rank 0.",
)
@json_option
@click.pass_context
def record(
    ctx: click.Context,
    *,
    command: tuple[str, ...],
    job: str | None,
    directory: Path | None,
    chips: int | None,
    relaunch: int,
    relaunch_delay_s: float,
    instrument: bool,
    detail: Literal["auto", "steps", "windows"],
    as_json: bool,
) -> None:
    """Run a training command, record it, and exit with its code.

    CMD needs no change: start, end, exit code and signals of each attempt are recorded here, steps
    and checkpoints by hooks in its Python processes. With --json the last line on stdout is the
    result.
    """
    from goodput.training.measure.identity import identify
    from goodput.training.measure.launch import record as run

    code = run(
        command,
        job=job,
        dir=directory,
        chips=chips,
        relaunch=relaunch,
        relaunch_delay_s=relaunch_delay_s,
        instrument=instrument,
        detail=detail,
    )
    if as_json:
        folder = identify(job=job, directory=directory, rank=0, world=1, attempt="").folder
        emit(json.dumps({"schema": "goodput.record/1.0", "folder": str(folder), "code": code}))
    ctx.exit(code)
