"""Measure, explain and raise goodput: the part of a machine's time that did what it was bought for.

Importing this package loads none of numpy, duckdb, rich or torch; names are resolved on first use.
Read docs/concepts.md for what the numbers mean and docs/architecture.md for where things are.
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from goodput.training.measure.instrument import instrument as instrument
    from goodput.training.measure.recorder import Run as Run
    from goodput.training.measure.recorder import start as start

_LAZY = {
    "Run": "goodput.training.measure.recorder",
    "instrument": "goodput.training.measure.instrument",
    "start": "goodput.training.measure.recorder",
}

__all__ = ["Run", "__version__", "instrument", "start"]


def __getattr__(name: str) -> object:
    """Return a public name, importing its home on first use (PEP 562)."""
    home = _LAZY.get(name)
    if home is None:
        msg = f"module 'goodput' has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
