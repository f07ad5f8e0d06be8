"""The face of goodput.report: what it exports, and that importing it is cheap."""

import subprocess
import sys

import ledgers
import msgspec
import pytest

import goodput.report as face

HEAVY = ("numpy", "duckdb", "rich", "torch", "goodput.report.html", "goodput.report.terminal")
FORMS = ("rich", "goodput.report.html", "goodput.report.terminal")


def test_exported_names_are_sorted_and_exist() -> None:
    assert face.__all__ == sorted(face.__all__)
    assert set(face._LAZY) == set(face.__all__)
    for name in face.__all__:
        assert callable(getattr(face, name))
    assert dir(face) == face.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        face.nope  # noqa: B018 - reading is the test


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import sys, goodput.report; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_json_loads_no_other_form() -> None:
    code = (
        "import sys, goodput.report as r; r.to_json; r.from_json\n"
        f"print([m for m in {FORMS!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_every_form_is_deterministic() -> None:
    runs = [ledgers.demo(), ledgers.healthy()]
    for _ in range(2):
        assert face.render_terminal(runs[0], width=80) == face.render_terminal(
            ledgers.demo(), width=80
        )
        assert face.render_html(runs[0]) == face.render_html(ledgers.demo())
        assert face.compare_html(runs) == face.compare_html(runs)
        assert face.compare_json(runs) == face.compare_json(runs)


def test_comparison_json_has_its_schema() -> None:
    text = face.compare_json([ledgers.demo(), ledgers.healthy()], ["a", "b"])
    found = msgspec.json.decode(text)
    assert found["schema"] == "goodput.training-comparison/1.0"
    assert [run["name"] for run in found["runs"]] == ["a", "b"]
