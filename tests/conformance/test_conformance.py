"""Every case of cases/*.toml: a job with a known answer, through the real reader and ledger."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from timelines import instant, write_events

from goodput.training.measure.ledger import Ledger, Options, account
from goodput.training.measure.readers import read

CASES = sorted((Path(__file__).parent / "cases").glob("*.toml"))


NUMBERS: dict[str, Callable[[Ledger], float]] = {
    "ettr": lambda x: next(d.value or 0.0 for d in x.definitions if d.name == "ETTR with queue"),
    "runtime": lambda x: x.factors.runtime,
    "program": lambda x: x.factors.program,
    "goodput": lambda x: x.factors.goodput,
    "saved": lambda x: x.saved.goodput_fraction or 0.0,
    "useful": lambda x: x.waterfall.useful / 1e9 / x.chips,
    "excluded": lambda x: x.excluded / 1e9 / x.chips,
    "infra": lambda x: (x.waterfall.loss("detection") + x.waterfall.loss("recovery")) / 1e9,
    "ideal_step": lambda x: x.steps.ideal_step_ns / 1e9,
    "last_step": lambda x: x.steps.last_step,
    "kept_steps": lambda x: x.steps.kept,
    "interruptions": lambda x: len(x.incidents),
    "held": lambda x: (x.elastic or (0.0, 0.0))[0],
    "available": lambda x: (x.elastic or (0.0, 0.0))[1],
}


def number(ledger: Ledger, name: str) -> float:
    """The number that a case names: one of NUMBERS, or seconds of `class` or `class/part`."""
    if name in NUMBERS:
        return NUMBERS[name](ledger)
    loss, _, part = name.partition("/")
    row = next(item for item in ledger.waterfall.losses if item.name == loss)
    amount = sum(p.amount for p in row.parts if p.name == part) if part else row.amount
    return amount / 1e9 / ledger.chips


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path, tmp_path: Path) -> None:
    case: dict[str, Any] = tomllib.loads(path.read_text())
    write_events(tmp_path, case["timeline"])
    options = Options(
        as_of_ns=instant(case["as_of"]) if "as_of" in case else None,
        exclude=tuple((instant(a), instant(b)) for a, b in case.get("exclude", [])),
    )
    ledger = account(read([tmp_path]), options)
    found = {name: number(ledger, name) for name in case["expect"]}
    assert found == pytest.approx(case["expect"], abs=case.get("tolerance", 1e-6))


def test_every_case_of_the_facts_is_here() -> None:
    ids = {path.stem for path in CASES}
    assert ids >= {f"C{i:02d}" for i in range(1, 17)} | {f"W{i:02d}" for i in range(1, 11)}
