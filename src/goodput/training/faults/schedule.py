"""What goes wrong, to whom and when: fault schedules as values, from a file or drawn at random.

Nothing here sends a signal; machine.py decides when one is due, inject.py sends it.
"""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from goodput.core.errors import ConfigError

Kind = Literal["kill", "hang", "segfault", "terminate", "slow"]
"""`kill` SIGKILL, `hang` SIGSTOP, `segfault` SIGSEGV, `terminate` SIGTERM, `slow` a duty cycle of
SIGSTOP and SIGCONT that makes the process a straggler."""

KINDS: Final[tuple[Kind, ...]] = ("kill", "hang", "segfault", "terminate", "slow")


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault of a schedule.

    Raises:
        ConfigError: no trigger or two, a negative time, or an option of another kind of fault.
    """

    kind: Kind
    at_step: int | None = None
    """When a worker of the running attempt begins this step, or a later one."""
    at_s: float | None = None
    """Seconds after the schedule's origin."""
    after_s: float = 0.0
    """Seconds to wait after the trigger: puts a fault inside a step, a save or a restart."""
    rank: int = 0
    """The worker that it hits."""
    pid: int = 0
    """Hit this process instead: a recorded worker of the job or a descendant of one."""
    scope: Literal["process", "group", "job"] = "process"
    """`process`: that one; `group`: its whole process group; `job`: all workers of the attempt."""
    for_s: float = 0.0
    """`hang`: SIGCONT after so many seconds (0 = never); `slow`: how long it lasts."""
    slowdown: float = 2.0
    """`slow`: wall time per unit of work, relative to normal; above 1."""

    def __post_init__(self) -> None:
        if (self.at_step is None) == (self.at_s is None):
            raise ConfigError(f"a fault needs at_step or at_s, one of the two: got {self}")
        if min(self.at_step or 0, self.at_s or 0.0, self.after_s, self.for_s) < 0:
            raise ConfigError(f"a fault lies in the future: no negative numbers, got {self}")
        if self.rank < 0 or self.pid < 0:
            raise ConfigError(f"rank and pid are not negative: got {self}")
        if self.kind == "slow" and (self.for_s <= 0 or self.slowdown <= 1):
            raise ConfigError(f"slow needs for_s > 0 and slowdown > 1: got {self}")
        if self.for_s and self.kind not in {"slow", "hang"}:
            raise ConfigError(f"for_s belongs to hang and slow: got {self}")


class FaultSchedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The faults of one run, in any order; each happens once."""

    faults: tuple[Fault, ...]
    origin: Literal["launch", "first_step"] = "first_step"
    """Where `at_s` counts from: the job's first sign of life, or its first step."""


def read_schedule(path: Path) -> FaultSchedule:
    """Return the schedule in a TOML or JSON file (docs/formats/faults.md).

    Args:
        path: ends in `.toml` or `.json`.

    Raises:
        ConfigError: the file is missing, of another type, or has an unknown or wrong field.
    """
    try:
        content = path.read_bytes()
        if path.suffix == ".toml":
            return msgspec.toml.decode(content, type=FaultSchedule)
        if path.suffix == ".json":
            return msgspec.json.decode(content, type=FaultSchedule)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: not a fault schedule: {error}") from error
    raise ConfigError(f"{path}: a fault schedule ends in .toml or .json")


def random_schedule(
    *,
    mean_between_s: float,
    horizon_s: float,
    ranks: int,
    mix: Mapping[Kind, float],
    seed: int,
    for_s: float = 10.0,
    slowdown: float = 2.0,
) -> FaultSchedule:
    """Return faults with exponential times between them, the same ones for the same seed.

    Args:
        mean_between_s: mean time between two faults of the whole job, seconds, > 0.
        horizon_s: no fault later than this many seconds after the origin.
        ranks: workers of the job; each fault hits one of them, all equally likely.
        mix: weight of each kind, >= 0, need not sum to 1.
        seed: of Python's Mersenne twister.
        for_s: how long a `slow` fault lasts, seconds; hangs are for good.
        slowdown: of a `slow` fault.

    Returns:
        A schedule in order of time; faults that fall due while the job restarts wait for the
        target to come back, so a real gap can be longer than the drawn one.

    Raises:
        ConfigError: an argument is out of range.
    """
    kinds = [kind for kind in KINDS if mix.get(kind, 0.0) > 0]
    if mean_between_s <= 0 or horizon_s <= 0 or ranks < 1 or not kinds:
        raise ConfigError(
            f"mean_between_s, horizon_s and ranks must be positive and the mix not empty: got "
            f"{mean_between_s=}, {horizon_s=}, {ranks=}, {dict(mix)=}"
        )
    draw = random.Random(seed)
    weights = [mix[kind] for kind in kinds]
    faults: list[Fault] = []
    at_s = draw.expovariate(1 / mean_between_s)
    while at_s <= horizon_s:
        kind = draw.choices(kinds, weights)[0]
        rank = draw.randrange(ranks)
        faults.append(
            Fault(
                kind=kind,
                at_s=at_s,
                rank=rank,
                for_s=for_s if kind == "slow" else 0.0,
                slowdown=slowdown,
            )
        )
        at_s += draw.expovariate(1 / mean_between_s)
    return FaultSchedule(faults=tuple(faults))
