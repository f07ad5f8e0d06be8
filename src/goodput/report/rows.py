"""The rows of a waterfall chart, for any pillar: where each bar starts, how long, what it says.

Terminal and HTML draw the same rows; nothing here knows the classes of training.
"""

from typing import Final, Literal

import msgspec

from goodput.core.waterfall import Loss, Provenance, Waterfall

PART_FLOOR: Final = 0.01
"""Parts below this share of capacity are not worth a line (assumed)."""


class PartRow(msgspec.Struct, frozen=True):
    """A share of one loss that is large enough for its own line."""

    name: str
    amount: int
    share: float


class Row(msgspec.Struct, frozen=True):
    """One bar of the chart."""

    kind: Literal["capacity", "loss", "useful"]
    name: str
    amount: int
    share: float
    """Share of capacity, 0-1."""
    start: float
    """Left edge of the bar as a share of capacity, 0-1: what remains after this loss."""
    factor: str = ""
    provenance: Provenance | Literal[""] = ""
    evidence: str = ""
    measured: bool = True
    """False: prints `not measured`, never a number."""
    parts: tuple[PartRow, ...] = ()


def waterfall_rows(waterfall: Waterfall, *, part_floor: float = PART_FLOOR) -> tuple[Row, ...]:
    """Return capacity, each loss stepping down from it, and what is useful in the end.

    Args:
        waterfall: any unit.
        part_floor: smallest share of capacity for which a part of a loss gets a line, 0-1; parts
            called as the loss itself or `other` tell nothing and get none.

    Returns:
        Rows in reading order; the bars tile [0, 1] exactly (up to float rounding).
    """
    capacity = waterfall.capacity
    rows = [Row(kind="capacity", name="capacity", amount=capacity, share=1.0, start=0.0)]
    remaining = capacity
    for loss in waterfall.losses:
        remaining -= loss.amount
        rows.append(_loss_row(loss, remaining, capacity, part_floor))
    rows.append(
        Row(
            kind="useful",
            name="useful",
            amount=waterfall.useful,
            share=waterfall.goodput_fraction,
            start=0.0,
        )
    )
    return tuple(rows)


def _loss_row(loss: Loss, remaining: int, capacity: int, part_floor: float) -> Row:
    whole = max(capacity, 1)
    return Row(
        kind="loss",
        name=loss.name,
        amount=loss.amount,
        share=loss.amount / whole,
        start=remaining / whole,
        factor=loss.factor,
        provenance=loss.provenance,
        evidence=loss.evidence,
        # An amount that was booked all the same must be seen, or the sum would look wrong.
        measured=loss.provenance != "not measured" or loss.amount > 0,
        parts=tuple(
            PartRow(name=part.name, amount=part.amount, share=part.amount / whole)
            for part in sorted(loss.parts, key=lambda part: -part.amount)
            if part.amount >= part_floor * whole and part.name not in {loss.name, "other"}
        ),
    )
