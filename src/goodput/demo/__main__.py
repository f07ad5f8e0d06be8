"""`make demo`: train, get hit, report. `python -m goodput.demo [--out FOLDER]`."""

import argparse
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

from goodput.core.errors import GoodputError, InputError, MissingExtraError
from goodput.demo.orchestrate import run
from goodput.demo.plan import Folder, Plan
from goodput.demo.progress import Progress


def main(argv: list[str] | None = None) -> int:
    """Run the demo and its report; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m goodput.demo", description=__doc__)
    parser.add_argument(
        "--out", type=Path, help="folder of the run (default: demo-out/ and the time of day)"
    )
    root = parser.parse_args(argv).out or Path("demo-out") / time.strftime("%Y%m%d-%H%M%S")
    plan = Plan()
    say(
        f"Training a small GPT on Python's own manual: {plan.steps} steps, 2 processes, a\n"
        f"checkpoint every {plan.checkpoint_every} steps. A SIGKILL and a SIGSTOP will hit it. "
        "About 3 minutes."
    )
    progress = Progress(plan, sys.stdout)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    try:
        folder = run(root, plan=plan, watcher=progress)
    except GoodputError as error:
        progress.close()
        sys.stderr.write(f"goodput: error: {error}\n")
        return _exit_code(error)
    except KeyboardInterrupt:
        progress.close()
        say(f"Stopped. What was recorded: goodput train report {Folder(root).events}")
        return 130
    progress.close()
    html = folder.root / "report.html"
    command = ["train", "report", str(folder.events), "--html", str(html)]
    say(f"goodput {' '.join(command)}\n")
    # The same command a user would type; a failing report is the demo's failure.
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "goodput", *command], check=False
    )
    return done.returncode


def _exit_code(error: GoodputError) -> int:
    """Return the code that docs/cli.md gives for an error."""
    if isinstance(error, MissingExtraError):
        return 3
    return 2 if isinstance(error, InputError) else 1


def _interrupted(_number: int, _frame: FrameType | None) -> NoReturn:
    """End as Ctrl-C does: the job must not outlive the one who watches it."""
    raise KeyboardInterrupt


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
