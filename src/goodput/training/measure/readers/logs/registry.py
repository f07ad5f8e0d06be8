"""Which text logs we read: one line each. Detection looks at a file's beginning and end."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from goodput.training.measure.readers.logs.formats.ascend import Ascend
from goodput.training.measure.readers.logs.formats.deepspeed import DeepSpeed
from goodput.training.measure.readers.logs.formats.deepspeed_rlhf import DeepSpeedRlhf
from goodput.training.measure.readers.logs.formats.detectron2 import Detectron2
from goodput.training.measure.readers.logs.formats.dlrover import DLRoverEvents
from goodput.training.measure.readers.logs.formats.hf_trainer import HfTrainer
from goodput.training.measure.readers.logs.formats.maxtext import MaxText
from goodput.training.measure.readers.logs.formats.megatron import Megatron
from goodput.training.measure.readers.logs.formats.megatron_progress import MegatronProgress
from goodput.training.measure.readers.logs.formats.mlperf import MLPerf
from goodput.training.measure.readers.logs.formats.nanogpt import ModdedNanoGpt, NanoGpt
from goodput.training.measure.readers.logs.formats.nccl import NcclWatchdog
from goodput.training.measure.readers.logs.formats.nemo import NeMo
from goodput.training.measure.readers.logs.formats.overflow import Overflow
from goodput.training.measure.readers.logs.formats.profile import ProfileFormat
from goodput.training.measure.readers.logs.formats.slurm import Slurm
from goodput.training.measure.readers.logs.formats.stamps import Stamps
from goodput.training.measure.readers.logs.formats.torchelastic import CycleProfile, TorchElastic
from goodput.training.measure.readers.logs.formats.torchtitan import TorchTitan
from goodput.training.measure.readers.logs.profile import Profile
from goodput.training.measure.readers.logs.text import DAMAGED, PACKED, LogFormat, TextLog, pieces

SAMPLE_BYTES: Final = 1 << 20

TRAINERS: Final[tuple[Callable[[], LogFormat], ...]] = (
    MLPerf,
    NeMo,
    DLRoverEvents,
    Megatron,
    MegatronProgress,
    TorchTitan,
    MaxText,
    Detectron2,
    ModdedNanoGpt,
    NanoGpt,
    DeepSpeedRlhf,
    HfTrainer,
    DeepSpeed,
)
"""Logs that tell of steps, the most telling first: one of them reads a file. Where two libraries
print the same steps, the second would count them again."""

LAUNCHERS: Final[tuple[Callable[[], LogFormat], ...]] = (
    TorchElastic,
    CycleProfile,
    NcclWatchdog,
    Slurm,
    Ascend,
)
"""Lines of launchers and schedulers that tell of starts and ends, beside a trainer or alone."""

ASIDES: Final[tuple[Callable[[], LogFormat], ...]] = (
    Overflow,
    Stamps,
)
"""Lines that tell something only beside the others."""


def formats_of(path: Path, head: bytes) -> list[LogFormat]:
    """Return the formats that a file holds, its trainer first; empty = none that we know."""
    sample = _sample(path, head)
    found = [*_signed(TRAINERS, sample)[:1], *_signed(LAUNCHERS, sample)]
    return [*found, *_signed(ASIDES, sample)] if found else []


def looks_like_log(path: Path, head: bytes) -> bool:
    """Return whether a file is a text log of a kind that we read."""
    return bool(formats_of(path, head))


def open_log(path: Path, name: str) -> TextLog:
    """Open a text log."""
    return TextLog(path, name, formats_of(path, b""))


def open_profiled(path: Path, name: str, profile: Profile) -> TextLog | None:
    """Open a text log that a profile describes; None if it is of another kind.

    The profile takes the place of a trainer's format; launchers' lines are read beside it.
    """
    if path.resolve() == profile.path.resolve():
        return None  # it holds its own signs
    sample = _sample(path, b"")
    if b"\0" in sample[:4096] or not profile.reads(sample):
        return None
    beside = [*_signed(LAUNCHERS, sample), *_signed(ASIDES, sample)]
    return TextLog(path, name, [ProfileFormat(profile), *beside])


def _signed(kinds: tuple[Callable[[], LogFormat], ...], sample: bytes) -> list[LogFormat]:
    return [one for one in (make() for make in kinds) if any(sign in sample for sign in one.signs)]


def _sample(path: Path, head: bytes) -> bytes:
    """The beginning of a file, and its end if it can be reached without unpacking all before it."""
    sample = b""
    try:
        for piece in pieces(path):
            sample += piece
            if len(sample) >= SAMPLE_BYTES:
                sample = sample[:SAMPLE_BYTES]
                break
        size = path.stat().st_size
        if path.suffix not in PACKED and size > len(sample):
            for piece in pieces(path, max(size - SAMPLE_BYTES // 4, len(sample))):
                sample += piece
    except (OSError, *DAMAGED):
        return sample or head
    return sample
