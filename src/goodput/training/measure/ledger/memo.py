"""What one account computed, for the next one: a job that is watched changes only at its end.

Values are kept under what they were computed from, objects by identity; so a wrong answer is not
possible, only a late one avoided. What the latest account did not use is forgotten.
"""

from collections.abc import Callable, Hashable
from typing import TypeVar

T = TypeVar("T")


class Memo:
    """Give the same one to every `account` of a growing log."""

    __slots__ = ("_before", "_now")

    def __init__(self) -> None:
        self._before: dict[Hashable, tuple[object, tuple[object, ...]]] = {}
        self._now: dict[Hashable, tuple[object, tuple[object, ...]]] = {}

    def turn(self) -> None:
        """Begin an account: what the last one did not use is forgotten."""
        self._before, self._now = self._now, {}

    def recall(self, values: Hashable, objects: tuple[object, ...], make: Callable[[], T]) -> T:
        """Return what `make` returned for the same values and the very same objects, or call it.

        Args:
            values: compared by equality.
            objects: compared by identity, and kept alive so that an identity stays theirs.
            make: computes the result; must depend on nothing else.
        """
        key = (values, tuple(map(id, objects)))
        found = self._now.get(key) or self._before.get(key)
        if found is None:
            found = (make(), objects)
        self._now[key] = found
        value: T = found[0]  # type: ignore[assignment]
        return value


class Forgetful(Memo):
    """Remembers nothing: what `account` uses when it is not given a memo."""

    __slots__ = ()

    def recall(self, values: Hashable, objects: tuple[object, ...], make: Callable[[], T]) -> T:  # noqa: ARG002
        """Call `make`."""
        return make()
