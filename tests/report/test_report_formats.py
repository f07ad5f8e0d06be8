"""docs/formats/ledger.md and ledger.schema.json say what the code writes."""

import json
import re
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import ledgers
import msgspec
import pytest

from goodput.core import waterfall
from goodput.core.errors import DataError
from goodput.report import changes, compare
from goodput.report.compare import COMPARISON_SCHEMA
from goodput.report.json import from_json, ledger_json_schema, to_json
from goodput.training.measure.ledger import types
from goodput.training.measure.ledger.types import LEDGER_SCHEMA, Ledger

FORMATS = Path(__file__).parents[2] / "docs" / "formats"
NAMED = {
    types.Outcome: "Outcome",
    types.Persistence: "Persistence",
    waterfall.Provenance: "Provenance",
    waterfall.Unit: "Unit",
}


def structs() -> dict[str, type[msgspec.Struct]]:
    """Every Struct reachable from a ledger or a comparison."""
    found: dict[str, type[msgspec.Struct]] = {}
    waiting: list[Any] = [Ledger, compare.Comparison]
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            if kind.__name__ not in found:
                found[kind.__name__] = kind
                waiting += [field.type for field in msgspec.structs.fields(kind)]
        else:
            waiting += [one for one in get_args(kind) if not isinstance(one, str)]
    return found


def documented() -> dict[str, list[tuple[str, str]]]:
    """Field names and types of each table, by heading."""
    tables: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for line in (FORMATS / "ledger.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            name = line.lstrip("# ")
        row = re.fullmatch(r"\| `(\w+)` \| ([^|]+) \|.*\| (.+) \|", line)
        if row:
            tables.setdefault(name, []).append((row[1], row[2].strip()))
    return tables


def in_words(kind: Any) -> str:
    if kind in NAMED:
        return NAMED[kind]
    origin, inside = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        first = in_words(next(one for one in inside if one is not NoneType))
        return f"{first}, or null" if first.startswith("pair") else f"{first} or null"
    if origin is Literal:
        return "str"
    if origin is tuple:
        several = Ellipsis in inside
        return f"list of {in_words(inside[0])}" if several else f"pair of {in_words(inside[0])}"
    if origin is dict:
        return f"map of {in_words(inside[0])} to {in_words(inside[1])}"
    return str(kind.__name__)


@pytest.mark.parametrize("name", sorted(structs()))
def test_every_field_is_documented_with_its_type(name: str) -> None:
    fields = msgspec.structs.fields(structs()[name])
    assert documented()[name] == [(field.name, in_words(field.type)) for field in fields]


def test_no_table_describes_what_does_not_exist() -> None:
    assert set(documented()) == set(structs())


def test_the_page_names_the_schemas_and_all_values() -> None:
    text = (FORMATS / "ledger.md").read_text(encoding="utf-8")
    values = [value for alias in NAMED for value in get_args(alias)]
    for word in (LEDGER_SCHEMA, COMPARISON_SCHEMA, *values):
        assert f"`{word}`" in text


def test_the_committed_json_schema_is_current() -> None:
    committed = (FORMATS / "ledger.schema.json").read_bytes()
    refresh = (
        "python -c 'from goodput.report import ledger_json_schema as s; "
        'print(s().decode(), end="")\' > docs/formats/ledger.schema.json'
    )
    assert json.loads(committed) == json.loads(ledger_json_schema()), f"refresh it: {refresh}"


@pytest.mark.parametrize("name", sorted(ledgers.ALL))
def test_json_round_trip_is_exact_and_stable(name: str) -> None:
    ledger = ledgers.ALL[name]()
    text = to_json(ledger)
    assert from_json(text) == ledger
    assert to_json(from_json(text)) == text
    assert from_json(to_json(ledger, indent=2)) == ledger
    assert text.startswith(b'{"schema":"' + LEDGER_SCHEMA.encode() + b'","job":')


def test_amounts_beyond_sixty_four_bits_are_exact() -> None:
    ledger = ledgers.llama()
    assert ledger.waterfall.capacity > 2**64
    assert from_json(to_json(ledger)).waterfall.capacity == ledger.waterfall.capacity


def test_unknown_fields_are_ignored() -> None:
    text = to_json(ledgers.demo()).replace(b'{"schema"', b'{"later":[1],"schema"', 1)
    assert from_json(text) == ledgers.demo()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"not json", "not a training ledger"),
        (b"\xff\xfe", "not a training ledger"),
        (b"[]", "not a training ledger"),
        (b'{"schema":"goodput.training-ledger/1.0"}', "missing required field"),
        (b'{"schema":"goodput.training-ledger/2.0"}', "schema is 'goodput.training-ledger/2.0'"),
        (b'{"schema":"goodput.events/1.0"}', "schema is 'goodput.events/1.0'"),
    ],
)
def test_what_is_no_ledger_says_why(text: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_json(text)


def test_a_tampered_sum_is_refused() -> None:
    text = to_json(ledgers.demo()).replace(b'"useful":', b'"useful":1', 1)
    with pytest.raises(DataError, match="off by"):
        from_json(text)


def test_the_schema_module_of_changes_is_the_one_documented() -> None:
    assert structs()["ClassChange"] is changes.ClassChange
