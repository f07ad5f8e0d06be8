"""Reports: a ledger as terminal text, one HTML file or JSON, any waterfall, runs side by side.

Importing this package loads neither rich nor the asset files; names are resolved on first use.
Read rows.py for the chart that all forms share, docs/formats/ledger.md for the JSON. The
comparison as a value is goodput.report.compare.compare.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from goodput.report.face import compare_html as compare_html
    from goodput.report.face import compare_json as compare_json
    from goodput.report.face import compare_terminal as compare_terminal
    from goodput.report.face import render_html as render_html
    from goodput.report.face import render_terminal as render_terminal
    from goodput.report.json import from_json as from_json
    from goodput.report.json import ledger_json_schema as ledger_json_schema
    from goodput.report.json import to_json as to_json

_LAZY = {
    "compare_html": "goodput.report.face",
    "compare_json": "goodput.report.face",
    "compare_terminal": "goodput.report.face",
    "from_json": "goodput.report.json",
    "ledger_json_schema": "goodput.report.json",
    "render_html": "goodput.report.face",
    "render_terminal": "goodput.report.face",
    "to_json": "goodput.report.json",
}

__all__ = [
    "compare_html",
    "compare_json",
    "compare_terminal",
    "from_json",
    "ledger_json_schema",
    "render_html",
    "render_terminal",
    "to_json",
]


def __getattr__(name: str) -> object:
    """Return a public name, importing its home on first use (PEP 562)."""
    home = _LAZY.get(name)
    if home is None:
        raise AttributeError(f"module 'goodput.report' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
