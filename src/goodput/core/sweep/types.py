"""What a sweep gives back, as values. Nothing here runs anything."""

import hashlib
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

R = TypeVar("R")

FailureKind = Literal["raised", "died", "unsendable"]


@dataclass(frozen=True, slots=True)
class Success(Generic[R]):
    """One point that was computed."""

    index: int
    """Position in the list of points, from 0."""
    seed: int
    value: R
    duration_s: float
    """Wall time of the function itself."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One point that has no result. It does not stop the others."""

    index: int
    seed: int
    kind: FailureKind
    """`raised` an exception; its process `died`; point or result was `unsendable` (no pickle)."""
    message: str
    """One line for a person."""
    traceback: str = ""
    """Text of the traceback, where there was one."""


Outcome = Success[R] | Failure


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sweep is."""

    done: int
    """Points that are over, failed ones included."""
    failed: int
    total: int
    elapsed_s: float
    eta_s: float | None
    """Seconds still to go at the pace so far; None before the first point is over."""

    @classmethod
    def at(cls, *, done: int, failed: int, total: int, elapsed_s: float) -> "Progress":
        """Return the progress with its estimate: remaining points at the mean pace so far."""
        eta_s = elapsed_s / done * (total - done) if done else None
        return cls(done=done, failed=failed, total=total, elapsed_s=elapsed_s, eta_s=eta_s)


@dataclass(frozen=True, slots=True)
class SweepResult(Generic[R]):
    """Every outcome that there is, in the order of the points."""

    outcomes: tuple[Success[R] | Failure, ...]
    """Sorted by index. Points that an interruption left out are not in it."""
    total: int
    """Points that were asked for."""

    @property
    def complete(self) -> bool:
        """Whether every point is over. False after Ctrl-C. Failed points count as over."""
        return len(self.outcomes) == self.total

    @property
    def successes(self) -> tuple[Success[R], ...]:
        """The computed points, in order."""
        return tuple(each for each in self.outcomes if isinstance(each, Success))

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The points without a result, in order."""
        return tuple(each for each in self.outcomes if isinstance(each, Failure))

    @property
    def missing(self) -> tuple[int, ...]:
        """Indexes of the points that an interruption left out."""
        over = {each.index for each in self.outcomes}
        return tuple(index for index in range(self.total) if index not in over)


def point_seed(seed: int, index: int) -> int:
    """Return the seed of one point, 0 to 2**64 - 1: a function of nothing but its arguments.

    Neighbouring points get unrelated seeds, and neither the number of workers nor the order in
    which points finish changes them.
    """
    digest = hashlib.blake2b(f"goodput.sweep/1:{seed}:{index}".encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "big")
