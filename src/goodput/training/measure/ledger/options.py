"""What a user may ask of the ledger, as one value."""

from typing import Final

import msgspec

from goodput.core.errors import ConfigError

MAX_STEP_S: Final = 1e9


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of `account`.

    Raises:
        ConfigError: a value is out of range; the message names it.
    """

    as_of_ns: int | None = None
    """Account as known at this instant: later events are ignored. None = everything recorded,
    up to the job's end or its last sign of life."""
    exclude: tuple[tuple[int, int], ...] = ()
    """Windows [from, to), Unix ns, removed from capacity (planned maintenance)."""
    window: tuple[int, int] | None = None
    """Only this part of the job's time, Unix ns. Steps are kept or lost as in the whole job."""
    last_s: float | None = None
    """Only the last so many seconds before the end of the account: a rolling window."""
    attempt: str | None = None
    """Only this attempt's window."""
    rank: int | None = None
    """Only this rank's share of the chips, by its own record."""
    chips: int | None = None
    """Chips held throughout, when the events do not say."""
    ideal_step_s: float | None = None
    flops_per_step: float | None = None
    """Model FLOPs of one step of the whole job."""
    peak_flops_per_chip: float | None = None
    chip: str = ""
    dtype: str = ""
    views: bool = True
    """Account for attempts and ranks and bin time for charts too; a poll for the job's numbers does
    without."""
    windows: int = 120
    """Number of equal windows in the series."""

    def __post_init__(self) -> None:
        for name in (
            "chips",
            "ideal_step_s",
            "flops_per_step",
            "peak_flops_per_chip",
            "last_s",
        ):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise ConfigError(f"{name} = {value!r} must be a finite number above 0")
        if self.ideal_step_s is not None and self.ideal_step_s > MAX_STEP_S:
            raise ConfigError(f"ideal_step_s = {self.ideal_step_s!r} is more than {MAX_STEP_S:g} s")
        for low, high in (*self.exclude, *((self.window,) if self.window else ())):
            if high < low:
                raise ConfigError(f"a window ends ({high}) before it begins ({low})")
        if self.windows < 1:
            raise ConfigError(f"windows = {self.windows} must be at least 1")
