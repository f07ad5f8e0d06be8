"""A ledger as JSON and back, and the JSON Schema of it (docs/formats/ledger.md).

Keys come in the order of the Struct fields, so equal ledgers give equal bytes.
"""

import msgspec

from goodput.core.errors import AccountingError, DataError
from goodput.training.measure.ledger.types import LEDGER_SCHEMA, Ledger

_MAJOR = LEDGER_SCHEMA.rsplit(".", 1)[0]


class _Head(msgspec.Struct):
    """The one field that must be understood before the others."""

    schema: str = ""


def to_json(ledger: Ledger, *, indent: int = 0) -> bytes:
    """Return the ledger as UTF-8 JSON: stable key order, integers exact.

    Args:
        ledger: any ledger.
        indent: spaces per level; 0 = one line.

    Returns:
        JSON text, without a newline at the end.
    """
    line = msgspec.json.encode(ledger)
    return msgspec.json.format(line, indent=indent) if indent else line


def from_json(text: bytes | str) -> Ledger:
    """Return the ledger that `to_json` wrote; unknown fields are ignored (formats grow).

    Raises:
        DataError: not JSON, not a ledger, sums that are off, or another major version.
    """
    try:
        head = msgspec.json.decode(text, type=_Head)
        if head.schema and head.schema.rsplit(".", 1)[0] != _MAJOR:
            raise DataError(
                f"schema is {head.schema!r}, this version reads {LEDGER_SCHEMA!r}",
                remedy="Install the goodput-ml that wrote it",
            )
        return msgspec.json.decode(text, type=Ledger)
    except (msgspec.MsgspecError, UnicodeDecodeError, AccountingError, RecursionError) as error:
        raise DataError(f"not a training ledger: {error}") from error


def ledger_json_schema() -> bytes:
    """Return the JSON Schema of a ledger, as committed in docs/formats/ledger.schema.json."""
    schema = {"$id": LEDGER_SCHEMA, **msgspec.json.schema(Ledger)}
    return msgspec.json.format(msgspec.json.encode(schema, order="sorted"), indent=2) + b"\n"
