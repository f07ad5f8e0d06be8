"""The parts of the demo's training script that must be right for the account to be honest."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from goodput.demo import checkpoints  # noqa: E402 - they need torch
from goodput.demo.corpus import corpus  # noqa: E402
from goodput.demo.model import GPT  # noqa: E402

pytestmark = pytest.mark.torch


def state(value: float) -> dict[str, object]:
    return {"model": {"w": torch.full((3,), value)}, "optimizer": {"lr": value}}


def test_the_newest_checkpoint_that_loads_is_taken(tmp_path: Path) -> None:
    assert checkpoints.newest(tmp_path) is None
    for step in (9, 19, 29):
        checkpoints.save(state(step), tmp_path, step=step)
    assert not checkpoints.path_of(tmp_path, 9).exists()
    found = checkpoints.newest(tmp_path)
    assert found is not None
    assert found[0] == 29
    assert found[1]["optimizer"] == {"lr": 29.0}
    whole = checkpoints.path_of(tmp_path, 29)
    whole.write_bytes(whole.read_bytes()[:200])
    found = checkpoints.newest(tmp_path)
    assert found is not None
    assert found[0] == 19


def test_a_save_that_was_cut_off_is_no_checkpoint(tmp_path: Path) -> None:
    checkpoints.save(state(1.0), tmp_path, step=1)
    (tmp_path / "writing.part").write_bytes(b"half a checkp")
    found = checkpoints.newest(tmp_path)
    assert found is not None
    assert found[0] == 1


def test_the_text_is_there_without_a_download() -> None:
    train, validation = corpus()
    assert len(train) > 10 * len(validation) > 100_000
    assert b"while" in train
    assert corpus() == (train, validation)


def test_the_model_does_not_look_ahead() -> None:
    torch.manual_seed(0)
    model = GPT(context=16, width=32, layers=2, heads=2)
    text = torch.randint(256, (1, 16))
    other = text.clone()
    other[0, 10:] = (other[0, 10:] + 1) % 256
    with torch.no_grad():
        before, after = model(text), model(other)
    assert torch.equal(before[:, :10], after[:, :10])
    assert not torch.equal(before[:, 10:], after[:, 10:])
