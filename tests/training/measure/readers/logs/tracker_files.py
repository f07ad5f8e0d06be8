"""Writers of TensorBoard and W&B files of our own, checked against the libraries in tests."""

import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from google_crc32c import value as crc32c


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, wire: int, body: bytes) -> bytes:
    return varint(number << 3 | wire) + (varint(len(body)) if wire == 2 else b"") + body


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def framed(record: bytes) -> bytes:
    length = struct.pack("<Q", len(record))
    return length + masked(length) + record + masked(record)


def event(wall: float, step: int, values: Mapping[str, float], *, tensor: bool = False) -> bytes:
    body = field(1, 1, struct.pack("<d", wall))
    if step:
        body += field(2, 0, varint(step))
    summary = b""
    for tag, number in values.items():
        packed = struct.pack("<f", number)
        if tensor:
            # dtype float, no dimensions, one packed value
            content = field(1, 0, varint(1)) + field(2, 2, b"") + field(5, 2, packed)
            value = field(1, 2, tag.encode()) + field(8, 2, content)
        else:
            value = field(1, 2, tag.encode()) + field(2, 5, packed)
        summary += field(1, 2, value)
    return body + field(5, 2, summary) if values else body


def tfevents(path: Path, created: float, events: Iterable[bytes]) -> Path:
    """Write an event file; its first record carries the version, as the library's does."""
    version = field(1, 1, struct.pack("<d", created)) + field(3, 2, b"brain.Event:2")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(framed(record) for record in (version, *events)))
    return path


def session(
    path: Path, start: float, first: int, last: int, *, every: int = 10, step_s: float = 1.0
) -> Path:
    """Write a session whose steps take `step_s` each, from 30 s after its start."""
    rows = [
        event(start + 30 + (n - first + 1) * step_s, n, {"train/loss": 1.0, "train/lr": 0.1})
        for n in range(first, last + 1)
        if n % every == 0
    ]
    return tfevents(path, start, rows)


def wandb_record(kind: int, body: bytes) -> bytes:
    return field(kind, 2, body)


def history(row: Mapping[str, float]) -> bytes:
    items = b""
    for key, number in row.items():
        item = field(2, 2, key.encode()) + field(16, 2, json.dumps(number).encode())
        items += field(1, 2, item)
    return wandb_record(2, items)


def run_record(run_id: str, name: str, started: float) -> bytes:
    seconds, nanos = int(started), round(started % 1 * 1e9)
    stamp = field(1, 0, varint(seconds)) + field(2, 0, varint(nanos))
    body = field(1, 2, run_id.encode()) + field(8, 2, name.encode()) + field(17, 2, stamp)
    return wandb_record(17, body)


def exit_record(code: int, runtime_s: int) -> bytes:
    return wandb_record(18, field(1, 0, varint(code)) + field(2, 0, varint(runtime_s)))


def wandb_file(path: Path, records: Iterable[bytes]) -> Path:
    """Write a run file: blocks of 32 KiB, records cut where a block ends."""
    data = bytearray(b":W&B" + struct.pack("<HB", 0xBEE1, 0))
    for record in records:
        at, first = 0, True
        while first or at < len(record):
            left = 32768 - len(data) % 32768
            if left < 7:
                data += bytes(left)
                left = 32768
            part = record[at : at + left - 7]
            at += len(part)
            kind = (1 if at == len(record) else 2) if first else (4 if at == len(record) else 3)
            crc = zlib.crc32(bytes([kind]) + part)
            data += struct.pack("<IHB", crc, len(part), kind) + part
            first = False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(data))
    return path
