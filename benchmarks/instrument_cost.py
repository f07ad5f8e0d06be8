"""What does `goodput.instrument()` add to a training step? CPU and wall time of two DDP processes.

    python benchmarks/instrument_cost.py [--blocks 48] [--steps 200] [--width 64] [--layers 4]

Blocks of steps without and with the hooks alternate inside the same two processes in the order
ABBA, so that drift of the machine cancels. `thread` is the CPU time of the training thread, in
which all hooks run; `process` adds gloo's threads, whose polling is most of the noise. There is no
peer: no other recorder works without changes to the script. Needs torch; gloo on loopback.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from goodput.training.measure.instrument import instrument, uninstrument

ROWS = 16


def batches(width: int, steps: int) -> DataLoader[torch.Tensor]:
    """One block's batches."""
    return DataLoader(torch.randn(steps * ROWS, width), batch_size=ROWS)


def worker(rank: int, options: argparse.Namespace, folder: str) -> None:
    """Run all blocks on one rank; writes microseconds per step of each block."""
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", GOODPUT_DETAIL="auto")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    width = options.width
    net = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(options.layers)))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.AdamW(model.parameters())
    loader = batches(width, options.steps)
    blocks: list[tuple[bool, float, float, float]] = []
    for block in range(-4, options.blocks):
        recorded = block % 4 in {1, 2}
        if recorded:
            instrument(job="cost", dir=folder, communication=not options.no_communication)
        dist.barrier()
        before = time.thread_time(), time.process_time(), time.perf_counter()
        for batch in loader:
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
        after = time.thread_time(), time.process_time(), time.perf_counter()
        if recorded:
            uninstrument()
        if block >= 0:  # the first round warms up
            spent = [(b - a) / options.steps * 1e6 for a, b in zip(before, after, strict=True)]
            blocks.append((recorded, *spent))
    Path(folder, f"rank{rank}.json").write_text(json.dumps(blocks))
    dist.destroy_process_group()


def main() -> None:
    """Print microseconds per step without and with the hooks, and their difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=48)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--no-communication", action="store_true")
    options = parser.parse_args()
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(worker, args=(options, folder), nprocs=2)
        print(
            f"{options.layers} layers of {options.width}, {options.blocks} blocks ABBA, us per step"
        )
        for rank in (0, 1):
            blocks = json.loads(Path(folder, f"rank{rank}.json").read_text())
            for column, name in ((1, "thread"), (2, "process"), (3, "wall")):
                print(f"rank {rank} {name:8s}", compare(blocks, column))


def compare(blocks: list[list[float]], column: int) -> str:
    """One line: without, with, and the median difference of the rounds of four blocks."""
    off = statistics.median(block[column] for block in blocks if not block[0])
    on = statistics.median(block[column] for block in blocks if block[0])
    # Linear drift cancels within a round.
    rounds = [
        (b[1][column] + b[2][column] - b[0][column] - b[3][column]) / 2
        for b in (blocks[i : i + 4] for i in range(0, len(blocks) - 3, 4))
    ]
    difference = statistics.median(rounds)
    spread = statistics.median(abs(each - difference) for each in rounds)
    return (
        f"off {off:8.1f}  on {on:8.1f}  difference {difference:+7.1f} "
        f"(MAD {spread:.1f}), {difference / off:+.1%}"
    )


if __name__ == "__main__":
    main()
