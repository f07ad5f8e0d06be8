"""How records become bytes: one JSON object and a newline each (docs/formats/events.md).

The frequent ones are filled-in templates, in the field order that msgspec would write; readers have
a fast path for exactly these. The rest goes through msgspec.
"""

import functools
import math
from typing import Final

import msgspec

from goodput.core.events import SCHEMA, Event, Process
from goodput.training.measure.identity import Identity
from goodput.training.measure.spans import Span

STEP: Final = b'{"k":"step","n":%d,"t":%d,"m":%d}\n'
STEP_END: Final = b'{"k":"step_end","n":%d,"t":%d,"m":%d}\n'
BEGIN: Final = b'{"k":"begin","name":%b,"id":%d%b,"t":%d,"m":%d}\n'
SPAN: Final = b'{"k":"span","name":%b,"d":%d,"id":%d%b,"t":%d,"m":%d}\n'
POINT: Final = b'{"k":"point","name":%b,"value":%b%b,"t":%d,"m":%d}\n'

_encode = msgspec.json.Encoder().encode


def line_of(record: Event) -> bytes:
    """One record as a line."""
    return _encode(record) + b"\n"


def process_line(
    identity: Identity, t: int, m: int, *, role: str, detail: str, chip: str, writer: str
) -> bytes:
    """The first line of a file; `t` and `m` are the two clocks, ns."""
    return line_of(
        Process(
            t=t,
            m=m,
            schema=SCHEMA,
            job=identity.job,
            role=role,
            rank=identity.rank,
            world=identity.world,
            attempt=identity.attempt,
            pid=identity.pid,
            host=identity.host,
            boot=identity.boot,
            started=identity.started,
            writer=writer,
            detail=detail,
            chip=chip,
        )
    )


@functools.lru_cache(maxsize=256)
def quoted(text: str) -> bytes:
    """A string as JSON."""
    return _encode(str(text))


def finite(value: float) -> float:
    """The value as a float.

    Raises:
        ValueError: it is infinite or not a number, which JSON cannot say.
    """
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is not finite and has no form in JSON")
    return number


def number_of(value: float) -> bytes:
    """A finite number as JSON."""
    return _encode(finite(value))


def step_field(step: int | None) -> bytes:
    """The field of a step number, if there is one."""
    return b"" if step is None else b',"step":%d' % step


def extras(span: Span, *, failed: bool = False, background: bool = False) -> bytes:
    """The fields that most spans leave at their default, to fill into BEGIN and SPAN."""
    fields = step_field(span.step)
    if span.counts_as:
        fields += b',"counts_as":' + quoted(span.counts_as)
    if background:
        fields += b',"background":true'
    if failed:
        fields += b',"failed":true'
    return fields
