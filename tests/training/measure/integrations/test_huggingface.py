"""GoodputCallback in a real transformers.Trainer: a run that dies, and one that resumes it."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
transformers = pytest.importorskip("transformers", reason="needs transformers")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.integration,
    pytest.mark.filterwarnings("default"),  # the libraries' own deprecations
]

from goodput.training.measure.instrument import uninstrument  # noqa: E402
from goodput.training.measure.integrations.huggingface import GoodputCallback  # noqa: E402

EVALUATION = ["begin evaluation", "evaluation"]


class Model(torch.nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x: Any, labels: Any = None) -> dict[str, Any]:
        out = self.layer(x)
        return {"loss": (out - labels).square().mean(), "logits": out}


class Rows(torch.utils.data.Dataset):  # type: ignore[misc,name-defined]
    """24 rows: 6 updates per epoch of 2 micro-batches of 2."""

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": torch.ones(4) * index, "labels": torch.zeros(1)}


class DieAt(transformers.TrainerCallback):  # type: ignore[misc,name-defined]
    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self.step:
            raise RuntimeError("killed")


def trainer(job: Any, tmp_path: Path, *, die_at: int = -1, **changes: Any) -> Any:
    """A trainer and, before it, its callback; `transformers` wants them in this order."""
    callback = GoodputCallback(job="job", dir=job.folder)
    options: dict[str, Any] = {
        "output_dir": str(tmp_path / "out"),
        "num_train_epochs": 2,
        "per_device_train_batch_size": 2,
        "per_device_eval_batch_size": 8,
        "gradient_accumulation_steps": 2,
        "logging_steps": 2,
        "save_strategy": "steps",
        "save_steps": 4,
        "eval_strategy": "steps",
        "eval_steps": 4,
        "report_to": [],
        "disable_tqdm": True,
        "use_cpu": True,
    }
    made = transformers.Trainer(
        model=Model(),
        args=transformers.TrainingArguments(**{**options, **changes}),
        train_dataset=Rows(),
        eval_dataset=Rows(),
        callbacks=[callback, DieAt(die_at)],
    )
    return callback.record.run, made


def close(run: Any) -> None:
    uninstrument()
    run.close()


def test_a_run_that_dies_and_is_resumed(job: Any, tmp_path: Path, steps_of: Any) -> None:
    run, first = trainer(job, tmp_path, die_at=7)
    with pytest.raises(RuntimeError, match="killed"):
        first.train()
    close(run)
    assert job.story("data") == [
        "resumed 0",
        *steps_of(0, 3)[:-1],
        *EVALUATION,
        *("begin checkpoint", "checkpoint", "committed 3"),
        *steps_of(4, 6),
    ]

    run, second = trainer(job, tmp_path)
    second.train(resume_from_checkpoint=True)
    close(run)
    assert job.story("data", "restore") == [
        "resumed 4",
        *steps_of(4, 7)[:-1],
        *EVALUATION,
        *("begin checkpoint", "checkpoint", "committed 7"),
        *steps_of(8, 11)[:-1],
        *EVALUATION,
        *("begin checkpoint", "checkpoint", "committed 11"),
    ]
    resumed = next(e for e in job.recorded() if type(e).__name__ == "Resumed")
    assert resumed.path == str(tmp_path / "out" / "checkpoint-4")
    assert "restore" in job.story()
    # 8 updates of 2 batches, of the making of 2 iterators, and of their ends.
    assert len(job.spans("data")) >= 8 * 2


def test_evaluations_and_saves_at_the_end_of_epochs(
    job: Any, tmp_path: Path, steps_of: Any
) -> None:
    run, training = trainer(
        job,
        tmp_path,
        logging_strategy="epoch",
        eval_strategy="epoch",
        save_strategy="epoch",
    )
    training.train()
    training.evaluate()
    close(run)
    saved = ("begin checkpoint", "checkpoint")
    assert job.story("data") == [
        "resumed 0",
        *steps_of(0, 5)[:-1],
        *(*EVALUATION, *saved, "committed 5"),
        *steps_of(6, 11)[:-1],
        *(*EVALUATION, *saved, "committed 11"),
        *EVALUATION,  # evaluate(), recorded from its first batch on
    ]


def test_a_save_that_the_callback_did_not_see_coming(job: Any, tmp_path: Path) -> None:
    """`save_strategy="best"` decides after the evaluation."""
    run, training = trainer(
        job,
        tmp_path,
        save_strategy="best",
        metric_for_best_model="loss",
        num_train_epochs=1,
    )
    training.train()
    close(run)
    story = job.story("data", "step", "end")
    assert story[:4] == ["resumed 0", *EVALUATION, "checkpoint"]
    assert "committed 3" in story
    (first, *_) = job.spans("checkpoint")
    (evaluation, *_) = job.spans("evaluation")
    assert first.m >= evaluation.m + evaluation.d


def test_a_model_only_checkpoint_cannot_be_resumed(job: Any, tmp_path: Path) -> None:
    run, training = trainer(job, tmp_path, save_only_model=True, max_steps=4)
    training.train()
    close(run)
    assert "checkpoint" in job.story()
    assert not [word for word in job.story() if word.startswith("committed")]


def test_a_callback_that_fails_does_not_stop_the_trainer(
    job: Any,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, training = trainer(job, tmp_path, max_steps=2)
    callbacks = training.callback_handler.callbacks
    callback = next(each for each in callbacks if isinstance(each, GoodputCallback))
    monkeypatch.setattr(callback.record, "step", lambda _n: 1 / 0)
    assert training.train().global_step == 2
    close(run)
    assert "stopped recording trainer" in capfd.readouterr().err
    assert "instrument() stopped recording trainer" in job.story()
