"""What a launcher can know before it starts a job: chips, earlier launches, Slurm's times.

Reads the command line, the environment and the job's folder; starts nothing but `scontrol`.
"""

import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from goodput.core.events import AnyEvent, AttemptStart, Process, Submitted

_FLAGS: Final = {
    "--nproc-per-node": "per_node",
    "--nnodes": "nodes",
    "--node-rank": "node_rank",
    "--num-processes": "total",
    "--num-machines": "nodes",
    "--machine-rank": "node_rank",
}
"""Options of torchrun and of `accelerate launch`, with `_` written as `-`."""
_SCONTROL_TIMEOUT_S: Final = 5.0
_SLURM_TIME: Final = "%Y-%m-%dT%H:%M:%S"

_decoder = msgspec.json.Decoder(AnyEvent)


class Shape(msgspec.Struct, frozen=True):
    """How many processes a command starts, as far as its options say; 0 = not said."""

    chips: int
    nodes: int
    node_rank: int


class Earlier(msgspec.Struct, frozen=True):
    """What earlier launchers left in a job's folder."""

    last_attempt: int
    """Highest attempt number; 0 = none."""
    submitted_at_ns: frozenset[int]


class SlurmTimes(msgspec.Struct, frozen=True):
    """When Slurm took the job, and when it gave it its nodes; Unix ns, 0 = not known."""

    submitted_at_ns: int
    started_at_ns: int


def shape_of(command: Sequence[str], environ: Mapping[str, str]) -> Shape:
    """Processes, nodes and this node's rank, from a launcher's options and from Slurm.

    Args:
        command: the command line that will be started.
        environ: the environment it will have.

    Returns:
        The shape; `chips` is 0 where neither says how many.
    """
    options = _options(command)
    nodes = _leading_int(options.get("nodes", "")) or 1
    chips = _leading_int(options.get("total", ""))
    if not chips and "per_node" in options:
        chips = nodes * _per_node(options["per_node"], environ)
    if not chips:
        chips = _slurm_chips(environ)
    rank = options.get("node_rank") or environ.get("SLURM_NODEID", "0")
    return Shape(chips=chips, nodes=nodes, node_rank=_leading_int(rank))


def earlier_launches(folder: Path) -> Earlier:
    """What launchers before us recorded in this job's folder."""
    last, submitted = 0, set()
    for path in sorted(folder.glob("events-*.jsonl")):
        for event in _launcher_events(path):
            if isinstance(event, AttemptStart) and event.attempt.isdecimal():
                last = max(last, int(event.attempt))
            elif isinstance(event, Submitted):
                submitted.add(event.t)
    return Earlier(last_attempt=last, submitted_at_ns=frozenset(submitted))


def slurm_times(environ: Mapping[str, str]) -> SlurmTimes | None:
    """Slurm's own times of this job; None outside Slurm."""
    job = environ.get("SLURM_JOB_ID", "")
    if not job:
        return None
    text = _scontrol(job, environ)
    started = environ.get("SLURM_JOB_START_TIME", "")
    return SlurmTimes(
        submitted_at_ns=_field_ns(text, "SubmitTime"),
        started_at_ns=int(started) * 10**9 if started.isdecimal() else _field_ns(text, "StartTime"),
    )


def _options(command: Sequence[str]) -> dict[str, str]:
    """The options of a launcher in a command: those before the script."""
    found: dict[str, str] = {}
    for position, word in enumerate(command):
        if word.endswith(".py"):
            break
        name, equals, value = word.partition("=")
        key = _FLAGS.get("--" + name[2:].replace("_", "-")) if name.startswith("--") else None
        if key is not None:
            found[key] = value if equals else " ".join(command[position + 1 : position + 2])
    return found


def _per_node(value: str, environ: Mapping[str, str]) -> int:
    """A number, or torchrun's words for "as many as there are"."""
    if value == "cpu":
        return os.cpu_count() or 1
    if value in {"auto", "gpu"}:
        visible = environ.get("CUDA_VISIBLE_DEVICES")
        if visible is not None:
            return len([device for device in visible.split(",") if device.strip()])
        cards = Path("/proc/driver/nvidia/gpus")
        return len(list(cards.iterdir())) if cards.is_dir() else 0
    return _leading_int(value)


def _slurm_chips(environ: Mapping[str, str]) -> int:
    nodes = _leading_int(environ.get("SLURM_NNODES", "")) or 1
    gpus = environ.get("SLURM_GPUS", "").rpartition(":")[2]
    per_node = environ.get("SLURM_GPUS_ON_NODE", "").rpartition(":")[2]
    return (
        _leading_int(gpus)
        or nodes * _leading_int(per_node)
        or _leading_int(environ.get("SLURM_NTASKS", ""))
    )


def _leading_int(text: str) -> int:
    """The number a text begins with (`2:4` nodes means at least 2); 0 = none."""
    match = re.match(r"\d+", text)
    return int(match[0]) if match else 0


def _launcher_events(path: Path) -> list[object]:
    """The records of one file, if a launcher wrote it; lines that cannot be read are skipped."""
    try:
        with path.open("rb") as file:
            header = _decoded(file.readline())
            if not isinstance(header, Process) or header.role != "launcher":
                return []
            return [_decoded(line) for line in file]
    except OSError:
        return []


def _decoded(line: bytes) -> object:
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _scontrol(job: str, environ: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - a job number from Slurm
            ["scontrol", "show", "job", "-o", job],  # noqa: S607 - Slurm's own, from PATH
            env=dict(environ),
            capture_output=True,
            check=False,
            text=True,
            timeout=_SCONTROL_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def _field_ns(text: str, name: str) -> int:
    """A time in scontrol's output (local time, seconds), as Unix ns; 0 = not there."""
    match = re.search(rf"\b{name}=(\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d)", text)
    return int(time.mktime(time.strptime(match[1], _SLURM_TIME))) * 10**9 if match else 0
