"""examples/ddp.py under torchrun: both ranks die by SIGKILL, the next launch goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from goodput.core import events

pytest.importorskip("torch", reason="needs torch")
pytestmark = [pytest.mark.torch, pytest.mark.real_processes]

SCRIPT = Path(__file__).parents[2] / "examples" / "ddp.py"
SAVE_EVERY = 20
_decoder = msgspec.json.Decoder(events.AnyEvent)


def launch(folder: Path, steps: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += [str(SCRIPT), f"--steps={steps}", f"--save-every={SAVE_EVERY}"]
    settings = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "GOODPUT_DETAIL": "steps"}
    drop = {"GOODPUT_DIR", "GOODPUT_JOB", "RANK", "WORLD_SIZE"}
    environment = {k: v for k, v in os.environ.items() if k not in drop}
    return subprocess.Popen(command, cwd=folder, env={**environment, **settings})


def attempts(folder: Path) -> dict[int, list[list[events.Event]]]:
    """The whole lines of all files by rank, oldest first."""
    found: dict[int, list[list[events.Event]]] = {0: [], 1: []}
    for file in folder.rglob("events-*.jsonl"):
        lines = file.read_bytes().split(b"\n")[:-1]
        if lines:
            recorded: list[events.Event] = [_decoder.decode(line) for line in lines]
            header = recorded[0]
            assert isinstance(header, events.Process)
            found[header.rank].append(recorded)
    return {rank: sorted(files, key=lambda e: e[0].m) for rank, files in found.items()}


def of(kind: Any, recorded: list[events.Event]) -> list[Any]:
    return [event for event in recorded if isinstance(event, kind)]


def test_a_killed_run_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    first = launch(tmp_path, 100_000)
    try:
        until = time.monotonic() + 120
        while sum(len(of(events.StepEnd, e)) for e in attempts(tmp_path)[0]) < 2.5 * SAVE_EVERY:
            assert time.monotonic() < until
            assert first.poll() is None
            time.sleep(0.2)
    finally:
        # torchrun gives each worker a session of its own: all are killed by name, the agent first.
        first.kill()
        for files in attempts(tmp_path).values():
            for recorded in files:
                os.kill(of(events.Process, recorded)[0].pid, signal.SIGKILL)
        first.wait(timeout=30)
    saved = of(events.Committed, attempts(tmp_path)[0][0])[-1].last_step
    steps = saved + 1 + SAVE_EVERY
    # Not 0 where a gloo process aborts as it exits, which happens without us too (torch 2.13).
    assert launch(tmp_path, steps).wait(timeout=180) in {0, 1}

    for rank, (killed, resumed) in attempts(tmp_path).items():
        # The rank that is killed second may still see the first one go, and say so.
        assert {e.outcome for e in of(events.ProcessEnd, killed)} <= {"failed"}
        assert [e.outcome for e in of(events.ProcessEnd, resumed)] == ["completed"]
        ends = [e.n for e in of(events.StepEnd, killed)]
        assert ends == list(range(len(ends)))
        assert [e.next_step for e in of(events.Resumed, killed)] == [0]
        assert [e.next_step for e in of(events.Resumed, resumed)] == [saved + 1]
        assert [e.n for e in of(events.StepEnd, resumed)] == list(range(saved + 1, steps))
        # Rank 0 saves; the other one only waits for it.
        assert [e.last_step for e in of(events.Committed, resumed)] == (
            [steps - 1] if rank == 0 else []
        )
        names = {e.name for e in of(events.Span, killed)}
        assert {"init", "data", "evaluation"} <= names
        measured = [e.comm for e in of(events.StepEnd, killed)]
        assert measured[0] == -1
        assert all(comm >= 0 for comm in measured[1:])
