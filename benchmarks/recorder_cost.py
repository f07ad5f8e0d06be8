"""What does one record cost, in CPU, beside the usual ways to write one line?

Ours: `run.step(n)` and friends, one write per record, readable after SIGKILL. Peers: json.dumps and
a file, flushed after each record (as safe as ours) and not flushed (the last 8 KiB die with the
process); logging.FileHandler (flushes); an OpenTelemetry span whose exporter throws it away (not
safe, and without the cost of any output), in a Python of its own: --otel-python.

All take turns, several times; printed are medians of user + system time and ratios from this run.
"""

import argparse
import json
import logging
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from goodput.training.measure.identity import identify
from goodput.training.measure.recorder import open_run
from goodput.training.measure.run import Run

FLOOR_US, AIM_US = 1.5, 1.0
BASE: Final = "run.step(n)"
OTEL: Final = "OpenTelemetry span, exporter discards"
OTEL_SCRIPT: Final = """
import sys, time
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

class Discard(SpanExporter):
    def export(self, spans):
        return SpanExportResult.SUCCESS

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(Discard()))
tracer = provider.get_tracer("benchmark")
count = int(sys.argv[1])

def record(n):
    with tracer.start_as_current_span("step", attributes={"n": n}):
        pass

for n in range(1000):
    record(n)
began = time.process_time()
for n in range(count):
    record(n)
print(1e6 * (time.process_time() - began) / count)
provider.shutdown()
"""

Round = Callable[[int], float]
"""Records so many times and returns CPU microseconds per record."""


def timed(record: Callable[[int], object], *, records_per_call: int = 1) -> Round:
    """Measure a call; its loop is part of it, for all alike."""

    def measure(count: int) -> float:
        for n in range(1000):
            record(n)
        began = time.process_time()
        for n in range(count):
            record(n)
        return 1e6 * (time.process_time() - began) / count / records_per_call

    return measure


def ours(folder: Path) -> dict[str, Round]:
    """Every frequent kind of record, and a rank that only keeps summaries."""
    identity = identify(job="cost", directory=folder, rank=0, world=1, attempt="")
    run, summaries = open_run(identity), open_run(identity, detail="windows")
    return {
        BASE: timed(run.step),
        "run.step_end(n)": timed(run.step_end),
        "with run.step(n), per record": timed(lambda n: in_step(run, n), records_per_call=2),
        "with run.span('data'), per record": timed(lambda _: in_span(run), records_per_call=2),
        "run.point('loss', x)": timed(lambda n: run.point("loss", 0.5, step=n)),
        "run.step(n), summaries (rank > 0)": timed(summaries.step),
    }


def in_step(run: Run, n: int) -> None:
    """Two records: the mark and the end."""
    with run.step(n):
        pass


def in_span(run: Run) -> None:
    """Two records: begin and span."""
    with run.span("data"):
        pass


def peers(folder: Path) -> dict[str, Round]:
    """The same fields by other means."""
    flushed = (folder / "flushed.jsonl").open("a", encoding="utf-8")
    buffered = (folder / "buffered.jsonl").open("a", encoding="utf-8")
    logger = logging.getLogger("recorder_cost")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    handler = logging.FileHandler(folder / "logging.log")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(handler)

    def line(n: int) -> str:
        return json.dumps({"k": "step", "n": n, "t": time.time_ns(), "m": time.monotonic_ns()})

    def write_flushed(n: int) -> None:
        flushed.write(line(n) + "\n")
        flushed.flush()

    return {
        "json.dumps + file.write + flush": timed(write_flushed),
        "json.dumps + file.write, not safe": timed(lambda n: buffered.write(line(n) + "\n")),
        "logging.FileHandler": timed(lambda n: logger.info("step %d", n)),
    }


def otel(python: str) -> Round | None:
    """The OpenTelemetry SDK in another Python; None, and why is printed, if it is not there."""
    if not python:
        print("OpenTelemetry skipped: no --otel-python with opentelemetry-sdk was given")
        return None
    probe = [python, "-c", "import opentelemetry.sdk.trace"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        print(f"OpenTelemetry skipped: {python} has no opentelemetry-sdk")
        return None

    def measure(count: int) -> float:
        command = [python, "-c", OTEL_SCRIPT, str(count // 5)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    return measure


def main() -> None:
    """Measure in turns and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=50_000, help="per contender and turn")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--dir", type=Path, help="where to write; default: a temporary folder")
    parser.add_argument("--otel-python", default=os.environ.get("OTEL_PYTHON", ""))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="goodput-cost-", dir=options.dir))
    try:
        rounds = ours(folder) | peers(folder)
        spans = otel(options.otel_python)
        if spans is not None:
            rounds[OTEL] = spans
        samples: dict[str, list[float]] = {name: [] for name in rounds}
        for _ in range(options.turns):
            for name, measure in rounds.items():
                samples[name].append(measure(options.records))
    finally:
        shutil.rmtree(folder)
    medians = {name: statistics.median(each) for name, each in samples.items()}
    if options.json:
        print(json.dumps({"cpu_us_per_record": medians, "python": sys.version.split()[0]}))
        return
    print(f"CPU per record, us: median of {options.turns} turns (best), and times {BASE}")
    for name, value in medians.items():
        best, ratio = min(samples[name]), value / medians[BASE]
        print(f"  {name:40} {value:7.2f} ({best:6.2f})  {ratio:6.2f}x")
    verdict = "within" if medians[BASE] <= FLOOR_US else "OVER"
    print(f"{BASE} is {verdict} the floor of {FLOOR_US} us (aim {AIM_US} us)")


if __name__ == "__main__":
    main()
