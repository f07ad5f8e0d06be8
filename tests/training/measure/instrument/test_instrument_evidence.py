"""What checkpoints and event files say about steps: plain containers, no torch."""

from pathlib import Path

import msgspec

from goodput.core.events import Committed, Process
from goodput.training.measure.instrument.evidence import (
    absolute,
    counters,
    holds_optimizer_state,
    match_counters,
    match_path,
    read_committed,
    steps_done,
)


class Scalar:
    """What a tensor of one element is to this module."""

    def __init__(self, value: float) -> None:
        self.value = value

    def numel(self) -> int:
        return 1

    def __int__(self) -> int:
        return int(self.value)


def optimizer(*steps: object, groups: list[object] | None = None) -> dict[str, object]:
    state = {n: {"step": step} for n, step in enumerate(steps)}
    return {"state": state, "param_groups": [{}] if groups is None else groups}


def test_the_steps_of_an_optimizer_are_its_largest_count() -> None:
    assert steps_done(optimizer(3, Scalar(5.0), 4.0)) == 5
    assert steps_done(optimizer(groups=[{"step": 9}])) == 9


def test_an_optimizer_without_a_count_says_nothing() -> None:
    assert steps_done(optimizer()) is None
    assert steps_done({"state": {0: {"momentum": Scalar(1)}}, "param_groups": [{}]}) is None
    assert steps_done(optimizer(True, "7", None)) is None


def test_an_optimizers_state_is_found_inside_containers() -> None:
    assert holds_optimizer_state({"a": [{"b": {"optimizer": optimizer(1)}}]})
    assert holds_optimizer_state(optimizer(1))
    assert not holds_optimizer_state({"a": {"state": 1}})
    assert not holds_optimizer_state([1, 2])
    assert not holds_optimizer_state(Scalar(1))


def test_counters_are_the_scripts_not_the_optimizers() -> None:
    saved = {
        "optimizer": optimizer(5),
        "scheduler": {"last_epoch": 20},
        "state": {"global_step": 21, "steps": True},
        "epoch": 3,
    }
    assert counters(saved) == {20, 21}


def test_a_counter_must_agree_with_exactly_one_checkpoint() -> None:
    ten, twenty = Committed(t=1, last_step=9), Committed(t=2, last_step=19)
    assert match_counters(frozenset({20, 3}), [ten, twenty]) == twenty
    assert match_counters(frozenset({19}), [ten, twenty]) == twenty
    assert match_counters(frozenset({10, 20}), [ten, twenty]) is None
    assert match_counters(frozenset({4}), [ten, twenty]) is None
    assert match_counters(frozenset(), []) is None


def test_a_path_is_the_last_checkpoint_that_was_saved_there() -> None:
    first = Committed(t=1, last_step=9, path="/a")
    second = Committed(t=2, last_step=19, path="/a")
    assert match_path("/a", [second, first]) == second
    assert match_path("/b", [first, Committed(t=3, last_step=1)]) is None


def test_committed_events_are_read_past_whatever_else_is_in_the_files(tmp_path: Path) -> None:
    def lines(rank: int, *steps: int) -> bytes:
        out = [msgspec.json.encode(Process(t=1, schema="goodput.events/1.0", job="j", rank=rank))]
        out += [
            msgspec.json.encode(Committed(t=100 + step, last_step=step, path="/committed"))
            for step in steps
        ]
        return b"\n".join(out)

    (tmp_path / "events-r0-a.jsonl").write_bytes(lines(0, 5, 1) + b'\n{"k":"committed","last_')
    (tmp_path / "events-r3-a.jsonl").write_bytes(b"\x00\xff\n" + lines(3, 7))
    (tmp_path / "events-r30-a.jsonl").write_bytes(lines(30, 8))
    (tmp_path / "events-r0-empty.jsonl").touch()
    assert [event.last_step for event in read_committed(tmp_path, 3)] == [1, 5, 7]
    assert read_committed(tmp_path / "no such folder", 0) == []


def test_paths_are_absolute_and_urls_are_left_alone(tmp_path: Path) -> None:
    assert absolute("s3://bucket/x") == "s3://bucket/x"
    assert absolute(tmp_path / "a" / ".." / "b") == str(tmp_path / "b")
    assert absolute(Scalar(1)) == ""
    assert absolute(None) == ""
    with (tmp_path / "f").open("wb") as file:
        assert absolute(file) == str(tmp_path / "f")
