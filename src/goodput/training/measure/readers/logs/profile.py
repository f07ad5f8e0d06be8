"""A user's own log, described: rules that say which lines mean what (docs/formats/profiles.md).

The file is TOML. Everything is checked when it is loaded, so that a rule can only be right or not
match. formats/profile.py makes a story of what matches; profile_trace.py shows it line by line.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from goodput.core.causes import CAUSES
from goodput.core.errors import ConfigError
from goodput.training.measure.readers.logs.clock import YearlessClock, seconds_of_day
from goodput.training.measure.readers.logs.layouts import Stamps, layout_problem, zone_of
from goodput.training.measure.readers.logs.needles import needle_of
from goodput.training.measure.readers.logs.patience import LONGEST_LINE_BYTES, Tries
from goodput.training.measure.readers.logs.story import UNKNOWN

Kind = Literal[
    "step",
    "data",
    "evaluation",
    "checkpoint_begin",
    "checkpoint_end",
    "checkpoint_saved",
    "restored",
    "launch",
    "end",
    "fault",
    "world",
    "chips",
    "time",
]
Value = int | float | str


class KindGroups(NamedTuple):
    """Named groups of a kind's patterns."""

    needs: tuple[frozenset[str], ...]
    """Of each of these, at least one."""
    may: frozenset[str]


_AT: Final = frozenset({"at"})
_LASTED: Final = frozenset({"seconds", "ms", "duration"})
_END: Final = frozenset({"at", "cause", "exit_code", "signal", "rank"})
KINDS: Final[dict[str, KindGroups]] = {
    "step": KindGroups(
        (frozenset({"step"}),), _LASTED | {"at", "every", "data_seconds", "data_ms"}
    ),
    "data": KindGroups((_LASTED,), _AT),
    "evaluation": KindGroups((), _LASTED | _AT),
    "checkpoint_begin": KindGroups((), _AT),
    "checkpoint_end": KindGroups((), _LASTED | _AT),
    "checkpoint_saved": KindGroups((), _LASTED | {"at", "step", "path"}),
    "restored": KindGroups((frozenset({"step"}),), _LASTED | {"at", "path"}),
    "launch": KindGroups((), frozenset({"at", "world", "chips"})),
    "end": KindGroups((), _END),
    "fault": KindGroups((), _END),
    "world": KindGroups((frozenset({"world"}),), _AT),
    "chips": KindGroups((frozenset({"chips"}),), _AT),
    "time": KindGroups((), _AT),
}
INTEGERS: Final = frozenset({"step", "every", "world", "chips", "exit_code", "signal", "rank"})
SECONDS: Final = {"seconds": 1.0, "ms": 1e-3, "data_seconds": 1.0, "data_ms": 1e-3}
"""Groups that hold a decimal number, and seconds per unit."""
_VALUES: Final = {"ms": "seconds", "duration": "seconds", "data_ms": "data_seconds"}
"""Groups whose parsed value goes by another name: its unit is seconds."""
_OPTIONS: Final[dict[str, frozenset[str]]] = {
    "per": frozenset({"step"}),
    "step_is": frozenset({"step", "checkpoint_saved", "restored"}),
    "extent": frozenset({"evaluation"}),
    "outcome": frozenset({"end"}),
    "cause": frozenset({"end", "fault"}),
}
"""Options of a rule, and the kinds that have them."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of line."""

    kind: Kind
    pattern: str
    """Regular expression (Python's), searched for in the line; named groups carry the values."""
    needle: str = ""
    """Text that every such line holds; empty = taken from the pattern."""
    per: Literal["step", "line"] = "step"
    """Of a step line's time: it is the mean of one step, or of all steps of the line together."""
    step_is: Literal["last", "next"] = "last"
    """What `step` counts: the last step that is done, or the first that is not."""
    extent: Literal["before", "after"] = "before"
    """An evaluation without a time lasted from the step before, or lasts to the step after."""
    outcome: Literal["completed", "failed", "preempted", "stopped"] = "completed"
    cause: str = ""
    """Leaf of the cause taxonomy; empty = classified from the line."""


class ProfileFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the TOML file holds."""

    name: str
    rules: tuple[Rule, ...]
    signs: tuple[str, ...] = ()
    """A file is read with this profile if it holds one of these; empty = if a rule matches."""
    timestamp: str | tuple[str, ...] = ()
    """`iso`, `unix_s`, `unix_ms` or layouts of strptime; the first that fits is taken."""
    zone: str = ""
    """Time zone of stamps that give none; empty = UTC, and the report says so."""
    stamp: str = ""
    """Pattern with the group `at`: the stamp of lines whose rule has no such group."""
    first_step: Literal[0, 1] = 1
    """Number of a job's first step."""


class Compiled(NamedTuple):
    """A rule, ready to be tried."""

    name: str
    """`rule 3 (step)`."""
    rule: Rule
    regex: "re.Pattern[bytes]"
    needle: bytes


class Hit(NamedTuple):
    """A rule that matched a line."""

    which: Compiled
    values: dict[str, Value]
    """Parsed values; `ms` and `duration` have become `seconds`, `data_ms` `data_seconds`."""
    at_ns: int
    """UNKNOWN = the line has no stamp."""
    problems: tuple[str, ...]
    """Values that could not be parsed."""


class Profile:
    """A profile that was checked.

    Args:
        file: what it says.
        path: where it says so.

    Raises:
        ConfigError: a key has a value that cannot be used.
    """

    def __init__(self, file: ProfileFile, path: Path) -> None:
        self.file = file
        self.path = path
        self.name = file.name
        self.tries = Tries(str(path))
        if not file.rules:
            raise self._wrong("rules", [], "holds no rule; write at least one [[rules]]")
        for key, text in (
            ("name", file.name),
            *((f"signs[{i}]", s) for i, s in enumerate(file.signs)),
        ):
            if not text.strip():
                raise self._wrong(key, text, "is empty")
        self.signs = tuple(sign.encode() for sign in file.signs)
        self.stamps = self._stamps()
        self._stamp = (
            Compiled("stamp", _DEFAULTS, self._compiled("stamp", file.stamp), b"")
            if file.stamp
            else None
        )
        if self._stamp is not None and set(self._stamp.regex.groupindex) != {"at"}:
            raise self._wrong(
                "stamp", file.stamp, "needs the named group (?P<at>...), and no other"
            )
        self.rules = tuple(self._rule(number, rule) for number, rule in enumerate(file.rules))
        self.restarts = any(rule.kind == "launch" for rule in file.rules)
        """The log says when a launch begins."""

    def search(self, which: Compiled, line: bytes) -> "re.Match[bytes] | None":
        """Try one rule on a line; `patience.bounded` can tell where that takes long."""
        self.tries.number += 1
        self.tries.rule = which.name
        self.tries.line = line
        found = which.regex.search(line)
        self.tries.line = b""
        return found

    def hit(
        self, which: Compiled, found: "re.Match[bytes]", line: bytes, clock: YearlessClock
    ) -> Hit:
        """Return what a match says, with its values parsed."""
        values: dict[str, Value] = {}
        problems: list[str] = []
        stamp: bytes | None = None
        for group, raw in found.groupdict().items():
            if raw is None:
                continue
            if group == "at":
                stamp = raw
                continue
            try:
                values.setdefault(_VALUES.get(group, group), parsed(group, raw))
            except ValueError:
                problems.append(_not_parsed(group, raw))
        if self._stamp is not None and "at" not in found.re.groupindex:
            stamped = self.search(self._stamp, line)
            stamp = None if stamped is None else stamped["at"]
        at = UNKNOWN
        if stamp is not None and self.stamps is not None:
            at = self.stamps.ns(stamp, clock)
            if at == UNKNOWN:
                problems.append(_not_parsed("at", stamp))
        return Hit(which, values, at, tuple(problems))

    def reads(self, sample: bytes) -> bool:
        """Return whether a file is of this kind, by its beginning and end."""
        if self.signs:
            return any(sign in sample for sign in self.signs)
        return any(
            self.search(which, line)
            for which in self.rules
            if which.needle in sample
            for line in _lines_with(which.needle, sample)
        )

    def _stamps(self) -> Stamps | None:
        file = self.file
        layouts = (file.timestamp,) if isinstance(file.timestamp, str) else file.timestamp
        for layout in layouts:
            problem = layout_problem(layout)
            if problem:
                raise self._wrong("timestamp", layout, problem)
        if not layouts:
            if file.stamp or file.zone:
                key = "stamp" if file.stamp else "zone"
                raise self._wrong(key, getattr(file, key), "needs `timestamp`, the stamps' layout")
            return None
        try:
            return Stamps(layouts, zone_of(file.zone or "UTC"))
        except ValueError as error:
            raise self._wrong("zone", file.zone, str(error)) from error

    def _rule(self, index: int, rule: Rule) -> Compiled:
        key = f"rules[{index}]"
        regex = self._compiled(f"{key}.pattern", rule.pattern)
        self._check_groups(f"{key}.pattern", rule, frozenset(regex.groupindex))
        for option, kinds in _OPTIONS.items():
            value = getattr(rule, option)
            if rule.kind not in kinds and value != getattr(_DEFAULTS, option):
                raise self._wrong(f"{key}.{option}", value, f"is no option of kind {rule.kind}")
        if rule.cause and rule.cause not in CAUSES:
            raise self._wrong(f"{key}.cause", rule.cause, f"is none of {', '.join(CAUSES)}")
        needle = rule.needle or needle_of(rule.pattern)
        if not needle.strip() or "\n" in needle:
            raise self._wrong(
                f"{key}.pattern",
                rule.pattern,
                "has no literal text to look for first: give `needle`, text that every such line "
                "holds",
            )
        return Compiled(f"rule {index + 1} ({rule.kind})", rule, regex, needle.encode())

    def _check_groups(self, key: str, rule: Rule, groups: frozenset[str]) -> None:
        needs, may = KINDS[rule.kind]
        allowed = frozenset[str]().union(may, *needs)
        for choice in needs:
            if not choice & groups:
                wanted = " or ".join(f"(?P<{name}>...)" for name in sorted(choice))
                raise self._wrong(key, rule.pattern, f"kind {rule.kind} needs the group {wanted}")
        extra = sorted(groups - allowed)
        if extra:
            raise self._wrong(
                key,
                rule.pattern,
                f"kind {rule.kind} has no group {extra[0]!r}; it has: {', '.join(sorted(allowed))}",
            )
        if rule.kind == "time" and "at" not in groups and self._stamp is None:
            raise self._wrong(
                key, rule.pattern, "kind time needs the group (?P<at>...), or `stamp`"
            )
        if "at" in groups and self.stamps is None:
            raise self._wrong(key, rule.pattern, "has the group at: set `timestamp`, its layout")

    def _compiled(self, key: str, pattern: str) -> "re.Pattern[bytes]":
        try:
            return re.compile(pattern.encode())
        except (re.error, OverflowError, RecursionError) as error:
            raise self._wrong(key, pattern, f"is no regular expression: {error}") from error

    def _wrong(self, key: str, value: object, problem: str) -> ConfigError:
        return ConfigError(f"{self.path}: {key} = {value!r}: {problem}")


def load_profile(path: Path) -> Profile:
    """Return the profile in a TOML file (docs/formats/profiles.md).

    Raises:
        ConfigError: it is missing, no TOML, or a key is unknown, missing or has a value that cannot
            be used; the message names file, key and value.
    """
    try:
        raw = msgspec.toml.decode(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: no log profile: {error}") from error
    try:
        file = msgspec.convert(raw, ProfileFile)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}{_shown(raw, str(error))}") from error
    return Profile(file, path)


def parsed(group: str, raw: bytes) -> Value:
    """Return the value of a group; times in seconds.

    Raises:
        ValueError: it is not what the group holds.
    """
    if group in INTEGERS:
        return int(raw.replace(b",", b""))
    if group in SECONDS or group == "duration":
        plain = raw.replace(b",", b"")
        seconds = (
            seconds_of_day(plain) if group == "duration" else float(plain) * SECONDS.get(group, 1)
        )
        if not 0 <= seconds < float("inf"):
            raise ValueError(raw)
        return seconds
    return raw.decode(errors="replace")


def _not_parsed(group: str, raw: bytes) -> str:
    return f"{group} = {raw.decode(errors='replace')!r} is {_expected(group)}"


def _expected(group: str) -> str:
    if group == "at":
        return "no stamp of the profile's layouts"
    if group in INTEGERS:
        return "no whole number"
    return "no H:MM:SS" if group == "duration" else "no number"


def _lines_with(needle: bytes, sample: bytes, most: int = 1000) -> Iterator[bytes]:
    """Lines of a sample that hold a needle, the first `most` of those that may be tried."""
    at = sample.find(needle)
    while at >= 0 and most > 0:
        end = sample.find(b"\n", at)
        end = len(sample) if end < 0 else end
        line = sample[sample.rfind(b"\n", 0, at) + 1 : end]
        if len(line) <= LONGEST_LINE_BYTES:
            yield line
            most -= 1
        at = sample.find(needle, end)


def _shown(raw: object, message: str) -> str:
    """The value that a message of msgspec is about: it names only the place."""
    place = re.search(r"at `\$([^`]*)`", message)
    unknown = re.search(r"unknown field `([^`]*)`", message)
    path = (place[1] if place else "") + (f".{unknown[1]}" if unknown else "")
    if "missing required" in message or not path:
        return ""
    for name, index in re.findall(r"\.([^.[]+)|\[(\d+)\]", path):
        try:
            raw = raw[int(index) if index else name]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return ""
    kinds = f"; kinds: {', '.join(KINDS)}" if path.endswith(".kind") and not unknown else ""
    return kinds if repr(raw) in message else f": {raw!r}{kinds}"


_DEFAULTS: Final = Rule(kind="step", pattern="")

__all__ = ["KINDS", "Hit", "Profile", "ProfileFile", "Rule", "load_profile"]
