"""Does SIGKILL at any instant lose a record whose call had returned, or break a report?

A recording process, one or two threads, is forked and killed after a random time, many times over.
It notes the number of each record that returned in memory that it shares with the killer. Then its
file is read: every noted record must be there, and the report on the folder must come out. There
is no peer: buffered writers lose their buffer by design.
"""

import argparse
import json
import mmap
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import NamedTuple

import msgspec

import goodput
from goodput.core.errors import DataError
from goodput.core.events import AnyEvent, Point, Span, Step
from goodput.training.measure.ledger import account
from goodput.training.measure.readers import read

THREADS = 2
GOOD = {"ok", "nothing recorded yet"}
STRIDE = 1 << 40
"""Record i of thread k has number k * STRIDE + i."""


class Verdict(NamedTuple):
    """What one kill left."""

    returned: int
    lost: int
    torn: int
    report: str
    """`ok`, `nothing recorded yet`, or what went wrong."""


def train(folder: Path, threads: int, returned: memoryview) -> None:
    """Record for ever: steps, spans and points in turn; note each number once the call is over."""
    run = goodput.start("killed", dir=folder)
    run.resumed(0)

    def record(thread: int) -> None:
        number = thread * STRIDE
        while True:
            number += 1
            if number % 3 == 0 and thread == 0:
                run.step(number)
            elif number % 3 == 1:
                run.point("loss", 1.0, step=number)
            else:
                with run.span("data", step=number):
                    pass
            if number % 3 != 0 or thread == 0:
                returned[thread] = number

    for thread in range(1, threads):
        threading.Thread(target=record, args=(thread,), daemon=True).start()
    record(0)


def expected(thread: int, last: int) -> set[int]:
    """Numbers that a thread had recorded when it had noted `last`."""
    first = thread * STRIDE + 1
    return {n for n in range(first, last + 1) if n % 3 != 0 or thread == 0}


def kill_once(folder: Path, rng: random.Random, longest_s: float) -> Verdict:
    """Fork a recording child, kill it, and compare its file with what it had noted."""
    threads = rng.randint(1, THREADS)
    with mmap.mmap(-1, 8 * THREADS) as shared, memoryview(shared).cast("Q") as returned:
        child = os.fork()
        if child == 0:
            try:
                train(folder, threads, returned)
            finally:
                os._exit(1)
        # One in ten may be killed before it has recorded anything.
        patience = time.monotonic() + (10 if rng.random() < 0.9 else 0)
        while not any(returned) and time.monotonic() < patience:
            time.sleep(0.0005)
        time.sleep(rng.uniform(0, longest_s))
        os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status == -signal.SIGKILL, f"the child ended by itself: {status}"
        noted = list(returned)
    recorded, torn = recorded_numbers(folder)
    wanted = {n for thread, last in enumerate(noted) if last for n in expected(thread, last)}
    return Verdict(
        len(wanted), len(wanted - recorded), torn, report_on(folder, recorded=any(noted))
    )


def recorded_numbers(folder: Path) -> tuple[set[int], int]:
    """Numbers of the records that can be read, and lines that cannot."""
    decoder = msgspec.json.Decoder(AnyEvent)
    numbers: set[int] = set()
    torn = 0
    for path in folder.rglob("*.jsonl"):
        for line in path.read_bytes().split(b"\n"):
            try:
                event = decoder.decode(line) if line else None
            except msgspec.DecodeError:
                torn += 1
                continue
            if isinstance(event, Step):
                numbers.add(event.n)
            elif isinstance(event, Point | Span):
                numbers.add(event.step)
    return numbers, torn


def report_on(folder: Path, *, recorded: bool) -> str:
    """Try what `goodput train report` does."""
    try:
        ledger = account(read([folder]))
    except DataError as error:
        return f"DataError: {error}" if recorded else "nothing recorded yet"
    except Exception as error:  # noqa: BLE001 - what is counted here
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
    return "ok" if ledger.waterfall.capacity >= 0 else "negative capacity"


def main() -> int:
    """Kill, compare, print; 1 if a record was lost or a report failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--longest-s", type=float, default=0.02, help="longest life of a child")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dir", type=Path, help="where to record; default: a temporary folder")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    rng = random.Random(options.seed)
    root = Path(tempfile.mkdtemp(prefix="goodput-kill-", dir=options.dir))
    began = time.monotonic()
    try:
        verdicts = []
        for number in range(options.kills):
            folder = root / str(number)
            verdicts.append(kill_once(folder, rng, options.longest_s))
            if verdicts[-1].lost or verdicts[-1].report not in GOOD:
                print(f"kill {number}: {verdicts[-1]}: {folder}", file=sys.stderr)
            else:
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        if not any(root.iterdir()):
            root.rmdir()
    bad = sorted({v.report for v in verdicts} - GOOD)
    result = {
        "kills": len(verdicts),
        "killed while recording": sum(v.returned > 0 for v in verdicts),
        "records that had returned": sum(v.returned for v in verdicts),
        "lost": sum(v.lost for v in verdicts),
        "torn last lines": sum(v.torn for v in verdicts),
        "reports that failed": sum(v.report in bad for v in verdicts),
        "failures": bad,
        "seconds": round(time.monotonic() - began, 1),
    }
    if options.json:
        print(json.dumps(result))
    else:
        print("\n".join(f"{name:28} {value}" for name, value in result.items()))
    return 1 if result["lost"] or result["reports that failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
