"""The wall between hooks and training: a hook that fails switches its feature off and is counted.

The only broad `except` of the recorder side is here. Everything that a hook does runs behind it.
"""

import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from goodput.training.measure.event_writer import say

P = ParamSpec("P")
R = TypeVar("R")


class Wall:
    """Runs hook bodies so that none of them can break or alter training.

    Args:
        told: called once per feature that failed, with its name and what happened; must not
            raise.
    """

    def __init__(self, told: Callable[[str, str], None]) -> None:
        self.failures: dict[str, int] = {}
        """Swallowed errors by feature."""
        self.open = True
        """False in a forked child and after removal: every hook is then a no-op."""
        self._off: set[str] = set()
        self._told = told

    def guard(self, feature: str, body: Callable[P, R]) -> Callable[P, R | None]:
        """Return `body` behind the wall.

        Args:
            feature: what is switched off when the body raises.
            body: the hook.

        Returns:
            A callable of the same arguments that returns None when the feature is off or the body
            raised an `Exception`.
        """

        def guarded(*args: P.args, **kwargs: P.kwargs) -> R | None:
            if not self.open or feature in self._off:
                return None
            try:
                return body(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - the recorder's wall (STYLE 16)
                self._swallow(feature, error)
                return None

        return guarded

    def switch_off(self, *features: str) -> None:
        """Make the hooks of these features no-ops: somebody else records them."""
        self._off.update(features)

    def is_on(self, feature: str) -> bool:
        """True while hooks of this feature run."""
        return self.open and feature not in self._off

    def _swallow(self, feature: str, error: Exception) -> None:
        self.failures[feature] = self.failures.get(feature, 0) + 1
        self._off.add(feature)
        what = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        say(
            f"goodput: instrument() stopped recording {feature}: {what}. "
            "Training is not affected; that part of the report will be missing."
        )
        self._told(feature, what)


class Depth(threading.local):
    """How deep this thread is inside calls that belong to one feature."""

    value = 0
