"""`goodput train compact`: many event files as one Parquet file."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from goodput.cli.options import json_option
from goodput.cli.output import emit
from goodput.cli.progress import progress_bar

if TYPE_CHECKING:
    from goodput.training.measure.compact import Compaction


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write.  [default: DIR/compacted.parquet]",
)
@click.option(
    "--remove", is_flag=True, help="Remove the event files that the result stands for, once proven."
)
@click.option("--running", is_flag=True, help="Take in what is finished of a job that still runs.")
@json_option
def compact(*, folder: Path, out: Path | None, remove: bool, running: bool, as_json: bool) -> None:
    """Write the event files in DIR as one Parquet file that reports the same.

    Event files stay unless --remove is given; then they go only after the accounts of both were
    found equal.
    """
    import msgspec

    from goodput.training.measure.compact import compact as run

    with progress_bar("compacting") as progress:
        done = run(folder, out=out, keep=not remove, running=running, progress=progress)
    emit(msgspec.json.encode(done, enc_hook=str) if as_json else render(done))


def render(done: "Compaction") -> str:
    """Return what was done, a line for each thing."""
    from goodput.report.units import count

    share = done.size / done.events_size if done.events_size else 0.0
    lines = [
        f"{done.path}",
        f"  {count(done.rows, 'event')} from {count(done.files, 'event file')}",
        f"  {done.size:,} bytes, {share:.1%} of the event files' {done.events_size:,}",
    ]
    if done.removed:
        lines.append(f"  removed {count(len(done.removed), 'event file')}")
    lines.extend(f"  left {left.path.name}: {left.reason}" for left in done.left)
    return "\n".join(lines)
