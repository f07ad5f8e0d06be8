"""The demo's training script: what torchrun starts, `-m goodput.demo.train RUN_FOLDER`."""

import os
import sys
from pathlib import Path

import msgspec

import goodput
from goodput.demo.plan import Folder, Plan
from goodput.demo.witness import Witness


def main(root: Path) -> None:
    """Train this process's share of the job.

    Args:
        root: the run's folder, with plan.json in it.
    """
    folder = Folder(root)
    plan = msgspec.json.decode(folder.plan.read_bytes(), type=Plan)
    rank = int(os.environ["RANK"])
    witness = Witness(folder.truth / f"worker-{os.getpid()}.log")
    witness.mark("rank", rank)
    witness.mark("parent", os.getppid())
    run = goodput.start()
    try:
        from goodput.demo.trainer import Trainer

        witness.mark("imported")
        Trainer(plan, folder, run=run, witness=witness, say=_say).fit()
    except BaseException:
        # The instant at which this rank learnt that something is wrong, a peer's death for one.
        witness.mark("failed")
        raise
    run.close()
    witness.mark("done")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
