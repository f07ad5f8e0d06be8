"""`attach(accelerator)`: the hooks of `instrument`, and Accelerate's `save_state`, `load_state`.

Steps are optimizer steps, so accumulated micro-batches and steps that a scaler skips are right.
"""

from pathlib import Path
from typing import Unpack

from accelerate import Accelerator

from goodput.training.measure.instrument.checkpoints import LOADS, SAVES, Call
from goodput.training.measure.instrument.evidence import absolute, read_committed
from goodput.training.measure.instrument.options import Choices, Options
from goodput.training.measure.instrument.session import install
from goodput.training.measure.run import Run


def attach(accelerator: Accelerator, run: Run | None = None, **choices: Unpack[Choices]) -> Run:
    """The Run that records a training loop written with Accelerate; call it once, before `prepare`.

    Args:
        accelerator: whose `save_state` and `load_state` are recorded as one checkpoint and one
            restore each. A state counts as durable when the main process's call returned.
        run: where to record; default: the open run of this process, else a new one.
        choices: as for `goodput.instrument`.

    Returns:
        The run, for what no hook can see.
    """
    session = install(run, Options(**choices))
    checkpoints, around = session.checkpoints, session.patches.around

    def saved_at(call: Call) -> str:
        args, kwargs = call
        return absolute(args[0] if args else kwargs.get("output_dir"))

    def loaded_from(call: Call) -> str:
        args, kwargs = call
        given = absolute(args[0] if args else kwargs.get("input_dir"))
        return given or latest(accelerator, session.run)

    save = checkpoints.around_save(saved_at, leads=lambda: bool(accelerator.is_main_process))
    around(SAVES, accelerator, "save_state", save)
    around(LOADS, accelerator, "load_state", checkpoints.around_load(loaded_from))
    return session.run


def latest(accelerator: Accelerator, run: Run) -> str:
    """The state that `load_state()` without a folder takes: the last that this job saved there."""
    folder = Path(accelerator.project_dir or ".", "checkpoints").absolute()
    committed = read_committed(run.path.parent, run.identity.rank)
    paths = [Path(event.path) for event in committed]
    ours = [path for path in paths if path.parent == folder and path.is_dir()]
    return str(ours[-1]) if ours else ""
