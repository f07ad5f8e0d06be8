"""GoodputCallback in a real Lightning Trainer on CPU: a run that dies, and one that resumes it."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
pl = pytest.importorskip("lightning.pytorch", reason="needs lightning")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.integration,
    pytest.mark.filterwarnings("default"),  # the libraries' own deprecations
]

from goodput.training.measure.instrument import uninstrument  # noqa: E402
from goodput.training.measure.integrations.lightning import GoodputCallback  # noqa: E402

SAVED = ("begin checkpoint", "checkpoint")


class Model(pl.LightningModule):  # type: ignore[misc,name-defined]
    """12 batches per epoch: 6 steps of 2 micro-batches."""

    def __init__(self, die_at: int = -1) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
        self.die_at = die_at

    def training_step(self, batch: Any, _index: int) -> Any:
        if self.trainer.global_step == self.die_at:
            raise RuntimeError("killed")
        return self.layer(batch).square().mean()

    def validation_step(self, batch: Any, _index: int) -> None:
        self.log("loss", self.layer(batch).mean())

    test_step = validation_step

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters())


class TwoOptimizers(Model):
    """Manual optimization: two optimizer steps per batch."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch: Any, _index: int) -> None:
        for optimizer in self.optimizers():
            optimizer.zero_grad()
            self.manual_backward(self.layer(batch).square().mean())
            optimizer.step()

    def configure_optimizers(self) -> Any:
        return [torch.optim.Adam(self.parameters()), torch.optim.SGD(self.parameters(), lr=0.1)]


def batches(rows: int = 24) -> Any:
    return torch.utils.data.DataLoader(torch.ones(rows, 4), batch_size=2)


def trainer(job: Any, tmp_path: Path, **changes: Any) -> Any:
    callback = GoodputCallback(job="job", dir=job.folder)
    checkpoint = pl.callbacks.ModelCheckpoint(
        dirpath=tmp_path / "saved", every_n_train_steps=4, save_top_k=-1, filename="{step}"
    )
    options: dict[str, Any] = {
        "max_epochs": 2,
        "accelerator": "cpu",
        "devices": 1,
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "accumulate_grad_batches": 2,
        "limit_val_batches": 2,
        "default_root_dir": tmp_path,
    }
    made = pl.Trainer(**{**options, **changes}, callbacks=[callback, checkpoint])
    return callback.record.run, made


def close(run: Any) -> None:
    uninstrument()
    run.close()


def without_evaluations(story: list[str]) -> list[str]:
    return [word for word in story if "evaluation" not in word]


def test_a_run_that_dies_and_is_resumed(job: Any, tmp_path: Path, steps_of: Any) -> None:
    run, first = trainer(job, tmp_path)
    with pytest.raises(RuntimeError, match="killed"):
        first.fit(Model(die_at=9), batches(), batches())
    close(run)
    story = job.story("data")
    assert without_evaluations(story) == [
        "resumed 0",
        *steps_of(0, 3)[:-1],
        *(*SAVED, "committed 3"),
        *steps_of(4, 5)[:-1],
        *steps_of(6, 7)[:-1],
        *(*SAVED, "committed 7"),
        *steps_of(8, 8),
    ]
    between = story[story.index("end 5") + 1 : story.index("step 6")]
    assert between.count("evaluation") >= 1
    assert set(between) == {"begin evaluation", "evaluation"}

    run, second = trainer(job, tmp_path)
    path = tmp_path / "saved" / "step=8.ckpt"
    second.fit(Model(), batches(), batches(), ckpt_path=path)
    close(run)
    words = without_evaluations(job.story("data"))
    assert words[:2] == ["restore", "resumed 8"]
    # Lightning saves once more in the first micro-batch after a resume.
    words = [word for word in words if word not in (*SAVED, "committed 7")]
    assert words[2:] == [*steps_of(8, 11)[:-1], "committed 11"]
    resumed = next(e for e in job.recorded() if type(e).__name__ == "Resumed")
    assert resumed.path == str(path)


def test_an_evaluation_is_no_data_wait(job: Any, tmp_path: Path) -> None:
    run, training = trainer(job, tmp_path, max_epochs=1, num_sanity_val_steps=2)
    training.fit(Model(), batches(), batches())
    before = len(job.spans("evaluation"))
    training.test(Model(), batches(), verbose=False)
    close(run)
    assert len(job.spans("evaluation")) > before
    # 12 batches; making the iterator and its end may add one each.
    assert 12 <= len(job.spans("data")) <= 14


def test_a_batch_with_two_optimizers_is_one_record(job: Any, tmp_path: Path) -> None:
    run, training = trainer(
        job, tmp_path, max_epochs=1, accumulate_grad_batches=1, limit_train_batches=3
    )
    training.fit(TwoOptimizers(), batches())
    close(run)
    words = [word for word in job.story() if word.split()[0] in {"step", "end", "committed"}]
    assert words[:4] == ["step 0", "end 0", "step 2", "end 2"]
    assert words[-2:] == ["step 4", "end 4"]


def test_weights_alone_cannot_be_resumed_and_the_trainer_gets_its_method_back(
    job: Any, tmp_path: Path
) -> None:
    run, training = trainer(job, tmp_path, max_epochs=1)
    training.fit(Model(), batches(8))
    assert "save_checkpoint" not in vars(training)
    training.fit_loop.max_epochs = 2
    callback = next(c for c in training.callbacks if isinstance(c, GoodputCallback))
    callback.setup(training, training.lightning_module, "fit")
    training.save_checkpoint(tmp_path / "weights.ckpt", weights_only=True)
    callback.teardown(training, training.lightning_module, "fit")
    close(run)
    assert job.story("data")[-2:] == list(SAVED)
    assert (tmp_path / "weights.ckpt").exists()
