"""Robust statistics: median, MAD and quantiles, a mergeable histogram, intervals of uncertainty.

Needs numpy: import it where numbers are crunched, not where the command line starts.
"""

from goodput.core.stats.histogram import HistogramData, LogHistogram
from goodput.core.stats.intervals import Interval, percentile_bootstrap, wilson_interval
from goodput.core.stats.robust import MAD_TO_SIGMA, mad, median, quantile

__all__ = [
    "MAD_TO_SIGMA",
    "HistogramData",
    "Interval",
    "LogHistogram",
    "mad",
    "median",
    "percentile_bootstrap",
    "quantile",
    "wilson_interval",
]
