"""How long from a job's events to its goodput, against ml-goodput-measurement 0.2.3?

Jobs of 10^4 to 10^6 steps with 0, 8 and 100 restarts, each of which repeats steps: cold (a fresh
process), then one more poll after one new event. Last, 10 million rank-step events of 64 ranks into
an HTML page, from JSONL and from Parquet. All must agree on the goodput, or the script fails.

The peer runs in a Python of its own (--peer-python); without one only ours is measured. It reads
from a logger backed by a list, and the time in which that list is made is not counted.
"""

import argparse
import contextlib
import datetime as dt
import importlib
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

PEER: Final = "ml-goodput-measurement==0.2.3"
SECOND: Final = 1_000_000_000
BEGIN: Final = 1_780_000_000 * SECOND
MONOTONIC: Final = 1_000 * SECOND
START_UP: Final = 30 * SECOND
DOWN: Final = 60 * SECOND
REPEATED: Final = 20
"""Steps that a restart takes again: one level of rollback, where the peer is right."""
RANKS: Final = 64
POLLS: Final = {"ours": 5, "peer": 1}
TOLERANCE: Final = 2e-5
"""Of goodput, 0-1: the two differ on how much of a first step is start-up."""

Result = dict[str, Any]


class Launch(NamedTuple):
    """One attempt of a job of one process. Times are Unix ns."""

    began: int
    steps: range
    until: int
    """Death in the middle of the last step, or end of the last step."""

    def start(self, step: int) -> int:
        """Return when a step starts: each takes a second, give or take a millisecond."""
        index = step - self.steps.start
        return self.began + START_UP + index * SECOND + index * 7919 % 1000 * 1000


class Job(NamedTuple):
    """What both sides are asked about; the last `polls` steps come one by one."""

    launches: list[Launch]
    polls: int

    @property
    def last(self) -> Launch:
        """The attempt that completes the job."""
        return self.launches[-1]

    @property
    def late(self) -> range:
        """Steps that come after the first question."""
        return self.last.steps[len(self.last.steps) - self.polls :]

    @property
    def goodput(self) -> float:
        """Time of kept steps over time of the job, 0-1."""
        stops = [*(launch.steps.start for launch in self.launches[1:]), self.last.steps.stop]
        kept = (
            launch.start(stop) - launch.start(launch.steps.start)
            for launch, stop in zip(self.launches, stops, strict=True)
        )
        return sum(kept) / (self.last.until - self.launches[0].began)


def make_job(steps: int, restarts: int, polls: int) -> Job:
    """Return a job of so many steps that starts again so many times."""
    launches: list[Launch] = []
    began, first = BEGIN, 0
    for number in range(restarts + 1):
        stop = (number + 1) * steps // (restarts + 1)
        launch = Launch(began, range(first, stop), 0)
        until = launch.start(stop) if stop == steps else launch.start(stop - 1) + SECOND // 2
        launches.append(launch._replace(until=until))
        began, first = until + DOWN, stop - REPEATED
    return Job(launches, polls)


class Timer:
    """Times calls, without what is done `aside` meanwhile."""

    def __init__(self) -> None:
        self._aside = [0.0, 0.0]

    def __call__(self, action: Callable[[], Any]) -> tuple[dict[str, float], Any]:
        """Return the wall and CPU time of a call, s, and what it returned."""
        self._aside = [0.0, 0.0]
        wall, cpu = time.perf_counter(), time.process_time()
        value = action()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return {"wall_s": wall - self._aside[0], "cpu_s": cpu - self._aside[1]}, value

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Do something that is not counted."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self._aside[0] += time.perf_counter() - wall
        self._aside[1] += time.process_time() - cpu


def peak_mb() -> float:
    """Return the most memory that this process has held, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def median(times: list[dict[str, float]]) -> dict[str, float]:
    """Return the median wall and CPU time."""
    return {key: statistics.median(one[key] for one in times) for key in times[0]}


class ListLogger:
    """What GoodputCalculator needs of Google's Cloud Logging: it reads from here."""

    def __init__(self, job: Job, timer: Timer) -> None:
        self._job = job
        self._timer = timer
        self._news: list[dict[str, Any]] = []

    def add(self, **entry: float) -> None:
        """Log one more entry."""
        self._news.append({"job_name": "j", **entry})

    def read_cloud_logging_entries(
        self,
        start_time: object = None,
        end_time: object = None,
        last_entry_info: tuple[object, str] | None = None,
    ) -> tuple[list[dict[str, Any]], tuple[object, str]]:
        """Return what was logged since, and a mark of how far that is."""
        del start_time, end_time
        with self._timer.aside():
            entries = [] if last_entry_info else list(self._old())
            entries += self._news[int(last_entry_info[1]) if last_entry_info else 0 :]
        mark = dt.datetime.fromtimestamp(BEGIN / 1e9, tz=dt.UTC)
        return entries, (mark, str(len(self._news)))

    def _old(self) -> Iterator[dict[str, Any]]:
        for launch in self._job.launches:
            yield {"job_name": "j", "job_start_time": launch.began / 1e9}
            known = len(launch.steps) - (self._job.polls if launch is self._job.last else 0)
            for step in launch.steps[:known]:
                at_s = launch.start(step) / 1e9
                yield {"job_name": "j", "step_count": step, "step_start_time": at_s}


def ask_peer(job: Job, cache: str) -> Result:
    """Return what the peer takes and says."""
    timer = Timer()
    name = "ml_goodput_measurement.src.goodput"
    imports, goodput = timer(lambda: importlib.import_module(name))
    logger = ListLogger(job, timer)
    asked = goodput.GoodputCalculator("j", "log", cloud_logger=logger, cache_dir=cache)
    cold, _ = timer(lambda: asked.get_job_goodput(include_badput_breakdown=True))
    cold_mb = peak_mb()
    polls = []
    for step in job.late:
        logger.add(step_count=step, step_start_time=job.last.start(step) / 1e9)
        polls.append(timer(lambda: asked.get_job_goodput(include_badput_breakdown=True))[0])
    logger.add(job_end_time=job.last.until / 1e9)
    answer = asked.get_job_goodput(include_badput_breakdown=True)
    return {
        "imports": imports,
        "cold": cold,
        "cold_mb": cold_mb,
        "poll": median(polls),
        "peak_mb": peak_mb(),
        "goodput": answer[0] / 100,
        "last_step": answer[2],
    }


def stamp(at: int) -> str:
    """Return the two clocks of a record."""
    return f'"t":{at},"m":{at - BEGIN + MONOTONIC}}}\n'


def write_job(job: Job, folder: Path) -> None:
    """Write one event file for each attempt, without what comes later."""
    for number, launch in enumerate(job.launches):
        header = '{"k":"process","schema":"goodput.events/1.0","job":"j","boot":"b","pid":%d,'
        known = len(launch.steps) - (job.polls if launch is job.last else 0)
        with (folder / f"events-{number:03d}.jsonl").open("w") as file:
            file.write(header % (number + 1) + stamp(launch.began))
            start = launch.start
            file.writelines(f'{{"k":"step","n":{n},{stamp(start(n))}' for n in launch.steps[:known])


def ask_ours(job: Job, folder: Path) -> Result:
    """Return what ours takes and says."""
    timer = Timer()
    name = "goodput.training.measure."
    imports, (readers, ledger) = timer(
        lambda: [importlib.import_module(name + part) for part in ("readers", "ledger")]
    )
    options = ledger.Options(views=False)
    asked = readers.Folder([folder])

    def ask() -> Any:
        asked.poll()
        return ledger.account(asked.log(), options)

    cold, _ = timer(ask)
    cold_mb = peak_mb()
    polls = []
    with max(folder.iterdir()).open("a") as file:
        for step in job.late:
            file.write(f'{{"k":"step","n":{step},{stamp(job.last.start(step))}')
            file.flush()
            polls.append(timer(ask)[0])
        file.write(f'{{"k":"process_end",{stamp(job.last.until)}')
    answer = ask()
    return {
        "imports": imports,
        "cold": cold,
        "cold_mb": cold_mb,
        "poll": median(polls),
        "peak_mb": peak_mb(),
        "goodput": answer.factors.scheduling * answer.factors.runtime,
        "last_step": answer.steps.last_step,
    }


def write_ranks(folder: Path, steps: int) -> None:
    """Write the event files of 64 ranks: each step is up to a millisecond late."""
    for rank in range(RANKS):
        header = '{"k":"process","schema":"goodput.events/1.0","job":"j","boot":"b","pid":%d,'
        launch = Launch(BEGIN, range(steps), 0)
        late = random.Random(rank).getrandbits
        with (folder / f"events-r{rank}.jsonl").open("w") as file:
            file.write(header % (rank + 1) + f'"rank":{rank},"world":{RANKS},' + stamp(BEGIN))
            file.writelines(
                f'{{"k":"step","n":{n},{stamp(launch.start(n) + late(20))}' for n in range(steps)
            )
            file.write(f'{{"k":"process_end",{stamp(launch.start(steps) + SECOND)}')


def report_ours(path: Path) -> Result:
    """Return what a full report of a run takes, part by part."""
    timer = Timer()
    out: Result = {}
    out["imports"], (readers, ledger, report) = timer(
        lambda: [
            importlib.import_module(f"goodput.{name}")
            for name in ("training.measure.readers", "training.measure.ledger", "report.face")
        ]
    )
    out["read"], log = timer(lambda: readers.read([path]))
    out["account"], answer = timer(lambda: ledger.account(log))
    out["html"], page = timer(lambda: report.render_html(answer))
    parts = [out[name] for name in ("imports", "read", "account", "html")]
    out["in all"] = {key: sum(part[key] for part in parts) for key in parts[0]}
    return out | {
        "peak_mb": peak_mb(),
        "html_bytes": len(page),
        "goodput": answer.factors.goodput,
        "executed": answer.steps.executed,
    }


def compact_ours(path: Path, out: Path) -> Result:
    """Return what compaction takes."""
    compact = importlib.import_module("goodput.training.measure.compact").compact
    took, done = Timer()(lambda: compact(path, out=out))
    return {"took": took, "peak_mb": peak_mb(), "bytes": done.size, "rows": done.rows}


def worker(words: list[str]) -> Result:
    """Do what a fresh process was started for."""
    what, *rest = words
    if what == "report":
        return report_ours(Path(rest[0]))
    if what == "compact":
        return compact_ours(Path(rest[0]), Path(rest[1]))
    steps, restarts, folder = rest
    job = make_job(int(steps), int(restarts), POLLS[what])
    return ask_peer(job, folder) if what == "peer" else ask_ours(job, Path(folder))


def fresh(python: str, *words: object) -> Result:
    """Run a worker in a process of its own; return its result."""
    command = [python, __file__, "--worker", *(str(word) for word in words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    result: Result = json.loads(done.stdout.splitlines()[-1])
    return result


def compare(steps: int, restarts: int, peer: str, base: str) -> Result:
    """Ask both sides about one job and check what they say."""
    with tempfile.TemporaryDirectory(dir=base) as folder:
        job = make_job(steps, restarts, POLLS["ours"])
        write_job(job, Path(folder))
        out: Result = {"truth": job.goodput}
        out["ours"] = fresh(sys.executable, "ours", steps, restarts, folder)
    if peer:
        with tempfile.TemporaryDirectory(dir=base) as folder:
            out["peer"] = fresh(peer, "peer", steps, restarts, folder)
    for side in {"ours", "peer"} & set(out):
        said = out[side]["goodput"], out[side]["last_step"]
        if abs(said[0] - job.goodput) > TOLERANCE or said[1] != steps - 1:
            raise SystemExit(f"{steps} x {restarts}: {side} says {said}, truth is {job.goodput}")
    return out


def full_report(steps: int, base: str) -> Result:
    """Report a run of 64 ranks from its event files and from their Parquet file."""
    with tempfile.TemporaryDirectory(dir=base) as folder:
        events, parquet = Path(folder, "events"), Path(folder, "run.parquet")
        events.mkdir()
        write_ranks(events, steps)
        size = sum(path.stat().st_size for path in events.iterdir())
        out: Result = {"events": RANKS * steps, "jsonl_bytes": size}
        out["jsonl"] = fresh(sys.executable, "report", events)
        out["compact"] = fresh(sys.executable, "compact", events, parquet)
        out["parquet"] = fresh(sys.executable, "report", parquet)
    keys = ("goodput", "executed", "html_bytes")
    if any(out["jsonl"][key] != out["parquet"][key] for key in keys):
        raise SystemExit(f"Parquet says {out['parquet']}, JSONL says {out['jsonl']}")
    return out


def show(what: str, ours: dict[str, float], theirs: dict[str, float] | None) -> None:
    """Print one row of the table: wall and CPU time of both, and the ratio of CPU times."""
    text = f"{what:24}{ours['wall_s']:10.3f}{ours['cpu_s']:10.3f}"
    if theirs:
        ratio = theirs["cpu_s"] / max(ours["cpu_s"], 1e-6)
        text += f"{theirs['wall_s']:10.3f}{theirs['cpu_s']:10.3f}{ratio:9.0f}x"
    print(text, flush=True)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", default="", help=f"a Python with {PEER}")
    parser.add_argument("--quick", action="store_true", help="10^4 steps and 64,000 events only")
    parser.add_argument("--dir", help="where files are made: 0.7 GB")
    parser.add_argument("--json", metavar="FILE", help="write all figures there as well")
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(worker(options.worker)))
        return
    if not options.peer_python:
        print(f"no peer; make one: python3 -m venv peer && peer/bin/pip install {PEER}")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; times in s")
    print(
        f"{'steps x restarts':24}{'wall':>10}{'CPU':>10}{'peer wall':>10}{'CPU':>10}{'ratio':>10}"
    )
    figures: Result = {"load": os.getloadavg()}
    for steps in [10**4] if options.quick else [10**4, 10**5, 10**6]:
        for restarts in (0, 8, 100):
            found = compare(steps, restarts, options.peer_python, options.dir)
            figures[f"{steps} x {restarts}"] = found
            ours, theirs = found["ours"], found.get("peer", {})
            for what in ("imports", "cold", "poll"):
                show(f"{steps:,} x {restarts} {what}", ours[what], theirs.get(what))
            memory = f"{ours['cold_mb']:.0f} / {ours['peak_mb']:.0f} MB"
            if theirs:
                memory += f", peer {theirs['cold_mb']:.0f} / {theirs['peak_mb']:.0f} MB"
            print(f"  memory cold / with polls: {memory}")
    found = figures["report"] = full_report(1_000 if options.quick else 156_250, options.dir)
    for source in ("jsonl", "parquet"):
        for what in ("imports", "read", "account", "html", "in all"):
            show(f"{found['events']:,} {source} {what}", found[source][what], None)
        print(f"  memory {found[source]['peak_mb']:.0f} MB")
    show("compact", found["compact"]["took"], None)
    size = found["compact"]["bytes"]
    print(
        f"  memory {found['compact']['peak_mb']:.0f} MB; {size:,} bytes, "
        f"{size / found['events']:.1f} an event; JSONL {found['jsonl_bytes'] / size:.0f} times that"
    )
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
