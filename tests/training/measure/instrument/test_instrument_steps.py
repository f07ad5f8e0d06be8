"""Steps are optimizer steps, each counted once, numbered over the whole job."""

import copy
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
pytestmark = pytest.mark.torch

Words = Callable[..., list[str]]
QUIET = ("data", "steps")


class Training:
    """A tiny regression with an optimizer of the test's choice."""

    def __init__(self, optimizer: str = "AdamW", **options: Any) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Linear(4, 1)
        self.optimizer = getattr(torch.optim, optimizer)(
            self.model.parameters(), **{"lr": 0.01, **options}
        )
        self.done = 0

    def loss(self) -> Any:
        return self.model(torch.ones(2, 4)).square().mean()

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.loss().backward()
        self.optimizer.step()
        self.done += 1

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "iteration": self.done,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.done = state["iteration"]


def test_each_optimizer_step_is_one_step_with_a_beginning_and_an_end(
    job: Any, steps_of: Words
) -> None:
    with job.attempt():
        Training().steps(3)
    assert job.story() == ["steps numbered by start", "resumed 0", *steps_of(0, 2)]


def test_a_step_begins_when_the_one_before_it_has_ended(job: Any) -> None:
    with job.attempt():
        Training().steps(5)
    marks = [e for e in job.recorded() if type(e).__name__ in {"Step", "StepEnd"}]
    ends = {e.n: e.m for e in marks if type(e).__name__ == "StepEnd"}
    starts = {e.n: e.m for e in marks if type(e).__name__ == "Step"}
    assert sorted(ends) == [0, 1, 2, 3, 4]
    for n in range(4):
        assert 0 <= starts[n + 1] - ends[n] < 5_000_000


def test_gradient_accumulation_makes_one_step_of_several_backward_passes(
    job: Any, steps_of: Words
) -> None:
    with job.attempt():
        training = Training()
        for _ in range(2):
            for _ in range(4):
                training.loss().backward()
            training.optimizer.step()
            training.optimizer.zero_grad()
    assert job.story("steps", "resumed") == steps_of(0, 1)


def test_optimizers_that_take_turns_are_one_step_each_round(job: Any, steps_of: Words) -> None:
    with job.attempt():
        critic, generator = Training(), Training()
        for _ in range(3):
            critic.step()
            generator.step()
    assert job.story("steps", "resumed") == steps_of(0, 2)


def test_a_second_phase_with_another_optimizer_goes_on_counting(job: Any, steps_of: Words) -> None:
    with job.attempt():
        first, second = Training(), Training()
        first.steps(2)
        second.steps(64 + 3)
        first.loss()  # still alive
    assert job.story("steps", "resumed") == steps_of(0, 4)


def test_a_second_phase_after_the_first_optimizer_is_gone_goes_on_at_once(
    job: Any, steps_of: Words
) -> None:
    with job.attempt():
        Training().steps(2)
        Training().steps(2)
    assert job.story("steps", "resumed") == steps_of(0, 3)


def test_a_closure_that_is_evaluated_several_times_is_one_step(job: Any, steps_of: Words) -> None:
    with job.attempt():
        training = Training("LBFGS", max_iter=4)

        def closure() -> Any:
            training.optimizer.zero_grad()
            loss = training.loss()
            loss.backward()
            return loss

        training.optimizer.step(closure)
        training.optimizer.step(closure)
    assert job.story("steps", "resumed") == steps_of(0, 1)


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_that_the_gradient_scaler_skips_is_no_step(
    job: Any, steps_of: Words, fused: bool
) -> None:
    with job.attempt():
        training = Training(fused=fused)
        scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
        for overflow in (False, True, False, True):
            training.optimizer.zero_grad()
            scaler.scale(training.loss() * (float("inf") if overflow else 1.0)).backward()
            scaler.step(training.optimizer)
            scaler.update()
    assert job.story("steps", "resumed") == steps_of(0, 1)


def test_an_optimizer_inside_another_is_one_step(job: Any, steps_of: Words) -> None:
    """As in ZeroRedundancyOptimizer, which steps an optimizer of its own inside its step."""
    from goodput.training.measure.instrument import session

    class Outer(torch.optim.SGD):  # type: ignore[misc,name-defined]
        def step(self, closure: Any = None) -> None:
            inner.optimizer.step()

    with job.attempt():
        inner = Training()
        outer = Outer(inner.model.parameters(), lr=0.1)
        for _ in range(2):
            inner.loss().backward()
            outer.step()
        assert not session.current().steps.several
    assert job.story("steps", "resumed") == steps_of(0, 1)


def test_a_first_step_at_learning_rate_0_counts(job: Any, steps_of: Words) -> None:
    with job.attempt():
        training = Training(lr=0.0)
        training.steps(2)
    assert job.story("steps", "resumed") == steps_of(0, 1)


def test_the_step_that_sets_up_an_optimizers_state_does_not_count(
    job: Any, steps_of: Words
) -> None:
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    before = Training()
    before.steps(3)
    model_state, optimizer_state = get_state_dict(before.model, before.optimizer)
    with job.attempt():
        after = Training()
        get_state_dict(after.model, after.optimizer)
        set_state_dict(
            after.model,
            after.optimizer,
            model_state_dict=model_state,
            optim_state_dict=optimizer_state,
        )
        after.steps(2)
    assert job.story(*QUIET) == ["resumed 3", *steps_of(3, 4)]


# Restarts


def save_then_die(job: Any, training: Training, path: Path, *, rename: Path | None = None) -> None:
    """The first attempt: 3 steps, a checkpoint, 2 more steps that are lost."""
    with job.attempt():
        training.steps(3)
        torch.save(training.state(), path)
        if rename is not None:
            path.replace(rename)
        training.steps(2)
    assert "committed 2" in job.story()


@pytest.mark.parametrize("optimizer", ["AdamW", "SGD", "Adagrad", "RMSprop"])
def test_a_restart_from_a_recorded_checkpoint_continues_its_numbers(
    job: Any, steps_of: Words, tmp_path: Path, optimizer: str
) -> None:
    path = tmp_path / "last.pt"
    save_then_die(job, Training(optimizer), path)
    with job.attempt():
        training = Training(optimizer)
        training.restore(torch.load(path))
        training.steps(2)
    assert job.story("data") == [
        "restore",
        "resumed 3",
        "steps numbered by committed checkpoint",
        *steps_of(3, 4),
    ]


def test_a_renamed_checkpoint_is_numbered_by_the_optimizers_state(
    job: Any, steps_of: Words, tmp_path: Path
) -> None:
    save_then_die(job, Training(), tmp_path / "tmp.pt", rename=tmp_path / "last.pt")
    with job.attempt():
        training = Training()
        state = torch.load(tmp_path / "last.pt")
        del state["iteration"]
        training.restore({**state, "iteration": 3})
        training.steps(1)
    assert job.story("data") == [
        "restore",
        "resumed 3",
        "steps numbered by optimizer state",
        *steps_of(3, 3),
    ]


def test_a_renamed_checkpoint_without_a_count_is_found_by_the_scripts_counter(
    job: Any, steps_of: Words, tmp_path: Path
) -> None:
    save_then_die(job, Training("SGD"), tmp_path / "tmp.pt", rename=tmp_path / "last.pt")
    with job.attempt():
        training = Training("SGD")
        training.restore(torch.load(tmp_path / "last.pt"))
        training.steps(1)
    assert job.story("data") == [
        "restore",
        "resumed 3",
        "steps numbered by counter in checkpoint",
        *steps_of(3, 3),
    ]


def test_a_restart_that_nothing_identifies_starts_at_0_and_says_so(
    job: Any, steps_of: Words, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first = Training("SGD")
    first.done = 1000  # a counter that agrees with no checkpoint
    save_then_die(job, first, tmp_path / "tmp.pt", rename=tmp_path / "last.pt")
    with job.attempt():
        training = Training("SGD")
        training.restore(torch.load(tmp_path / "last.pt"))
        training.steps(1)
    assert job.story("data") == [
        "restore",
        "steps numbered by restart not recognised",
        "resumed 0",
        *steps_of(0, 0),
    ]
    assert "step_of" in capfd.readouterr().err


def test_a_state_restored_past_torch_load_is_found_at_the_first_step(
    job: Any, steps_of: Words
) -> None:
    before = Training()
    before.steps(7)
    stored = pickle.dumps(before.optimizer)
    with job.attempt():
        training = Training()
        training.optimizer = pickle.loads(stored)  # noqa: S301 - our own bytes
        training.optimizer.param_groups[0]["params"] = list(training.model.parameters())
        states = training.optimizer.state.values()
        training.optimizer.state = dict(zip(training.model.parameters(), states, strict=True))
        training.optimizer.step()
    assert job.story(*QUIET) == ["resumed 7", *steps_of(7, 7)]


def test_an_optimizer_that_was_loaded_before_instrument_is_believed(
    job: Any, steps_of: Words
) -> None:
    training = Training()
    training.steps(4)
    with job.attempt():
        training.steps(1)
    assert job.story(*QUIET)[-3:] == steps_of(4, 4)
    assert "resumed 4" in job.story()


def test_weights_of_another_job_are_no_restart(job: Any, steps_of: Words, tmp_path: Path) -> None:
    before = Training()
    before.steps(9)
    torch.save(before.state(), tmp_path / "pretrained.pt")
    with job.attempt():
        training = Training()
        training.model.load_state_dict(torch.load(tmp_path / "pretrained.pt")["model"])
        training.steps(1)
    assert job.story("data") == [
        "restore",
        "steps numbered by start",
        "resumed 0",
        *steps_of(0, 0),
    ]


def test_a_rollback_inside_the_process_is_recorded(
    job: Any, steps_of: Words, tmp_path: Path
) -> None:
    with job.attempt():
        training = Training("SGD")
        training.steps(2)
        torch.save(training.state(), tmp_path / "a.pt")
        training.steps(3)
        training.restore(torch.load(tmp_path / "a.pt"))
        training.steps(1)
    assert job.story(*QUIET)[-6:] == ["step 5", "restore", "resumed 2", *steps_of(2, 2)]


def test_a_rollback_to_a_copy_in_memory_is_recorded(job: Any, steps_of: Words) -> None:
    with job.attempt():
        training = Training()
        training.steps(2)
        kept = copy.deepcopy(training.state())
        training.steps(3)
        training.restore(kept)
        training.steps(1)
    assert job.story(*QUIET)[-5:] == ["step 5", "resumed 2", *steps_of(2, 2)]


def test_looking_at_a_checkpoint_in_mid_training_is_no_rollback(
    job: Any, steps_of: Words, tmp_path: Path
) -> None:
    with job.attempt():
        training = Training()
        training.steps(2)
        torch.save(training.state(), tmp_path / "a.pt")
        torch.load(tmp_path / "a.pt")
        training.steps(1)
    assert job.story("restore")[-5:] == ["step 2", "checkpoint", "committed 1", "end 2", "step 3"]
    assert [word for word in job.story() if word.startswith("resumed")] == ["resumed 0"]


def test_the_users_own_counter_wins(job: Any, steps_of: Words) -> None:
    at = 100
    with job.attempt(step_of=lambda: at):
        training = Training()
        for _ in range(2):
            training.step()
            at += 1
        at = 50  # the user rolled back in a way that no hook sees
        training.step()
    assert job.story() == [
        "steps numbered by step_of",
        "resumed 100",
        *steps_of(100, 101),
        "resumed 50",
        *steps_of(50, 50),
    ]


# Isolation


def test_results_are_bit_identical_with_and_without(job: Any) -> None:
    def final() -> list[Any]:
        training = Training()
        training.steps(20)
        return [parameter.detach().clone() for parameter in training.model.parameters()]

    plain = final()
    with job.attempt(count_flops=True):
        recorded = final()
    for a, b in zip(plain, recorded, strict=True):
        assert torch.equal(a, b)


def test_a_hook_that_fails_is_switched_off_counted_and_told(
    job: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken() -> int:
        raise RuntimeError("the user's counter is broken")

    with job.attempt(step_of=broken):
        training = Training()
        training.steps(3)
        torch.save(training.state(), tmp_path / "a.pt")
    assert training.done == 3
    story = job.story()
    assert story.count("instrument() stopped recording steps") == 1
    assert "checkpoint" in story  # other hooks work on
    assert "the user's counter is broken" in capfd.readouterr().err


def test_nothing_is_left_behind_after_uninstrument(job: Any) -> None:
    before = (
        torch.save,
        torch.load,
        torch.autograd.backward,
        torch.optim.Optimizer.load_state_dict,
        torch.utils.data.DataLoader.__iter__,
        torch.distributed.init_process_group,
        torch.distributed.Work.wait,
        torch.distributed.barrier,
        torch.distributed.checkpoint.save,
    )
    with job.attempt():
        assert torch.save is not before[0]
    after = (
        torch.save,
        torch.load,
        torch.autograd.backward,
        torch.optim.Optimizer.load_state_dict,
        torch.utils.data.DataLoader.__iter__,
        torch.distributed.init_process_group,
        torch.distributed.Work.wait,
        torch.distributed.barrier,
        torch.distributed.checkpoint.save,
    )
    assert after == before
    Training().steps(2)
    assert "step 0" not in job.story()


def test_a_second_call_returns_the_same_run_and_counts_nothing_twice(
    job: Any, steps_of: Words
) -> None:
    from goodput.training.measure.instrument import instrument

    with job.attempt() as run:
        assert instrument() is run
        Training().steps(2)
    assert job.story("steps", "resumed") == steps_of(0, 1)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_model_trains_without_a_warning(job: Any, steps_of: Words, backend: str) -> None:
    with job.attempt(), warnings.catch_warnings():
        warnings.simplefilter("error")
        # torch itself warns about its own tracing in some versions; ours must add none.
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        training = Training()
        training.model = torch.compile(training.model, backend=backend)
        training.steps(2)
    assert job.story("steps", "resumed") == steps_of(0, 1)
