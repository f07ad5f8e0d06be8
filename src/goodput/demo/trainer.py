"""The training loop: DDP over gloo, saves, evaluates, resumes. Imports torch.

It says what it does twice: to goodput's recorder, as a user's script would, and to the witness.
"""

from collections.abc import Callable
from datetime import timedelta
from time import monotonic_ns
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import goodput
from goodput.demo import checkpoints
from goodput.demo.corpus import corpus
from goodput.demo.model import BYTES, GPT
from goodput.demo.plan import Folder, Plan
from goodput.demo.witness import Witness

EVALUATION_BATCHES = 4


class Trainer:
    """One rank of the job, ready to run: process group, model, optimizer, text.

    Args:
        plan: sizes and rhythm.
        folder: where checkpoints go.
        run: the recorder.
        witness: the independent record.
        say: prints a line (rank 0).
    """

    def __init__(
        self,
        plan: Plan,
        folder: Folder,
        *,
        run: goodput.Run,
        witness: Witness,
        say: Callable[[str], None],
    ) -> None:
        self.plan, self.folder, self.run, self.witness = plan, folder, run, witness
        with run.span("init"):
            dist.init_process_group("gloo", timeout=timedelta(seconds=plan.group_timeout_s))
            self.rank, self.world = dist.get_rank(), dist.get_world_size()
            self.say = say if self.rank == 0 else _silent
            torch.manual_seed(plan.seed)
            self.model = GPT(
                context=plan.context, width=plan.width, layers=plan.layers, heads=plan.heads
            )
            self.parallel = DistributedDataParallel(self.model)
            self.last_gradient_ns = 0
            for parameter in self.model.parameters():
                parameter.register_post_accumulate_grad_hook(self._gradient_ready)
            self.optimizer = torch.optim.AdamW(
                self.model.parameters(), lr=plan.learning_rate, weight_decay=0.1
            )
            train, validation = corpus()
            self.train_text, self.validation_text = _tensor(train), _tensor(validation)
        witness.mark("ready")

    def fit(self) -> None:
        """Run from the newest checkpoint to the last step."""
        first = self._restore()
        self.run.resumed(first)
        for step in range(first, self.plan.steps):
            self.witness.mark("data_begin", step)
            with self.run.span("data"):
                inputs, targets = self._batch(step)
            self.witness.mark("data_end", step)
            self.witness.mark("step_begin", step)
            self.run.step(step)
            loss, exposed_ns = self._step(inputs, targets)
            self.run.step_end(step, comm_ns=exposed_ns)
            self.witness.mark("step_end", step)
            if step % 10 == 0:
                self.run.point("loss", loss, step=step)
                self.say(f"step {step:4d}  loss {loss:.3f}")
            if (step + 1) % self.plan.evaluate_every == 0 or step + 1 == self.plan.steps:
                self._evaluate(step)
            if (step + 1) % self.plan.checkpoint_every == 0 or step + 1 == self.plan.steps:
                self._save(step)
        self.witness.mark("trained")
        dist.destroy_process_group()

    def _step(self, inputs: Tensor, targets: Tensor) -> tuple[float, int]:
        """Return the loss, and for how long the backward pass waited for its peer, ns."""
        loss = _loss(self.parallel, inputs, targets)
        self.optimizer.zero_grad()
        loss.backward()
        # DDP overlaps its all-reduce with the backward pass; what is left at its end is exposed.
        exposed_ns = monotonic_ns() - self.last_gradient_ns
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return float(loss.item()), exposed_ns

    def _gradient_ready(self, _parameter: Tensor) -> None:
        self.last_gradient_ns = monotonic_ns()

    def _batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Return this rank's part of step's batch: the same one whenever the step is run."""
        return self._windows(self.train_text, (step * self.world + self.rank) * 2 + self.plan.seed)

    def _windows(self, text: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        length = self.plan.context + 1
        draw = torch.Generator().manual_seed(seed)
        starts = torch.randint(len(text) - length, (self.plan.batch,), generator=draw)
        windows = torch.stack([text[start : start + length] for start in starts]).long()
        return windows[:, :-1], windows[:, 1:]

    def _evaluate(self, step: int) -> None:
        self.witness.mark("evaluation_begin", step)
        with self.run.span("evaluation"), torch.no_grad():
            total = torch.zeros(())
            for number in range(EVALUATION_BATCHES):
                seed = number * self.world + self.rank
                total += _loss(self.model, *self._windows(self.validation_text, seed))
            dist.all_reduce(total)
            loss = float(total) / (EVALUATION_BATCHES * self.world)
        self.witness.mark("evaluation_end", step)
        self.run.point("validation loss", loss, step=step)
        self.say(f"step {step:4d}  validation loss {loss:.3f}")

    def _save(self, step: int) -> None:
        """Rank 0 writes, the others wait: all are blocked until the file is durable."""
        self.witness.mark("save_begin", step)
        if self.rank == 0:
            path = checkpoints.path_of(self.folder.checkpoints, step)
            with self.run.checkpoint(step, str(path)):
                state = {
                    "model": self.model.state_dict(),
                    "optimizer": self.optimizer.state_dict(),
                }
                checkpoints.save(state, self.folder.checkpoints, step=step)
                dist.barrier()
        else:
            with self.run.span("checkpoint"):
                dist.barrier()
        self.witness.mark("save_end", step)

    def _restore(self) -> int:
        """Load the newest good checkpoint that rank 0 finds; return the first step to run."""
        self.witness.mark("restore_begin")
        with self.run.span("restore"):
            found = checkpoints.newest(self.folder.checkpoints) if self.rank == 0 else None
            last = torch.tensor(-1 if found is None else found[0])
            dist.broadcast(last, src=0)
            step = int(last)
            if step >= 0:
                state = found[1] if found else checkpoints.load(self.folder.checkpoints, step=step)
                self._load(state)
        self.witness.mark("restore_end", step + 1)
        self.say(f"resumed at step {step + 1}" if step >= 0 else "a new model")
        return step + 1

    def _load(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])


def _loss(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    logits = model(inputs)
    return functional.cross_entropy(logits.view(-1, BYTES), targets.reshape(-1))


def _tensor(text: bytes) -> Tensor:
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)


def _silent(_line: str) -> None:
    """Rank 0 speaks for all."""
