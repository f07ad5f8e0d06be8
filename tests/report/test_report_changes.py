"""Class changes sum exactly to the goodput change."""

from fractions import Fraction

import ledgers
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.core.errors import InputError
from goodput.core.waterfall import Loss, Waterfall
from goodput.report.changes import (
    apportion,
    class_changes,
    goodput_change_micropoints,
    hundredths,
    points,
)
from goodput.report.compare import COMPARISON_SCHEMA, Comparison, compare, comparison_to_json
from goodput.training.measure.ledger.types import Ledger

NAMES = ("queue", "rework", "slow", "data", "odd")


@st.composite
def accounts(draw: st.DrawFn) -> Waterfall:
    amounts = draw(st.lists(st.integers(min_value=0, max_value=10**20), min_size=5, max_size=5))
    useful = draw(st.integers(min_value=1, max_value=10**20))
    shown = draw(st.integers(min_value=0, max_value=5))
    pairs = list(zip(NAMES, amounts, strict=True))[:shown]
    losses = tuple(Loss(name=name, amount=amount) for name, amount in pairs)
    capacity = useful + sum(loss.amount for loss in losses)
    return Waterfall(unit="chip_ns", capacity=capacity, useful=useful, losses=losses)


@given(st.lists(accounts(), min_size=2, max_size=4))
def test_changes_sum_to_the_goodput_difference(runs: list[Waterfall]) -> None:
    changes = class_changes(runs)
    for place, run in enumerate(runs):
        total = goodput_change_micropoints(runs[0], run)
        values = [change.change_micropoints[place] for change in changes]
        assert sum(values) == total
        exact = 1e8 * (run.goodput_fraction - runs[0].goodput_fraction)
        assert total == pytest.approx(exact, abs=1)
        printed = hundredths(values, total)
        assert sum(printed) == round(Fraction(total, 10_000))
        for value, small in zip(values, printed, strict=True):
            assert abs(value - small * 10_000) < 10_000


@given(st.lists(accounts(), min_size=2, max_size=3))
def test_each_change_is_within_a_millionth_of_a_point(runs: list[Waterfall]) -> None:
    for change in class_changes(runs):
        for place in range(len(runs)):
            exact = 1e8 * (change.shares[0] - change.shares[place])
            assert change.change_micropoints[place] == pytest.approx(exact, abs=1.001)


def test_scaling_a_run_changes_nothing() -> None:
    run = ledgers.demo().waterfall
    twice = msgspec.structs.replace(
        run,
        capacity=run.capacity * 3,
        useful=run.useful * 3,
        losses=tuple(
            msgspec.structs.replace(loss, amount=loss.amount * 3, parts=()) for loss in run.losses
        ),
    )
    assert all(not any(change.change_micropoints) for change in class_changes([run, twice]))


def test_largest_remainder() -> None:
    thirds = [Fraction(1, 3)] * 3
    assert apportion(thirds, 1) == [1, 0, 0]
    assert apportion([Fraction(-5, 2), Fraction(5, 2)], 0) == [-2, 2]


def test_points_have_a_sign() -> None:
    assert [points(value, minus="-") for value in (120, 0, -7)] == ["+1.20", "0.00", "-0.07"]


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([ledgers.demo()], "needs two runs, got 1"),
        ([ledgers.demo(), ledgers.nothing()], "run 2 has no capacity"),
    ],
)
def test_what_cannot_be_compared_says_why(runs: list[Ledger], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare(*runs)


def test_units_must_agree() -> None:
    one = Waterfall(unit="tokens", capacity=1, useful=1, losses=())
    with pytest.raises(InputError, match="chip_ns, tokens"):
        class_changes([one, ledgers.demo().waterfall])


def test_a_wrong_number_of_names_is_refused() -> None:
    with pytest.raises(InputError, match="1 names for 2 runs"):
        compare(ledgers.demo(), ledgers.healthy(), names=["one"])


def test_equal_names_are_told_apart() -> None:
    comparison = compare(ledgers.demo(), ledgers.demo(), ledgers.demo())
    assert [run.name for run in comparison.runs] == ["demo", "demo (2)", "demo (3)"]


def test_a_class_measured_in_one_run_only_is_noted() -> None:
    comparison = compare(ledgers.unmeasured(), ledgers.healthy(), names=["old", "new"])
    assert "data is not measured in old: there its time is in another class" in comparison.notes
    data = next(one for one in comparison.classes if one.name == "data")
    assert data.measured == (False, True)


def test_different_sources_of_the_ideal_step_are_noted() -> None:
    given_ideal = msgspec.structs.replace(
        ledgers.healthy(),
        steps=msgspec.structs.replace(ledgers.healthy().steps, ideal_source="given"),
    )
    notes = compare(ledgers.healthy(), given_ideal).notes
    assert any("given, p10 of kept steps" in note for note in notes)


def test_the_comparison_survives_json() -> None:
    comparison = compare(ledgers.demo(), ledgers.healthy(), ledgers.llama())
    text = comparison_to_json(comparison)
    assert msgspec.json.decode(text, type=Comparison) == comparison
    assert comparison.schema == COMPARISON_SCHEMA
    assert comparison.runs[2].incidents == 466
