"""Steps that two sources tell are taken from the better one; the other adds what it alone knows."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from goodput.core.events import AttemptEnd, Committed, Event, Resumed, Work
from goodput.core.notes import Note
from goodput.core.timeline import Ints, as_ints
from goodput.training.measure.eventlog import Label, ProcessLog, SpanColumns
from goodput.training.measure.readers.kin import TRACKERS, floating

_ONCE = (Committed, Resumed, Work, AttemptEnd)


def choose(members: Sequence[ProcessLog]) -> tuple[list[ProcessLog], list[Note]]:
    """Return the logs of one job without steps that are told twice.

    Args:
        members: workers of one job.
    """
    kept: list[ProcessLog] = []
    left: dict[tuple[str, str], int] = {}
    for log in sorted(members, key=_worth, reverse=True):
        over = [i for i, better in enumerate(kept) if _twice(better, log)]
        if not over:
            kept.append(log)
            continue
        best = max(over, key=lambda i: _common(kept[i], log))
        kept[best] = _with_more(kept[best], log)
        pair = (log.path, kept[best].path)
        left[pair] = left.get(pair, 0) + int(log.steps.n.size)
    notes = [
        Note(
            level="info",
            text=f"steps are taken from {Path(better).name}, which tells more; left out here",
            where=path,
            count=max(count, 1),
        )
        for (path, better), count in left.items()
    ]
    return sorted(kept, key=lambda log: (log.started_at_ns, log.header.rank)), notes


def _worth(log: ProcessLog) -> tuple[bool, bool, float, bool, int]:
    """What makes one account of steps better than another, most telling first."""
    steps = log.steps
    records = max(int(steps.n.size), 1)
    given = log.header.writer not in TRACKERS
    covered = int(steps.covers.sum()) if steps.covers is not None else records
    fine = records / max(covered, 1)
    return log.header.origin != "log", not floating(log), round(fine, 2), given, records


def _twice(better: ProcessLog, log: ProcessLog) -> bool:
    """Whether two logs of a job tell of the same work: never two ranks, never one file."""
    if better.path == log.path or "log" not in {better.header.origin, log.header.origin}:
        return False
    if better.header.rank != log.header.rank:
        return False
    if floating(log) != floating(better):
        return True
    return _common(better, log) > 0


def _common(a: ProcessLog, b: ProcessLog) -> int:
    return min(a.last_at_ns, b.last_at_ns) - max(a.started_at_ns, b.started_at_ns)


def _with_more(better: ProcessLog, log: ProcessLog) -> ProcessLog:
    """Add spans of names, and events of kinds, that the better log has none of."""
    events: list[Event] = list(better.events)
    for kind in _ONCE:
        if not any(isinstance(event, kind) for event in events):
            events.extend(_events(log, kind, better.header.attempt))
    known = {label.name for label in better.labels}
    names = [label.name for label in log.labels if label.name not in known]
    aliases = tuple(sorted({*better.aliases, *log.aliases}))
    better = replace(better, events=tuple(events), aliases=aliases)
    return _with_spans(better, log, names) if names else better


def _events(log: ProcessLog, kind: type[Event], attempt: str) -> list[Event]:
    found = [event for event in log.events if isinstance(event, kind)]
    if floating(log):
        found = [event for event in found if isinstance(event, Work)]
    return [replace(e, attempt=attempt) if isinstance(e, AttemptEnd) else e for e in found]


def _with_spans(better: ProcessLog, log: ProcessLog, names: Sequence[str]) -> ProcessLog:
    rows = [i for i, label in enumerate(log.labels) if label.name in names]
    take = np.isin(log.spans.name, rows)
    at = log.spans.at_ns[take]
    if floating(log):
        at = _by_step(better, log, at)
    offset = len(better.labels)
    place = {row: offset + k for k, row in enumerate(rows)}
    spans, mine = log.spans, better.spans
    return replace(
        better,
        labels=(*better.labels, *(Label(log.labels[row].name, "") for row in rows)),
        spans=SpanColumns(
            np.concatenate((mine.name, as_ints([place[i] for i in spans.name[take].tolist()]))),
            np.concatenate((mine.at_ns, at)),
            np.concatenate((mine.duration_ns, spans.duration_ns[take])),
            np.concatenate((mine.background, spans.background[take])),
        ),
    )


def _by_step(better: ProcessLog, log: ProcessLog, at: Ints) -> Ints:
    """Dateless spans begin where the better log was done with the step before them."""
    ended = _ends(log)
    before = np.searchsorted(ended, at, side="right") - 1
    covers = log.steps.covers if log.steps.covers is not None else np.ones_like(log.steps.n)
    reached = (log.steps.n + covers - 1)[np.maximum(before, 0)]
    mine = better.steps
    row = np.searchsorted(mine.n, reached, side="right") - 1
    return _ends(better)[np.clip(row, 0, max(mine.n.size - 1, 0))]


def _ends(log: ProcessLog) -> Ints:
    steps = log.steps
    if steps.duration_ns is None:
        return steps.at_ns
    return steps.at_ns + np.maximum(steps.duration_ns, 0)
