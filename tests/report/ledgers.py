"""Realistic ledgers for the tests of reports, built from phases of a made-up job.

A job is a list of phases, each in one class on all chips; stretches of steps also lose a part of
their time to the PG classes. Everything follows from the phases, so the sums are right.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from goodput.core.notes import Note
from goodput.core.waterfall import Loss, Part, Provenance, Waterfall
from goodput.training.measure.ledger.types import (
    LEDGER_SCHEMA,
    LOSS_FACTORS,
    Attempt,
    Band,
    Definition,
    Factors,
    Incident,
    Ledger,
    ModelFlops,
    Outcome,
    Rank,
    Saved,
    Series,
    StepStats,
    StepTimes,
    Track,
)

S = 1_000_000_000
START = 1_767_448_931 * S  # 2026-01-03 14:02:11 UTC
PROGRAM_LOSSES = {"communication": 41, "straggler": 13, "slow": 22}  # per mille of step time


@dataclass
class Phase:
    label: str
    start: int
    end: int
    detail: str = ""


@dataclass
class Job:
    """What the builder needs to know."""

    name: str
    chips: int
    world: int
    phases: list[Phase] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    """Start of each attempt."""
    state: Outcome = "completed"
    step_ns: int = S // 2
    now: int = START

    def add(self, label: str, seconds: float, detail: str = "") -> int:
        start, self.now = self.now, self.now + round(seconds * S)
        self.phases.append(Phase(label, start, self.now, detail))
        return start


def _amounts(phase: Phase, start: int, end: int, chips: int) -> dict[str, int]:
    wall = max(0, min(phase.end, end) - max(phase.start, start)) * chips
    if phase.label != "steps":
        return {phase.label: wall}
    losses = {name: wall * mille // 1000 for name, mille in PROGRAM_LOSSES.items()}
    return {**losses, "useful": wall - sum(losses.values())}


def _account(phases: Iterable[Phase], start: int, end: int, chips: int) -> dict[str, int]:
    total = dict.fromkeys([*LOSS_FACTORS, "useful", "excluded"], 0)
    for phase in phases:
        for name, amount in _amounts(phase, start, end, chips).items():
            total[name] += amount
    return total


def _parts(name: str, amount: int) -> tuple[Part, ...]:
    if name != "startup" or not amount:
        return ()
    first, second = amount * 45 // 100, amount * 35 // 100
    rest = amount - first - second
    return (Part("framework", first), Part("restore", second), Part("first step", rest))


def waterfall(
    amounts: dict[str, int], provenance: dict[str, Provenance] | None = None
) -> Waterfall:
    marks = provenance or {}
    losses = tuple(
        Loss(
            name=name,
            amount=amounts.get(name, 0),
            factor=factor,
            provenance=marks.get(name, "recorded"),
            parts=_parts(name, amounts.get(name, 0)),
        )
        for name, factor in LOSS_FACTORS.items()
    )
    useful = amounts.get("useful", 0)
    capacity = useful + sum(loss.amount for loss in losses)
    return Waterfall(unit="chip_ns", capacity=capacity, useful=useful, losses=losses)


def _factors(account: Waterfall) -> Factors:
    if not account.capacity:
        return Factors(scheduling=0.0, runtime=0.0, program=0.0, goodput=0.0)
    allocated = account.capacity - account.by_factor("SG")
    stepping = allocated - account.by_factor("RG")
    return Factors(
        scheduling=allocated / account.capacity,
        runtime=stepping / allocated if allocated else 0.0,
        program=account.useful / stepping if stepping else 0.0,
        goodput=account.goodput_fraction,
    )


def _series(job: Job, end: int, bins: int) -> Series:
    width = max(1, -(-(end - START) // bins))
    starts = tuple(range(START, max(end, START + 1), width))
    per_bin = []
    first = 0
    for start in starts:
        while first < len(job.phases) - 1 and job.phases[first].end <= start:
            first += 1
        last = first
        while last < len(job.phases) and job.phases[last].start < start + width:
            last += 1
        per_bin.append(_account(job.phases[first:last], start, start + width, job.chips))
    names = [name for name in per_bin[0] if any(window[name] for window in per_bin)]
    classes = {name: tuple(window[name] for window in per_bin) for name in names}
    capacity = tuple(sum(window.values()) - window["excluded"] for window in per_bin)
    return Series(starts_ns=starts, width_ns=width, capacity=capacity, classes=classes)


def _step_times(job: Job, bins: int, seed: int) -> StepTimes:
    noise = random.Random(seed)
    stretches = [phase for phase in job.phases if phase.label in {"steps", "rework"}]
    total = sum(phase.end - phase.start for phase in stretches)
    if not total:
        return StepTimes((), (), (), (), (), ())
    rows = []
    step = 0
    for phase in stretches:
        length = phase.end - phase.start
        count = max(1, bins * length // total)
        for index in range(count):
            median = round(job.step_ns * (1.02 + 0.03 * noise.random()))
            spread = noise.random()
            longest = round(median * (1.2 + spread + 6 * (noise.random() > 0.97)))
            rows.append(
                (
                    step + index * length // count // job.step_ns,
                    phase.start + index * length // count,
                    round(median * 0.97),
                    median,
                    round(median * (1.05 + 0.2 * spread)),
                    longest,
                )
            )
        step += length // job.step_ns
    columns = tuple(zip(*rows, strict=True))
    return StepTimes(*columns)


def _bands(phases: Iterable[Phase]) -> tuple[Band, ...]:
    return tuple(Band(phase.start, phase.end, phase.label, phase.detail) for phase in phases)


def _attempts(job: Job, end: int) -> tuple[Attempt, ...]:
    found = []
    step = 0
    for number, start in enumerate(job.starts):
        stop = job.starts[number + 1] if number + 1 < len(job.starts) else end
        inside = [phase for phase in job.phases if start <= phase.start < stop]
        kept = sum(p.end - p.start for p in inside if p.label == "steps") // job.step_ns
        lost = sum(p.end - p.start for p in inside if p.label == "rework") // job.step_ns
        stepping = [p.start for p in inside if p.label in {"steps", "rework"}]
        over = number + 1 < len(job.starts)
        found.append(
            Attempt(
                key=f"a{number}",
                started_at_ns=start,
                first_step_at_ns=stepping[0] if stepping else 0,
                ended_at_ns=stop,
                outcome="failed" if over else job.state,
                cause=job.incidents[number].cause if over else "",
                world=job.world,
                chips=job.chips,
                next_step=step,
                last_step=step + kept + lost - 1,
                kept_steps=kept,
                lost_steps=lost,
                waterfall=waterfall(_account(inside, start, stop, job.chips)),
            )
        )
        step += kept
    return tuple(found)


def _ranks(job: Job, count: int, per_rank: Waterfall, steps: int) -> tuple[Rank, ...]:
    noise = random.Random(7)
    slow = {3 % max(count, 1): 1.31} if count > 2 else {}
    return tuple(
        Rank(
            rank=rank,
            host=f"node-{rank // 8:03d}",
            detail="steps" if rank == 0 else "windows",
            steps=steps,
            median_step_ns=job.step_ns,
            mean_work_ns=round(job.step_ns * 0.9),
            slowdown=round(slow.get(rank, 0.98 + 0.05 * noise.random()), 3),
            waterfall=per_rank,
        )
        for rank in range(count)
    )


def _definitions(account: Waterfall, saved: float | None) -> tuple[Definition, ...]:
    stepping = account.useful + account.by_factor("PG")
    allocated = account.capacity - account.by_factor("SG")
    some = bool(account.capacity)
    return (
        Definition(
            "ETTR with queue",
            stepping / account.capacity if some else None,
            "time of kept steps / time since submission",
            "arXiv 2410.21680",
        ),
        Definition(
            "ETTR without queue",
            stepping / allocated if allocated else None,
            "time of kept steps / time with chips",
            "arXiv 2410.21680",
        ),
        Definition(
            "RG, saved (Google)",
            saved,
            "progress in a committed checkpoint / time with chips",
            "arXiv 2502.06982",
        ),
        Definition(
            "MPG",
            account.goodput_fraction if some else None,
            "SG x RG x PG",
            "arXiv 2502.06982",
        ),
    )


def build(
    job: Job,
    *,
    bins: int = 120,
    ranks: int = 2,
    rank_tracks: int = 2,
    flops: ModelFlops | None = None,
    provenance: dict[str, Provenance] | None = None,
    notes: Sequence[Note] = (),
    persistence_known: bool = True,
) -> Ledger:
    """Make the ledger of a job from its phases."""
    end = max(job.now, START)
    amounts = _account(job.phases, START, end, job.chips)
    account = waterfall(amounts, provenance)
    kept_ns = sum(p.end - p.start for p in job.phases if p.label == "steps")
    lost_ns = sum(p.end - p.start for p in job.phases if p.label == "rework")
    kept, lost = kept_ns // job.step_ns, lost_ns // job.step_ns
    at_risk = 0 if job.state == "completed" else min(kept, 12)
    saved_useful = account.useful * (kept - at_risk) // kept if kept else 0
    allocated = account.capacity - account.by_factor("SG")
    saved_known = persistence_known and account.capacity > 0
    saved = Saved(
        persistence="known" if saved_known else "unknown",
        useful=saved_useful if saved_known else 0,
        goodput_fraction=saved_useful / account.capacity if saved_known else None,
        runtime_fraction=saved_useful / allocated if saved_known and allocated else None,
        last_step=kept - at_risk - 1 if saved_known else -1,
    )
    one_chip = waterfall({name: value // job.chips for name, value in amounts.items()}, provenance)
    seen = bool(kept)
    return Ledger(
        schema=LEDGER_SCHEMA,
        job=job.name,
        state=job.state,
        started_at_ns=START,
        ended_at_ns=end,
        chips=job.chips,
        world=job.world,
        waterfall=account,
        excluded=amounts["excluded"],
        factors=_factors(account),
        saved=saved,
        definitions=_definitions(account, saved.runtime_fraction),
        steps=StepStats(
            executed=kept + lost,
            kept=kept,
            lost=lost,
            at_risk=at_risk,
            last_step=kept - 1,
            ideal_step_ns=round(job.step_ns * 0.95) if seen else 0,
            ideal_source="p10 of kept steps" if seen else "",
            median_ns=job.step_ns if seen else 0,
            p90_ns=round(job.step_ns * 1.08) if seen else 0,
            p99_ns=round(job.step_ns * 1.4) if seen else 0,
            longest_ns=round(job.step_ns * 7.9) if seen else 0,
        ),
        flops=flops,
        elastic=None,
        incidents=tuple(job.incidents),
        attempts=_attempts(job, end),
        ranks=_ranks(job, ranks, one_chip, kept),
        series=_series(job, end, bins) if job.phases else Series((), 1, (), {}),
        timeline=(
            Track("job", _bands(job.phases)),
            *(Track(f"rank {rank}", _bands(job.phases)) for rank in range(rank_tracks)),
        )
        if job.phases
        else (),
        step_times=_step_times(job, bins, seed=3),
        notes=tuple(notes),
        sources=tuple(f"events-{rank:05d}.jsonl" for rank in range(ranks)),
    )


def _interrupt(
    job: Job,
    *,
    cause: str,
    evidence: str,
    rank: int,
    rework_s: float,
    detection_s: float,
    recovery_s: float,
    startup: Sequence[tuple[str, float]],
    planned: bool = False,
) -> None:
    """Lose the last steps, notice, start again: the phases and the incident that go together."""
    job.add("rework", rework_s, f"steps lost to {cause}")
    fault = job.add("detection", detection_s, cause)
    noticed = job.add("recovery", recovery_s)
    resumed = job.now
    for label, seconds in startup:
        job.add(label, seconds)
    restart = job.now - resumed
    job.starts.append(resumed)
    wall = round((rework_s + detection_s + recovery_s) * S) + restart
    job.incidents.append(
        Incident(
            number=len(job.incidents) + 1,
            attempt=f"a{len(job.starts) - 2}",
            at_ns=fault,
            noticed_at_ns=noticed,
            resumed_at_ns=resumed,
            cause=cause,
            evidence=evidence,
            rank=rank,
            planned=planned,
            detection_ns=noticed - fault,
            recovery_ns=resumed - noticed,
            restart_ns=restart,
            rework_ns=round(rework_s * S),
            rework_steps=round(rework_s * S) // job.step_ns,
            cost_chip_ns=wall * job.chips,
            provenance="recorded" if evidence else "inferred",
        )
    )


def healthy() -> Ledger:
    """Eight chips, two hours, nothing went wrong, FLOPs known."""
    job = Job(name="finetune-7b", chips=8, world=8, step_ns=1_900_000_000)
    job.add("scheduling", 95)
    job.starts.append(job.now)
    job.add("startup", 71.5)
    for _ in range(11):
        job.add("data", 1.2)
        job.add("steps", 608)
        job.add("checkpoint", 6.4)
    job.add("evaluation", 122)
    job.add("unattributed", 3.3)
    return build(
        job,
        ranks=8,
        rank_tracks=8,
        flops=ModelFlops(0.412, 6.2e15, 989e12, "H100-SXM", "bf16", "given"),
        notes=[Note("info", "7 of 8 ranks are summaries (default detail)", "ranks 1-7", 7)],
    )


def demo() -> Ledger:
    """Two chips, three minutes, a SIGKILL and a SIGSTOP."""
    job = Job(name="demo", chips=2, world=2, step_ns=400_000_000)
    job.add("scheduling", 0.8)
    job.starts.append(job.now)
    job.add("startup", 9.4)
    job.add("steps", 36)
    job.add("checkpoint", 0.6)
    _interrupt(
        job,
        cause="killed by SIGKILL",
        evidence="worker of rank 1 ended with signal 9",
        rank=1,
        rework_s=7.2,
        detection_s=1.1,
        recovery_s=2.2,
        startup=[("startup", 8.7)],
    )
    job.add("steps", 42)
    job.add("checkpoint", 0.5)
    _interrupt(
        job,
        cause="hang: no step for 20 s while the process was alive (SIGSTOP suspected)",
        evidence="collective timed out after 20 s, rank 0 last seen in step 193",
        rank=0,
        rework_s=5.1,
        detection_s=20.4,
        recovery_s=2.5,
        startup=[("startup", 8.9)],
    )
    job.add("steps", 28)
    job.add("evaluation", 3.1)
    job.add("steps", 6)
    job.add("checkpoint", 0.5)
    return build(job, provenance={"detection": "mixed", "unattributed": "inferred"})


LLAMA_CAUSES = (
    ("faulty GPU", 148),
    ("HBM3 memory", 72),
    ("software bug", 54),
    ("network switch or cable", 35),
    ("host maintenance, unplanned", 32),
    ("GPU SRAM", 19),
    ("GPU system processor", 17),
    ("NIC", 7),
    ("NCCL watchdog timeout", 7),
    ("silent data corruption", 6),
    ("GPU thermal interface and sensor", 6),
    ("SSD", 3),
    ("power supply", 3),
    ("server chassis", 2),
    ("IO expansion board", 2),
    ("dependency", 2),
    ("CPU", 2),
    ("system memory", 2),
)
"""arXiv 2407.21783, table 5: 419 unexpected interruptions; 47 more were planned."""


def llama(*, rank_tracks: int = 1) -> Ledger:
    """16,384 chips for 54 days with 466 incidents, times per incident made up."""
    noise = random.Random(1)
    causes = [name for name, number in LLAMA_CAUSES for _ in range(number)]
    causes += ["maintenance"] * 47
    noise.shuffle(causes)
    job = Job(name="llama-405b", chips=16_384, world=16_384, step_ns=4_900_000_000)
    job.add("scheduling", 3_100)
    job.starts.append(job.now)
    job.add("startup", 540)
    mean_s = (54 * 86_400 - 3_640) / 467 - 847
    for cause in causes:
        job.add("steps", max(60.0, mean_s * (0.4 + 1.2 * noise.random())))
        job.add("checkpoint", 3 + 4 * noise.random())
        planned = cause == "maintenance"
        _interrupt(
            job,
            cause=cause,
            evidence="" if noise.random() < 0.1 else f"log line of node-{noise.randrange(2048)}",
            rank=-1 if planned else noise.randrange(16_384),
            rework_s=5 if planned else 20 + 500 * noise.random(),
            detection_s=1 if planned else 10 + 300 * noise.random(),
            recovery_s=60 + 300 * noise.random(),
            startup=[("startup", 180 + 200 * noise.random())],
            planned=planned,
        )
    job.add("steps", mean_s)
    return build(
        job,
        bins=480,
        ranks=64,
        rank_tracks=rank_tracks,
        flops=ModelFlops(0.41, 3.3e19, 989e12, "H100-SXM", "bf16", "given"),
        notes=[
            Note("warning", "47 incidents have no evidence: cause inferred", "", 47),
            Note("info", "ranks above 63 were not recorded", "ranks 64-16383", 16_320),
        ],
    )


def empty() -> Ledger:
    """A job that was submitted and seen, and reached no step."""
    job = Job(name="never-started", chips=4, world=0, state="failed")
    job.add("scheduling", 41)
    return build(job, ranks=0, rank_tracks=0, persistence_known=False)


def nothing() -> Ledger:
    """No capacity at all: a folder with one process line."""
    job = Job(name="blank", chips=1, world=1, state="unknown")
    return build(job, ranks=1, rank_tracks=0, persistence_known=False)


def unmeasured() -> Ledger:
    """Read from a log: several classes were never instrumented, MFU refused, still running."""
    job = Job(
        name="a-job-with-a-name-that-is-much-longer-than-any-terminal-would-like-it-to-be-v2-final",
        chips=64,
        world=64,
        state="running",
        step_ns=3_210_000_000,
    )
    job.starts.append(job.now)
    job.add("startup", 380)
    job.add("steps", 14_000)
    job.add("excluded", 1_800, "cluster maintenance")
    job.add("steps", 9_100)
    job.add("unattributed", 77)
    missing: Provenance = "not measured"
    marks: dict[str, Provenance] = dict.fromkeys(
        ("scheduling", "data", "evaluation", "checkpoint", "communication", "straggler"), missing
    )
    del marks["communication"], marks["straggler"]
    marks |= {"startup": "log", "slow": "inferred", "unattributed": "inferred"}
    return build(
        job,
        ranks=1,
        rank_tracks=0,
        provenance=marks,
        persistence_known=False,
        flops=ModelFlops(
            None, 9.9e17, 312e12, "A100-SXM", "bf16", "given", "MFU would be 133 %: check the FLOPs"
        ),
        notes=[
            Note("error", "3 lines could not be read", "train.log:812", 3),
            Note(
                "warning", "no time stamps on step lines; times follow from elapsed ms", "train.log"
            ),
            *(Note("info", f"log format guess {n}", f"train.log:{n}") for n in range(1, 9)),
        ],
    )


ALL: dict[str, Callable[[], Ledger]] = {
    "healthy": healthy,
    "demo": demo,
    "llama": llama,
    "empty": empty,
    "nothing": nothing,
    "unmeasured": unmeasured,
}
