"""The text that every match of a pattern holds: lines without it need not be matched at all."""

import re
from typing import Final

SHORTEST: Final = 2
"""Characters beside spaces that a needle has at least."""
_TOKEN: Final = re.compile(
    r"\\x..|\\u.{4}|\\U.{8}|\\\d+|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?P<\w+>|\(\?:|\(\?[^)]?|[()|^$.]|[*+?]\??|\{\d*,?\d*\}\??|.",
    flags=re.DOTALL,
)
_MAYBE: Final = re.compile(r"[*?]|\{(?:0|,)")


def needle_of(pattern: str) -> str:
    """Return the longest literal text that stands in every match of a pattern; empty = none found.

    It errs on the side of none: alternatives, options, look-arounds and classes are passed over.

    Args:
        pattern: a regular expression, of Python. With flags such as `(?i)`, none is found.
    """
    if re.search(r"\(\?[aiLmsux(-]", pattern):
        return ""
    reader = _Reader()
    for part in _TOKEN.findall(pattern):
        reader.take(part)
    best = max(reader.close(), key=lambda text: len(text.strip()), default="")
    return best if len(best.replace(" ", "")) >= SHORTEST else ""


class _Group:
    """A group being read: its literal texts, and whether it has alternatives or is no text."""

    def __init__(self, *, text: bool) -> None:
        self.found: list[str] = []
        self.run = ""
        self.text = text

    def cut(self) -> None:
        if self.run:
            self.found.append(self.run)
        self.run = ""


class _Reader:
    def __init__(self) -> None:
        self._open = [_Group(text=True)]
        self._last: list[str] | None = None
        """Texts of the group that has just closed: a quantifier may follow."""
        self._literal = False
        """The last part was one literal character."""

    def take(self, part: str) -> None:
        now = self._open[-1]
        if part[0] in "*+?{" and (len(part) > 1 or part in "*+?"):
            self._quantify(part)
            return
        self._settle()
        if part.startswith("("):
            now.cut()
            self._open.append(_Group(text=part == "(" or part.startswith(("(?P<", "(?:"))))
        elif part == ")" and len(self._open) > 1:
            self._open.pop()
            now.cut()
            self._last = now.found if now.text else []
        elif part == "|":
            now.text = False
        elif (char := _literal(part)) is not None:
            now.run += char
            self._literal = True
        else:
            now.cut()

    def close(self) -> list[str]:
        self._settle()
        now = self._open[0]
        now.cut()
        return now.found if now.text else []

    def _quantify(self, part: str) -> None:
        now = self._open[-1]
        maybe = _MAYBE.match(part) is not None
        if self._literal and maybe:
            now.run = now.run[:-1]
        if maybe:
            self._last = None
        self._settle()
        now.cut()

    def _settle(self) -> None:
        """A group without quantifier, or one that occurs at least once, is in every match."""
        if self._last is not None:
            self._open[-1].found.extend(self._last)
        self._last = None
        self._literal = False


def _literal(part: str) -> str | None:
    """The character that a part stands for, None if it stands for none or several."""
    if len(part) == 1:
        return None if part in "^$.()" else part
    if part[0] == "\\" and not part[1].isalnum():
        return part[1]
    return None


__all__ = ["needle_of"]
