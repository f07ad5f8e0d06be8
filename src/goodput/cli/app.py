"""The top of the command line: builds the tree from the registry and runs it behind the wall."""

import os
import sys
from collections.abc import Sequence

import click

from goodput import __version__
from goodput.cli.lazy import LazyGroup
from goodput.cli.registry import COMMANDS, COMPLETION_VARIABLE, GROUPS
from goodput.cli.wall import guarded

HELP = """Measure, explain and raise goodput: the part of a machine's time that did
what it was bought for.

Start with `goodput demo`. Runs land in ./goodput-runs unless GOODPUT_DIR says otherwise.
"""


def build() -> click.Group:
    """Return the command tree; no command is imported."""
    groups = {
        group: LazyGroup(
            group,
            help_text=text,
            entries={
                name.removeprefix(f"{group} "): entry
                for name, entry in COMMANDS.items()
                if name.startswith(f"{group} ")
            },
            groups={},
        )
        for group, text in GROUPS.items()
    }
    top = {name: entry for name, entry in COMMANDS.items() if " " not in name}
    root = LazyGroup("goodput", help_text=HELP, entries=top, groups=groups)
    return click.version_option(__version__, prog_name="goodput")(root)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code (docs/cli.md lists the codes).

    Args:
        args: arguments without the program's name; None = those of this process.

    Raises:
        SystemExit: always.
    """
    tree = build()
    argv = sys.argv[1:] if args is None else list(args)
    asked = os.environ.get(COMPLETION_VARIABLE)
    if asked:
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(tree, {}, "goodput", COMPLETION_VARIABLE, asked))

    # Not `tree.main`: it turns a broken pipe into exit code 1 before the wall can see it.
    def run() -> object:
        with tree.make_context("goodput", argv) as context:
            return tree.invoke(context)

    sys.exit(guarded(run))
