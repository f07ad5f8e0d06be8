"""`goodput doctor`: what is installed, what each extra would add, whether a run can be recorded."""

import textwrap
from typing import TYPE_CHECKING

import click

from goodput.cli.options import json_option, runs_dir
from goodput.cli.output import emit

if TYPE_CHECKING:
    from goodput.doctor import Checkup

MARKS = {"ok": "ok", "info": "-", "warning": "WARNING", "broken": "BROKEN"}


@click.command()
@json_option
@click.pass_context
def doctor(ctx: click.Context, *, as_json: bool) -> None:
    """Check this machine and installation, and list what each extra would add.

    Exits 1 when something is broken: a core dependency that cannot be imported, a runs folder that
    cannot be written, a full disk, a clock that stands still.
    """
    import msgspec

    from goodput.doctor import examine

    checkup = examine(runs_dir=runs_dir())
    emit(msgspec.json.encode(checkup) if as_json else render(checkup))
    ctx.exit(0 if checkup.healthy else 1)


def render(checkup: "Checkup") -> str:
    """Return the checkup as text of at most 80 columns."""
    lines = [f"goodput {checkup.goodput}", ""]
    for check in checkup.checks:
        text = f"{check.text}. {check.remedy}" if check.remedy else check.text
        head = f"  {check.name:<13} {MARKS[check.status]:<8} "
        lines += textwrap.wrap(text, 80, initial_indent=head, subsequent_indent=" " * len(head))
    lines += ["", "Extras"]
    for extra in checkup.extras:
        state = extra.version if extra.installed else "not installed"
        lines += [f"  {extra.name:<13} {state}: {extra.adds}"]
        lines += [] if extra.installed else [f"{'':16}{extra.pip}"]
    lines += ["", "Ready." if checkup.healthy else "Something is BROKEN: see above."]
    return "\n".join(lines)
