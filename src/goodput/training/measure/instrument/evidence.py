"""What a checkpoint's content and this job's own records say about the step it holds.

Looks at plain containers and numbers; nothing here imports torch, and numbering.py decides.
"""

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from goodput.core.events import AnyEvent, Committed

SEARCH_DEPTH: Final = 4
"""Containers inside containers that are searched for an optimizer's state (assumed: enough for
`{"state_dict": {"optimizers": [{...}]}}`)."""
SEARCH_WIDTH: Final = 64
"""Entries of one container that are looked at: bounds the cost on huge state dicts (assumed)."""
COUNTER_NAMES: Final = frozenset(
    {
        "global_step",
        "global_steps",
        "iter",
        "iter_num",
        "iteration",
        "iterations",
        "last_epoch",
        "n_iter",
        "num_updates",
        "step",
        "steps",
        "train_step",
    }
)
"""Names under which training scripts keep their step; `last_epoch` is an LR scheduler's counter.
They count only when a checkpoint of this job has the same number (see `match_counters`)."""

_decoder = msgspec.json.Decoder(AnyEvent)
_COMMITTED: Final = b'"committed"'


def is_optimizer_state(value: object) -> bool:
    """True for what `Optimizer.state_dict()` returns."""
    return isinstance(value, Mapping) and "state" in value and "param_groups" in value


def holds_optimizer_state(saved: object) -> bool:
    """True if an optimizer's state is somewhere in a saved object: a training state."""
    return next(_optimizer_states(saved, SEARCH_DEPTH), None) is not None


def steps_done(optimizer_state: Mapping[str, object]) -> int | None:
    """Steps that an optimizer has made by its own state.

    Args:
        optimizer_state: with "state" and "param_groups", as `Optimizer.state_dict()` returns it;
            "state" maps parameters to their state.

    Returns:
        The largest `step` among the first 64 parameters and the groups; None when the optimizer
        keeps none (SGD) or has no state yet. A tensor on an accelerator is read, and waited for.
    """
    state = optimizer_state["state"]
    groups = optimizer_state["param_groups"]
    entries = list(islice(state.values(), SEARCH_WIDTH)) if isinstance(state, Mapping) else []
    if isinstance(groups, list):
        entries.extend(groups)
    steps = [_number(entry.get("step")) for entry in entries if isinstance(entry, Mapping)]
    return max((step for step in steps if step is not None), default=None)


def counters(saved: object) -> frozenset[int]:
    """Step counters in a saved object, under the names that training scripts use."""
    return frozenset(_counters(saved, SEARCH_DEPTH))


def match_counters(found: frozenset[int], committed: list[Committed]) -> Committed | None:
    """The one checkpoint of this job whose step agrees with a counter; None if not exactly one.

    A script's counter is the last step, or the number of steps done: both agree.
    """
    agreeing = {
        event.last_step: event
        for event in committed
        if event.last_step + 1 in found or event.last_step in found
    }
    return next(iter(agreeing.values())) if len(agreeing) == 1 else None


def match_path(path: str, committed: list[Committed]) -> Committed | None:
    """The last checkpoint of this job that was saved at this path."""
    same = [event for event in committed if event.path and event.path == path]
    return max(same, key=lambda event: event.t, default=None)


def read_committed(folder: Path, rank: int) -> list[Committed]:
    """The `committed` events of this rank and of rank 0 in a job's folder, oldest first.

    Lines and files that cannot be read are skipped.
    """
    files = {file for r in (0, rank) for file in folder.glob(f"events-r{r}-*.jsonl")}
    return sorted((e for file in files for e in _committed(file)), key=lambda event: event.t)


def absolute(target: object) -> str:
    """The absolute path of what was given to a save or load; empty for a buffer without a name."""
    if isinstance(target, (str, os.PathLike)):
        name = os.fspath(target)
    else:
        name = getattr(target, "name", "")
    if not isinstance(name, str) or not name:
        return ""
    return name if "://" in name else os.path.abspath(name)  # noqa: PTH100 - no links resolved


def _committed(file: Path) -> list[Committed]:
    try:
        with file.open("rb") as lines:
            events = [_decode(line) for line in lines if _COMMITTED in line]
    except OSError:
        return []
    return [event for event in events if isinstance(event, Committed)]


def _decode(line: bytes) -> object:
    try:
        return _decoder.decode(line)
    except msgspec.MsgspecError:
        return None


def _number(value: Any) -> int | None:
    """An int, a float, or a tensor of one element as an int; None for anything else."""
    if isinstance(value, (int, float)):
        return None if isinstance(value, bool) else int(value)
    elements = getattr(value, "numel", None)
    return int(value) if callable(elements) and elements() == 1 else None


def _children(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        yield from islice(value.values(), SEARCH_WIDTH)
    elif isinstance(value, (list, tuple)):
        yield from islice(value, SEARCH_WIDTH)


def _optimizer_states(value: object, depth: int) -> Iterator[object]:
    if is_optimizer_state(value):
        yield value
    elif depth > 0:
        for child in _children(value):
            yield from _optimizer_states(child, depth - 1)


def _counters(value: object, depth: int) -> Iterator[int]:
    if is_optimizer_state(value) or depth == 0:
        return
    if isinstance(value, Mapping):
        for name in COUNTER_NAMES & value.keys():
            if isinstance(counter := value[name], int) and not isinstance(counter, bool):
                yield counter
    for child in _children(value):
        yield from _counters(child, depth - 1)
