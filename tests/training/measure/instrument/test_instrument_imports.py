"""Acting after an import: at once, later, never, and without a trace on the module."""

import importlib
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from goodput.training.measure.instrument.imports import after_import

if TYPE_CHECKING:
    from types import ModuleType

NAME = "imported_by_the_test_of_after_import"


@pytest.fixture
def module_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that can be imported by NAME, and is not."""
    file = tmp_path / f"{NAME}.py"
    file.write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    return file


def test_a_module_that_is_there_is_told_at_once() -> None:
    told: list[ModuleType] = []
    after_import("json", told.append)
    assert told == [sys.modules["json"]]


def test_a_module_is_told_once_when_it_has_run(module_file: Path) -> None:
    told: list[int] = []
    finders = list(sys.meta_path)
    after_import(NAME, lambda module: told.append(module.value))
    assert told == []
    module = importlib.import_module(NAME)
    importlib.reload(module)
    assert told == [1]
    assert list(sys.meta_path) == finders
    assert isinstance(module.__loader__, SourceFileLoader)
    assert module.__spec__ is not None
    assert module.__spec__.loader is module.__loader__


def test_a_wish_can_be_taken_back(module_file: Path) -> None:
    told: list[ModuleType] = []
    forget = after_import(NAME, told.append)
    forget()
    forget()
    importlib.import_module(NAME)
    assert told == []


def test_a_module_that_fails_fails_as_it_would(module_file: Path) -> None:
    module_file.write_text("raise LookupError('its own')\n")
    told: list[ModuleType] = []
    after_import(NAME, told.append)
    with pytest.raises(LookupError, match="its own"):
        importlib.import_module(NAME)
    assert told == []


def test_a_module_that_is_missing_is_missing() -> None:
    told: list[ModuleType] = []
    forget = after_import("no_such_module_anywhere", told.append)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module_anywhere")
    forget()
    assert told == []
