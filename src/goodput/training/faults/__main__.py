"""Hits a running job with faults: `python -m goodput.training.faults --dir RUN --schedule F`."""

import argparse
import sys
from pathlib import Path
from typing import Any, cast

from goodput.core.errors import ConfigError, GoodputError
from goodput.training.faults.inject import Injector
from goodput.training.faults.schedule import (
    KINDS,
    FaultSchedule,
    Kind,
    random_schedule,
    read_schedule,
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m goodput.training.faults",
        description="Send scheduled or random faults to the workers of a recorded job (Linux).",
    )
    parser.add_argument("--dir", type=Path, required=True, help="folder of the job's event files")
    parser.add_argument("--job", default="", help="job name, if the folder holds several")
    parser.add_argument("--log", type=Path, help="truth log (default: DIR/faults.jsonl)")
    parser.add_argument("--schedule", type=Path, help="faults from a .toml or .json file")
    parser.add_argument("--mean-between", type=float, help="random faults: mean seconds between")
    parser.add_argument("--horizon", type=float, default=3600.0, help="no fault later, seconds")
    parser.add_argument("--ranks", type=int, default=1, help="random faults: workers of the job")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--mix",
        default="kill=1",
        help=f"random faults: weights such as kill=3,hang=1; kinds: {', '.join(KINDS)}",
    )
    return parser


def _mix(text: str) -> dict[Kind, float]:
    mix: dict[Kind, float] = {}
    for part in text.split(","):
        kind, _, weight = part.partition("=")
        try:
            mix[cast(Kind, kind.strip())] = float(weight or "1")
        except ValueError:
            raise ConfigError(f"--mix: {part!r} is not KIND=WEIGHT") from None
    if unknown := sorted(set(mix) - set(KINDS)):
        raise ConfigError(f"--mix: no such kind: {', '.join(unknown)}; known: {', '.join(KINDS)}")
    return mix


def _schedule(args: argparse.Namespace) -> FaultSchedule:
    if (args.schedule is None) == (args.mean_between is None):
        raise ConfigError("give --schedule or --mean-between, one of the two")
    if args.schedule is not None:
        return read_schedule(args.schedule)
    return random_schedule(
        mean_between_s=args.mean_between,
        horizon_s=args.horizon,
        ranks=args.ranks,
        mix=_mix(args.mix),
        seed=args.seed,
    )


def main(argv: list[str] | None = None) -> int:
    """Run the injector until the schedule or the job is over; return the exit code."""
    args: Any = _parser().parse_args(argv)
    try:
        injector = Injector(
            _schedule(args), args.dir, log=args.log or args.dir / "faults.jsonl", job=args.job
        )
        injector.run()
    except GoodputError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    for entry in injector.sent:
        sys.stdout.write(
            f"fault {entry.fault}: {entry.signal} to rank {entry.rank} "
            f"(pid {', '.join(map(str, entry.pids))}) at step {entry.step}\n"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
