"""Evidence in, verdict out: the first matching rule of rules.py, quoted with what it saw."""

import re
import signal as signals
from functools import cache
from typing import Final

import msgspec

from goodput.core.causes.rules import RULES, Rule, compiled
from goodput.core.causes.taxonomy import CAUSES

_TEXT_LIMIT: Final = 1 << 18  # the end of a log says why it ended; reading costs 2 s per MiB
_QUOTE_LIMIT: Final = 200
_NOISE: Final = re.compile(
    r"\x1b\[[0-9;]*[A-Za-z]"  # colours
    r"|^.*\bNCCL INFO\b.*$"  # talks of missing plug-ins and time-outs while all is well
    r"|There are some potential root causes\..*$",  # Ray lists what it might have been
    re.MULTILINE,
)


class Verdict(msgspec.Struct, frozen=True):
    """What probably caused an interruption, and why we think so."""

    cause: str
    """Leaf of the taxonomy (`CAUSES`)."""
    confidence: float
    """0-1; 0 = nothing known. Not a measured probability: see the levels in `Rule`."""
    evidence: str
    """The reason and a quote, for a person to judge."""
    planned: bool
    """Somebody meant it: there is no fault to repair."""


def classify(
    *,
    exit_code: int | None = None,
    signal: int | None = None,
    text: str | None = None,
    slurm_state: str | None = None,
) -> Verdict:
    """Return the most telling cause that the evidence supports, `unknown` if none.

    Args:
        exit_code: as a shell (137 = 128 + 9) or `Popen.returncode` (-9) gives it.
        signal: the signal that ended the process, if known.
        text: the end of its log, standard error and, if at hand, the kernel's log of the host; only
            the last 256 KiB are read.
        slurm_state: `State` of sacct or squeue, long or short: `NODE_FAIL`, `CANCELLED by 1000`.

    All evidence should be of one process or of one job: that a peer failed is only ever used when
    nothing else is there, with low confidence.
    """
    number = _signal_number(exit_code, signal)
    state = (slurm_state or "").upper().split(" ")[0].rstrip("+")
    # Progress bars return the carriage instead of ending the line.
    log = _NOISE.sub("", (text or "")[-_TEXT_LIMIT:].replace("\r", "\n"))
    own = ""
    for rule, pattern in _table():
        if rule.own_words and not own:
            own = _without_secondary(log)
        found = pattern.search(own if rule.own_words else log) if pattern and log else None
        if found:
            return _verdict(rule, _quote(found))
        if state in rule.slurm_states:
            return _verdict(rule, f"Slurm state {slurm_state}")
        if number in rule.signals:
            return _verdict(rule, _status(exit_code, number))
        if exit_code in rule.exit_codes:
            return _verdict(rule, f"exit code {exit_code}")
    return Verdict("unknown", 0.0, _nothing(exit_code, number, log), planned=False)


def _verdict(rule: Rule, seen: str) -> Verdict:
    return Verdict(
        rule.cause, rule.confidence, f"{rule.reason}: {seen}", planned=CAUSES[rule.cause].planned
    )


@cache
def _table() -> tuple[tuple[Rule, re.Pattern[str] | None], ...]:
    """Compile the rules, once and only when something is classified."""
    return tuple((rule, compiled(rule.text) if rule.text else None) for rule in RULES)


def _without_secondary(log: str) -> str:
    """Return the lines that no secondary rule claims."""
    patterns = [pattern for rule, pattern in _table() if rule.secondary and pattern]
    return "\n".join(
        line for line in log.splitlines() if not any(pattern.search(line) for pattern in patterns)
    )


def _signal_number(exit_code: int | None, signal: int | None) -> int | None:
    """Return the signal behind an exit, or None."""
    if signal:
        return int(signal)
    if exit_code is None:
        return None
    number = -exit_code if exit_code < 0 else exit_code - 128
    return number if number in signals.valid_signals() else None


def _status(exit_code: int | None, number: int | None) -> str:
    """Return an exit as a person reads it: `exit code 137 = signal 9 (SIGKILL)`."""
    name = next((each.name for each in signals.Signals if each == number), "")
    what = f"signal {number}" + (f" ({name})" if name else "")
    return what if exit_code is None else f"exit code {exit_code} = {what}"


def _quote(found: re.Match[str]) -> str:
    """Return the line of a match, cut around it when it is long."""
    log, start, end = found.string, *found.span()
    first = log.rfind("\n", 0, start) + 1
    stop = log.find("\n", end)
    last = len(log) if stop == -1 else stop
    if last - first > _QUOTE_LIMIT:
        first = max(first, start - _QUOTE_LIMIT // 3)
        last = min(last, first + _QUOTE_LIMIT)
    return f'"{" ".join(log[first:last].split())}"'


def _nothing(exit_code: int | None, number: int | None, log: str) -> str:
    """Return what there was, when none of it tells a cause."""
    if number is not None:
        return f"{_status(exit_code, number)} says nothing about the cause"
    told = [] if exit_code is None else [f"exit code {exit_code} says only that it ended"]
    told += [f"nothing telling in {len(log)} characters of text"] if log else []
    return "; ".join(told) or "no evidence was given"
