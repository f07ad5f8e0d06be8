"""Peak dense FLOP/s, memory and bandwidth of chips, each with its source, and MFU.

chip.py says what the figures mean; nvidia.py and others.py hold them; lookup.py finds them.
"""

from goodput.core.hardware.chip import DTYPES, Chip
from goodput.core.hardware.lookup import (
    CHIPS,
    find_chip,
    match_chip,
    model_flops_utilization,
    normalise_dtype,
    peak_flops,
)

__all__ = [
    "CHIPS",
    "DTYPES",
    "Chip",
    "find_chip",
    "match_chip",
    "model_flops_utilization",
    "normalise_dtype",
    "peak_flops",
]
