"""What the terminal can show, and how text is fitted to it: width, colour, glyphs, cutting.

`detect_screen` is the only place that looks at a stream and the environment.
"""

import io
import shutil
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, TextIO

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import RenderableType

MIN_WIDTH: Final = 60
MAX_WIDTH: Final = 160


class Glyphs(msgspec.Struct, frozen=True):
    """Characters that differ between UTF-8 terminals and the rest."""

    full: str
    left: str
    """Left half of a cell filled; equal to `full` where halves do not exist."""
    right: str
    whole: str
    """Fill of the capacity bar."""
    ellipsis: str
    dot: str
    times: str
    rule: str
    minus: str


UNICODE: Final = Glyphs(
    full="█",
    left="▌",
    right="▐",
    whole="░",
    ellipsis="…",
    dot="·",
    times="\u00d7",
    rule="─",
    minus="\u2212",
)
ASCII: Final = Glyphs(
    full="#", left="#", right="#", whole=".", ellipsis="~", dot="|", times="x", rule="-", minus="-"
)


class Screen(msgspec.Struct, frozen=True):
    """Width in cells, colour or plain, and the glyphs that can be encoded."""

    width: int = 80
    color: bool = False
    glyphs: Glyphs = UNICODE


def detect_screen(
    stream: TextIO,
    environ: Mapping[str, str],
    *,
    width: int | None = None,
    color: bool | None = None,
) -> Screen:
    """Return what `stream` can show.

    Args:
        stream: where the text will go.
        environ: NO_COLOR (set and not empty) and TERM=dumb switch colour off.
        width: cells; None = the terminal's, or 80 when it is none. Held within 60 and 160.
        color: None = only on a terminal.

    Returns:
        Width, colour and glyphs.
    """
    is_terminal = stream.isatty()
    if width is None:
        width = shutil.get_terminal_size((80, 24)).columns if is_terminal else 80
    if color is None:
        dumb = environ.get("TERM") == "dumb"
        color = is_terminal and not environ.get("NO_COLOR") and not dumb
    encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "")
    glyphs = UNICODE if encoding.startswith("utf") else ASCII
    return Screen(width=min(MAX_WIDTH, max(MIN_WIDTH, width)), color=color, glyphs=glyphs)


def clean(text: str) -> str:
    """Return text on one line without control characters: logs are not trusted with a terminal."""
    return "".join(
        character if unicodedata.category(character)[0] != "C" else " " for character in text
    )


def cut(text: str, width: int, screen: Screen) -> str:
    """Return text that takes at most `width` cells, ended by an ellipsis when it was longer."""
    line = clean(text)
    if cell_len(line) <= width:
        return line
    return set_cell_size(line, max(0, width - 1)).rstrip() + screen.glyphs.ellipsis


def heading(title: str, screen: Screen) -> Text:
    """Return a section title on a rule that spans the screen."""
    rule = screen.glyphs.rule
    line = Text()
    line.append(f"{rule}{rule} ", style="dim")
    line.append(title, style="bold")
    line.append(" " + rule * max(0, screen.width - cell_len(title) - 4), style="dim")
    return line


def to_text(parts: "Iterable[RenderableType]", screen: Screen) -> str:
    """Return the renderables as text, lines without trailing blanks, one newline at the end."""
    sink = io.StringIO()
    console = Console(
        file=sink,
        width=screen.width,
        force_terminal=screen.color,
        color_system="standard" if screen.color else None,
        no_color=not screen.color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    for part in parts:
        console.print(part)
    text = "\n".join(line.rstrip() for line in sink.getvalue().splitlines()) + "\n"
    if screen.glyphs is ASCII:
        return text.encode("ascii", "replace").decode("ascii")
    return text
