"""The rows of a waterfall chart, and that generic rendering knows no pillar."""

import ast
from pathlib import Path

import ledgers
import pytest
from hypothesis import given
from hypothesis import strategies as st

import goodput.report
from goodput.core.waterfall import Loss, Part, Waterfall
from goodput.report.rows import waterfall_rows

GENERIC = (
    "changes.py",
    "rows.py",
    "units.py",
    "html/markup.py",
    "html/parts.py",
    "html/shell.py",
    "html/waterfall.py",
    "terminal/screen.py",
    "terminal/tables.py",
    "terminal/waterfall.py",
)


@st.composite
def waterfalls(draw: st.DrawFn) -> Waterfall:
    amounts = draw(st.lists(st.integers(min_value=0, max_value=10**20), max_size=8))
    useful = draw(st.integers(min_value=0, max_value=10**20))
    losses = tuple(
        Loss(name=f"loss {place}", amount=amount, factor="AB"[place % 2])
        for place, amount in enumerate(amounts)
    )
    return Waterfall(unit="requests", capacity=useful + sum(amounts), useful=useful, losses=losses)


@given(waterfalls())
def test_the_bars_tile_capacity(waterfall: Waterfall) -> None:
    capacity, *losses, useful = waterfall_rows(waterfall)
    assert (capacity.start, capacity.share) == (0.0, 1.0)
    edge = 1.0 if waterfall.capacity else 0.0
    for row in losses:
        assert row.start + row.share == pytest.approx(edge, abs=1e-9)
        edge = row.start
    assert useful.share == pytest.approx(edge, abs=1e-9)
    assert useful.start == 0.0
    assert sum(row.amount for row in (*losses, useful)) == capacity.amount


def test_an_unmeasured_class_is_marked_and_an_amount_is_never_hidden() -> None:
    losses = (
        Loss(name="data", amount=0, provenance="not measured"),
        Loss(name="odd", amount=3, provenance="not measured"),
    )
    rows = waterfall_rows(Waterfall(unit="tokens", capacity=10, useful=7, losses=losses))
    assert [row.measured for row in rows] == [True, False, True, True]


def test_parts_get_a_line_when_they_matter() -> None:
    parts = (Part("small", 1), Part("large", 300))
    loss = Loss(name="startup", amount=301, parts=parts)
    waterfall = Waterfall(unit="tokens", capacity=1000, useful=699, losses=(loss,))
    assert [part.name for part in waterfall_rows(waterfall)[1].parts] == ["large"]
    every = waterfall_rows(waterfall, part_floor=0.0)[1].parts
    assert [part.name for part in every] == ["large", "small"]


def test_a_blank_account_has_rows_too() -> None:
    rows = waterfall_rows(ledgers.nothing().waterfall)
    assert [row.share for row in rows[1:]] == [0.0] * (len(rows) - 1)


@pytest.mark.parametrize("name", GENERIC)
def test_generic_rendering_imports_no_pillar(name: str) -> None:
    assert goodput.report.__file__ is not None
    source = (Path(goodput.report.__file__).parent / name).read_text(encoding="utf-8")
    imported = {
        node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    assert imported
    assert not {module for module in imported if module.startswith("goodput.training")}
