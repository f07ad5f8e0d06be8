"""docs/formats/events.md says exactly what core/events.py says."""

import re
from pathlib import Path
from typing import Annotated, get_args, get_origin

import msgspec
import pytest

from goodput.core import events
from goodput.core.events import SCHEMA, SPAN_CLASSES, AnyEvent, Event

PAGE = (Path(__file__).parents[2] / "docs" / "formats" / "events.md").read_text(encoding="utf-8")
KINDS: dict[str, type[Event]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(AnyEvent)
}
SECTIONS = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", PAGE, flags=re.MULTILINE | re.DOTALL))
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.+?) \| .+ \|$", flags=re.MULTILINE)


def documented(text: str) -> list[tuple[str, str, str]]:
    return [(name, kind, default.strip("`")) for name, kind, default in ROW.findall(text)]


def plain(annotation: object) -> str:
    """Return the type of a field without its range."""
    bare = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    return str(getattr(bare, "__name__", bare))


def actual(kind: type[Event]) -> list[tuple[str, str, str]]:
    shared = {field.name for field in msgspec.structs.fields(Event)} if kind is not Event else set()
    return [
        (
            field.name,
            plain(field.type),
            "required"
            if field.default is msgspec.NODEFAULT
            else msgspec.json.encode(field.default).decode(),
        )
        for field in msgspec.structs.fields(kind)
        if field.name not in shared
    ]


def test_every_kind_has_a_section() -> None:
    assert sorted(SECTIONS) == sorted(KINDS)


def test_fields_of_every_record() -> None:
    section = PAGE.split("## Fields of every record")[1].split("\n## ")[0]
    assert documented(section) == actual(Event)


@pytest.mark.parametrize("name", KINDS)
def test_fields(name: str) -> None:
    assert documented(SECTIONS[name]) == actual(KINDS[name])


@pytest.mark.parametrize("name", KINDS)
def test_examples_decode_with_no_unknown_field(name: str) -> None:
    lines = re.findall(r"^\{.*\}$", SECTIONS[name], flags=re.MULTILINE)
    assert lines
    for line in lines:
        event = msgspec.json.decode(line, type=KINDS[name])
        known = {"k", *(field.name for field in msgspec.structs.fields(KINDS[name]))}
        assert set(msgspec.json.decode(line)) <= known
        # Examples show what a writer writes: no field at its default, so it comes back the same.
        assert msgspec.json.decode(msgspec.json.encode(event)) == msgspec.json.decode(line)


def test_span_names() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|$", SECTIONS["span"], flags=re.MULTILINE)
    assert dict(rows) == SPAN_CLASSES


def test_ranges() -> None:
    section = PAGE.split("## Ranges")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (\S+) \|", section, flags=re.MULTILINE)
    written = {name: (eval_power(low), eval_power(high)) for name, low, high in rows}
    ranges = {
        name: next(meta for meta in get_args(alias)[1:] if isinstance(meta, msgspec.Meta))
        for name, alias in vars(events).items()
        if get_origin(alias) is Annotated
    }
    assert ranges
    assert {name: (meta.ge, meta.le) for name, meta in ranges.items()} == {
        name: written[name] for name in ranges
    }


def eval_power(text: str) -> float:
    """Return the value of `-2^61` or `1e30`."""
    sign, bare = (-1, text[1:]) if text.startswith("-") else (1, text)
    base, _, exponent = bare.partition("^")
    return sign * (int(base) ** int(exponent) if exponent else float(bare))


def test_schema_is_named() -> None:
    assert f"`{SCHEMA}`" in PAGE
