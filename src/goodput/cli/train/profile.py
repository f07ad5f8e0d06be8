"""`goodput train profile`: what a log profile makes of a log, line by line."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from goodput.cli.options import json_option
from goodput.cli.output import emit

if TYPE_CHECKING:
    from goodput.training.measure.readers.logs.profile_trace import Matched, Trace

WIDTH = 80


@click.command()
@click.argument("profile", metavar="PROFILE", type=click.Path(path_type=Path))
@click.argument("log", metavar="LOG", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Show so many matched lines; all are counted.",
)
@json_option
def profile(profile: Path, log: Path, *, limit: int, as_json: bool) -> None:
    """Try PROFILE (TOML, docs/formats/profiles.md) on LOG: what matched, line by line.

    Then: how often each rule matched, lines that look like steps but matched no rule (a guess by
    words such as `step 12` and `iter: 12`), and what is wrong. Exits 1 when no line matched.
    """
    import msgspec

    from goodput.training.measure.readers.logs.profile import load_profile
    from goodput.training.measure.readers.logs.profile_trace import trace

    found = trace(load_profile(profile), log, limit=limit)
    emit(msgspec.json.encode(found) if as_json else render(found))
    click.get_current_context().exit(0 if found.matched_lines else 1)


def render(found: "Trace") -> str:
    """Return a trace as text of at most 80 columns."""
    from goodput.report.units import count

    lines = [f"{found.matched_lines:,} of {count(found.lines, 'line')} matched", ""]
    lines += _wrapped([_match_line(one) for one in found.matches])
    total = sum(one.matched for one in found.rules)
    if total > len(found.matches):
        lines.append(f"  ... and {total - len(found.matches):,} more (--limit)")
    lines += ["", "Rules"]
    lines += _wrapped(
        [
            f"  {one.rule:>3} {one.kind:<17}{one.matched:>9,}  needle {one.needle!r}"
            for one in found.rules
        ]
    )
    lines += ["", f"Lines that look like steps and matched nothing (a guess): {found.like_steps:,}"]
    lines += [_cut(f"  line {one.line}: {one.text}") for one in found.like_steps_examples]
    lines += ["", "Problems" if found.problems else "No problems found"]
    lines += _wrapped(
        [
            f"  {one.text}"
            + (f" ({count(one.count, 'line')}, first: line {one.line})" if one.line else "")
            + (f" ({one.count:,})" if one.count > 1 and not one.line else "")
            for one in found.problems
        ]
    )
    return "\n".join(lines).rstrip("\n")


def _match_line(one: "Matched") -> str:
    from goodput.report.units import instant

    parts = [f"{group}={value!r}" for group, value in one.values.items()]
    if one.at_ns is not None:
        parts.append(f"at={instant(one.at_ns)}")
    return f"  line {one.line:<6} {one.kind:<17}{' '.join(parts)}"


def _wrapped(lines: list[str]) -> list[str]:
    return [
        part for line in lines for part in textwrap.wrap(line, WIDTH, subsequent_indent=" " * 8)
    ]


def _cut(line: str) -> str:
    plain = "".join(char if char.isprintable() else "?" for char in line)
    return plain if len(plain) <= WIDTH else plain[: WIDTH - 3] + "..."
