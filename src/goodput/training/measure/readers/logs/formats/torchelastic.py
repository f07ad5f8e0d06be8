"""What torchrun's agents and NVRx's ft_launcher write about starts, restarts and ends."""

import re
from typing import Final

from goodput.training.measure.readers.logs.clock import stamp_ns
from goodput.training.measure.readers.logs.story import UNKNOWN, Finish
from goodput.training.measure.readers.logs.text import Story

_FAILED: Final = re.compile(rb"failed \(exitcode: (-?\d+)\) local_rank: (\d+)")
_WORLD: Final = re.compile(rb"global_world_sizes=\[(\d+)")
_ROOT_RANK: Final = re.compile(rb"^.*?  rank +: (\d+) \(local_rank")
_SIGNAL: Final = re.compile(rb"Received (?:Signals\.)?(\w+) death signal")
_SIGNALS: Final = {b"SIGTERM": 15, b"SIGINT": 2, b"SIGHUP": 1, b"SIGQUIT": 3}


class TorchElastic:
    """Lines of torchrun agents, of one node or of several in one file."""

    name = "torchelastic"
    signs = (
        b"torch/distributed/elastic/",
        b"torch.distributed.elastic",
        b"orker group FAILED",
        b"Starting worker group",
        b"[default] starting workers for entrypoint",
    )
    needles = (
        b"orker group",
        b"starting workers for",
        b"failed (exitcode: ",
        b"global_world_sizes=[",
        b" death signal",
        b"Root Cause (first observed failure)",
        b"  rank      : ",
    )

    def __init__(self) -> None:
        self._root = False

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        if b"Root Cause" in line:
            self._root = True
            return
        found = _ROOT_RANK.search(line)
        if found is not None:
            if self._root and story.now.finish is not None:
                story.over(Finish("failed", rank=int(found[1])))
            self._root = False
            return
        at = stamp_ns(line, story.clock)
        if b"orker group" in line or b"starting workers" in line:
            self._group(line, at, story)
        elif (found := _WORLD.search(line)) is not None:
            story.now.world = int(found[1])
        elif (found := _FAILED.search(line)) is not None:
            code = int(found[1])
            self._end(
                Finish("failed", exit_code=max(code, -1), signal=max(-code, 0)), line, at, story
            )
        elif (found := _SIGNAL.search(line)) is not None:
            number = int(found[1]) if found[1].isdigit() else _SIGNALS.get(found[1], 15)
            finish = Finish("stopped", "killed", fault_at_ns=at, signal=number)
            self._end(finish, line, at, story)

    def flush(self, story: Story) -> None:
        """Nothing is held back."""

    def _group(self, line: bytes, at: int, story: Story) -> None:
        if b"FAILED" in line:
            self._end(Finish("failed"), line, at, story)
        elif b"will restart worker group" in line:  # nodes came or went
            self._end(Finish("stopped", "scaled", fault_at_ns=at), line, at, story)
        elif b"successfully finished" in line:
            self._end(Finish("completed"), line, at, story)
        elif b"topping worker group" in line:
            if story.now.finish is not None:
                story.over(Finish("failed", at_ns=at))
        elif b"endezvous'ing" in line or b"tarting worker" in line:
            story.starting()
            if b"Starting worker group" in line or len(story.launches) == 1:
                # Between launches the rendezvous is part of the recovery.
                story.now.mark(at, "workers start")

    def _end(self, finish: Finish, line: bytes, at: int, story: Story) -> None:
        story.settle()
        evidence = line.strip().decode(errors="replace")
        noticed = at if finish.outcome == "failed" else UNKNOWN
        story.over(finish._replace(evidence=evidence, at_ns=at, noticed_at_ns=noticed))


class CycleProfile:
    """The cycle profile of NVRx's ft_launcher: when each stage of a restart was reached."""

    name = "nvrx cycles"
    signs = (b" Event: failure_detected Node: ", b" Event: worker_start_", b" Event: rendezvous_")
    needles = (b" Event: ",)
    _EVENT: Final = re.compile(rb"Cycle: (\d+) Event: (\w+) Node: .*? Time: (.*)")

    def line(self, line: bytes, story: Story) -> None:
        """Take one line of interest."""
        found = self._EVENT.search(line)
        if found is None:
            return
        at = stamp_ns(found[3], story.clock)
        event = found[2]
        story.settle()
        if event == b"failure_detected":
            evidence = line.strip().decode(errors="replace")
            story.over(Finish("failed", evidence=evidence, at_ns=at, noticed_at_ns=at))
        elif event == b"worker_terminated":
            if story.now.finish is not None:
                story.over(Finish("failed", at_ns=at))
        elif event == b"rendezvous_started":
            story.starting()
            if len(story.launches) == 1:
                story.now.mark(at, "rendezvous")
        elif event in {b"worker_start_started", b"worker_start_completed"}:
            story.now.mark(at, event.decode())

    def flush(self, story: Story) -> None:
        """Nothing is held back."""
