"""What is known of one chip, as a value. The table is in the vendor files beside this one."""

from typing import Final

import msgspec

DTYPES: Final = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4")
"""Every number format of the table, widest first."""

GIB: Final = 1 << 30


class Chip(msgspec.Struct, frozen=True, kw_only=True):
    """One chip as PyTorch or JAX counts devices, unless its note says otherwise."""

    name: str
    """Name in this table, e.g. `H100-SXM`."""
    family: str
    """Name without form factor or memory size, e.g. `H100`; it may stand for several chips."""
    vendor: str
    peak_flops: dict[str, float]
    """Peak dense FLOP/s by number format (int8: OP/s), with the matrix units where the chip has
    them for that format, at boost clock, accumulating in 32 bits."""
    memory_bytes: int
    """Capacity by the data sheet, its GB read as GiB (that is what drivers show, less 0.5-7 % that
    ECC and firmware keep)."""
    memory_bytes_per_s: float
    """Peak bandwidth of that memory, bytes per second."""
    device_pattern: str
    """Regular expression for the whole device name, lower case, punctuation turned to spaces."""
    source: str
    """Document the figures come from, and what was done to them."""
    note: str = ""


def tera(**rates: float) -> dict[str, float]:
    """Return FLOP/s by number format from TFLOP/s."""
    return {dtype: rate * 1e12 for dtype, rate in rates.items()}


def chip(
    name: str,
    *,
    family: str = "",
    vendor: str,
    peaks: dict[str, float],
    memory_gib: int,
    memory_gb_per_s: float,
    device: str,
    source: str,
    note: str = "",
) -> Chip:
    """Return a table row from the units of a data sheet.

    Args:
        name: name in the table.
        family: as in `Chip`; empty = the name.
        vendor: who makes it.
        peaks: peak dense FLOP/s by number format (`tera`).
        memory_gib: capacity, GiB.
        memory_gb_per_s: bandwidth, 1e9 bytes per second.
        device: pattern of the device names.
        source: where the figures come from.
        note: what a reader should know before using them.
    """
    return Chip(
        name=name,
        family=family or name,
        vendor=vendor,
        peak_flops={dtype: peaks[dtype] for dtype in DTYPES if dtype in peaks},
        memory_bytes=memory_gib * GIB,
        memory_bytes_per_s=memory_gb_per_s * 1e9,
        device_pattern=device,
        source=source,
        note=note,
    )
