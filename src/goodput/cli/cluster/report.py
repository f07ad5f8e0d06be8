"""`goodput cluster report`: the account of a fleet from tables of its jobs."""

from pathlib import Path

import click

from goodput.cli.options import html_option, json_option
from goodput.cli.output import show


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--name", default="", help="What to call the fleet.  [default: the first PATH]")
@click.option("--strict", is_flag=True, help="A row that cannot be true is an error.")
@click.option(
    "--export",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write all jobs to a Parquet file.",
)
@html_option
@json_option
def report(
    paths: tuple[str, ...],
    *,
    name: str,
    strict: bool,
    export: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Report where the chip-time of a whole cluster went, from tables of its jobs.

    PATH is a table (Acme CSV, Philly JSON, sacct -P, Parquet of --export), a folder of them, a
    pattern in quotes, or a URL of Parquet files. All jobs become one account.
    """
    from goodput.cluster.measure.fleet import JobTables, write_parquet
    from goodput.senses.cluster import account

    def write(tables: JobTables) -> None:
        if export is not None:
            rows = write_parquet(tables.connection, str(export))
            click.echo(f"wrote {export} ({rows:,} jobs)", err=True)

    found = account(paths, name=name, strict=strict, also=write)
    show([found], html=html, as_json=as_json)
