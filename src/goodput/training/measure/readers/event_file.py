"""Our own event files (`events-*.jsonl`): incremental, tolerant of torn and foreign lines.

What a line holds never stops the reading: what cannot be used is counted, with file and line.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from goodput.core.events import (
    SCHEMA,
    SCHEMA_MAJOR,
    SCHEMA_MINOR,
    AnyEvent,
    Begin,
    Event,
    Process,
    Span,
    Step,
    StepEnd,
    Window,
)
from goodput.core.notes import Note
from goodput.core.timeline import Ints, as_ints
from goodput.training.measure.eventlog import ProcessLog
from goodput.training.measure.readers.columns import EndStore, SpanStore, StepStore, gather

CHUNK_BYTES: Final = 4 << 20
LONGEST_LINE_BYTES: Final = 8 << 20
"""A line beyond this is garbage: it is skipped, so that a binary file cannot fill memory."""
CLOCK_STEP_NS: Final = 1_000_000_000
"""Wall and monotonic clocks that part by more than this are reported."""

_decoder = msgspec.json.Decoder(AnyEvent)
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_kinds: Final = {kind.__struct_config__.tag: kind for kind in AnyEvent.__args__}
_schema_pattern: Final = re.compile(r"goodput\.events/(\d{1,4})\.(\d{1,4})$")
_PLAIN_STEP: Final = b'{"k":"step","n":'
_LIMITS: Final = as_ints([2**53, 2**62, 2**61])
"""Of the three numbers, as in core/events.py."""
_TO_NUMBERS: Final = bytes(32 if chr(c) in ",\n" else c for c in range(256))
_NOT_NUMBERS: Final = bytes(c for c in range(256) if chr(c) not in "0123456789-,\n")


class Problems:
    """Counts what was wrong, keeping the first place of each kind."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._notes: dict[str, Note] = {}

    def add(self, text: str, line: int, *, level: str = "warning", count: int = 1) -> None:
        """Count one problem; `text` is its kind and must not vary with the line."""
        known = self._notes.get(text)
        if known is None:
            where = f"{self.path}:{line}" if line else self.path
            self._notes[text] = Note(
                level="info" if level == "info" else "error" if level == "error" else "warning",
                text=text,
                where=where,
                count=count,
            )
        else:
            self._notes[text] = msgspec.structs.replace(known, count=known.count + count)

    @property
    def notes(self) -> tuple[Note, ...]:
        """One note for each kind of problem."""
        return tuple(self._notes.values())


class _Writer:
    """What one writer process has put into the file so far."""

    def __init__(self, header: Process, path: str) -> None:
        self.header = header
        self.path = path
        self.offset_ns = header.t - header.m if header.m else 0
        self.steps, self.ends, self.spans = StepStore(), EndStore(), SpanStore()
        self.windows: list[Window] = []
        self.events: list[Event] = []
        self.last_at_ns = header.t
        self.skew_low, self.skew_high = 0, 0
        self._made: tuple[int, ProcessLog] | None = None

    def times(self, events: Sequence[Event]) -> Ints:
        """Return corrected times and note how far wall and monotonic clocks part."""
        wall, mono = gather(events, "t"), gather(events, "m")
        return self.corrected(wall, mono)

    def corrected(self, wall: Ints, mono: Ints) -> Ints:
        """As `times`, from columns."""
        if not self.offset_ns:
            return wall
        at = np.where(mono > 0, mono + self.offset_ns, wall)
        skew = wall - at
        self.skew_low = min(self.skew_low, int(skew.min()))
        self.skew_high = max(self.skew_high, int(skew.max()))
        return at

    def alive(self, at_ns: int) -> None:
        """Note a sign of life: something was added."""
        self.last_at_ns = max(self.last_at_ns, at_ns)
        self._made = None

    def log(self, shift_ns: int) -> ProcessLog:
        """Return what was read, times moved by a constant; the same object until it grows."""
        if self._made is None or self._made[0] != shift_ns:
            self._made = (shift_ns, self._log(shift_ns))
        return self._made[1]

    def _log(self, shift_ns: int) -> ProcessLog:
        return ProcessLog(
            header=self.header,
            path=self.path,
            offset_ns=self.offset_ns + shift_ns if self.offset_ns else 0,
            steps=self.steps.columns(shift_ns),
            ends=self.ends.columns(shift_ns),
            spans=self.spans.columns(shift_ns),
            labels=self.spans.labels,
            shapes=self.steps.shapes,
            windows=tuple(self.windows),
            events=tuple(self.events),
            last_at_ns=self.last_at_ns + shift_ns,
        )


class EventFile:
    """One event file, read as far as it goes and again when it has grown.

    Args:
        path: the file.
        name: how to call it in notes (path as the user gave it).
    """

    def __init__(self, path: Path, name: str = "") -> None:
        self.path = path
        self.problems = Problems(name or str(path))
        self.writers: list[_Writer] = []
        self._offset = 0
        self._line = 0
        self._rest = b""
        self.refused = False
        """The file, or the rest of it, is not one that this version reads."""
        self._skipping = False

    def poll(self) -> bool:
        """Read what was appended since the last call; return whether there was anything."""
        before = self._offset
        with self.path.open("rb") as file:
            file.seek(self._offset)
            while not self.refused and (chunk := file.read(CHUNK_BYTES)):
                self._offset += len(chunk)
                self._take(chunk)
        return self._offset > before

    def finish(self) -> tuple[Note, ...]:
        """Return the notes so far, the torn last line among them if there is one."""
        notes = self.problems.notes
        if self._rest and not self.refused:
            torn = Note(
                level="info",
                text="last line is torn (the writer was killed in the middle of it); it is ignored",
                where=f"{self.problems.path}:{self._line + 1}",
            )
            notes = (*notes, torn)
        for writer in self.writers:
            if writer.skew_high - writer.skew_low > CLOCK_STEP_NS:
                step_s = max(writer.skew_high, -writer.skew_low) / 1e9
                text = (
                    f"the wall clock was stepped by up to {step_s:.1f} s while this process ran; "
                    "durations use the monotonic clock and are not affected"
                )
                notes = (*notes, Note(level="info", text=text, where=writer.path))
        return notes

    def logs(self) -> list[Callable[[int], ProcessLog]]:
        """Return one builder per writer process; it takes a shift of all times, ns."""
        return [writer.log for writer in self.writers]

    def clocks(self) -> list[tuple[str, int, int]]:
        """Return (boot id, first monotonic ns, offset ns) per writer."""
        return [(w.header.boot, w.header.m, w.offset_ns) for w in self.writers]

    def covers(self) -> frozenset[str]:
        """Return nothing: an event file stands for itself only."""
        return frozenset()

    def _take(self, chunk: bytes) -> None:
        """Decode the whole lines of a chunk, keeping the rest for the next one."""
        first = len(self._rest) + chunk.find(b"\n") if b"\n" in chunk else -1
        data = self._rest + chunk if self._rest else chunk
        if self._skipping or max(first, len(self._rest)) > LONGEST_LINE_BYTES:
            if not self._skipping:
                self.problems.add("line longer than 8 MiB skipped", self._line + 1)
            self._skipping = first < 0
            self._rest = b""
            if self._skipping:
                return
            data = data[first + 1 :]
            self._line += 1
        cut = data.rfind(b"\n") + 1
        self._rest = data[cut:]
        if cut:
            self._decode(data if cut == len(data) else data[:cut])

    def _decode(self, block: bytes) -> None:
        """Decode a block of whole lines: all at once if it is clean, else line by line."""
        while not self.writers:
            end = block.index(b"\n") + 1
            self._slow(block[:end])
            block = block[end:]
            if self.refused or not block:
                return
        if self._plain_steps(block):
            return
        try:
            events = _decoder.decode_lines(block)
        except _UNREADABLE:
            self._slow(block)
            return
        lines = block.count(b"\n")
        # The decoder does not mind a record over two lines, or two on one: those are damage.
        if len(events) != lines or any(type(event) is Process for event in events):
            self._slow(block)
        else:
            self._add(events)
            self._line += lines

    def _plain_steps(self, block: bytes) -> bool:
        """Read a block in which every line is a bare step mark, three numbers a line.

        This is most of a long recording, and numbers alone are read twice as fast as JSON.
        The shape of the block is proven first; anything else is left to the decoder.
        """
        lines = block.count(b"\n")
        if lines < 64 or block.count(_PLAIN_STEP) != lines:
            return False
        bare = block.translate(None, b"-0123456789")
        if bare != b'{"k":"step","n":,"t":,"m":}\n' * lines:
            return False
        numbers = np.fromstring(
            block.translate(_TO_NUMBERS, _NOT_NUMBERS).decode("ascii"), dtype=np.int64, sep=" "
        )
        if numbers.size != 3 * lines:
            return False
        rows = numbers.reshape(lines, 3)
        if bool((np.abs(rows.max(axis=0)) > _LIMITS).any() or (rows.min(axis=0) < 0).any()):
            return False
        writer = self.writers[-1]
        at = writer.corrected(rows[:, 1].copy(), rows[:, 2].copy())
        writer.steps.add_plain(rows[:, 0], at)
        writer.alive(int(at.max()))
        self._line += lines
        return True

    def _slow(self, block: bytes) -> None:
        """Decode line by line, counting what cannot be used."""
        batch: list[Event] = []
        for line in block.split(b"\n")[:-1]:
            self._line += 1
            if self.refused:
                return
            event = self._event(line)
            if event is None:
                continue
            if isinstance(event, Process):
                self._add(batch)
                batch = []
                self._open(event)
            elif not self.writers:
                self._refuse("does not begin with a goodput `process` record; ignored")
            else:
                batch.append(event)
        self._add(batch)

    def _event(self, line: bytes) -> Event | None:
        """Decode one line, or count why it cannot be."""
        if not line.strip():
            return None
        try:
            event: Event = _decoder.decode(line)
        except _UNREADABLE as error:
            return self._salvage(line, str(error))
        return event

    def _salvage(self, line: bytes, error: str) -> Event | None:
        """Read a line without the fields that only a later version knows, or say what is wrong."""
        try:
            content = msgspec.json.decode(line, type=dict[str, object])
        except _UNREADABLE:
            self._unusable("line is not valid JSON; skipped")
            return None
        kind = content.get("k")
        known = _kinds.get(kind) if isinstance(kind, str) else None
        if known is None:
            named = f"event kind {kind!r}" if isinstance(kind, str) else "an object without a kind"
            self._unusable(f"{named} is not known to this version; ignored")
            return None
        extra = set(content) - {"k", *known.__struct_fields__}
        for field in sorted(extra):
            self.problems.add(f"field {field!r} is not known to this version; ignored", self._line)
        try:
            event: Event = msgspec.convert(
                {key: value for key, value in content.items() if key not in extra}, type=AnyEvent
            )
        except _UNREADABLE:
            self._unusable(f"line is no valid event ({error}); skipped")
            return None
        return event

    def _unusable(self, why: str) -> None:
        """Count a line that says nothing; before any header, the file is not one of ours."""
        if self.writers:
            self.problems.add(why, self._line)
        else:
            self._refuse(f"does not begin with a goodput `process` record ({why}); file ignored")

    def _open(self, header: Process) -> None:
        """Begin a new writer, unless its schema is one we cannot know."""
        match = _schema_pattern.match(header.schema)
        if match is None or int(match[1]) > SCHEMA_MAJOR:
            self._refuse(
                f"schema {header.schema!r} is newer than this goodput reads ({SCHEMA}); "
                "file ignored, upgrade goodput-ml to read it"
            )
            return
        if int(match[2]) > SCHEMA_MINOR:
            self.problems.add(
                f"schema {header.schema!r} is newer than {SCHEMA}; what is known is read",
                self._line,
                level="info",
            )
        writer = _Writer(header, self.problems.path)
        writer.skew_low = writer.skew_high = 0
        self.writers.append(writer)

    def _refuse(self, why: str) -> None:
        self.refused = True
        self.problems.add(why, max(self._line, 1))

    def _add(self, events: Sequence[Event]) -> None:
        """Put a batch of decoded events where they belong."""
        if not events:
            return
        writer = self.writers[-1]
        at = writer.times(events)
        kinds = as_ints([_KIND_GROUP.get(type(event), _OTHER) for event in events])
        for group in np.unique(kinds).tolist():
            rows = np.flatnonzero(kinds == group)
            chosen = (
                list(events) if rows.size == len(events) else [events[i] for i in rows.tolist()]
            )
            if group == _STEP:
                writer.steps.add(chosen, at[rows])
            elif group == _END:
                writer.ends.add(chosen, at[rows])
            elif group == _SPAN:
                writer.spans.add(chosen, at[rows])
                self._alive_spans(writer, chosen, at[rows])
            elif group == _WINDOW:
                writer.windows.extend(e for e in chosen if isinstance(e, Window))
                self._alive_spans(writer, chosen, at[rows])
            else:
                writer.events.extend(chosen)
        writer.alive(int(at.max()))

    @staticmethod
    def _alive_spans(writer: _Writer, events: list[Event], at_ns: Ints) -> None:
        """A span was written at its end, not at its start."""
        durations = np.fromiter(
            (max(getattr(event, "d", 0), 0) for event in events), dtype=np.int64, count=len(events)
        )
        writer.alive(int((at_ns + durations).max()))


_STEP, _END, _SPAN, _WINDOW, _OTHER = range(5)
_KIND_GROUP: Final[dict[type, int]] = {
    Step: _STEP,
    StepEnd: _END,
    Span: _SPAN,
    Begin: _SPAN,
    Window: _WINDOW,
}
