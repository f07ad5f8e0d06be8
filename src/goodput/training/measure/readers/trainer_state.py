"""Hugging Face `trainer_state.json`: what was logged at which step; it holds no time of day."""

from pathlib import Path
from typing import Final

import msgspec

from goodput.core.timeline import as_ints
from goodput.training.measure.readers.logs.batch import LARGEST_JUMP, LONGEST_S
from goodput.training.measure.readers.logs.story import (
    LARGEST_STEP,
    NS,
    UNKNOWN,
    Happening,
    Launch,
    Steps,
)
from goodput.training.measure.readers.series import INSANE
from goodput.training.measure.readers.whole import Told, told_of, unreadable

WRITER: Final = "trainer_state reader"
_DATELESS: Final = (
    "trainer_state.json holds no time of day: the file's own time is taken as the end of training"
)
_UNTIMED: Final = (
    "no train_runtime (the run had not finished): step times are not known, and shares of time "
    "cover evaluations only (give the job's output as well)"
)
_CONTRADICTION: Final = (
    "contradiction: evaluations took longer than the train_runtime of the last session; step "
    "times are not known"
)
_CHECKPOINT: Final = "checkpoint-"


class _Entry(msgspec.Struct):
    step: float = -1
    eval_runtime: float | None = None
    train_runtime: float | None = None
    loss: object = None


class _State(msgspec.Struct):
    global_step: int
    log_history: list[_Entry]
    max_steps: int = 0
    total_flos: float = 0.0
    save_steps: float | None = None
    best_model_checkpoint: str | None = None


def looks_like_trainer_state(path: Path, head: bytes) -> bool:
    """Return whether a file is a trainer state, by its name or its first keys."""
    begins = head.lstrip()[:1] == b"{"
    named = path.name.endswith("trainer_state.json")
    return begins and (named or (b'"best_metric"' in head and b'"global_step"' in head))


def read_trainer_state(path: Path, name: str) -> Told:
    """Return the steps and evaluations of a trainer state."""
    try:
        state = msgspec.json.decode(path.read_bytes(), type=_State)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return unreadable(name, f"not a whole trainer_state.json ({error}); ignored")
    notes = {_DATELESS: 1}
    launch = Launch()
    entries = _sane(state.log_history, notes)
    per_step = _seconds_per_step(entries, state, notes)
    _tell(launch, entries, per_step)
    _unfinished(state, notes)
    if 0 < state.total_flos < 1e40 and state.global_step > 0:
        launch.flops_per_step = float(state.total_flos) / state.global_step
        notes["FLOPs are the Trainer's own estimate (total_flos: 6 x parameters x tokens)"] = 1
    return told_of(
        [launch],
        notes,
        path=path,
        name=name,
        writer=WRITER,
        job=_job(path),
        warnings=frozenset({_UNTIMED, _CONTRADICTION}),
    )


def _sane(entries: list[_Entry], notes: dict[str, int]) -> list[_Entry]:
    """Entries whose step a job can have reached."""
    kept: list[_Entry] = []
    reached = 0.0
    for entry in entries:
        if not 0 <= entry.step <= LARGEST_STEP or entry.step - reached > LARGEST_JUMP:
            notes[INSANE] = notes.get(INSANE, 0) + 1
            continue
        kept.append(entry)
        reached = max(reached, entry.step)
    return kept


def _job(path: Path) -> str:
    """The run's folder: a checkpoint's folder lies in it."""
    folder = path.absolute().parent
    if folder.name.startswith(_CHECKPOINT):
        folder = folder.parent
    return folder.name if path.name == "trainer_state.json" else ""


def _seconds_per_step(entries: list[_Entry], state: _State, notes: dict[str, int]) -> float:
    """Mean seconds of a step outside evaluation; -1 = not known."""
    total = [entry.train_runtime for entry in entries if entry.train_runtime is not None]
    if not total:
        notes[_UNTIMED] = 1
        return -1.0
    begun = _session_start(entries)
    evaluated = sum(entry.eval_runtime or 0.0 for entry in entries if entry.step > begun)
    if evaluated > total[-1]:
        notes[_CONTRADICTION] = 1
        return -1.0
    notes["step times are the mean over the last session: train_runtime covers that one only"] = 1
    steps = state.global_step - begun
    return (total[-1] - evaluated) / steps if steps > 0 else -1.0


def _session_start(entries: list[_Entry]) -> float:
    """Step at which the last session began, as far as earlier `train_runtime` entries tell."""
    ends = [entry.step for entry in entries if entry.train_runtime is not None]
    return ends[-2] if len(ends) > 1 else 0


def _tell(launch: Launch, entries: list[_Entry], per_step_s: float) -> None:
    """Steps between entries, evaluations where they stand."""
    reached = 0
    for entry in entries:
        step = int(entry.step)
        if step > reached:
            lasted = round(per_step_s * (step - reached) * NS) if per_step_s >= 0 else 0
            launch.add(
                Steps(
                    as_ints([reached + 1]),
                    as_ints([step - reached]),
                    as_ints([UNKNOWN]),
                    as_ints([lasted]),
                )
            )
            reached = step
        if entry.eval_runtime is not None and 0 <= entry.eval_runtime <= LONGEST_S:
            length = round(entry.eval_runtime * NS)
            launch.add(Happening("span", "evaluation", duration_ns=length))


def _unfinished(state: _State, notes: dict[str, int]) -> None:
    if 0 < state.global_step < state.max_steps:
        notes[
            f"stopped at step {state.global_step} of {state.max_steps}: training was not finished "
            "when this was written"
        ] = 1
