"""The one sentence of arithmetic: capacity = useful + the sum of the losses, in integers.

Units are `chip_ns` (training, cluster), `requests` or `tokens` (serving). What is here knows
nothing of where the numbers come from; the ledgers do.
"""

from typing import Literal

import msgspec

from goodput.core.errors import AccountingError

Unit = Literal["chip_ns", "requests", "tokens"]
Provenance = Literal["recorded", "log", "inferred", "mixed", "simulated", "not measured"]


class Part(msgspec.Struct, frozen=True):
    """A named share of one loss, e.g. `restore` inside `startup`."""

    name: str
    amount: int


class Loss(msgspec.Struct, frozen=True):
    """One cause of lost capacity and the evidence for it."""

    name: str
    amount: int
    factor: str = ""
    """The factor of the product that this loss lowers (training: SG, RG or PG)."""
    provenance: Provenance = "recorded"
    """`not measured` prints as such, never as 0 %."""
    evidence: str = ""
    parts: tuple[Part, ...] = ()
    """Shares of `amount`; they sum to it, or are empty."""


class Waterfall(msgspec.Struct, frozen=True):
    """Where capacity went.

    Args:
        unit: what is counted.
        capacity: everything that was bought, >= 0.
        useful: the part that did what it was bought for.
        losses: in the order in which a reader should see them.

    Raises:
        AccountingError: an amount is negative, or the sum is off.
    """

    unit: Unit
    capacity: int
    useful: int
    losses: tuple[Loss, ...]

    def __post_init__(self) -> None:
        amounts = [("useful", self.useful), *((loss.name, loss.amount) for loss in self.losses)]
        for name, amount in amounts:
            if amount < 0:
                raise AccountingError(f"{name} = {amount} {self.unit} is negative")
        total = sum(amount for _, amount in amounts)
        if total != self.capacity:
            raise AccountingError(
                f"useful + losses = {total} {self.unit}, capacity = {self.capacity}: "
                f"off by {total - self.capacity}"
            )
        for loss in self.losses:
            if loss.parts and sum(part.amount for part in loss.parts) != loss.amount:
                raise AccountingError(f"the parts of {loss.name} do not sum to {loss.amount}")

    @property
    def goodput_fraction(self) -> float:
        """Useful / capacity, 0-1; 0 when nothing was bought."""
        return self.useful / self.capacity if self.capacity else 0.0

    def loss(self, name: str) -> int:
        """Return the amount of one loss, 0 if it is not in the list."""
        return sum(loss.amount for loss in self.losses if loss.name == name)

    def by_factor(self, factor: str) -> int:
        """Return the sum of the losses that lower one factor."""
        return sum(loss.amount for loss in self.losses if loss.factor == factor)
