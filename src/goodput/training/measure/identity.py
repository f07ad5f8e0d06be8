"""Who is recording: rank, world, attempt, host, boot and start of this process.

Arguments first, then the environment and /proc. What the fields mean: `Process` in core/events.py.
"""

import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

DEFAULT_DIR: Final = "goodput-runs"
DEFAULT_JOB: Final = "run"

_PLACES: Final = (
    ("RANK", "WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)
"""Variables of rank and world: torchrun, srun, Open MPI, other MPIs; the first match wins."""


class Identity(msgspec.Struct, frozen=True):
    """One recording process, as its file will introduce it."""

    job: str
    folder: Path
    """Where this job's files are: `<dir>/<job>`."""
    rank: int
    world: int
    attempt: str
    """Empty = the ledger infers it from overlap in time."""
    host: str
    pid: int
    boot: str
    started: int
    """Wall time of the process start, ns; 0 = not known."""


def identify(
    *,
    job: str | None = None,
    directory: str | os.PathLike[str] | None = None,
    rank: int | None = None,
    world: int | None = None,
    attempt: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Identity:
    """The identity of this process: arguments first, then the environment, then 0 of 1.

    Args:
        job: name of the job; else $GOODPUT_JOB, else `run`.
        directory: folder of all jobs; else $GOODPUT_DIR, else ./goodput-runs.
        rank: 0-based; else RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK.
        world: number of ranks; else the matching size variables.
        attempt: key of the launch; else $GOODPUT_ATTEMPT, with torchrun's restart count.
        environ: the environment to read; default os.environ.

    Returns:
        The identity; nothing is created on disk.
    """
    environ = os.environ if environ is None else environ
    name = job or environ.get("GOODPUT_JOB") or DEFAULT_JOB
    root = Path(directory or environ.get("GOODPUT_DIR") or DEFAULT_DIR)
    environ_rank, environ_world = _place(environ)
    return Identity(
        job=name,
        folder=root.absolute() / folder_name(name),
        rank=environ_rank if rank is None else rank,
        world=environ_world if world is None else world,
        attempt=_attempt_key(environ) if attempt is None else attempt,
        host=os.uname().nodename,
        pid=os.getpid(),
        boot=boot_id(),
        started=process_started_ns(),
    )


def folder_name(job: str) -> str:
    """A job's name as one folder name: anything but letters, digits and `._-` becomes `_`."""
    return re.sub(r"[^\w.-]", "_", job).lstrip(".") or DEFAULT_JOB


def boot_id() -> str:
    """The kernel's boot id; empty where there is none (not Linux)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def process_started_ns() -> int:
    """Wall time at which the operating system started this process, ns; 0 = not known.

    Source: proc(5), /proc/pid/stat field 22: start in clock ticks after boot (10 ms on Linux).
    """
    if sys.platform != "linux":
        return 0
    try:
        stat = Path("/proc/self/stat").read_bytes()
    except OSError:
        return 0
    # The second field is the program's name in parentheses and may hold spaces and parentheses.
    ticks = int(stat[stat.rindex(b")") + 2 :].split()[19])
    after_boot_ns = ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    age_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - after_boot_ns
    return time.time_ns() - age_ns


def _attempt_key(environ: Mapping[str, str]) -> str:
    launch = environ.get("GOODPUT_ATTEMPT", "")
    restart = environ.get("TORCHELASTIC_RESTART_COUNT", "")
    return f"{launch}.{restart}" if launch and restart else launch


def _place(environ: Mapping[str, str]) -> tuple[int, int]:
    for rank_key, world_key in _PLACES:
        rank, world = environ.get(rank_key, ""), environ.get(world_key, "")
        if rank.isdecimal():
            return int(rank), int(world) if world.isdecimal() else 1
    return 0, 1
