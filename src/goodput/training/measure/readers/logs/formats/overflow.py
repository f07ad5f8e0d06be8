"""Steps that a dynamic loss scale threw away: they took time and changed nothing."""

from goodput.training.measure.readers.logs.text import Story

SKIPPED = "steps skipped for an overflow of the loss scale: they took time and made no progress"


class Overflow:
    """Overflow lines of DeepSpeed's optimizers, those of rank 0."""

    name = "overflow"
    signs = (b"Skipping step. Attempted loss scale",)
    needles = (b"Skipping step. Attempted loss scale",)

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        if b"Rank 0" in line or b"ank" not in line:
            story.note(SKIPPED)

    def flush(self, story: Story) -> None:
        """Nothing is held back."""
