"""HTML elements from Python values: text is escaped, and only markup made here is not."""

import html
from collections.abc import Iterable
from typing import Final

_VOID: Final = frozenset({"meta", "br", "hr", "input", "col"})


class Markup(str):
    """Text that is HTML already. Made by `element` and `join`, or from our own asset files."""

    __slots__ = ()


def element(
    tag: str, *children: str | Iterable[str], **attributes: str | int | bool | None
) -> Markup:
    """Return one element.

    Args:
        tag: its name.
        children: texts (escaped), markup, or iterables of both.
        attributes: a trailing `_` is dropped (`class_`), other `_` become `-`; None and False are
            left out, True stands alone.
    """
    opening = tag + "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{join(children)}</{tag}>")


def join(children: Iterable[str | Iterable[str]]) -> Markup:
    """Return children in a row, escaped where they are plain text."""
    return Markup("".join(_content(child) for child in children))


def _content(child: str | Iterable[str]) -> str:
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return html.escape(child, quote=False)
    return join(child)


def _attribute(name: str, value: str | int | bool | None) -> str:  # noqa: FBT001 - a value, not a flag
    if value is None or value is False:
        return ""
    key = name.rstrip("_").replace("_", "-")
    return f" {key}" if value is True else f' {key}="{html.escape(str(value))}"'
