"""A click group that imports a command only when it is run or asked for its own help."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Final

import click

from goodput.cli.registry import Entry

EPILOG: Final = (
    "Exit codes: 0 ok; 1 the work failed; 2 unusable input or options; 3 an extra is missing; "
    "130 interrupted. `train record` passes its command's own code through."
)


def load(entry: Entry) -> click.Command:
    """Return the command that an entry names, importing its module."""
    module, _, attribute = entry.target.partition(":")
    command = getattr(import_module(module), attribute)
    assert isinstance(command, click.Command), entry.target
    command.epilog = command.epilog or EPILOG
    return command


class LazyGroup(click.Group):
    """A group whose commands are known by name and help line, and imported on use.

    Args:
        name: what the user types.
        help_text: what the group is for.
        entries: its commands.
        groups: its sub-groups.
    """

    def __init__(
        self,
        name: str,
        *,
        help_text: str,
        entries: Mapping[str, Entry],
        groups: Mapping[str, click.Group],
    ) -> None:
        super().__init__(
            name=name,
            help=help_text,
            epilog=EPILOG,
            commands=dict(groups),
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
        )
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return commands, then groups, each in alphabetical order."""
        return [*sorted(self.entries), *sorted(super().list_commands(ctx))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, importing its module; None if there is none of that name."""
        if cmd_name in self.entries:
            return load(self.entries[cmd_name])
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments begin with; a typo names the nearest one."""
        name = args[0]
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            nearest = get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"Did you mean {nearest[0]!r}?" if nearest else f"There are: {', '.join(known)}."
            ctx.fail(f"No such command {name!r}. {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the registry, importing none of them."""
        groups = sorted(super().list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in sorted(self.entries.items())])
        if groups:
            with formatter.section("Groups"):
                formatter.write_dl([(name, self.commands[name].help or "") for name in groups])
