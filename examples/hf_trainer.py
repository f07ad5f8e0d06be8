"""A Hugging Face Trainer with goodput's callback: steps, evaluations, saves and restarts recorded.

    python examples/hf_trainer.py --steps 60
    goodput train report goodput-runs/hf-trainer

Stop it and start it again: the Trainer resumes from its last checkpoint, and the report shows what
the interruption cost. A tiny untrained GPT-2 on made-up tokens: CPU, seconds, no download.
"""

import argparse
from pathlib import Path

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from goodput.training.measure.integrations.huggingface import GoodputCallback  # <- goodput

VOCABULARY, LENGTH = 64, 32


class Counting(Dataset):
    """Sequences that count up from a start token."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        """How many sequences there are."""
        return self.size

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = (index + torch.arange(LENGTH)) % VOCABULARY
        return {"input_ids": tokens, "labels": tokens}


def main() -> None:
    """Train to `--steps`, from the last checkpoint if there is one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--output", type=Path, default=Path("hf-trainer-output"))
    options = parser.parse_args()

    callback = GoodputCallback(job="hf-trainer")  # <- goodput

    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=LENGTH,
        n_embd=64,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=TrainingArguments(
            output_dir=str(options.output),
            max_steps=options.steps,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=2,
            logging_steps=20,
            eval_strategy="steps",
            eval_steps=20,
            save_steps=20,
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=Counting(2048),
        eval_dataset=Counting(64),
        callbacks=[callback],  # <- goodput
    )
    trainer.train(resume_from_checkpoint=any(options.output.glob("checkpoint-*")))


if __name__ == "__main__":
    main()
