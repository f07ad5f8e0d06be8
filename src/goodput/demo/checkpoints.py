"""Checkpoints on disk: written whole or not at all, read back from the newest good one."""

import os
import re
from pathlib import Path
from typing import Any, Final

import torch

KEEP: Final = 2
"""How many stay: if the newest turns out to be bad, there is one before it."""
_NAME: Final = re.compile(r"step-(\d{6})\.pt")


def path_of(folder: Path, step: int) -> Path:
    """Return the file that holds the state after `step`."""
    return folder / f"step-{step:06d}.pt"


def save(state: dict[str, Any], folder: Path, *, step: int) -> None:
    """Write the state after `step`; once this returns it survives a crash of the machine."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / "writing.part"
    with part.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path_of(folder, step))
    _sync_folder(folder)
    for old in _saved_steps(folder)[:-KEEP]:
        path_of(folder, old).unlink()


def newest(folder: Path) -> tuple[int, dict[str, Any]] | None:
    """Return (last step, state) of the newest checkpoint that loads, None if there is none."""
    for step in reversed(_saved_steps(folder)):
        try:
            return step, load(folder, step=step)
        except (RuntimeError, OSError, EOFError):
            continue
    return None


def load(folder: Path, *, step: int) -> dict[str, Any]:
    """Return the state after `step`."""
    state: dict[str, Any] = torch.load(path_of(folder, step), weights_only=True)
    return state


def _saved_steps(folder: Path) -> list[int]:
    names = (_NAME.fullmatch(path.name) for path in folder.glob("step-*.pt"))
    return sorted(int(match[1]) for match in names if match)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
