"""What `train profile` shows: what matched, what nearly did, what looks like a step."""

from pathlib import Path

from small_profiles import HEAD, LINES, RULES, profile_of, rule, write_log, write_profile

from goodput.training.measure.readers.logs.profile import load_profile
from goodput.training.measure.readers.logs.profile_trace import Trace, trace

STEP = rule("step", r"step (?P<step>\S+) took (?P<seconds>\S+) s")


def problems(found: Trace) -> str:
    return "\n".join(f"{one.line} x{one.count} {one.text}" for one in found.problems)


def test_what_matched(tmp_path: Path) -> None:
    found = trace(load_profile(write_profile(tmp_path)), write_log(tmp_path))
    assert (found.lines, found.matched_lines, found.claimed) == (16, 15, True)
    assert [one.matched for one in found.rules] == [2, 1, 7, 1, 1, 1, 1, 1]
    first, step = found.matches[:2]
    assert (first.line, first.kind, first.values) == (1, "launch", {"world": 16})
    assert (step.line, step.values, step.texts["ms"]) == (2, {"step": 1, "seconds": 40}, "40000.0")
    assert step.at_ns == 1_772_359_300_000_000_000
    assert found.problems == ()


def test_lines_that_look_like_steps(tmp_path: Path) -> None:
    found = trace(load_profile(write_profile(tmp_path)), write_log(tmp_path))
    assert found.like_steps == 1
    assert [one.line for one in found.like_steps_examples] == [8]


def test_the_limit_is_on_what_is_shown(tmp_path: Path) -> None:
    found = trace(load_profile(write_profile(tmp_path)), write_log(tmp_path), limit=3)
    assert len(found.matches) == 3
    assert found.matched_lines == 15


def test_no_match_at_all(tmp_path: Path) -> None:
    found = trace(profile_of(tmp_path, STEP), write_log(tmp_path, ["hello", "step 3 of 5"]))
    assert (found.matched_lines, found.matches, found.claimed) == (0, (), False)
    assert found.like_steps == 1
    assert "2 x1 rule 1 (step): its needle is there, its pattern fails" in problems(found)
    assert "rule 1 (step): matched no line" in problems(found)


def test_an_empty_log(tmp_path: Path) -> None:
    found = trace(profile_of(tmp_path, STEP), write_log(tmp_path, []))
    assert (found.lines, found.claimed) == (0, False)


def test_values_that_are_none(tmp_path: Path) -> None:
    lines = ["step 1 took 1 s", "step x took 1 s", "step y took 1 s"]
    found = trace(profile_of(tmp_path, STEP), write_log(tmp_path, lines))
    assert "2 x2 rule 1 (step): step = 'x' is no whole number" in problems(found)


def test_stamps_that_are_none(tmp_path: Path) -> None:
    lines = [line.replace("2026-03-01", "01.03.2026") for line in LINES]
    found = trace(load_profile(write_profile(tmp_path)), write_log(tmp_path, lines))
    assert "is no stamp of the profile's layouts" in problems(found)


def test_a_needle_that_is_wrong(tmp_path: Path) -> None:
    wrong = rule("step", r"step (?P<step>\d+)", needle="Step")
    found = trace(profile_of(tmp_path, wrong), write_log(tmp_path, ["step 1"]))
    assert "the pattern matches, its needle is not in the line" in problems(found)


def test_signs_that_are_not_there(tmp_path: Path) -> None:
    path = write_profile(tmp_path, HEAD + 'signs = ["acme 2"]\n' + RULES)
    found = trace(load_profile(path), write_log(tmp_path))
    assert not found.claimed
    assert "no line holds one of `signs`" in problems(found)


def test_what_a_report_would_note(tmp_path: Path) -> None:
    lines = [f"step {n} took 1 s" for n in (1, 2, 3, 4, 5, 1)]
    found = trace(profile_of(tmp_path, STEP), write_log(tmp_path, lines))
    assert "a report notes: no line carries a time" in problems(found)
    assert "a report notes: steps went back without a start" in problems(found)
    assert "6 x1 a step below the one before" in problems(found)


def test_colours_and_progress_bars_are_read_as_reports_read_them(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"\x1b[31mstep 1\x1b[0m took 1 s\rstep 2 took 1 s\r\nx" + b"y" * 9000 + b"\n")
    found = trace(profile_of(tmp_path, STEP), path)
    assert [one.values["step"] for one in found.matches] == [1, 2]
    assert "longer than 8192 bytes" in problems(found)
