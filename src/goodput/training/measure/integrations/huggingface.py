"""`GoodputCallback` for `transformers.Trainer`: steps, evaluations, checkpoints and restarts.

A step's number is `state.global_step` when it begins: the updates done. Read trainer.py first.
"""

from pathlib import Path
from typing import Any, Unpack

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from goodput.training.measure.instrument.options import Choices, Options
from goodput.training.measure.integrations.trainer import TrainerRecord, behind_the_wall
from goodput.training.measure.run import Run


class GoodputCallback(TrainerCallback):  # type: ignore[misc] # the library may be missing
    """Records a Trainer: `Trainer(..., callbacks=[GoodputCallback(job="my-job")])`.

    Make it before the Trainer, so that the time the Trainer takes to be built is seen. A checkpoint
    counts as durable when the Trainer says that it is saved, unless `save_only_model` leaves out
    what a restart needs.

    Args:
        run: where to record; default: the open run of this process, else a new one.
        choices: as for `goodput.instrument`.
    """

    def __init__(self, run: Run | None = None, **choices: Unpack[Choices]) -> None:
        self.record = TrainerRecord(run, Options(**choices))

    @behind_the_wall
    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """The state is restored, or initialised."""
        del control
        path = _checkpoint_path(args, state)
        restored = state.global_step > 0 and path.is_dir()
        self.record.resumed(state.global_step, str(path) if restored else "")

    @behind_the_wall
    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """The first micro-batch of a step begins."""
        del args, control
        self.record.step(state.global_step)

    @behind_the_wall
    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """The optimizer has stepped and `global_step` has moved on."""
        del args, state
        self.record.step_end()
        self._open_next(control)

    @behind_the_wall
    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """An evaluation or a save may follow."""
        del args, state
        self.record.mark()
        self._open_next(control)

    @behind_the_wall
    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Training's log is written: what was asked for comes next."""
        del args, state
        self._open_next(control)

    @behind_the_wall
    def on_prediction_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """A batch was evaluated; the first one opens an evaluation that nobody announced."""
        del args, state, control
        self.record.open("evaluation")

    @behind_the_wall
    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """The evaluation is over."""
        del args, state
        self.record.evaluated()
        if control.should_save:
            self.record.open("checkpoint")

    @behind_the_wall
    def on_predict(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """`trainer.predict()` is over."""
        del args, state, control
        self.record.evaluated()

    @behind_the_wall
    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """The checkpoint is written."""
        del control
        self.record.checkpointed(
            state.global_step - 1,
            str(_checkpoint_path(args, state)),
            resumable=state.is_world_process_zero and not args.save_only_model,
        )

    def _open_next(self, control: TrainerControl) -> None:
        """Open what the Trainer does next. It logs first, then evaluates, then saves."""
        if control.should_log:
            return
        if control.should_evaluate:
            self.record.open("evaluation")
        elif control.should_save:
            self.record.open("checkpoint")


def _checkpoint_path(args: TrainingArguments, state: TrainerState) -> Path:
    return Path(args.output_dir, f"checkpoint-{state.global_step}").absolute()
