"""Plain PyTorch DDP with one line of goodput: data, steps, evaluations, saves, restarts recorded.

    torchrun --nproc-per-node 2 examples/ddp.py --steps 200
    goodput train report goodput-runs/ddp

Stop it (Ctrl-C, kill -9) and start it again: it resumes from the last checkpoint, and the report
shows what the interruption cost. Runs on CPU in seconds; only the marked lines are goodput's.
"""

import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import goodput  # <- goodput

WIDTH = 256


def loaders(rank: int, world: int) -> tuple[DataLoader, DataLoader]:
    """Training and validation batches of a made-up regression."""
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(4096, WIDTH, generator=draw)
    y = x.roll(1, dims=1).tanh()
    train = TensorDataset(x[:3584], y[:3584])
    sampler = DistributedSampler(train, num_replicas=world, rank=rank)
    validation = TensorDataset(x[3584:], y[3584:])
    return DataLoader(train, batch_size=64, sampler=sampler), DataLoader(validation, batch_size=128)


def main() -> None:
    """Train to `--steps`, from the last checkpoint if there is one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--save-every", type=int, default=50)
    parser.add_argument("--checkpoint", type=Path, default=Path("ddp-checkpoint.pt"))
    options = parser.parse_args()

    goodput.instrument(job="ddp")  # <- goodput

    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(WIDTH, 1024), nn.GELU(), nn.Linear(1024, WIDTH))
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    train, validation = loaders(rank, world)
    step = 0
    if options.checkpoint.exists():
        state = torch.load(options.checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]

    epoch = 0
    while step < options.steps:
        train.sampler.set_epoch(epoch)
        epoch += 1
        for x, y in train:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            step += 1
            if step % options.save_every == 0 or step == options.steps:
                evaluate(model, validation, step, rank)
                if rank == 0:
                    save(model, optimizer, step, options.checkpoint)
                dist.barrier()
            if step == options.steps:
                break
    dist.destroy_process_group()


@torch.no_grad()
def evaluate(model: nn.Module, batches: DataLoader, step: int, rank: int) -> None:
    """Print the validation loss."""
    losses = [nn.functional.mse_loss(model(x), y) for x, y in batches]
    if rank == 0:
        print(f"step {step:5d}  validation loss {torch.stack(losses).mean():.4f}", flush=True)


def save(model: nn.Module, optimizer: torch.optim.Optimizer, step: int, path: Path) -> None:
    """Write a checkpoint so that a kill at any instant leaves the old one or the new one."""
    draft = path.with_suffix(".draft")
    torch.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, draft
    )
    draft.replace(path)


if __name__ == "__main__":
    main()
