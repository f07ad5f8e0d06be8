"""Which classes explain the difference in goodput between waterfalls, exactly. Knows no pillar.

Differences are shares of each run's own capacity, so runs of any size and length compare. They are
computed in rational numbers and rounded together: the classes sum to the goodput difference.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import msgspec

from goodput.core.errors import InputError
from goodput.core.waterfall import Loss, Waterfall

MICROPOINTS: Final = 100_000_000
"""Millionths of a percentage point in 1: a change of 1.0 in a fraction is 100 points."""
MICROPOINTS_PER_POINT: Final = 1_000_000


class ClassChange(msgspec.Struct, frozen=True):
    """One loss class in each run; the first run is the baseline."""

    name: str
    factor: str
    amounts: tuple[int, ...]
    """In the unit of the waterfalls, one per run."""
    shares: tuple[float, ...]
    """Of the run's capacity, 0-1."""
    measured: tuple[bool, ...]
    """False: the class was not instrumented in that run; its time is in another class there."""
    change_micropoints: tuple[int, ...]
    """Goodput gained (+) or lost (-) against the baseline by this class, millionths of a point."""


def goodput_change_micropoints(baseline: Waterfall, other: Waterfall) -> int:
    """Return goodput of `other` minus `baseline` in millionths of a percentage point, rounded."""
    return round((_share(other.useful, other) - _share(baseline.useful, baseline)) * MICROPOINTS)


def class_changes(waterfalls: Sequence[Waterfall]) -> tuple[ClassChange, ...]:
    """Return every loss class of the runs, in the order of the first run that has it.

    Args:
        waterfalls: at least two of one unit; the first is the baseline.

    Returns:
        Changes that sum, run by run, to `goodput_change_micropoints`.

    Raises:
        InputError: fewer than two, different units, or a run without capacity.
    """
    _check(waterfalls)
    names = list(dict.fromkeys(loss.name for run in waterfalls for loss in run.losses))
    by_run = [_changes(waterfalls[0], run, names) for run in waterfalls]
    return tuple(
        ClassChange(
            name=name,
            factor=next(loss.factor for run in waterfalls for loss in _named(run, name)),
            amounts=tuple(run.loss(name) for run in waterfalls),
            shares=tuple(run.loss(name) / run.capacity for run in waterfalls),
            measured=tuple(_measured(run, name) for run in waterfalls),
            change_micropoints=tuple(changes[place] for changes in by_run),
        )
        for place, name in enumerate(names)
    )


def hundredths(changes: Sequence[int], total: int) -> list[int]:
    """Return changes as hundredths of a point that sum to the total as it prints.

    Args:
        changes: millionths of a percentage point.
        total: their sum, millionths of a percentage point.
    """
    per = MICROPOINTS_PER_POINT // 100
    return apportion([Fraction(change, per) for change in changes], round(Fraction(total, per)))


def points(value: int, *, minus: str = "\u2212") -> str:
    """Return hundredths of a point with a sign: `+1.20`, `0.00`.

    Args:
        value: hundredths of a percentage point.
        minus: sign of a negative number.
    """
    sign = "+" if value > 0 else minus if value < 0 else ""
    return f"{sign}{abs(value) // 100}.{abs(value) % 100:02d}"


def apportion(values: Sequence[Fraction], total: int) -> list[int]:
    """Return `values` rounded to integers that sum to `total` (largest remainder).

    Args:
        values: exact numbers whose sum rounds to `total`.
        total: what the integers must sum to.

    Returns:
        Integers, each less than one away from its value.
    """
    floors = [value.numerator // value.denominator for value in values]
    missing = total - sum(floors)
    assert 0 <= missing <= len(values), (missing, values, total)
    order = sorted(range(len(values)), key=lambda place: (floors[place] - values[place], place))
    for place in order[:missing]:
        floors[place] += 1
    return floors


def _check(waterfalls: Sequence[Waterfall]) -> None:
    if len(waterfalls) < 2:
        raise InputError(f"a comparison needs two runs, got {len(waterfalls)}")
    units = {run.unit for run in waterfalls}
    if len(units) > 1:
        raise InputError(f"runs count different things: {', '.join(sorted(units))}")
    for place, run in enumerate(waterfalls, start=1):
        if not run.capacity:
            raise InputError(f"run {place} has no capacity (0 {run.unit}): nothing to compare")


def _changes(baseline: Waterfall, other: Waterfall, names: Sequence[str]) -> list[int]:
    exact = [
        (_share(baseline.loss(name), baseline) - _share(other.loss(name), other)) * MICROPOINTS
        for name in names
    ]
    return apportion(exact, goodput_change_micropoints(baseline, other))


def _share(amount: int, run: Waterfall) -> Fraction:
    return Fraction(amount, run.capacity)


def _named(run: Waterfall, name: str) -> list[Loss]:
    return [loss for loss in run.losses if loss.name == name]


def _measured(run: Waterfall, name: str) -> bool:
    found = _named(run, name)
    return any(loss.provenance != "not measured" or loss.amount for loss in found)
