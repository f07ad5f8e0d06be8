"""TensorBoard event files: records with checksums, and the scalars inside them.

Framing: TFRecord (length, masked CRC32C of it, data, masked CRC32C of them). Messages: `Event` and
`Summary` of tensorboard/compat/proto, of which only the fields that scalars need are decoded.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from google_crc32c import value as crc32c

_HEAD: Final = struct.Struct("<QI")
_CRC: Final = struct.Struct("<I")
_DOUBLE: Final = struct.Struct("<d")
_FLOAT: Final = struct.Struct("<f")
_MASK: Final = 0xA282EAD8
_FLOAT_TYPE: Final = 1
_DOUBLE_TYPE: Final = 2
LARGEST_RECORD: Final = 1 << 30


class Value(NamedTuple):
    """One value of a summary."""

    tag: str
    number: float | None
    """None = no scalar: a histogram, an image, a text."""


class Event(NamedTuple):
    """One event."""

    wall_time: float
    step: int
    values: tuple[Value, ...]


class Damage:
    """What was wrong with a file."""

    def __init__(self) -> None:
        self.torn = False
        """The file ends inside a record: it is being written, or its writer died."""
        self.lost = 0
        """Records whose checksum does not fit; skipped."""
        self.undecodable = 0
        """Records with a right checksum that are no events."""
        self.stopped = False
        """A length whose checksum does not fit: nothing after it can be found."""


def looks_like_tfevents(head: bytes) -> bool:
    """Return whether bytes begin with a whole record header whose checksum fits."""
    if len(head) < _HEAD.size:
        return False
    length, crc = _HEAD.unpack_from(head)
    return 0 < length < LARGEST_RECORD and _masked(head[:8]) == crc and b"brain.Event" in head


def events_of(data: bytes, damage: Damage) -> Iterator[Event]:
    """Yield the events of a file in order; what is wrong is counted in `damage`.

    Args:
        data: the whole file.
        damage: filled as the file is read.
    """
    at, size = 0, len(data)
    while at < size:
        if at + _HEAD.size > size:
            damage.torn = True
            return
        length, crc = _HEAD.unpack_from(data, at)
        if _masked(data[at : at + 8]) != crc or length > LARGEST_RECORD:
            damage.stopped = True
            return
        start = at + _HEAD.size
        at = start + length + _CRC.size
        if at > size:
            damage.torn = True
            return
        record = data[start : start + length]
        if _masked(record) != _CRC.unpack_from(data, start + length)[0]:
            damage.lost += 1
            continue
        try:
            yield _event(record)
        except (ValueError, IndexError, struct.error):
            damage.undecodable += 1


def _masked(data: bytes) -> int:
    crc: int = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF


def _event(record: bytes) -> Event:
    """Decode an event; the usual one, with one short scalar, without a loop over fields."""
    size = len(record)
    if 20 < size < 128 and record[0] == 0x09 and record[9] == 0x10:
        step, at = _varint(record, 10)
        tag = at + 6
        number = size - 5
        if (
            tag < number
            and record[at] == 0x2A
            and record[at + 1] == size - at - 2
            and record[at + 2] == 0x0A
            and record[at + 3] == size - at - 4
            and record[at + 4] == 0x0A
            and record[at + 5] == number - tag
            and record[number] == 0x15
        ):
            name = record[tag:number].decode("utf-8", "replace")
            value = Value(name, _FLOAT.unpack_from(record, number + 1)[0])
            step = step - 2**64 if step >= 2**63 else step
            return Event(_DOUBLE.unpack_from(record, 1)[0], step, (value,))
    return _any_event(record)


def _any_event(record: bytes) -> Event:
    wall, step = 0.0, 0
    values: tuple[Value, ...] = ()
    for field, wire, at, end in fields(record, 0, len(record)):
        if field == 1 and wire == 1:
            wall = _DOUBLE.unpack_from(record, at)[0]
        elif field == 2 and wire == 0:
            step = signed(record, at)
        elif field == 5 and wire == 2:
            values += tuple(_values(record, at, end))
    return Event(wall, step, values)


def _values(record: bytes, at: int, end: int) -> Iterator[Value]:
    for field, wire, low, high in fields(record, at, end):
        if field == 1 and wire == 2:
            yield _value(record, low, high)


def _value(record: bytes, at: int, end: int) -> Value:
    tag, number = "", None
    for field, wire, low, high in fields(record, at, end):
        if field == 1 and wire == 2:
            tag = record[low:high].decode("utf-8", "replace")
        elif field == 2 and wire == 5:
            number = _FLOAT.unpack_from(record, low)[0]
        elif field == 8 and wire == 2:
            number = _tensor(record, low, high)
    return Value(tag, number)


def _tensor(record: bytes, at: int, end: int) -> float | None:
    """The number in a tensor without dimensions; None = it is something else."""
    kind, number = 0, None
    for field, wire, low, high in fields(record, at, end):
        if field == 1 and wire == 0:
            kind = signed(record, low)
        elif field == 2 and wire == 2 and high > low:
            return None
        elif field == 4 and kind == _FLOAT_TYPE and high - low == _FLOAT.size:
            number = _FLOAT.unpack_from(record, low)[0]
        elif field == 4 and kind == _DOUBLE_TYPE and high - low == _DOUBLE.size:
            number = _DOUBLE.unpack_from(record, low)[0]
        elif field == 5 and high - low == _FLOAT.size:
            number = _FLOAT.unpack_from(record, low)[0]
        elif field == 6 and high - low == _DOUBLE.size:
            number = _DOUBLE.unpack_from(record, low)[0]
    return number


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (field number, wire type, start, end) of a protobuf message.

    Raises:
        ValueError: it is no protobuf message.
        IndexError: it ends inside a field.
    """
    while at < end:
        key = data[at]
        at += 1
        if key & 0x80:
            key, at = _varint(data, at - 1)
        wire = key & 7
        if wire == 2:
            length = data[at]
            at += 1
            if length & 0x80:
                length, at = _varint(data, at - 1)
            stop = at + length
        elif wire == 0:
            stop = at
            while data[stop] & 0x80:
                stop += 1
            stop += 1
        elif wire == 1:
            stop = at + 8
        elif wire == 5:
            stop = at + 4
        else:
            raise ValueError(f"wire type {wire}")
        if stop > end:
            raise ValueError("field longer than its message")
        yield key >> 3, wire, at, stop
        at = stop


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return number, at
        shift += 7
        if shift > 63:
            raise ValueError("number of more than 64 bits")


def signed(data: bytes, at: int) -> int:
    """Return the signed 64-bit number at a place."""
    number = _varint(data, at)[0] & (2**64 - 1)
    return number - 2**64 if number >= 2**63 else number
