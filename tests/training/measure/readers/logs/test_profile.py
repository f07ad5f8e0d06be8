"""Log profiles: what a profile may say, and that what is wrong is named: file, key and value."""

from pathlib import Path

import pytest
from small_profiles import ACME, HEAD, RULES, profile_of, rule, write_profile

from goodput.core.errors import ConfigError
from goodput.training.measure.readers.logs.profile import KINDS, load_profile

STEP = rule("step", r"step (?P<step>\d+)")


def problem(folder: Path, text: str) -> str:
    path = write_profile(folder, text)
    with pytest.raises(ConfigError) as caught:
        load_profile(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def test_a_profile(tmp_path: Path) -> None:
    profile = load_profile(write_profile(tmp_path))
    assert profile.name == "acme"
    assert [one.rule.kind for one in profile.rules][:3] == ["launch", "restored", "step"]
    assert profile.rules[2].needle == b"step "
    assert profile.rules[2].name == "rule 3 (step)"


def test_a_needle_of_ones_own(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, rule("step", r"(?i)step (?P<step>\d+)", needle="tep "))
    assert profile.rules[0].needle == b"tep "


def test_every_kind_has_a_rule_that_loads(tmp_path: Path) -> None:
    for kind, groups in KINDS.items():
        names = sorted(groups.may | {min(choice) for choice in groups.needs})
        pattern = "told " + " ".join(rf"(?P<{name}>\S+)" for name in names)
        profile = profile_of(tmp_path, rule(kind, pattern), head='name = "x"\ntimestamp = "iso"\n')
        assert profile.rules[0].rule.kind == kind


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = ", ("no log profile",)),
        (STEP, ("missing required field `name`",)),
        ('name = "x"', ("missing required field `rules`",)),
        ('name = "x"\nrules = []', ("rules = []", "[[rules]]")),
        ('name = " "\n' + STEP, ("name = ' '", "empty")),
        ('name = "x"\nsigns = [""]\n' + STEP, ("signs[0] = ''",)),
        ('name = "x"\ncolour = "red"\n' + STEP, ("unknown field `colour`", "'red'")),
        ('name = "x"\n' + STEP + "needel = 3", ("unknown field `needel`", "rules[0]", "3")),
        ('name = "x"\n' + rule("stepp", "a"), ("'stepp'", "rules[0].kind", "checkpoint_saved")),
        ("name = 7\n" + STEP, ("name", ": 7")),
        ('name = "x"\nfirst_step = 2\n' + STEP, ("first_step", "2")),
    ],
)
def test_what_is_no_profile(text: str, words: tuple[str, ...], tmp_path: Path) -> None:
    message = problem(tmp_path, text)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (rule("step", r"step (?P<step>\d+"), ("rules[0].pattern", "no regular expression")),
        (rule("step", r"step (?P<step>\d{99999999999})"), ("no regular expression",)),
        (rule("step", r"step \d+"), ("rules[0].pattern", "needs the group (?P<step>...)")),
        (rule("data", "data wait"), ("needs the group", "(?P<ms>...)", "(?P<seconds>...)")),
        (rule("time", "INFO"), ("kind time needs", "stamp")),
        (rule("world", "world size"), ("(?P<world>...)",)),
        (rule("step", r"step (?P<step>\d+) (?P<loss>\S+)"), ("no group 'loss'", "every")),
        (rule("step", r"step (?P<step>\d+) (?P<at>\S+)"), ("timestamp",)),
        (rule("step", r"(?P<step>\d+)"), ("needle",)),
        (rule("step", r"(?i)step (?P<step>\d+)"), ("needle",)),
        (rule("end", "done", per="line"), ("rules[0].per = 'line'", "no option of kind end")),
        (rule("step", r"step (?P<step>\d+)", cause="oom"), ("rules[0].cause = 'oom'",)),
        (rule("fault", "dead", cause="aliens"), ("rules[0].cause = 'aliens'", "gpu_hbm")),
        (rule("end", "dead", outcome="sad"), ("outcome", "'sad'")),
    ],
)
def test_rules_that_cannot_be_used(one: str, words: tuple[str, ...], tmp_path: Path) -> None:
    message = problem(tmp_path, 'name = "x"\n' + one)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"%Y-%m-%d %H:%M:%S.%f"', '"%H:%M"', ("timestamp = '%H:%M'", "no day")),
        ('zone = "UTC"', 'zone = "Moon"', ("zone = 'Moon'", "Europe/Paris")),
        ("(?P<at>", "(?P<when>", ("stamp = ", "(?P<at>...)")),
        ("(?P<at>", "((?P<at>", ("stamp = ", "no regular expression")),
        ('timestamp = "%Y-%m-%d %H:%M:%S.%f"\n', "", ("stamp = ", "timestamp")),
    ],
)
def test_stamps_that_cannot_be_used(
    old: str, new: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    assert old in HEAD
    message = problem(tmp_path, HEAD.replace(old, new) + RULES)
    for word in words:
        assert word in message


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.toml"):
        load_profile(tmp_path / "nothing.toml")


def test_a_file_is_known_by_its_signs_or_by_a_rule(tmp_path: Path) -> None:
    signed = profile_of(tmp_path, STEP, head='name = "x"\nsigns = ["acme-train"]\n')
    assert signed.reads(b"hello\nacme-train 3\n")
    assert not signed.reads(b"step 3\n")
    free = load_profile(write_profile(tmp_path, ACME))
    assert free.reads(b"hello\nstep 3 loss 2 took 5 ms")
    assert not free.reads(b"step three\n")
