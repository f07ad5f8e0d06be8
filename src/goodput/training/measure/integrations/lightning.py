"""`GoodputCallback` for Lightning's Trainer: steps, evaluations, checkpoints and restarts.

A step's number is `trainer.global_step` when it begins: the steps done. Read trainer.py first.
"""

import functools
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

from goodput.training.measure.instrument.options import Choices, Options
from goodput.training.measure.integrations.trainer import TrainerRecord, behind_the_wall
from goodput.training.measure.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightning.pytorch import LightningModule, Trainer

# Both packages of Lightning are in use, and their classes are not each other's.
_old = "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules
_lightning = import_module("pytorch_lightning" if _old else "lightning.pytorch")

_FIT: Final = "fit"


class GoodputCallback(_lightning.Callback):  # type: ignore[misc,name-defined] # by name
    """Records a Trainer: `Trainer(..., callbacks=[GoodputCallback(job="my-job")])`.

    With manual optimization and several optimizers, Lightning counts each of their steps: one batch
    is then one record that covers all of them, under Lightning's numbers. A checkpoint counts as
    durable when `save_checkpoint` returned, unless it holds weights only, or AsyncCheckpointIO
    writes it later.

    Args:
        run: where to record; default: the open run of this process, else a new one.
        choices: as for `goodput.instrument`.
    """

    def __init__(self, run: Run | None = None, **choices: Unpack[Choices]) -> None:
        self.record = TrainerRecord(run, Options(**choices))
        self._save: Callable[..., None] | None = None
        self._step = -1

    @behind_the_wall
    def setup(self, trainer: "Trainer", pl_module: "LightningModule", stage: str) -> None:
        """Wrap this trainer's `save_checkpoint`, which has a hook before it and none after."""
        del pl_module
        if stage != _FIT or self._save is not None:
            return
        save = trainer.save_checkpoint
        begin = self.record.session.wall.guard("trainer", self._save_begins)
        end = self.record.session.wall.guard("trainer", self._save_ends)
        fail = self.record.session.wall.guard("trainer", self.record.failed)

        @functools.wraps(save)
        def recorded(filepath: Any, *args: Any, **kwargs: Any) -> None:
            begin()
            try:
                save(filepath, *args, **kwargs)
            except BaseException:
                fail()
                raise
            weights_only = args[0] if args else kwargs.get("weights_only")
            end(trainer, str(filepath), weights_only=bool(weights_only))

        self._save = trainer.save_checkpoint = recorded

    @behind_the_wall
    def teardown(self, trainer: "Trainer", pl_module: "LightningModule", stage: str) -> None:
        """Give the trainer its own `save_checkpoint` back."""
        del pl_module
        if stage == _FIT and vars(trainer).get("save_checkpoint") is self._save:
            del trainer.save_checkpoint
        self._save = None

    @behind_the_wall
    def on_sanity_check_start(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        """The check before training belongs to start-up; its fetches must not count as data."""
        del trainer, pl_module
        self.record.session.fetches.pause(paused=True)

    @behind_the_wall
    def on_train_start(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        """The state is restored, or initialised."""
        del pl_module
        path = trainer.ckpt_path if trainer.global_step > 0 else None
        self.record.resumed(trainer.global_step, str(Path(path).absolute()) if path else "")

    @behind_the_wall
    def on_train_batch_start(
        self, trainer: "Trainer", pl_module: "LightningModule", batch: Any, batch_idx: int
    ) -> None:
        """A batch begins, the first or a later one of its step."""
        del pl_module, batch, batch_idx
        self._step = trainer.global_step
        self.record.step(self._step)

    @behind_the_wall
    def on_train_batch_end(
        self,
        trainer: "Trainer",
        pl_module: "LightningModule",
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """A batch ends, and a step with it if the optimizer has stepped."""
        del pl_module, outputs, batch, batch_idx
        if trainer.global_step > self._step:
            self.record.step_end()

    @behind_the_wall
    def on_validation_start(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        """An evaluation begins."""
        del pl_module
        if not trainer.sanity_checking:
            self.record.open("evaluation")

    @behind_the_wall
    def on_validation_end(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        """An evaluation ends."""
        del trainer, pl_module
        self.record.evaluated()

    on_test_start = on_predict_start = on_validation_start
    on_test_end = on_predict_end = on_validation_end

    def _save_begins(self) -> None:
        self.record.open("checkpoint")

    def _save_ends(self, trainer: "Trainer", path: str, *, weights_only: bool) -> None:
        later = isinstance(trainer.strategy.checkpoint_io, _lightning.plugins.AsyncCheckpointIO)
        self.record.checkpointed(
            trainer.global_step - 1,
            str(Path(path).absolute()),
            resumable=trainer.is_global_zero and not weights_only and not later,
        )
