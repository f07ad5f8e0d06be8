"""Counted FLOPs against the closed form for dense layers: 2 FLOPs per multiply-add."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
pytestmark = pytest.mark.torch

BATCH, WIDTH = 8, 32
FORWARD = 2 * BATCH * WIDTH * WIDTH


def dense() -> Any:
    return torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3)))


def test_a_call_is_counted_by_the_closed_form() -> None:
    from goodput.training.measure.instrument import count_flops

    model = dense()
    # Backward: gradients of weights in 3 layers, of inputs in the upper 2.
    flops = count_flops(lambda: model(torch.ones(BATCH, WIDTH)).sum().backward())
    assert flops == 3 * FORWARD + 5 * FORWARD


def train(model: Any, steps: int, *, evaluate_after: int = -1) -> None:
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(steps):
        for _ in range(2):  # two micro-batches
            model(torch.ones(BATCH, WIDTH)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == evaluate_after:
            with torch.no_grad():
                for batch in torch.utils.data.DataLoader(torch.ones(4, WIDTH)):
                    model(batch)


def works(job: Any) -> list[Any]:
    return [event for event in job.recorded() if type(event).__name__ == "Work"]


def test_one_whole_step_is_counted(job: Any) -> None:
    with job.attempt(count_flops=True, dtype="fp32", chip="H100-SXM"):
        train(dense(), 4)
    (work,) = works(job)
    assert work.flops_per_step == 2 * 8 * FORWARD
    assert work.source == "counted"
    assert (work.chip, work.dtype) == ("H100-SXM", "fp32")


def test_an_evaluation_in_the_counted_step_moves_the_count_to_the_next(job: Any) -> None:
    with job.attempt(count_flops=True):
        train(dense(), 4, evaluate_after=0)
    (work,) = works(job)
    assert work.flops_per_step == 2 * 8 * FORWARD


def test_nothing_is_counted_unless_asked(job: Any) -> None:
    with job.attempt():
        train(dense(), 4)
    assert works(job) == []


def test_a_model_without_matrix_products_is_told_not_recorded(
    job: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    class Scale(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.by = torch.nn.Parameter(torch.ones(WIDTH))

        def forward(self, x: Any) -> Any:
            return x * self.by

    with job.attempt(count_flops=True):
        train(Scale(), 4)
    assert works(job) == []
    assert "no FLOPs were counted" in capfd.readouterr().err
