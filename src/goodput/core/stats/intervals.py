"""How sure a number is: an interval for a proportion, and one for any statistic of a sample."""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goodput.core.errors import InputError
from goodput.core.stats.robust import checked

_CELLS_PER_BLOCK: Final = 1 << 21  # 16 MB of float64: resampling memory does not grow with size


class Interval(NamedTuple):
    """A range that holds the true value with the confidence asked for."""

    low: float
    high: float


def wilson_interval(successes: int, trials: int, *, confidence: float = 0.95) -> Interval:
    """Return the interval of a proportion that was seen as successes / trials.

    Args:
        successes: 0 up to trials.
        trials: independent trials; 0 gives (0, 1): nothing is known.
        confidence: two-sided, between 0 and 1.

    Raises:
        InputError: successes outside 0..trials, or confidence outside (0, 1).

    Source: Wilson, JASA 22 (1927); Newcombe, Statistics in Medicine 17 (1998), method 3. Without
    continuity correction. Trials that influence each other (requests of one burst) make the true
    interval wider.
    """
    if not 0 <= successes <= trials:
        raise InputError(f"{successes} successes of {trials} trials: must be 0 up to the trials")
    z = -NormalDist().inv_cdf((1 - _checked_confidence(confidence)) / 2)
    if trials == 0:
        return Interval(0.0, 1.0)
    p, z2 = successes / trials, z * z
    centre = p + z2 / (2 * trials)
    reach = z * math.sqrt(p * (1 - p) / trials + z2 / (4 * trials * trials))
    scale = 1 + z2 / trials
    low = 0.0 if successes == 0 else max(0.0, (centre - reach) / scale)
    high = 1.0 if successes == trials else min(1.0, (centre + reach) / scale)
    return Interval(low, high)


def percentile_bootstrap(
    values: ArrayLike,
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    *,
    rng: np.random.Generator,
    resamples: int = 2000,
    confidence: float = 0.95,
) -> Interval:
    """Return the percentile interval of a statistic of independent values.

    Args:
        values: the sample, at least one number.
        statistic: maps rows of samples (shape R x N) to one number per row (shape R), for example
            `lambda rows: np.median(rows, axis=1)`.
        rng: source of randomness: the same state gives the same interval.
        resamples: how many samples with replacement, at least 1.
        confidence: two-sided, between 0 and 1.

    Raises:
        InputError: no values, a NaN, or an argument out of range.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), sec. 13.3. It is too
    narrow for fewer than about 20 values and for quantiles near 0 or 1, and does not model
    dependence between values.
    """
    sample = checked(values)
    if resamples < 1:
        raise InputError(f"resamples = {resamples} must be 1 or more")
    tail = (1 - _checked_confidence(confidence)) / 2
    block = max(1, _CELLS_PER_BLOCK // sample.size)
    parts = []
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        drawn = sample[rng.integers(0, sample.size, size=(rows, sample.size))]
        parts.append(np.asarray(statistic(drawn), dtype=np.float64).reshape(rows))
    low, high = np.quantile(np.concatenate(parts), (tail, 1 - tail))
    return Interval(float(low), float(high))


def _checked_confidence(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise InputError(f"confidence = {confidence!r} must be between 0 and 1")
    return confidence
