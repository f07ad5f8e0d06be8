"""docs/formats/profiles.md: its tables are the code's, and its examples give what it says."""

import re
from pathlib import Path

import msgspec

from goodput.core.events import Committed
from goodput.core.waterfall import Waterfall
from goodput.training.measure.ledger import Ledger, account
from goodput.training.measure.readers import read
from goodput.training.measure.readers.logs.patience import LONGEST_LINE_BYTES, LONGEST_MATCH_S
from goodput.training.measure.readers.logs.profile import KINDS, ProfileFile, Rule, load_profile
from goodput.training.measure.readers.logs.profile_trace import Trace, trace

PAGE = (Path(__file__).parents[2] / "docs" / "formats" / "profiles.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(text|toml)\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def example(number: int, folder: Path) -> tuple[Ledger, Trace]:
    """The account of an example, and what its profile matched."""
    log, toml = BLOCKS[2 * number : 2 * number + 2]
    assert (log[0], toml[0]) == ("text", "toml")
    (folder / "run.log").write_text(log[1])
    (folder / "my.toml").write_text(toml[1])
    profile = load_profile(folder / "my.toml")
    ledger = account(read([folder / "run.log"], [profile]))
    return ledger, trace(profile, folder / "run.log")


def lost_s(waterfall: Waterfall, name: str) -> float:
    return waterfall.loss(name) / 1e9


def test_keys() -> None:
    section = PAGE.split("## The file")[1]
    for kind in (ProfileFile, Rule):
        table, _, section = section.partition("\n## " if kind is ProfileFile else "Every rule")
        documented = re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)
        assert sorted(documented) == sorted(field.name for field in msgspec.structs.fields(kind))


def test_kinds_and_their_groups() -> None:
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|([^|]*)\|[^|]+\|$", PAGE, flags=re.MULTILINE)
    documented = {
        kind: (set(re.findall(r"`(\w+)`", needs)), set(re.findall(r"`(\w+)`", may)))
        for kind, needs, may in rows
        if kind in KINDS
    }
    assert documented == {
        kind: (set().union(*groups.needs), set(groups.may)) for kind, groups in KINDS.items()
    }


def test_limits() -> None:
    assert f"more than {LONGEST_LINE_BYTES} bytes" in PAGE
    assert f"more than {LONGEST_MATCH_S} s" in PAGE


def test_a_custom_trainer(tmp_path: Path) -> None:
    ledger, matched = example(0, tmp_path)
    assert (ledger.world, len(ledger.attempts)) == (16, 2)
    assert (ledger.steps.kept, ledger.steps.lost) == (4, 1)
    assert lost_s(ledger.waterfall, "checkpoint") == 16 * 3
    assert lost_s(ledger.waterfall, "evaluation") == 16 * 6
    assert (ledger.attempts[0].outcome, ledger.attempts[0].cause) == ("failed", "gpu_hbm")
    assert (matched.matched_lines, matched.problems) == (13, ())


def test_like_nemo(tmp_path: Path) -> None:
    ledger, matched = example(1, tmp_path)
    assert (ledger.world, ledger.state, ledger.steps.kept) == (8, "completed", 3)
    assert ledger.started_at_ns == 1_741_415_636_000_000_000  # 22:33:56 in Los Angeles
    assert lost_s(ledger.waterfall, "checkpoint") == 8 * 3
    (process,) = read([tmp_path / "run.log"], [load_profile(tmp_path / "my.toml")]).processes
    assert [e.last_step for e in process.events if isinstance(e, Committed)] == [1]
    assert any("inferred" in note.text for note in ledger.notes)
    assert matched.matched_lines == 9
