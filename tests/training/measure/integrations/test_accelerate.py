"""attach() to a real Accelerator on CPU: accumulation, save_state, a death, load_state."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
accelerate = pytest.importorskip("accelerate", reason="needs accelerate")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.integration,
    pytest.mark.filterwarnings("default"),  # the library's own deprecations
]

from goodput.training.measure.instrument import uninstrument  # noqa: E402
from goodput.training.measure.integrations.accelerate import attach  # noqa: E402


class Training:
    """12 batches per epoch: 6 steps of 2 micro-batches."""

    def __init__(self, job: Any, project: Path, *, automatic: bool, optimizer: str) -> None:
        accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
        configuration = accelerate.utils.ProjectConfiguration(
            project_dir=str(project), automatic_checkpoint_naming=automatic
        )
        self.accelerator = accelerate.Accelerator(
            cpu=True, gradient_accumulation_steps=2, project_config=configuration
        )
        self.run = attach(self.accelerator, job="job", dir=job.folder)
        model = torch.nn.Linear(4, 1)
        rows = torch.utils.data.DataLoader(torch.ones(24, 4), batch_size=2)
        made = getattr(torch.optim, optimizer)(model.parameters(), lr=0.01)
        self.model, self.optimizer, self.rows = self.accelerator.prepare(model, made, rows)

    def steps(self, count: int) -> None:
        for _, batch in zip(range(2 * count), self.rows, strict=False):
            with self.accelerator.accumulate(self.model):
                self.accelerator.backward(self.model(batch).square().mean())
                self.optimizer.step()
                self.optimizer.zero_grad()

    def close(self) -> None:
        uninstrument()
        self.run.close()


@pytest.mark.parametrize("optimizer", ["AdamW", "SGD"])
@pytest.mark.parametrize("automatic", [True, False])
def test_a_run_that_dies_and_is_resumed(
    job: Any, tmp_path: Path, steps_of: Any, automatic: bool, optimizer: str
) -> None:
    folder = None if automatic else str(tmp_path / "state")
    first = Training(job, tmp_path, automatic=automatic, optimizer=optimizer)
    first.steps(3)
    first.accelerator.save_state(folder)
    first.steps(2)
    first.close()  # what was not saved is lost
    assert job.story("data", "steps") == [
        "resumed 0",
        *steps_of(0, 2),
        *("checkpoint", "committed 2"),
        *steps_of(3, 4)[1:],
    ]
    committed = next(e for e in job.recorded() if type(e).__name__ == "Committed")
    assert committed.path == (folder or str(tmp_path / "checkpoints" / "checkpoint_0"))

    second = Training(job, tmp_path, automatic=automatic, optimizer=optimizer)
    second.accelerator.load_state(folder)
    second.steps(2)
    second.close()
    words = job.story("data", "steps")
    assert words.count("restore") == 1
    assert [word for word in words if word != "restore"] == ["resumed 3", *steps_of(3, 4)]


def test_nothing_is_left_on_the_accelerator(job: Any, tmp_path: Path) -> None:
    training = Training(job, tmp_path, automatic=True, optimizer="SGD")
    training.steps(1)
    training.close()
    training.accelerator.save_state()
    assert "checkpoint" not in job.story()
