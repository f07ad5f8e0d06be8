"""Records of a W&B offline file: the LevelDB log format with a header of its own and zlib's CRC."""

import struct
import zlib
from collections.abc import Iterator
from typing import Final

HEADER: Final = b":W&B"
_HEADER_BYTES: Final = 7
_BLOCK: Final = 32_768
_RECORD: Final = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
LARGEST_RECORD: Final = 256 << 20


class Damage:
    """What was wrong with a file."""

    def __init__(self) -> None:
        self.blocks = 0
        """Blocks of 32 KiB that were given up at a wrong checksum."""
        self.torn = False
        """The file ends inside a record."""


def records_of(data: bytes, damage: Damage) -> Iterator[bytes]:
    """Yield the records of a file in order; after damage, reading goes on with the next block.

    Args:
        data: the whole file.
        damage: filled as the file is read.
    """
    at, size = _HEADER_BYTES, len(data)
    parts: list[bytes] = []
    while at < size:
        left = _BLOCK - at % _BLOCK
        if left < _RECORD.size:
            at += left
            continue
        if at + _RECORD.size > size:
            damage.torn = True
            return
        crc, length, kind = _RECORD.unpack_from(data, at)
        body = data[at + _RECORD.size : at + _RECORD.size + length]
        if _RECORD.size + length > left or not _FULL <= kind <= _LAST:
            at, parts = _next_block(at, damage), []
            continue
        if len(body) < length:
            damage.torn = True
            return
        if zlib.crc32(body, zlib.crc32(bytes([kind]))) != crc:
            at, parts = _next_block(at, damage), []
            continue
        at += _RECORD.size + length
        if kind in {_FULL, _FIRST}:
            parts = []
        parts.append(body)
        if kind in {_FULL, _LAST}:
            yield b"".join(parts)
            parts = []
    damage.torn = damage.torn or bool(parts)


def _next_block(at: int, damage: Damage) -> int:
    damage.blocks += 1
    return at + _BLOCK - at % _BLOCK
