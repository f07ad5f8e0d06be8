"""From what a user or a driver says to a chip, and from a chip to its peak and MFU.

No guesses: a name that could be several chips with different peaks is refused (peak_flops) or not
matched (match_chip), and a utilisation over 100 % is refused.
"""

import re
from difflib import get_close_matches
from functools import cache
from typing import Final

from goodput.core.errors import AccountingError, ConfigError
from goodput.core.hardware.chip import DTYPES, Chip
from goodput.core.hardware.nvidia import NVIDIA
from goodput.core.hardware.others import AMD, AWS, GOOGLE, INTEL

CHIPS: Final[dict[str, Chip]] = {chip.name: chip for chip in (*NVIDIA, *AMD, *GOOGLE, *INTEL, *AWS)}
"""Every known chip by its name."""

_DTYPE_ALIASES: Final = {
    "float64": "fp64", "double": "fp64", "f64": "fp64",
    "float32": "fp32", "float": "fp32", "single": "fp32", "f32": "fp32",
    "tensorfloat32": "tf32",
    "bfloat16": "bf16", "bf16mixed": "bf16", "bf16true": "bf16",
    "float16": "fp16", "half": "fp16", "f16": "fp16", "16mixed": "fp16", "16true": "fp16",
    "float8": "fp8", "float8e4m3fn": "fp8", "float8e5m2": "fp8", "float8e4m3fnuz": "fp8",
    "float8e5m2fnuz": "fp8", "mxfp8": "fp8", "f8": "fp8",
    "uint8": "int8", "i8": "int8",
    "mxfp6": "fp6",
    "float4": "fp4", "float4e2m1fn": "fp4", "float4e2m1fnx2": "fp4", "nvfp4": "fp4",
    "mxfp4": "fp4",
}  # fmt: skip

_SLICED: Final = re.compile(r"\b(mig|grid|vgpu)\b")
_ROUNDING: Final = 1e-9


def peak_flops(chip: str | Chip, dtype: str) -> float:
    """Return the peak dense FLOP/s of one chip for one number format (OP/s for int8).

    Args:
        chip: a name of the table (`H100-SXM`), a device name (`NVIDIA H100 80GB HBM3`), or a family
            name (`A100`) when all its members have the same peak.
        dtype: `bf16`, `torch.bfloat16`, `float8_e4m3fn`, ... (see `DTYPES`).

    Raises:
        ConfigError: the chip is not known or could be several, or has no figure for the format.

    Source: the `source` of each chip. Sparse figures are never used.
    """
    key = normalise_dtype(dtype)
    found = (chip,) if isinstance(chip, Chip) else _candidates(chip)
    missing = next((each for each in found if key not in each.peak_flops), None)
    if missing is not None:
        raise ConfigError(
            f"no peak for dtype {dtype!r} on {missing.name}; it has {', '.join(missing.peak_flops)}"
            + (f" ({missing.note})" if missing.note else "")
        )
    peaks = {each.peak_flops[key] for each in found}
    if len(peaks) > 1:
        members = ", ".join(f"{each.name} ({each.peak_flops[key] / 1e12:g})" for each in found)
        raise ConfigError(
            f"chip {str(chip)!r} could be any of {members}, {key} TFLOP/s: name one of them"
        )
    return peaks.pop()


def find_chip(name: str) -> Chip:
    """Return the one chip that a table name or a device name stands for.

    Raises:
        ConfigError: not known, or several chips bear the name.
    """
    found = _candidates(name)
    if len(found) > 1:
        members = ", ".join(each.name for each in found)
        raise ConfigError(f"chip {name!r} could be any of {members}: name one of them")
    return found[0]


def match_chip(device_name: str) -> Chip | None:
    """Return the chip behind a device name, or None when the name does not say which it is.

    Args:
        device_name: what `torch.cuda.get_device_name()`, `jax.Device.device_kind` or a line of
            `nvidia-smi -L` says.

    None is returned for names that leave the form factor open where the peaks differ (`NVIDIA
    H100`), for slices of a chip (MIG, vGPU), and for unknown chips. Where a framework shows half of
    a package as a device (MI250X, TPU v7x) the half is returned, so that peak x devices is right.
    """
    text = _plain(device_name)
    if _SLICED.search(text):
        return None
    found = [chip for chip, pattern in _patterns() if pattern.fullmatch(text)]
    return found[0] if len(found) == 1 else None


def normalise_dtype(dtype: str) -> str:
    """Return the table's name of a number format: `torch.bfloat16` -> `bf16`.

    Raises:
        ConfigError: not a format of the table.
    """
    bare = dtype.rsplit(".", 1)[-1].lower().replace("_", "").replace("-", "")
    key = _DTYPE_ALIASES.get(bare, bare)
    if key in DTYPES:
        return key
    near = get_close_matches(bare, (*DTYPES, *_DTYPE_ALIASES), n=3)
    hint = f"; nearest are {', '.join(near)}" if near else ""
    raise ConfigError(f"unknown dtype {dtype!r}{hint}. Known are {', '.join(DTYPES)}")


def model_flops_utilization(flops: float, *, seconds: float, chips: int, peak: float) -> float:
    """Return MFU, 0-1: model FLOPs done over what the chips could have done at their peak.

    Args:
        flops: model FLOPs of the whole job in that time (forward and backward, no recomputation).
        seconds: wall time in which they were done, > 0.
        chips: devices that took part, > 0.
        peak: dense peak FLOP/s of one of them, > 0 (`peak_flops`).

    Raises:
        ConfigError: an input is not a positive finite number.
        AccountingError: the result is over 1, so that at least one input is wrong.

    Source: Chowdhery et al., PaLM, appendix B (arXiv 2204.02311): observed throughput relative to
    the theoretical maximum at peak FLOP/s.
    """
    for name, value in (("seconds", seconds), ("chips", chips), ("peak", peak)):
        if not 0 < value < float("inf"):
            raise ConfigError(f"{name} = {value!r} must be a positive finite number")
    if not 0 <= flops < float("inf"):
        raise ConfigError(f"flops = {flops!r} must be a finite number, 0 or more")
    utilization = flops / (seconds * chips * peak)
    if utilization > 1 + _ROUNDING:
        raise AccountingError(
            f"MFU = {utilization:.1%} is over 100 %, which no chip can do: {flops:.4g} FLOPs in "
            f"{seconds:.4g} s on {chips} chips of {peak:.4g} FLOP/s. Check that flops and seconds "
            "cover the same steps, that flops are of the whole job and not counted twice "
            "(micro-batches, ranks), that chips counts every device that took part, and that peak "
            "is the dense figure of this very variant and dtype (H100 PCIe is not SXM)"
        )
    return min(utilization, 1.0)


def _candidates(name: str) -> tuple[Chip, ...]:
    """Return the chips a name stands for, at least one."""
    wanted = _key(name)
    exact = tuple(chip for chip in CHIPS.values() if _key(chip.name) == wanted)
    family = tuple(chip for chip in CHIPS.values() if _key(chip.family) == wanted)
    matched = match_chip(name)
    found = exact or family or ((matched,) if matched else ())
    if found:
        return found
    raise ConfigError(_unknown(name))


def _unknown(name: str) -> str:
    if _SLICED.search(_plain(name)):
        return (
            f"chip {name!r} is a slice (MIG or vGPU) of a chip: its peak is a share of the whole "
            "one's; give the peak itself"
        )
    names = {_key(chip.name): chip.name for chip in CHIPS.values()}
    near = [names[key] for key in get_close_matches(_key(name), names, n=4, cutoff=0.4)]
    hint = f"; nearest are {', '.join(near)}" if near else f"; known are {', '.join(CHIPS)}"
    return f"unknown chip {name!r}{hint}. Give the peak FLOP/s itself for any other"


def _key(name: str) -> str:
    """Return a name without case, spaces and punctuation."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _plain(device_name: str) -> str:
    """Return a device name in lower case, without index, UUID and punctuation."""
    text = re.sub(r"^gpu \d+:|\(.*?\)", " ", device_name.lower().strip())
    return " ".join(re.sub(r"[^a-z0-9]", " ", text).split())


@cache
def _patterns() -> tuple[tuple[Chip, re.Pattern[str]], ...]:
    """Compile the device patterns, once and only when a device name is asked for."""
    return tuple((chip, re.compile(chip.device_pattern)) for chip in CHIPS.values())
