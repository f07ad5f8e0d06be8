"""Saves and loads: what counts as a checkpoint, what it holds, and when it is durable."""

import io
import threading
import time
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
pytestmark = pytest.mark.torch

dcp = pytest.importorskip("torch.distributed.checkpoint", reason="needs torch.distributed")


class Training:
    def __init__(self) -> None:
        self.model = torch.nn.Linear(64, 64)
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.optimizer.zero_grad()
            self.model(torch.ones(1, 64)).mean().backward()
            self.optimizer.step()

    def state(self) -> dict[str, Any]:
        return {"net": {"model": self.model.state_dict()}, "optim": [self.optimizer.state_dict()]}


def story(job: Any) -> list[str]:
    words: list[str] = job.story("steps", "resumed", "step", "end", "data")
    return words


def wait_for_background(job: Any) -> None:
    """A future tells those who wait for its result before it calls its callbacks."""
    until = time.monotonic() + 10
    while not any(span.background for span in job.spans("checkpoint")):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_training_state_is_a_checkpoint_whatever_its_name(job: Any, tmp_path: Path) -> None:
    with job.attempt():
        training = Training()
        training.steps(3)
        torch.save(training.state(), tmp_path / "x.bin")
    assert story(job) == ["checkpoint", "committed 2"]
    committed = next(e for e in job.recorded() if type(e).__name__ == "Committed")
    assert committed.path == str(tmp_path / "x.bin")
    (span,) = job.spans("checkpoint")
    assert span.step == 2
    assert span.d > 0


@pytest.mark.parametrize(
    "name", ["ckpt.pt", "checkpoint-3/model.pt", "model_ckpt_3.pt", "Checkpoint.pth"]
)
def test_a_model_is_a_checkpoint_where_its_path_says_so(
    job: Any, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    with job.attempt():
        training = Training()
        training.steps(1)
        torch.save(training.model.state_dict(), tmp_path / name)
    assert story(job) == ["checkpoint", "committed 0"]


@pytest.mark.parametrize("name", ["model.pt", "best/weights.pth", "ackpt.pt"])
def test_a_model_elsewhere_is_none(job: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    with job.attempt():
        training = Training()
        training.steps(1)
        torch.save(training.model.state_dict(), tmp_path / name)
    assert story(job) == []


def test_a_tensor_at_a_checkpoint_path_is_none(job: Any, tmp_path: Path) -> None:
    with job.attempt():
        Training().steps(1)
        torch.save(torch.ones(3), tmp_path / "checkpoint.pt")
    assert story(job) == []


def test_a_save_into_memory_costs_time_and_is_not_durable(job: Any) -> None:
    with job.attempt():
        training = Training()
        training.steps(1)
        torch.save(training.state(), io.BytesIO())
    assert story(job) == ["checkpoint"]


def test_an_open_file_has_a_path(job: Any, tmp_path: Path) -> None:
    with job.attempt():
        training = Training()
        training.steps(1)
        with (tmp_path / "a.pt").open("wb") as file:
            torch.save(training.state(), file)
    assert story(job) == ["checkpoint", "committed 0"]


def test_a_save_that_fails_raises_and_commits_nothing(job: Any, tmp_path: Path) -> None:
    with job.attempt():
        training = Training()
        training.steps(1)
        with pytest.raises(RuntimeError):
            torch.save(training.state(), tmp_path / "no" / "such" / "folder" / "a.pt")
    assert story(job) == ["checkpoint failed"]


def test_a_save_before_the_first_step_holds_nothing(job: Any, tmp_path: Path) -> None:
    with job.attempt():
        torch.save(Training().state(), tmp_path / "a.pt")
    assert story(job) == ["checkpoint"]


def test_a_load_that_fails_raises(job: Any, tmp_path: Path) -> None:
    with job.attempt(), pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "ckpt.pt")
    assert story(job) == []


def test_a_load_of_other_data_is_no_restore(job: Any, tmp_path: Path) -> None:
    torch.save({"x": torch.ones(3)}, tmp_path / "data.pt")
    with job.attempt():
        torch.load(tmp_path / "data.pt")
    assert story(job) == []


def test_a_save_in_another_thread_is_left_to_the_user(job: Any, tmp_path: Path) -> None:
    with job.attempt():
        training = Training()
        training.steps(1)
        save = threading.Thread(target=torch.save, args=(training.state(), tmp_path / "a.pt"))
        save.start()
        save.join()
    assert (tmp_path / "a.pt").exists()
    assert story(job) == []


def test_a_later_save_at_the_same_path_is_the_one_that_is_resumed(job: Any, tmp_path: Path) -> None:
    with job.attempt():
        training = Training()
        for _ in range(3):
            training.steps(2)
            torch.save(training.state(), tmp_path / "last.pt")
    with job.attempt():
        torch.load(tmp_path / "last.pt")
    assert job.story() == ["restore", "resumed 6"]


# torch.distributed.checkpoint, without a process group: no_dist is chosen by itself


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_dcp_saves_and_loads(job: Any, tmp_path: Path) -> None:
    with job.attempt():
        training = Training()
        training.steps(3)
        dcp.save(training.state(), checkpoint_id=tmp_path / "step-3")
        training.steps(1)
    assert story(job) == ["checkpoint", "committed 2"]
    with job.attempt():
        training = Training()
        state = training.state()
        dcp.load({"net": state["net"]}, checkpoint_id=tmp_path / "step-3")
        training.steps(1)
    assert job.story("data", "steps") == [
        *("restore", "resumed 3"),
        *("step 3", "end 3", "step 4"),
    ]


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_dcp_with_a_writer_instead_of_an_id(job: Any, tmp_path: Path) -> None:
    with job.attempt():
        training = Training()
        training.steps(1)
        dcp.save(training.state(), storage_writer=dcp.FileSystemWriter(tmp_path / "w"))
    committed = next(e for e in job.recorded() if type(e).__name__ == "Committed")
    assert committed.path == str(tmp_path / "w")


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_dcp_async_save_blocks_for_its_staging_and_commits_when_it_is_done(
    job: Any, tmp_path: Path
) -> None:
    with job.attempt():
        training = Training()
        training.steps(2)
        done = dcp.async_save(training.state(), checkpoint_id=tmp_path / "a", no_dist=True)
        training.steps(2)
        done.result()
        wait_for_background(job)
    blocking, background = sorted(job.spans("checkpoint"), key=lambda span: span.background)
    assert not blocking.background
    assert background.background
    assert background.t == blocking.t
    assert background.d > blocking.d
    assert "committed 1" in job.story()  # not 3: what was in the model when the save began


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_dcp_async_save_that_fails_commits_nothing(job: Any, tmp_path: Path) -> None:
    class Broken(dcp.FileSystemWriter):  # type: ignore[misc,name-defined]
        def write_data(self, *args: Any, **kwargs: Any) -> Any:
            raise OSError("disk full")

    with job.attempt():
        training = Training()
        training.steps(2)
        done = dcp.async_save(training.state(), storage_writer=Broken(tmp_path / "a"), no_dist=True)
        assert done.exception() is not None
        wait_for_background(job)
    assert "committed 1" not in job.story()
    assert "checkpoint failed" in job.story()
