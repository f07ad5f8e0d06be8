"""Foreign files that are read whole, as tests want to look at them."""

from collections.abc import Sequence
from pathlib import Path

from samples import Told

from goodput.training.measure.readers import read


def told_by(*paths: Path | str) -> Told:
    """Read files and folders as a user would, and return what they told."""
    log = read([*paths])
    return Told(list(log.processes), log.notes)


def by_job(told: Told, job: str) -> Told:
    """The part of it that belongs to one job."""
    return Told([log for log in told.logs if log.header.job == job], told.notes)


def jobs(told: Told) -> list[str]:
    """Names of the jobs, sorted."""
    return sorted({log.header.job for log in told.logs})


def megatron_lines(
    first: int, last: int, *, at: str, every: int = 10, seconds: float = 1.0
) -> Sequence[str]:
    """Lines of a Megatron log of today, one for every `every` iterations, from an instant on."""
    from datetime import datetime, timedelta

    begun = datetime.fromisoformat(at)
    return [
        f" [{begun + timedelta(seconds=(n - first + 1) * seconds):%Y-%m-%d %H:%M:%S}] "
        f"iteration {n:8d}/ 1000 | consumed samples: {n * 8} | elapsed time per iteration (ms): "
        f"{seconds * 1000:.1f} | learning rate: 1.0E-04 | global batch size: 8 | lm loss: 2.0 | "
        "number of skipped iterations: 0 | number of nan iterations: 0 |"
        for n in range(first, last + 1)
        if n % every == 0
    ]
