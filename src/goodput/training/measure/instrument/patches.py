"""Wrapping public functions of a library in place, and putting the originals back.

A wrapper calls the original exactly once with the caller's own arguments and passes its result and
its exceptions on; what is recorded around it runs behind the wall (wall.py).
"""

import functools
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from goodput.training.measure.instrument.wall import Wall

T = TypeVar("T")


class Around(NamedTuple, Generic[T]):
    """What to do before and after a call.

    `before(args, kwargs)` returns a token, or None to skip `after`.
    `after(token, result, error)` sees the result, or the error that the original raised.
    """

    before: Callable[[tuple[object, ...], dict[str, object]], T | None]
    after: Callable[[T, object, BaseException | None], None]


class _Patch(NamedTuple):
    owner: object
    name: str
    original: object
    replacement: object


class Patches:
    """Functions that were replaced, in order.

    Args:
        wall: the wall behind which recording runs.
    """

    def __init__(self, wall: Wall) -> None:
        self._wall = wall
        self._patches: list[_Patch] = []

    def around(self, feature: str, owner: object, name: str, do: Around[T]) -> None:
        """Wrap `owner.name`; a name that this version of the library lacks is left alone."""
        original = getattr(owner, name, None)
        if not callable(original):
            return
        before = self._wall.guard(feature, do.before)
        after = self._wall.guard(feature, do.after)

        @functools.wraps(original)
        def wrapper(*args: object, **kwargs: object) -> object:
            token = before(args, kwargs)
            if token is None:
                return original(*args, **kwargs)
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                after(token, None, error)
                raise
            after(token, result, None)
            return result

        self.replace(owner, name, wrapper)

    def replace(self, owner: object, name: str, replacement: object) -> None:
        """Put `replacement` in place of `owner.name`, to be undone by `restore`."""
        self._patches.append(_Patch(owner, name, getattr(owner, name), replacement))
        setattr(owner, name, replacement)

    def restore(self) -> None:
        """Put the originals back where nobody has wrapped our wrapper since.

        A wrapper that stays is a no-op: the wall is closed.
        """
        while self._patches:
            patch = self._patches.pop()
            if getattr(patch.owner, patch.name) is patch.replacement:
                setattr(patch.owner, patch.name, patch.original)
