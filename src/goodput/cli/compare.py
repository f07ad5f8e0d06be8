"""`goodput compare`: runs side by side, their sense detected."""

from pathlib import Path

import click

from goodput.cli.options import html_option, json_option
from goodput.cli.output import show


@click.command()
@click.argument("baseline", metavar="A", type=click.Path(path_type=Path))
@click.argument("others", metavar="B...", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--name", "names", multiple=True, help="Name of a run, in order; repeatable.")
@html_option
@json_option
def compare(
    baseline: Path,
    others: tuple[Path, ...],
    *,
    names: tuple[str, ...],
    html: Path | None,
    as_json: bool,
) -> None:
    """Compare run A with run B (and more): what changed, and by how much.

    Each is a folder or file that holds one run, or a report saved with --json. A is the baseline.
    """
    from goodput.senses import detect

    paths = (baseline, *others)
    if names and len(names) != len(paths):
        raise click.BadParameter(f"{len(names)} names for {len(paths)} runs", param_hint="--name")
    comparison = detect(paths).comparison([[path] for path in paths], names)
    show([comparison], html=html, as_json=as_json)
