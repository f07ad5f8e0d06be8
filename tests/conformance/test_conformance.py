"""Every case of cases/*.toml: a job with a known answer, through the real reader and ledger."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from timelines import instant, write_events

from goodput.training.measure.ledger import Ledger, Options, account
from goodput.training.measure.readers import read

CASES = sorted((Path(__file__).parent / "cases").glob("*.toml"))


def number(ledger: Ledger, name: str) -> float:
    """The number that a case names."""
    chips = ledger.chips
    match name:
        case "ettr":
            return next(d.value or 0.0 for d in ledger.definitions if d.name == "ETTR with queue")
        case "runtime" | "program" | "goodput":
            return float(getattr(ledger.factors, name))
        case "saved":
            return ledger.saved.goodput_fraction or 0.0
        case "useful":
            return ledger.waterfall.useful / 1e9 / chips
        case "excluded":
            return ledger.excluded / 1e9 / chips
        case "infra":
            return (ledger.waterfall.loss("detection") + ledger.waterfall.loss("recovery")) / 1e9
        case "ideal_step":
            return ledger.steps.ideal_step_ns / 1e9
        case "last_step":
            return ledger.steps.last_step
        case "kept_steps":
            return ledger.steps.kept
        case "interruptions":
            return len(ledger.incidents)
        case "held" | "available":
            assert ledger.elastic is not None
            return ledger.elastic[name == "available"]
    loss, _, part = name.partition("/")
    row = next(item for item in ledger.waterfall.losses if item.name == loss)
    if not part:
        return row.amount / 1e9 / chips
    return sum(p.amount for p in row.parts if p.name == part) / 1e9 / chips


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
