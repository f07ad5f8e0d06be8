"""Waits for data, and evaluations told apart from training, with torch's own loaders."""

import pickle
import time
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
pytestmark = pytest.mark.torch

BATCH_S = 0.02
MS = 1_000_000


class Slow(torch.utils.data.Dataset):  # type: ignore[misc,name-defined]
    """Items that take BATCH_S each."""

    def __init__(self, items: int = 4, *, seconds: float = BATCH_S) -> None:
        self.items, self.seconds = items, seconds

    def __len__(self) -> int:
        return self.items

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.seconds)
        return torch.ones(4) * index


def loader(items: int = 4, *, seconds: float = BATCH_S, **options: Any) -> Any:
    return torch.utils.data.DataLoader(Slow(items, seconds=seconds), **options)


class Training:
    def __init__(self) -> None:
        self.model = torch.nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def on(self, batch: Any) -> None:
        self.optimizer.zero_grad()
        self.model(batch).mean().backward()
        self.optimizer.step()

    def over(self, batches: Any) -> None:
        for batch in batches:
            self.on(batch)


def total_ms(job: Any, name: str) -> float:
    return float(sum(span.d for span in job.spans(name))) / MS


def test_the_time_blocked_in_a_loader_is_data_time(job: Any) -> None:
    with job.attempt():
        Training().over(loader(5))
    # Five items, and the end of the loader; making the iterator is one more.
    assert len(job.spans("data")) == 7
    assert 5 * BATCH_S * 1e3 <= total_ms(job, "data") < 5 * BATCH_S * 1e3 + 250


def test_a_wait_lies_inside_the_step_that_waits(job: Any) -> None:
    with job.attempt():
        Training().over(loader(3))
    words = job.story("steps", "resumed")
    assert words[words.index("step 1") :][:3] == ["step 1", "data", "end 1"]


def test_waits_for_worker_processes_are_seen_and_workers_record_nothing(job: Any) -> None:
    with job.attempt():
        training = Training()
        batches = loader(4, num_workers=2, persistent_workers=True, multiprocessing_context="fork")
        training.over(batches)
        training.over(batches)
        del batches
    assert len(job.attempts()) == 1
    assert len([word for word in job.story() if word.startswith("end")]) == 8
    # Two items of each worker come one after the other: at least two waits per epoch, in sum.
    assert total_ms(job, "data") >= 2 * 2 * BATCH_S * 1e3 * 0.9


def test_the_iterator_keeps_its_type(job: Any) -> None:
    batches = loader(2)
    plain = type(iter(batches))
    with job.attempt():
        timed = iter(batches)
        assert isinstance(timed, plain)
        assert type(timed).__name__ == plain.__name__
        assert len(timed) == 2
        with pytest.raises(NotImplementedError):
            pickle.dumps(timed)  # as without us
    assert torch.equal(next(timed), torch.zeros(1, 4))  # it works on after the hooks are out


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_a_loop_without_gradients_is_an_evaluation(job: Any, mode: str) -> None:
    with job.attempt():
        training = Training()
        training.over(loader(2))
        with getattr(torch, mode)():
            for batch in loader(3):
                training.model(batch)
        training.over(loader(2))
    assert job.story("steps", "resumed", "data") == [
        *("step 0", "end 0", "step 1", "end 1", "step 2"),
        *("begin evaluation", "evaluation"),
        *("end 2", "step 3", "end 3", "step 4"),
    ]
    assert len(job.spans("data")) == 2 * 4
    assert 3 * BATCH_S * 1e3 <= total_ms(job, "evaluation") < 3 * BATCH_S * 1e3 + 250


def test_no_grad_around_the_model_alone_is_an_evaluation_too(job: Any) -> None:
    with job.attempt():
        training = Training()
        training.over(loader(2))
        for batch in loader(3):
            with torch.no_grad():
                training.model(batch)
        training.over(loader(2))
    assert len(job.spans("evaluation")) == 1
    assert len(job.spans("data")) == 2 * 4
    assert 3 * BATCH_S * 1e3 <= total_ms(job, "evaluation") < 3 * BATCH_S * 1e3 + 250


def test_an_evaluation_at_the_end_is_recorded_when_hooks_are_taken_out(job: Any) -> None:
    with job.attempt():
        training = Training()
        training.over(loader(2))
        for batch in loader(3):
            with torch.no_grad():
                training.model(batch)
    assert len(job.spans("evaluation")) == 1


def test_an_evaluation_that_is_left_early_ends_when_training_goes_on(job: Any) -> None:
    with job.attempt():
        training = Training()
        training.over(loader(2))
        with torch.no_grad():
            for batch in loader(100):
                training.model(batch)
                break
        training.over(loader(2))
    (evaluation,) = job.spans("evaluation")
    assert evaluation.d < 3 * BATCH_S * 1e9
    assert len(job.spans("data")) == 2 * 4


def test_a_process_killed_in_an_evaluation_has_said_that_it_began(job: Any) -> None:
    with job.attempt():
        training = Training()
        training.over(loader(1))
        with torch.no_grad():
            batches = iter(loader(2))
            next(batches)
            assert job.story()[-1] == "begin evaluation"


def test_a_training_loader_read_without_gradients_is_data_after_its_first_batch(job: Any) -> None:
    with job.attempt():
        training = Training()
        batches = iter(loader(4, seconds=0.0))
        for _ in range(4):
            with torch.no_grad():
                batch = next(batches)
            training.on(batch)
    assert len(job.spans("evaluation")) == 1
    assert len(job.spans("data")) == 1 + 3  # making the iterator, and all batches but the first


def test_batches_fetched_ahead_are_data(job: Any) -> None:
    """As accelerate does: one batch ahead, so that a short loader is exhausted before it trains."""

    def one_ahead(batches: Any) -> Any:
        iterator = iter(batches)
        current = next(iterator)
        for following in iterator:
            yield current
            current = following
        yield current

    with job.attempt():
        training = Training()
        for _ in range(2):
            training.over(one_ahead(loader(1)))
        training.over(one_ahead(loader(3)))
    assert not job.spans("evaluation")
    assert len(job.spans("data")) == 3 + 3 + 5


def test_loaders_read_in_turns_are_all_training(job: Any) -> None:
    with job.attempt():
        training = Training()
        training.over(loader(1))
        for left, right in zip(loader(3), loader(3), strict=True):
            training.on(left + right)
    assert not job.spans("evaluation")
    assert total_ms(job, "data") >= 7 * BATCH_S * 1e3


def test_a_look_at_the_data_before_training_is_no_evaluation_and_begins_no_step(job: Any) -> None:
    with job.attempt():
        for _ in loader(3):
            pass
        assert "step 0" not in job.story()
        Training().over(loader(2))
    assert not job.spans("evaluation")


def test_a_load_inside_a_dataset_is_data_and_no_restore(job: Any, tmp_path: Any) -> None:
    path = tmp_path / "checkpoint-1.pt"
    torch.save({"x": torch.ones(4)}, path)

    class FromDisk(Slow):
        def __getitem__(self, index: int) -> Any:
            return torch.load(path)["x"]

    with job.attempt():
        Training().over(torch.utils.data.DataLoader(FromDisk(2)))
    assert not job.spans("restore")


def test_a_loader_that_raises_raises(job: Any) -> None:
    class Broken(Slow):
        def __getitem__(self, index: int) -> Any:
            raise LookupError("no such item")

    with job.attempt():
        with pytest.raises(LookupError, match="no such item"):
            Training().over(torch.utils.data.DataLoader(Broken(2)))
        Training().over(loader(1))
    assert "end 0" in job.story()
