"""What a profile makes of a log, line by line: for the person who writes the profile."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from goodput.core.errors import DataError
from goodput.training.measure.readers.logs.clock import YearlessClock
from goodput.training.measure.readers.logs.formats.profile import (
    TOO_LONG,
    UNPARSED,
    ProfileFormat,
)
from goodput.training.measure.readers.logs.patience import LONGEST_LINE_BYTES, bounded
from goodput.training.measure.readers.logs.profile import Hit, Profile, Value
from goodput.training.measure.readers.logs.story import UNKNOWN
from goodput.training.measure.readers.logs.text import COLOURS, DAMAGED, TextLog, pieces

SHOWN: Final = 20
EXAMPLES: Final = 5
"""Lines of each kind of problem that are kept."""
LONGEST_TEXT: Final = 200
_BACK: Final = (
    "a step below the one before, and no launch or restored line between (interleaved ranks do "
    "that too)"
)
_LIKE_A_STEP: Final = re.compile(
    rb"\b(?:global[_ ]?)?(?:step|iter|iteration|batch)s?\b[^\w\n]{0,4}\d", flags=re.IGNORECASE
)


class Matched(msgspec.Struct, frozen=True):
    """A rule that matched a line."""

    line: int
    """Number of the line, from 1."""
    rule: int
    """Number of the rule, from 1."""
    kind: str
    values: dict[str, Value]
    """Parsed values; `ms` and `duration` have become `seconds`, `data_ms` `data_seconds`."""
    texts: dict[str, str]
    """Groups as written."""
    at_ns: int | None
    """Stamp of the line, Unix ns."""


class Unmatched(msgspec.Struct, frozen=True):
    """A line that no rule matched."""

    line: int
    text: str


class RuleCount(msgspec.Struct, frozen=True):
    """How often a rule matched."""

    rule: int
    kind: str
    needle: str
    matched: int
    near: int
    """Lines that hold its needle, do not match its pattern, and match no other rule."""
    first_near: int
    """The first of them; 0 = none."""


class Problem(msgspec.Struct, frozen=True):
    """Something that keeps the profile from being read as it is meant."""

    text: str
    count: int
    line: int
    """The first line that has it; 0 = no line of its own."""


class Trace(msgspec.Struct, frozen=True):
    """What a profile made of a log."""

    profile: str
    log: str
    lines: int
    matched_lines: int
    claimed: bool
    """A report would read the file with this profile."""
    rules: tuple[RuleCount, ...]
    matches: tuple[Matched, ...]
    """The first ones, as many as were asked for."""
    like_steps: int
    """Lines that look like steps and that no rule matched."""
    like_steps_examples: tuple[Unmatched, ...]
    problems: tuple[Problem, ...]


class _Tracer:
    def __init__(self, profile: Profile, latest_ns: int, limit: int) -> None:
        self.profile = profile
        self.limit = limit
        self.clock = YearlessClock(latest_ns)
        self.lines = self.matched_lines = self.like_steps = 0
        self.matches: list[Matched] = []
        self.examples: list[Unmatched] = []
        self.counts = [[0, 0, 0] for _ in profile.rules]
        self.problems: dict[str, list[int]] = {}
        self.last_step = -1

    def line(self, line: bytes) -> None:
        """Try every rule on a line, as the reader does, and count what it would not say."""
        self.lines += 1
        if len(line) > LONGEST_LINE_BYTES:
            self.problem(f"longer than {LONGEST_LINE_BYTES} bytes: no rule is tried")
            return
        matched = stepped = False
        near: list[int] = []
        for index, one in enumerate(self.profile.rules):
            if one.needle not in line or (stepped and one.rule.kind == "step"):
                if one.rule.needle and self.profile.search(one, line):
                    self.problem(f"{one.name}: the pattern matches, its needle is not in the line")
                continue
            found = self.profile.search(one, line)
            if found is None:
                near.append(index)
                continue
            matched = True
            stepped = stepped or one.rule.kind == "step"
            self.counts[index][0] += 1
            self.take(index, self.profile.hit(one, found, line, self.clock), found)
        self.matched_lines += matched
        for index in () if matched else near:
            self.counts[index][1] += 1
            self.counts[index][2] = self.counts[index][2] or self.lines
        if not matched and _LIKE_A_STEP.search(line) is not None:
            self.like_steps += 1
            if len(self.examples) < EXAMPLES:
                self.examples.append(Unmatched(self.lines, _text(line)))

    def take(self, index: int, hit: Hit, found: "re.Match[bytes]") -> None:
        one = hit.which
        for problem in hit.problems:
            self.problem(f"{one.name}: {problem}", as_one=f"{one.name}: {problem.split(' = ')[0]}")
        if len(self.matches) < self.limit:
            at = None if hit.at_ns == UNKNOWN else hit.at_ns
            kind = one.rule.kind
            texts = {
                group: raw.decode(errors="replace")
                for group, raw in found.groupdict().items()
                if raw is not None
            }
            self.matches.append(Matched(self.lines, index + 1, kind, hit.values, texts, at))

        step = hit.values.get("step")
        if one.rule.kind in {"launch", "restored"}:
            self.last_step = -1
        elif one.rule.kind == "step" and isinstance(step, int):
            if step < self.last_step:
                self.problem(_BACK)
            self.last_step = step

    def problem(self, text: str, *, as_one: str = "") -> None:
        """Count a problem; `as_one` counts those together whose text differs by a value only."""
        known = next((key for key in self.problems if as_one and key.startswith(as_one)), text)
        self.problems.setdefault(known, [0, self.lines])[0] += 1

    def summary(self) -> tuple[Problem, ...]:
        """Return the problems of lines, then those of rules."""
        found = [Problem(text, count, line) for text, (count, line) in self.problems.items()]
        for one, (matched, near, first) in zip(self.profile.rules, self.counts, strict=True):
            if near:
                found.append(
                    Problem(f"{one.name}: its needle is there, its pattern fails", near, first)
                )
            if not matched:
                found.append(Problem(f"{one.name}: matched no line", 1, 0))
        return tuple(found)


def trace(profile: Profile, log: Path, *, limit: int = SHOWN) -> Trace:
    """Return what a profile makes of a log.

    Args:
        profile: the profile.
        log: a text file; `.gz` and `.xz` are unpacked.
        limit: matches to keep, the first ones; everything is counted.

    Raises:
        DataError: the log cannot be read.
        ConfigError: a pattern takes too long on a line.
    """
    try:
        tracer = _Tracer(profile, int(log.stat().st_mtime * 1e9), limit)
        sample = b""
        with bounded(profile.tries):
            for line in _lines(log):
                if len(sample) < 1 << 20:
                    sample += line + b"\n"
                tracer.line(line)
            notes = _notes(profile, log)
            claimed = profile.reads(sample) if profile.signs else tracer.matched_lines > 0
    except (OSError, *DAMAGED) as error:
        raise DataError(f"cannot be read ({error})", path=log) from error
    if not claimed:
        tracer.problem("no line holds one of `signs`: reports would not use this profile")
    return Trace(
        profile=str(profile.path),
        log=str(log),
        lines=tracer.lines,
        matched_lines=tracer.matched_lines,
        claimed=claimed,
        rules=tuple(
            RuleCount(index + 1, one.rule.kind, one.needle.decode(errors="replace"), *count)
            for index, (one, count) in enumerate(zip(profile.rules, tracer.counts, strict=True))
        ),
        matches=tuple(tracer.matches),
        like_steps=tracer.like_steps,
        like_steps_examples=tuple(tracer.examples),
        problems=(*tracer.summary(), *notes),
    )


def _notes(profile: Profile, path: Path) -> list[Problem]:
    """What a report would note about the log, but for what is told line by line."""
    log = TextLog(path, path.name, [ProfileFormat(profile)])
    log.poll()
    return [
        Problem(f"a report notes: {note.text}", note.count, 0)
        for note in log.finish()
        if note.text not in {UNPARSED, TOO_LONG}
    ]


def _lines(path: Path) -> Iterator[bytes]:
    """Lines as the reader sees them: without colours, a carriage return ends one too."""
    rest = b""
    for piece in pieces(path):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield from _clean(line)
    if rest:
        yield from _clean(rest)


def _clean(line: bytes) -> Iterator[bytes]:
    plain = COLOURS.sub(b"", line) if b"\x1b" in line else line
    yield from plain.rstrip(b"\r").split(b"\r")


def _text(line: bytes) -> str:
    return line.decode(errors="replace").strip()[:LONGEST_TEXT]


__all__ = ["Trace", "trace"]
