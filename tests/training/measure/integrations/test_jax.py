"""JAX on CPU with Orbax: steps that end when computed, checkpoints, a death, a restore, FLOPs."""

import time
from pathlib import Path
from typing import Any

import pytest

jax = pytest.importorskip("jax", reason="needs jax")
ocp = pytest.importorskip("orbax.checkpoint", reason="needs orbax-checkpoint")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("default"),  # the libraries' own deprecations
]

import goodput  # noqa: E402
from goodput.training.measure.integrations.jax import (  # noqa: E402
    CheckpointManager,
    count_flops,
    step,
)

WIDTH = 64


def update(weights: Any, rows: Any) -> Any:
    loss = jax.grad(lambda w: ((rows @ w["w"]) ** 2).mean())
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, loss(weights))


def train(job: Any, folder: Path, steps: int, *, asynchronous: bool, label: Any = "last") -> None:
    """Steps 0.. or from the latest checkpoint on; saves every third."""
    run = goodput.start(job="job", dir=job.folder)
    options = ocp.CheckpointManagerOptions(enable_async_checkpointing=asynchronous)
    manager = CheckpointManager(ocp.CheckpointManager(folder, options=options), run, label=label)
    weights = {"w": jax.numpy.ones((WIDTH, WIDTH))}
    rows = jax.numpy.ones((8, WIDTH))
    first = 0
    if manager.latest_step() is None:
        run.resumed(0)
    else:
        weights = manager.restore(args=ocp.args.StandardRestore(weights))
        first = manager.latest_step() + (1 if label == "last" else 0)
    compiled = jax.jit(update)
    for n in range(first, first + steps):
        with step(run, n) as outputs:
            weights = compiled(weights, rows)
            outputs.wait_for(weights)
        if n % 3 == 2:
            saved_as = n if label == "last" else n + 1
            assert manager.save(saved_as, args=ocp.args.StandardSave(weights))
    manager.wait_until_finished()
    run.close()


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("label", ["last", "done"])
def test_a_run_that_ends_between_checkpoints_and_is_restored(
    job: Any, tmp_path: Path, asynchronous: bool, label: str
) -> None:
    folder = tmp_path / "saved"
    train(job, folder, 5, asynchronous=asynchronous, label=label)
    words = [word for word in job.story() if "checkpoint" not in word and "committed" not in word]
    assert words == ["resumed 0", *(f"{kind} {n}" for n in range(5) for kind in ("step", "end"))]
    assert [word for word in job.story() if word.startswith("committed")] == ["committed 2"]
    background = [span for span in job.spans("checkpoint") if span.background]
    assert len(background) == (1 if asynchronous else 0)

    train(job, folder, 2, asynchronous=asynchronous, label=label)
    words = [word for word in job.story() if "checkpoint" not in word]
    assert words == [
        *("begin restore", "restore", "resumed 3"),
        *(f"{kind} {n}" for n in (3, 4) for kind in ("step", "end")),
    ]
    resumed = next(e for e in job.recorded() if type(e).__name__ == "Resumed")
    assert Path(resumed.path).parent == folder


def test_a_step_ends_when_its_outputs_are_computed(job: Any) -> None:
    def late(x: Any) -> Any:
        time.sleep(0.2)
        return x

    def slow(x: Any) -> Any:
        return jax.pure_callback(late, x, x)

    run = goodput.start(job="job", dir=job.folder)
    compiled = jax.jit(slow)
    compiled(jax.numpy.ones(2)).block_until_ready()
    with step(run, 0) as outputs:
        outputs.wait_for(compiled(jax.numpy.ones(2)))
    with step(run, 1):
        pass
    run.close()
    marks = dict(zip(job.story(), job.recorded()[1:], strict=False))
    assert marks["end 0"].m - marks["step 0"].m >= 200_000_000
    assert "end 1" not in marks  # nothing to wait for: its end is not known


def test_a_step_that_raises_has_no_end(job: Any) -> None:
    run = goodput.start(job="job", dir=job.folder)
    with pytest.raises(RuntimeError, match="boom"), step(run, 0):
        raise RuntimeError("boom")
    run.close()
    assert job.story() == ["step 0"]


def test_flops_of_a_matrix_product_are_those_of_the_closed_form() -> None:
    a, b = jax.ShapeDtypeStruct((8, 16), "float32"), jax.ShapeDtypeStruct((16, 4), "float32")
    assert count_flops(jax.numpy.matmul, a, b) == 2 * 8 * 16 * 4
