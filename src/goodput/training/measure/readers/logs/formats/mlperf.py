"""MLPerf training result logs: `:::MLLOG` records, with or without rank prefixes.

Steps come from `tracked_stats` where it gives one per step; else from the samples between blocks
and evaluations.
"""

import re
from typing import Final

import msgspec

from goodput.training.measure.readers.logs.batch import StepBatch
from goodput.training.measure.readers.logs.story import (
    UNKNOWN,
    Finish,
    Happening,
    Launch,
    check,
)
from goodput.training.measure.readers.logs.text import Story

_MARK: Final = b":::MLLOG {"
_SYSTEM: Final = b":::SYSJSON {"
_HARNESS: Final = re.compile(rb"^\s*(?:\d+: )?:::DLPAL \S+ (\d{1,10}) \d+ ")
"""The harness's own line: image, Slurm job id, nodes."""
_MS: Final = 1_000_000
_TOKENS: Final = "samples are counted in tokens (gpt3): divided by max_sequence_length"
_UNSIZED: Final = "no global_batch_size: samples are not turned into steps"


class _Meta(msgspec.Struct):
    status: str = ""
    step: float | None = None
    samples_count: float | None = None
    epoch_num: float | None = None
    first_epoch_num: float | None = None

    @property
    def samples(self) -> float | None:
        """Samples (or epochs) so far, under whichever name."""
        for value in (self.samples_count, self.epoch_num, self.first_epoch_num):
            if value is not None:
                return value
        return None


class _Record(msgspec.Struct):
    key: str
    time_ms: float
    value: object = None
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _System(msgspec.Struct):
    number_of_nodes: str = ""
    accelerators_per_node: str = ""


_decode = msgspec.json.Decoder(_Record).decode
_decode_system = msgspec.json.Decoder(_System).decode


class MLPerf:
    """One result file."""

    name = "mlperf"
    signs = (_MARK,)
    needles = (_MARK, _SYSTEM, b":::DLPAL ")

    def __init__(self) -> None:
        self._steps = StepBatch()
        self._launch: Launch | None = None
        self._sizes: dict[str, float] = {}
        self._benchmark = ""
        self._ranks: set[bytes] = set()
        self._said: set[tuple[str, float | None]] = set()
        self._reached = 0
        self._since = (0, UNKNOWN)
        """(steps, when) at the last record that tells where the run stands."""
        self._initialised = False

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        at = line.find(_MARK)
        if at < 0:
            self._system(line, story)
            return
        try:
            record = _decode(line[at + len(_MARK) - 1 :])
        except (msgspec.DecodeError, UnicodeDecodeError):
            story.note("MLLOG records that cannot be decoded")
            return
        story.zoneless = False
        self._take(record, line[:at].strip(), story)

    def flush(self, story: Story) -> None:
        """Hand over the steps that are held back."""
        self._steps.flush(story.now)

    def _take(self, record: _Record, prefix: bytes, story: Story) -> None:
        check(at_ns=round(record.time_ms) * _MS)
        at = round(record.time_ms) * _MS
        key = record.key
        if key == "init_start":
            self._start(at, prefix, story)
        elif key == "tracked_stats":
            self._stats(record, at)
        elif key in {"global_batch_size", "max_sequence_length", "init_checkpoint_step"}:
            if isinstance(record.value, int | float):
                self._sizes.setdefault(key, float(record.value))
        elif key == "submission_benchmark":
            self._benchmark = str(record.value)
        elif key.endswith(("_start", "_stop")):
            self._edge(record, at, story)

    def _start(self, at: int, prefix: bytes, story: Story) -> None:
        """Every rank says that it starts; the first word after an end is another launch."""
        if (
            story.now is self._launch
            and not self._initialised
            and prefix not in self._ranks - {b""}
        ):
            self._ranks.add(prefix)
            story.now.world = max(story.now.world, len(self._ranks))
            return
        self._launch = story.starting(once="mlperf init")
        self._ranks, self._said, self._initialised = {prefix}, set(), False
        self._reached, self._since = 0, (0, UNKNOWN)
        self._launch.mark(at, "init_start")
        self._launch.add(Happening("begin", "init", at))

    def _edge(self, record: _Record, at: int, story: Story) -> None:
        """Start or stop of initialisation, run, block, epoch or evaluation; once for all ranks."""
        key, samples = record.key, record.metadata.samples
        if (key, samples) in self._said:
            return
        self._said.add((key, samples))
        self._launch = story.now
        if key == "init_stop":
            self._initialised = True
            story.now.add(Happening("end", "init", at))
        elif key == "run_start":
            self._run(at, story)
        elif key == "run_stop":
            self._advance(samples, at, story)
            self._stop(record.metadata.status, at, story)
        elif key == "eval_start":
            self._advance(samples, at, story)
            story.settle()
            story.now.add(Happening("begin", "evaluation", at))
        elif key == "eval_stop":
            story.settle()
            story.now.add(Happening("end", "evaluation", at))
            self._since = self._reached, at
        elif key == "block_start" and self._since[0] == self._reached:
            self._since = self._reached, at

    def _run(self, at: int, story: Story) -> None:
        start = int(self._sizes.get("init_checkpoint_step", 0))
        self._reached, self._since = start, (start, at)
        story.now.mark(at, "run_start")
        if start > 0:
            story.now.add(Happening("resumed", "", at, step=start + 1))

    def _stats(self, record: _Record, at: int) -> None:
        """Take the time of one step; those of a whole block carry its throughput as well."""
        value = record.value
        if not isinstance(value, dict) or "throughput" in value:
            return
        seconds = value.get("train_step_time", value.get("train_step_timing"))
        if not isinstance(seconds, int | float) or not 0 <= seconds < 1e9:
            return
        reached = self._number(record.metadata.step)
        if reached is None:
            reached = self._reached + 1
        covers = reached - self._reached
        if covers <= 0:
            return  # another rank's copy
        self._steps.add(self._reached + 1, covers=covers, seconds=seconds * covers, at_ns=at)
        self._reached, self._since = reached, (reached, at)

    def _advance(self, samples: float | None, at: int, story: Story) -> None:
        """Steps that were only told by how many samples a block took."""
        reached = self._number(samples)
        before, since = self._since
        if reached is None or reached <= self._reached or since == UNKNOWN or at <= since:
            return
        self._steps.add(before + 1, covers=reached - before, seconds=(at - since) / 1e9, at_ns=at)
        self._reached, self._since = reached, (reached, at)
        story.note("steps are known by blocks only: their mean hides what happened inside")

    def _number(self, samples: float | None) -> int | None:
        """Steps after so many samples, from the start of training."""
        batch = self._sizes.get("global_batch_size", 0.0)
        if samples is None or batch <= 0 or not 0 <= samples < 1e18:
            return None
        if self._in_tokens(samples, batch):
            batch *= self._sizes["max_sequence_length"]
        return int(self._sizes.get("init_checkpoint_step", 0)) + int(samples // batch)

    def _in_tokens(self, samples: float, batch: float) -> bool:
        length = self._sizes.get("max_sequence_length", 0.0)
        return self._benchmark == "gpt3" and length > 0 and samples % (batch * length) == 0

    def _stop(self, status: str, at: int, story: Story) -> None:
        outcome = "completed" if status == "success" else "stopped"
        story.settle()
        story.over(Finish(outcome, evidence=f"run_stop, status {status or 'not given'}", at_ns=at))

    def _system(self, line: bytes, story: Story) -> None:
        """Job id, nodes and chips as the harness describes them."""
        harness = _HARNESS.match(line)
        if harness is not None:
            story.aliases.add("slurm:" + harness[1].decode())
        if b"echo " in line or _SYSTEM not in line:
            return
        try:
            found = _decode_system(line[line.find(_SYSTEM) + len(_SYSTEM) - 1 :])
            chips = int(found.number_of_nodes) * int(found.accelerators_per_node)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            return
        story.now.chips = chips if 0 < chips <= 2**31 else 0
