"""Schedules: files, checks and the random draw."""

from pathlib import Path

import pytest

from goodput.core.errors import ConfigError
from goodput.training.faults import Fault, FaultSchedule, random_schedule, read_schedule
from goodput.training.faults.schedule import Kind

SCHEDULE = FaultSchedule(
    origin="launch",
    faults=(
        Fault(kind="kill", at_step=90, rank=1),
        Fault(kind="slow", at_s=12.5, for_s=3.0, slowdown=1.5),
    ),
)
TOML = """
origin = "launch"
[[faults]]
kind = "kill"
at_step = 90
rank = 1
[[faults]]
kind = "slow"
at_s = 12.5
for_s = 3.0
slowdown = 1.5
"""
JSON = """{"origin": "launch", "faults": [{"kind": "kill", "at_step": 90, "rank": 1},
{"kind": "slow", "at_s": 12.5, "for_s": 3.0, "slowdown": 1.5}]}"""


@pytest.mark.parametrize(("name", "text"), [("f.toml", TOML), ("f.json", JSON)])
def test_toml_and_json_say_the_same(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert read_schedule(path) == SCHEDULE


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("f.toml", "faults = [", "not a fault schedule"),
        ("f.toml", TOML + "\nrnak = 1\n", "rnak"),
        ("f.json", '{"faults": [{"kind": "kill"}]}', "at_step or at_s"),
        ("f.json", '{"faults": [{"kind": "melt", "at_s": 1}]}', "melt"),
        ("f.yaml", "faults: []", ".toml or .json"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=said) as caught:
        read_schedule(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_schedule(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("kill", {}),
        ("kill", {"at_step": 1, "at_s": 1.0}),
        ("kill", {"at_s": -1.0}),
        ("kill", {"at_s": 1.0, "rank": -1}),
        ("kill", {"at_s": 1.0, "for_s": 2.0}),
        ("slow", {"at_s": 1.0}),
        ("slow", {"at_s": 1.0, "for_s": 1.0, "slowdown": 1.0}),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(kind: Kind, options: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        Fault(kind=kind, **options)  # type: ignore[arg-type]


def test_random_faults_come_at_the_mean_interval_in_the_given_mix() -> None:
    drawn = random_schedule(
        mean_between_s=10.0,
        horizon_s=50_000.0,
        ranks=4,
        mix={"kill": 3.0, "hang": 1.0},
        seed=7,
    ).faults
    assert (
        drawn
        == random_schedule(
            mean_between_s=10.0,
            horizon_s=50_000.0,
            ranks=4,
            mix={"hang": 1.0, "kill": 3.0},
            seed=7,
        ).faults
    )
    # 5000 expected, standard deviation 71.
    assert len(drawn) == pytest.approx(5000, abs=300)
    assert {fault.rank for fault in drawn} == {0, 1, 2, 3}
    kills = sum(fault.kind == "kill" for fault in drawn)
    assert kills / len(drawn) == pytest.approx(0.75, abs=0.03)
    times = [fault.at_s or 0.0 for fault in drawn]
    assert times == sorted(times)
    assert times[-1] <= 50_000.0


def test_another_seed_draws_other_faults() -> None:
    def draw(seed: int) -> FaultSchedule:
        return random_schedule(
            mean_between_s=1.0, horizon_s=10.0, ranks=2, mix={"kill": 1.0}, seed=seed
        )

    assert draw(1) != draw(2)


@pytest.mark.parametrize(
    "wrong",
    [{"mean_between_s": 0.0}, {"horizon_s": 0.0}, {"ranks": 0}, {"mix": {"kill": 0.0}}],
)
def test_random_arguments_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    good: dict[str, object] = {
        "mean_between_s": 1.0,
        "horizon_s": 1.0,
        "ranks": 1,
        "mix": {"kill": 1.0},
        "seed": 0,
    }
    with pytest.raises(ConfigError):
        random_schedule(**(good | wrong))  # type: ignore[arg-type]
