"""The senses of goodput (training, cluster; serving to come): which one a path belongs to.

A sense is one file here and one line in `SENSES`. It turns paths into accounts; an account renders
itself. `goodput report` and `goodput compare` know no more than this.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol

from goodput.core.errors import InputError


class Account(Protocol):
    """Something that can be reported: one job, or several side by side."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def terminal(self) -> str:
        """Return it as text for standard output."""
        ...

    def html(self) -> str:
        """Return it as one self-contained page."""
        ...

    def json(self) -> bytes:
        """Return it as one line of JSON."""
        ...


class Sense(Protocol):
    """One sense of goodput: recognises its files, accounts for them, compares accounts."""

    def claims(self, path: Path) -> bool:
        """Return whether a path holds something of this sense."""
        ...

    def accounts(self, paths: Sequence[Path]) -> Sequence[Account]:
        """Return the accounts that the paths hold, at least one.

        Raises:
            InputError: they hold none; the message says what was looked for.
        """
        ...

    def comparison(self, sides: Sequence[Sequence[Path]], names: Sequence[str]) -> Account:
        """Return one account per side, beside each other.

        Raises:
            InputError: a side does not hold exactly one account.
        """
        ...


SENSES: Final[dict[str, str]] = {
    "training": "goodput.senses.training:SENSE",
    "cluster": "goodput.senses.cluster:SENSE",
}
"""Name of each sense and its home (`module:attribute`), in the order in which they are asked."""

DEFAULT_SENSE: Final = "training"
"""Asked when no sense claims a path: its error says what is wrong with the path."""


def sense(name: str) -> Sense:
    """Return the sense of that name, importing it."""
    module, _, attribute = SENSES[name].partition(":")
    found: Sense = getattr(import_module(module), attribute)
    return found


def detect(paths: Sequence[Path]) -> Sense:
    """Return the sense that the paths belong to.

    Raises:
        InputError: they belong to different senses.
    """
    names = {path: _claimant(path) for path in paths}
    found = {name for name in names.values() if name}
    if len(found) > 1:
        listed = ", ".join(f"{path} is {name}" for path, name in names.items() if name)
        raise InputError(f"these cannot be reported together: {listed}")
    return sense(found.pop() if found else DEFAULT_SENSE)


def _claimant(path: Path) -> str:
    return next((name for name in SENSES if path.exists() and sense(name).claims(path)), "")


__all__ = ["DEFAULT_SENSE", "SENSES", "Account", "Sense", "detect", "sense"]
