"""Foreign files with bytes flipped, cut out or doubled: no crash, and every account adds up."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from foreign import megatron_lines
from test_dlrover import event as dlrover_event
from test_goodput_entries import c6, entries
from test_kubernetes import dump as kubernetes_dump
from test_kubernetes import ended, pod
from test_megatron_progress import line as progress_line
from test_megatron_progress import saved
from test_mlperf import record
from test_straggler_trace import trace
from test_wandb import run
from tracker_files import session

from goodput.core.errors import DataError
from goodput.training.measure.ledger import account
from goodput.training.measure.readers import read

DUMPS = Path(__file__).parent / "dumps"
CASES: Final = 40
"""Mutations of each kind of file; GOODPUT_FUZZ_CASES asks for more."""


def _text(name: str, lines: list[str]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_text("\n".join(lines) + "\n")
        return path

    return make


def _copy(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes((DUMPS / name).read_bytes())
        return path

    return make


def _state(folder: Path) -> Path:
    path = folder / "trainer_state.json"
    rows = [{"step": n, "loss": 1.0, "eval_runtime": 2.0} for n in range(10, 60, 10)]
    rows.append({"step": 50, "train_runtime": 90.0})
    body = {"best_metric": None, "global_step": 50, "max_steps": 60, "total_flos": 1e15}
    path.write_text(json.dumps({**body, "log_history": rows}))
    return path


KINDS: Final[dict[str, Callable[[Path], Path]]] = {
    "sacct text": _copy("sacct.txt"),
    "sacct json": _copy("sacct.json"),
    "tensorboard": lambda d: session(d / "events.out.tfevents.1.h", 1.78e9, 1, 200),
    "wandb": lambda d: run(d, 1, 60),
    "trainer_state": _state,
    "lightning": _text("metrics.csv", ["step,loss,time", *(f"{n},1.0,{n}.5" for n in range(30))]),
    "entries": lambda d: entries(d, *c6()),
    "kubernetes": lambda d: kubernetes_dump(
        d, pod("train-0-0-abcde", ended("10:06:00", "11:00:00", 1, "Error"))
    ),
    "straggler": trace,
    "mlperf": _text(
        "result.txt",
        [
            record("init_start", 0),
            record("global_batch_size", 1, 32),
            record("init_stop", 5),
            record("run_start", 10),
            record("block_start", 10, samples_count=0),
            *(record("tracked_stats", 1000 * n, {"train_step_time": 1.0}, step=32 * n)
              for n in range(1, 9)),
            record("eval_start", 9000, samples_count=256),
            record("eval_stop", 9900, samples_count=256),
            record("run_stop", 10_000, status="success"),
        ],
    ),
    "dlrover": _text(
        "dlrover.log",
        [dlrover_event(f"10:00:{n:02d}", "step", edge, n + (edge == "END"), key=f"{n}")
         for n in range(10) for edge in ("BEGIN", "END")],
    ),
    "progress": _text(
        "progress.txt",
        [progress_line("10:00:00", 5, "Starting job"), progress_line("11:00:00", 5, saved(9, 1e9))],
    ),
    "megatron": _text("slurm-3.out", [*megatron_lines(1, 50, at="2026-05-01 10:00:00")]),
}  # fmt: skip


def mutated(data: bytes, luck: random.Random) -> bytes:
    """Return data after one to four small accidents."""
    out = bytearray(data)
    for _ in range(luck.randint(1, 4)):
        if not out:
            break
        at = luck.randrange(len(out))
        kind = luck.randrange(5)
        if kind == 0:
            out[at] = luck.randrange(256)
        elif kind == 1:
            del out[at : at + luck.randint(1, 40)]
        elif kind == 2:
            out[at:at] = out[max(at - 40, 0) : at]
        elif kind == 3:
            out[at:at] = luck.choice([b"9" * 12, b"-1", b"\x00", b"\n", b"1e309", b"NaN", b"null"])
        else:
            del out[at:]
    return bytes(out)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_accident_crashes_a_reader(kind: str, tmp_path: Path) -> None:
    import os

    cases = int(os.environ.get("GOODPUT_FUZZ_CASES", CASES))
    path = KINDS[kind](tmp_path)
    whole = path.read_bytes()
    luck = random.Random(kind)
    for case in range(cases):
        path.write_bytes(mutated(whole, luck))
        try:
            log = read([path])
            for job in log.jobs:
                ledger = account(log.job(job))
                assert ledger.waterfall.capacity >= 0
        except DataError:
            continue
        except Exception as error:
            error.add_note(f"case {case} of {kind}: {path.read_bytes()[:2000]!r}")
            raise
