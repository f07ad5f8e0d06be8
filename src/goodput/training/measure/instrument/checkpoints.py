"""Saves and loads of torch.save, torch.load and torch.distributed.checkpoint: spans and events.

`committed` is written when the call returned, or when the future of an asynchronous save is done.
What counts as a checkpoint is decided by `is_checkpoint`, from content and path.
"""

import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from time import monotonic_ns, time_ns
from types import ModuleType
from typing import Any, Final, NamedTuple

import torch

from goodput.training.measure.instrument.evidence import (
    absolute,
    counters,
    holds_optimizer_state,
    match_counters,
    match_path,
    read_committed,
)
from goodput.training.measure.instrument.imports import after_import
from goodput.training.measure.instrument.numbering import (
    COUNTER,
    RECORD,
    UNKNOWN,
    Evidence,
    Numbering,
)
from goodput.training.measure.instrument.patches import Around, Patches
from goodput.training.measure.instrument.wall import Depth, Wall
from goodput.training.measure.run import Run

SAVES: Final = "checkpoint"
LOADS: Final = "restore"
_CHECKPOINT_NAME: Final = re.compile(r"(^|[^a-z])(ckpt|checkpoint)", re.IGNORECASE)

Call = tuple[tuple[object, ...], dict[str, object]]


class _Save(NamedTuple):
    """A save or load that has begun."""

    wall_ns: int
    mono_ns: int
    path: str
    last_step: int
    resumable: bool
    """Training could go on from it."""


def is_training_state(saved: object) -> bool:
    """True if a saved object can be trained on from: an optimizer's state is in it."""
    return holds_optimizer_state(saved)


def is_checkpoint(saved: object, path: str) -> bool:
    """True for a training state, and for a model saved at a path that says `ckpt` or `checkpoint`.

    The last two parts of the path are looked at: `checkpoint-100/model.pt`, `out/ckpt.pt`.
    """
    if is_training_state(saved):
        return True
    named = any(_CHECKPOINT_NAME.search(part) for part in Path(path).parts[-2:])
    return named and isinstance(saved, (Mapping, torch.nn.Module))


class Checkpoints:
    """Records what saves and loads cost, which step they hold, and where training resumed.

    Args:
        run: where records go.
        numbering: the step that the model holds.
        resume: told where a loaded state leaves off.
        interrupt: told that a save begins: an evaluation is over by then.
        fetching: whether a data loader is at work, whose loads are its own business.
    """

    def __init__(
        self,
        run: Run,
        numbering: Numbering,
        *,
        resume: Callable[[Evidence | None], None],
        interrupt: Callable[[], None],
        fetching: Callable[[], bool],
    ) -> None:
        self._run = run
        self._numbering = numbering
        self._resume = resume
        self._interrupt = interrupt
        self._fetching = fetching
        self.saves = 0
        """Saves recorded so far."""
        self._thread = threading.get_ident()
        self._depth = Depth()
        self._wall: Wall | None = None
        self._forget: Callable[[], object] = bool  # does nothing

    @property
    def busy(self) -> bool:
        """True while this thread is in a save or a load."""
        healthy = self._wall is not None and self._wall.is_on(SAVES) and self._wall.is_on(LOADS)
        return healthy and self._depth.value > 0

    def install(self, wall: Wall, patches: Patches) -> None:
        """Wrap the functions, and those of torch.distributed.checkpoint when it is imported."""
        self._wall = wall
        patches.around(SAVES, torch, "save", Around(self._save_begins, self._save_ends))
        patches.around(LOADS, torch, "load", Around(self._load_begins, self._load_ends))
        self._forget = after_import(
            "torch.distributed.checkpoint",
            wall.guard(SAVES, lambda dcp: self._wrap_dcp(wall, patches, dcp)),
        )

    def remove(self) -> None:
        """Stop waiting for torch.distributed.checkpoint to be imported."""
        self._forget()

    def _wrap_dcp(self, wall: Wall, patches: Patches, dcp: ModuleType) -> None:
        patches.around(SAVES, dcp, "save", Around(self._dcp_save_begins, self._save_ends))
        patches.around(LOADS, dcp, "load", Around(self._dcp_load_begins, self._dcp_load_ends))
        returns = partial(self._async_returns, wall.guard(SAVES, self._upload_ends))
        patches.around(SAVES, dcp, "async_save", Around(self._dcp_save_begins, returns))

    def around_save(
        self, path_of: Callable[[Call], str], *, leads: Callable[[], bool]
    ) -> Around[_Save]:
        """For a library's own save, which may call several of the functions above.

        Args:
            path_of: where it saves, from its arguments; a result that is a path overrides it.
            leads: whether this process may say that the whole checkpoint is durable.
        """

        def begins(args: tuple[object, ...], kwargs: dict[str, object]) -> _Save | None:
            if not self._ours():
                return None
            self._interrupt()
            self.saves += 1
            return self._open(path_of((args, kwargs)), resumable=leads())

        def ends(save: _Save, result: object, error: BaseException | None) -> None:
            self._save_ends(save._replace(path=absolute(result) or save.path), None, error)

        return Around(begins, ends)

    def around_load(self, path_of: Callable[[Call], str]) -> Around[_Save]:
        """For a library's own load, which may call several of the functions above.

        Args:
            path_of: where it loads from, from its arguments; empty = the latest of this job.
        """

        def begins(args: tuple[object, ...], kwargs: dict[str, object]) -> _Save | None:
            return self._open(path_of((args, kwargs)), resumable=False) if self._ours() else None

        return Around(begins, self._dcp_load_ends)

    def _open(self, path: str, *, resumable: bool) -> _Save:
        self._depth.value += 1
        last_step = self._numbering.last_step
        return _Save(time_ns(), monotonic_ns(), path, last_step, resumable)

    def _close(self, save: _Save, name: str, error: BaseException | None) -> None:
        self._depth.value -= 1
        self._span(save, name, error)

    def _span(
        self, save: _Save, name: str, error: BaseException | None, *, background: bool = False
    ) -> None:
        self._run.record_span(
            name,
            save.wall_ns,
            save.mono_ns,
            monotonic_ns() - save.mono_ns,
            step=save.last_step if name == "checkpoint" else None,
            background=background,
            failed=error is not None,
        )

    def _ours(self) -> bool:
        """True in the training thread, outside a save, load or fetch that is recorded already."""
        return (
            threading.get_ident() == self._thread and not self._depth.value and not self._fetching()
        )

    def _save_begins(self, args: tuple[object, ...], kwargs: dict[str, object]) -> _Save | None:
        saved = _argument(args, kwargs, 0, "obj")
        path = absolute(_argument(args, kwargs, 1, "f"))
        if not self._ours() or not is_checkpoint(saved, path):
            return None
        self._interrupt()
        self.saves += 1
        return self._open(path, resumable=bool(path))

    def _save_ends(self, save: _Save, _result: object, error: BaseException | None) -> None:
        self._close(save, "checkpoint", error)
        if error is None and save.resumable:
            self._commit(save)

    def _commit(self, save: _Save) -> None:
        """The save is durable; one before the first step holds nothing to lose."""
        if save.last_step >= 0:
            self._run.committed(save.last_step, save.path)

    def _load_begins(self, args: tuple[object, ...], kwargs: dict[str, object]) -> _Save | None:
        if not self._ours():
            return None
        return self._open(absolute(_argument(args, kwargs, 0, "f")), resumable=False)

    def _load_ends(self, load: _Save, loaded: object, error: BaseException | None) -> None:
        if error is not None or not is_checkpoint(loaded, load.path):
            self._depth.value -= 1
            return
        self._close(load, "restore", error)
        self._learn(load.path, counters(loaded), certain=is_training_state(loaded))

    def _dcp_save_begins(self, _args: object, kwargs: dict[str, object]) -> _Save | None:
        if not self._ours():
            return None
        self._interrupt()
        self.saves += 1
        return self._open(_dcp_path(kwargs), resumable=True)

    def _dcp_load_begins(self, _args: object, kwargs: dict[str, object]) -> _Save | None:
        return self._open(_dcp_path(kwargs), resumable=False) if self._ours() else None

    def _dcp_load_ends(self, load: _Save, _result: object, error: BaseException | None) -> None:
        self._close(load, "restore", error)
        if error is None:
            self._learn(load.path, frozenset(), certain=True)

    def _async_returns(
        self,
        done: Callable[[_Save, Future[object]], object],
        save: _Save,
        result: object,
        error: BaseException | None,
    ) -> None:
        """`async_save` returned: its blocking part is over, the rest goes on beside training."""
        self._close(save, "checkpoint", error)
        upload: Any = getattr(result, "upload_completion", result)
        if error is None and isinstance(upload, Future):
            upload.add_done_callback(partial(done, save))

    def _upload_ends(self, save: _Save, upload: Future[object]) -> None:
        error = None if upload.cancelled() else upload.exception()
        self._span(save, "checkpoint", error, background=True)
        if error is None and not upload.cancelled():
            self._commit(save)

    def _learn(self, path: str, found: frozenset[int], *, certain: bool) -> None:
        """A state was loaded: which step does it hold?

        Args:
            path: where it was.
            found: step counters in it.
            certain: it is a training state, so not to know its step is worth telling.
        """
        committed = read_committed(self._run.path.parent, self._run.identity.rank)
        same = match_path(path, committed) if path else None
        if same is not None:
            evidence = Evidence(same.last_step + 1, RECORD, path)
        elif (agreeing := match_counters(found, committed)) is not None:
            evidence = Evidence(agreeing.last_step + 1, COUNTER, path)
        elif certain and committed:
            evidence = Evidence(0, UNKNOWN, path)
        else:
            return
        self._resume(self._numbering.loaded(evidence))


def _argument(
    args: tuple[object, ...], kwargs: dict[str, object], position: int, name: str
) -> object:
    return args[position] if len(args) > position else kwargs.get(name)


def _dcp_path(kwargs: dict[str, object]) -> str:
    """Where torch.distributed.checkpoint saves to or loads from, if it says."""
    if kwargs.get("checkpoint_id") is not None:
        return absolute(kwargs["checkpoint_id"])
    storage: Any = kwargs.get("storage_writer") or kwargs.get("storage_reader")
    return absolute(getattr(storage, "path", ""))
