"""`goodput train report`: the account of a training job, under the user's own assumptions."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from goodput.cli.options import html_option, json_option, paths_argument
from goodput.cli.output import show
from goodput.cli.train.times import moment, stretch

if TYPE_CHECKING:
    from goodput.senses.training import Moment, Stretch


@click.command()
@paths_argument
@click.option("--job", default="", help="Only this job, when the paths hold several.")
@click.option("--attempt", metavar="KEY", help="Only this attempt's time.")
@click.option("--rank", type=click.IntRange(min=0), help="Only this rank's chips.")
@click.option(
    "--window", metavar="FROM..TO", type=stretch, help="Only this part of the job's time."
)
@click.option("--last", "last_s", metavar="SECONDS", type=float, help="Only the last so many.")
@click.option(
    "--exclude", metavar="FROM..TO", type=stretch, multiple=True, help="Not capacity; repeatable."
)
@click.option("--as-of", metavar="TIME", type=moment, help="As it was known at this time.")
@click.option("--chips", type=click.IntRange(min=1), help="Chips held, when not recorded.")
@click.option("--ideal-step", "ideal_step_s", metavar="SECONDS", type=float, help="Ideal time.")
@click.option("--flops-per-step", type=float, help="Model FLOPs of one step of the whole job.")
@click.option("--peak-flops", type=float, help="Peak dense FLOP/s of one chip.")
@click.option("--chip", default="", help="Chip, to look its peak up: H100-SXM, TPU-v5p, ...")
@click.option("--dtype", default="", help="Arithmetic the peak is for: bf16, fp8, ...")
@click.option(
    "--profile",
    "profiles",
    metavar="FILE",
    type=click.Path(path_type=Path),
    multiple=True,
    help="TOML that describes your own log (`train profile` tries it); repeatable.",
)
@click.option("--follow", is_flag=True, help="Report again while files grow, until Ctrl-C.")
@click.option(
    "--every",
    "every_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    help="How often --follow looks.",
)
@html_option
@json_option
def report(
    paths: tuple[Path, ...],
    *,
    job: str,
    attempt: str | None,
    rank: int | None,
    window: "Stretch | None",
    last_s: float | None,
    exclude: "tuple[Stretch, ...]",
    as_of: "Moment | None",
    chips: int | None,
    ideal_step_s: float | None,
    flops_per_step: float | None,
    peak_flops: float | None,
    chip: str,
    dtype: str,
    profiles: tuple[Path, ...],
    follow: bool,
    every_s: float,
    html: Path | None,
    as_json: bool,
) -> None:
    """Report where a training job's time went: PATH is a run's folder, or files: events, logs.

    A time is ISO 8601 (UTC unless it has an offset) or seconds from the start of the job. FROM..TO
    is two times; either may be left out. Several jobs are reported one after the other. With
    --follow the report ends by itself when every job is over; off a terminal it is one line
    whenever something is new, and the report in the end.
    """
    from goodput.senses.training import Query, accounts
    from goodput.training.measure.ledger import Options

    options = Options(
        attempt=attempt,
        rank=rank,
        last_s=last_s,
        chips=chips,
        ideal_step_s=ideal_step_s,
        flops_per_step=flops_per_step,
        peak_flops_per_chip=peak_flops,
        chip=chip,
        dtype=dtype,
    )
    query = Query(
        job=job,
        exclude=exclude,
        window=window,
        as_of=as_of,
        profiles=profiles,
        options=options,
    )
    if follow:
        from goodput.cli.train.follow import follow_jobs

        follow_jobs(paths, query, every_s=every_s, html=html, as_json=as_json)
        return
    show(accounts(paths, query), html=html, as_json=as_json)
