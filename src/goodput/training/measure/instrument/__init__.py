"""`goodput.instrument()`: one line that records a PyTorch training script through public hooks.

This face imports no torch; session.py puts the hooks together. What each hook can and cannot see is
in docs/instrument.md.
"""

import os
import sys
from collections.abc import Callable
from typing import Final, Literal

from goodput.core.errors import MissingExtraError
from goodput.training.measure.instrument.options import Options
from goodput.training.measure.run import Run

__all__ = ["count_flops", "instrument", "uninstrument"]

_SESSION: Final = f"{__name__}.session"


def instrument(
    run: Run | None = None,
    *,
    job: str | None = None,
    dir: str | os.PathLike[str] | None = None,  # noqa: A002 - the word that users look for
    step_of: Callable[[], int] | None = None,
    count_flops: bool = False,
    communication: bool = True,
    chips: int | None = None,
    detail: Literal["auto", "steps", "windows"] = "auto",
    chip: str = "",
    dtype: str = "",
) -> Run:
    """The Run that now records this script: steps, waits, evaluations, checkpoints, restarts.

    Call it once, before the process group is set up and data loaders are iterated. A second call
    returns the same run. No hook can break training: one that fails is switched off and says so.

    Args:
        run: where to record; default: the open run of this process, else `goodput.start`.
        job: name of the job; else $GOODPUT_JOB, else `run`.
        dir: folder of all jobs; else $GOODPUT_DIR, else ./goodput-runs.
        step_of: returns the number of the step that is running, counted over all restarts. Needed
            only where neither a checkpoint nor the optimizer's state says it.
        count_flops: count the FLOPs of one early step, which takes longer for it.
        communication: record time blocked in collectives (CPU, gloo); a gradient hook on one
            parameter is part of it.
        chips: chips that the job holds; default: one per rank.
        detail: as for `goodput.start`.
        chip: name in the hardware table; default: as CUDA names the device.
        dtype: number format of the matrix products, e.g. `bf16`, for MFU.

    Returns:
        The run, for what no hook can see: `with run.span("evaluation")`, `run.point("loss", x)`.

    Raises:
        MissingExtraError: torch is not installed.
        ConfigError: `detail` is not one of the three words.
    """
    _need_torch("goodput.instrument()")
    from goodput.training.measure.instrument.session import install

    options = Options(
        job=job,
        dir=dir,
        step_of=step_of,
        count_flops=count_flops,
        communication=communication,
        chips=chips,
        detail=detail,
        chip=chip,
        dtype=dtype,
    )
    return install(run, options).run


def uninstrument() -> None:
    """Take all hooks out again, if there are any; the run stays open."""
    session = sys.modules.get(_SESSION)
    if session is not None:
        session.uninstall()


def count_flops(function: Callable[[], object]) -> int:
    """Floating point operations of one call of `function` on this process.

    Args:
        function: what to count, e.g. one forward and backward pass; it is called once.

    Returns:
        FLOPs, a multiply-add as 2, of matrix products, convolutions and attention. Times the number
        of ranks it is `flops_per_step` of `run.work`.

    Raises:
        MissingExtraError: torch is not installed.

    Source: torch.utils.flop_counter.
    """
    _need_torch("count_flops()")
    from goodput.training.measure.instrument.flops import count_flops as count

    return count(function)


def _need_torch(feature: str) -> None:
    try:
        import torch  # noqa: F401 - whether it is there
    except ModuleNotFoundError as error:
        raise MissingExtraError(feature, extra="torch") from error
