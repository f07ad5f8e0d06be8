"""A job simulated tick by tick, in plain Python that shares nothing with the ledger.

The state of the model is the tuple of the step executions that made it, so "which executions are in
the final state" needs no inference: it is what the simulation carries along. Start at `simulate`.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

State = tuple[int, ...]
"""state[n] = id of the execution of step n; its length is the next step's number."""


OVER = ("checkpoint", "evaluation", "data", "init")


class Turn(NamedTuple):
    """One thing that a process does."""

    what: str
    """step, evaluated step, data, evaluation, save, idle, own, back, resize, aside, over"""
    length: int
    """Ticks, >= 1."""
    extra: int
    """A second number, >= 0: ticks until a save is durable, ticks of an inner span, a choice."""


class Launch(NamedTuple):
    """What one attempt will do."""

    queue: int
    """Ticks in a queue before it; 0 = none."""
    wait: int
    """Ticks from there to the new process."""
    world: int
    per_rank: int
    """Chips per rank."""
    source: int
    """Which state it restores: 0 = newest of its lineage, others = older ones or none at all."""
    boot: int
    """Ticks from the process to its first turn."""
    turns: tuple[Turn, ...]
    end: str
    """completed, preempted, stopped; crash, step, save, evaluation: where the fault strikes."""
    length: int
    """Ticks that a fault strikes into a step or span, >= 0."""
    notice: int
    """Ticks from the fault to its notice."""


@dataclass
class Execution:
    """One step being run."""

    id: int
    attempt: int
    n: int
    begin: int
    end: int | None = None
    """None = a fault tore it."""


@dataclass
class Span:
    """A span of every rank's record, or of one rank's only."""

    name: str
    start: int
    end: int | None
    background: bool = False
    rank: int | None = None


@dataclass
class Commit:
    """A checkpoint became durable."""

    tick: int
    state: State


@dataclass
class Attempt:
    """What one launch of the job did."""

    number: int
    start: int
    world: int
    restored: State
    restored_at: int
    executions: list[Execution] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    backs: list[tuple[int, State]] = field(default_factory=list)
    """Rollbacks in place: (tick, state restored)."""
    end: int = 0
    """Goodbye, or the fault."""
    noticed: int = 0
    outcome: str = "failed"

    @property
    def key(self) -> str:
        """Its name in the records."""
        return f"a{self.number}"

    @property
    def clean(self) -> bool:
        """It left by itself."""
        return self.outcome in {"completed", "preempted", "stopped"}


@dataclass
class Job:
    """Everything that happened, in ticks."""

    attempts: list[Attempt] = field(default_factory=list)
    holdings: list[tuple[int, int, bool]] = field(default_factory=list)
    """(tick, chips, queued) from then on."""
    executions: dict[int, Execution] = field(default_factory=dict)
    ended_at: int | None = None
    """Somebody recorded the end of the job."""

    @property
    def lived_until(self) -> int:
        """The last tick at which anything happened."""
        return max(a.noticed for a in self.attempts)


class _Run:
    """The simulation under way."""

    def __init__(self) -> None:
        self.job = Job()
        self.now = 0
        self.archive: dict[int, State] = {}
        """Checkpoints on disk by their length: a later save of the same step replaces one."""
        self.state: State = ()

    def launch(self, number: int, plan: Launch) -> None:
        chips = plan.world * plan.per_rank
        if plan.queue:
            self._hold(chips, queued=True)
            self.now += plan.queue
        self._hold(chips, queued=False)
        self.now += plan.wait
        self.state = self._restored(number, plan.source)
        attempt = Attempt(number, self.now, plan.world, self.state, self.now + plan.boot)
        self.job.attempts.append(attempt)
        if plan.boot > 1:
            attempt.spans.append(Span("init", self.now, self.now + plan.boot // 2))
        self.now += plan.boot
        pending: list[Commit] = []
        for turn in plan.turns:
            self._turn(attempt, turn, plan, pending)
        self._finish(attempt, plan, pending)

    def _hold(self, chips: int, *, queued: bool) -> None:
        """From now on this many chips are paid; of two changes in one tick the later counts."""
        holdings = self.job.holdings
        while holdings and holdings[-1][0] == self.now:
            holdings.pop()
        if not holdings or holdings[-1][1:] != (chips, queued):
            holdings.append((self.now, chips, queued))

    def _restored(self, number: int, source: int) -> State:
        """The state that a new attempt restores."""
        if number == 0:
            return ()
        own = [s for s in self.archive.values() if s == self.state[: len(s)]]
        newest = max(own, key=len, default=())
        others = [newest, *sorted(self.archive.values(), key=len), ()]
        return others[source % len(others)]

    def _turn(self, attempt: Attempt, turn: Turn, plan: Launch, pending: list[Commit]) -> None:
        start, self.now = self.now, self.now + turn.length
        match turn.what:
            case "step" | "evaluated step":
                self._step(attempt, start, self.now)
                if turn.what == "evaluated step":
                    inner = start + min(turn.extra, turn.length)
                    attempt.spans.append(Span("evaluation", start, inner, rank=turn.extra % 2))
            case "data" | "evaluation" | "own":
                attempt.spans.append(Span(turn.what, start, self.now))
            case "aside":
                self.now = start
                attempt.spans.append(
                    Span("checkpoint", start, start + turn.length, background=True)
                )
            case "over":  # a span that lies over whatever comes next
                self.now = start
                attempt.spans.append(Span(OVER[turn.extra], start, start + turn.length))
            case "save":
                attempt.spans.append(Span("checkpoint", start, self.now))
                pending.append(Commit(self.now + turn.extra, self.state))
            case "back":
                self._back(attempt, pending)
            case "resize":
                self.now = start
                self._hold(plan.world * (1 + turn.extra), queued=False)
        self._settle(attempt, pending, self.now)

    def _step(self, attempt: Attempt, start: int, end: int | None) -> Execution:
        number = len(self.job.executions)
        run = Execution(number, attempt.number, len(self.state), start, end)
        self.job.executions[number] = run
        attempt.executions.append(run)
        if end is not None:
            self.state = (*self.state, number)
        return run

    def _back(self, attempt: Attempt, pending: list[Commit]) -> None:
        """Restore the newest checkpoint in place; saves under way are given up."""
        own = [s for s in self.archive.values() if s == self.state[: len(s)]]
        if own and attempt.executions and attempt.executions[-1].end is not None:
            pending.clear()
            self.state = max(own, key=len)
            attempt.backs.append((self.now, self.state))

    def _settle(self, attempt: Attempt, pending: list[Commit], now: int) -> None:
        """Saves that are durable by now."""
        for commit in [c for c in pending if c.tick <= now]:
            pending.remove(commit)
            attempt.commits.append(commit)
            self.archive[len(commit.state)] = commit.state

    def _finish(self, attempt: Attempt, plan: Launch, pending: list[Commit]) -> None:
        attempt.outcome = plan.end
        self.now = max(self.now, attempt.start + 1)  # nothing lives for no time at all
        if attempt.clean:
            open_until = [s.end or 0 for s in attempt.spans]
            self.now = max([self.now, *open_until, *(c.tick for c in pending)])
            self._settle(attempt, pending, self.now)
            attempt.end = attempt.noticed = self.now
            return
        attempt.outcome = "failed"
        start, self.now = self.now, self.now + (plan.length if plan.end != "crash" else 0)
        if plan.end == "step":
            self._step(attempt, start, None)
        elif plan.end in {"save", "evaluation"}:
            name = "checkpoint" if plan.end == "save" else plan.end
            attempt.spans.append(Span(name, start, None))
        self._settle(attempt, pending, self.now - 1)
        # A span is written when it is over: of what the fault cuts nothing is known.
        attempt.spans = [s for s in attempt.spans if s.end is None or s.end <= self.now]
        attempt.end = self.now
        self.now = attempt.noticed = self.now + plan.notice


def simulate(launches: list[Launch], *, says_end: bool) -> Job:
    """Return what a job of these attempts does.

    Args:
        launches: the attempts, in order.
        says_end: somebody records the end of the job, a tick after its last attempt was over.
    """
    run = _Run()
    for number, plan in enumerate(launches):
        run.launch(number, plan)
    if says_end:
        run.job.ended_at = run.now + 1
    return run.job
