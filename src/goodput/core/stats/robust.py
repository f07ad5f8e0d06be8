"""Location, spread and quantiles that a few wild values cannot move far."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goodput.core.errors import InputError

MAD_TO_SIGMA: Final = 1.4826022185056018
"""1 / (inverse normal CDF of 3/4): MAD x this estimates the standard deviation of normal values."""


def median(values: ArrayLike) -> float:
    """Return the middle value, or the mean of the two middle ones.

    Args:
        values: any shape, at least one number.

    Raises:
        InputError: no values, or a NaN among them.
    """
    return float(np.median(checked(values)))


def mad(values: ArrayLike, *, scale: float = 1.0) -> float:
    """Return the median absolute deviation from the median, times `scale`.

    Args:
        values: any shape, at least one number.
        scale: `MAD_TO_SIGMA` makes it comparable with a standard deviation.

    Raises:
        InputError: no values, or a NaN among them.

    Source: Hampel, The influence curve and its role in robust estimation, JASA 69 (1974), sec. 5.
    """
    array = checked(values)
    return float(np.median(np.abs(array - np.median(array)))) * scale


def quantile(values: ArrayLike, q: float) -> float:
    """Return the value below which a share `q` of the values lies, linear between neighbours.

    Args:
        values: any shape, at least one number.
        q: 0-1.

    Raises:
        InputError: no values, a NaN among them, or q outside 0-1.

    Source: Hyndman and Fan, Sample quantiles in statistical packages (1996), definition 7.
    """
    if not 0 <= q <= 1:
        raise InputError(f"q = {q!r} must be from 0 to 1")
    return float(np.quantile(checked(values), q))


def checked(values: ArrayLike) -> NDArray[np.float64]:
    """Return the values as one row of floats.

    Raises:
        InputError: no values, or a NaN among them.
    """
    array = np.asarray(values, dtype=np.float64).ravel()
    if array.size == 0:
        raise InputError("no values: a statistic needs at least one")
    missing = int(np.count_nonzero(np.isnan(array)))
    if missing:
        raise InputError(f"{missing} of {array.size} values are NaN: leave them out and count them")
    return array
