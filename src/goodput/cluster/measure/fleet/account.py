"""Tables of jobs in, a fleet ledger out: every sum is DuckDB's, in exact integers."""

from typing import TYPE_CHECKING, Final, Literal

from goodput.cluster.measure.fleet.types import (
    DIMENSIONS,
    BadRows,
    Dimension,
    Factor,
    FleetLedger,
    Group,
    Jobs,
)
from goodput.core.errors import DataError
from goodput.core.notes import Note
from goodput.core.waterfall import Loss, Part, Waterfall

if TYPE_CHECKING:
    import duckdb

    from goodput.cluster.measure.fleet.load import JobTables

FAILED_STATES: Final = ("FAILED", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY")
"""Last states that say that a job failed by itself or with its machine. A time limit, a
pre-emption and a cancellation are somebody's decision and are listed beside them."""
MAX_GROUPS: Final = 200
MAX_BAD: Final = 50
_NAMES: Final = {"COMPLETED": "redone", "UNKNOWN": "state not told"}
"""Losses that are not called as the state in which the jobs ended."""
_ORDERED: Final = {"week": "key", "size": "max(gpus)"}

_FLEET: Final = f"""
CREATE TEMP TABLE fleet AS
SELECT *, gpus::HUGEINT * run_ns AS run, gpus::HUGEINT * coalesce(queue_ns, 0) AS queued,
    gpus::HUGEINT * least(run_ns,
        coalesce(useful_ns, CASE WHEN state = 'COMPLETED' THEN run_ns ELSE 0 END)) AS kept,
    gpus::HUGEINT * coalesce(retried_ns, 0) AS retried,
    state IN {FAILED_STATES!r} AS is_failed,
    CASE WHEN queue_ns IS NULL THEN 0 WHEN start_ns IS NOT NULL AND submit_ns IS NOT NULL
        THEN gpus::HUGEINT * least(start_ns - submit_ns, queue_ns) ELSE 0 END AS first_wait,
    CASE WHEN start_ns IS NULL AND run_ns = 0 THEN gpus::HUGEINT * coalesce(queue_ns, 0) ELSE 0 END
        AS never
FROM jobs WHERE gpus > 0 AND run_ns IS NOT NULL;
"""  # noqa: S608 - our own names
_SUMS: Final = """count(*), coalesce(sum(queued), 0), coalesce(sum(run), 0),
    coalesce(sum(run - kept), 0), coalesce(sum(run) FILTER (is_failed), 0)"""
_KEYS: Final = {
    "state": "state",
    "user": '"user"',
    "queue": "queue",
    "kind": "kind",
    "size": "CASE WHEN gpus <= 2 THEN gpus::VARCHAR ELSE (1 << bits - 1) + 1 || '-' || (1 << bits) "
    "END",
    "week": "strftime(date_trunc('week', make_timestamp(at_us)), '%G-W%V')",
}
"""SQL of each key. A size is a range up to a power of two; a job belongs whole to the week (ISO,
UTC) in which it was submitted, or started where that is not told."""


def fleet_ledger(tables: "JobTables", *, name: str) -> FleetLedger:
    """Return the account of the jobs in the tables.

    Args:
        tables: as `open_tables` gives them.
        name: how to call the fleet.

    Raises:
        DataError: no row describes a job.
    """
    ask = _Asker(tables.connection)
    tables.connection.execute(_FLEET)
    jobs = _jobs(ask)
    bad = _bad_rows(ask)
    if not jobs.read - jobs.bad:
        first = bad[0] if bad else None
        raise DataError(
            "no row describes a job"
            + (f": row {first.row}, {first.column} {first.value}: {first.reason}" if first else ""),
            path=first.path if first else ", ".join(tables.sources)[:300],
        )
    begin, end = ask.row(
        "SELECT coalesce(min(least(submit_ns, start_ns)), 0), "
        "coalesce(max(greatest(end_ns, start_ns, submit_ns)), 0) FROM jobs"
    )
    failed, retried = ask.row(
        "SELECT coalesce(sum(run) FILTER (is_failed), 0), coalesce(sum(retried), 0) FROM fleet"
    )
    waiting = _scheduling(ask)
    kept = _runtime(ask)
    return FleetLedger(
        name=name,
        begin_ns=begin,
        end_ns=end,
        jobs=jobs,
        waterfall=_waterfall(ask, measured=waiting.value is not None),
        scheduling=waiting,
        runtime=kept,
        failed=failed,
        retried=retried,
        dimensions=tuple(d for d in (_dimension(ask, d) for d in DIMENSIONS) if d.groups),
        bad_rows=bad[:MAX_BAD],
        notes=(*_notes(ask, jobs, waiting), *tables.notes),
        sources=tables.sources,
    )


class _Asker:
    """Integers and rows of a connection."""

    def __init__(self, connection: "duckdb.DuckDBPyConnection") -> None:
        self.connection = connection

    def rows(self, query: str) -> list[tuple[str, ...]]:
        return list(self.connection.execute(query).fetchall())

    def row(self, query: str) -> list[int]:
        return [int(value) for value in self.rows(query)[0]]

    def one(self, query: str) -> int:
        return self.row(query)[0]


def _jobs(ask: _Asker) -> Jobs:
    staged, bad = ask.row("SELECT count(*), count(problem) FROM judged")
    kept, cpu, unknown, restarts = ask.row(
        "SELECT count(*), count(*) FILTER (gpus = 0), "
        "count(*) FILTER (gpus > 0 AND run_ns IS NULL), coalesce(sum(restarts), 0) FROM jobs"
    )
    return Jobs(
        read=staged,
        accounted=kept - cpu - unknown,
        without_chips=cpu,
        open=unknown,
        bad=bad,
        copies=staged - bad - kept,
        restarts=restarts,
    )


def _waterfall(ask: _Asker, *, measured: bool) -> Waterfall:
    queued, first_wait, never, run, kept = ask.row(
        "SELECT coalesce(sum(queued), 0), coalesce(sum(first_wait), 0), coalesce(sum(never), 0), "
        "coalesce(sum(run), 0), coalesce(sum(kept), 0) FROM fleet"
    )
    parts = [
        Part("before the first start", first_wait),
        Part("jobs that never started", never),
        Part("between attempts, or not told apart", queued - first_wait - never),
    ]
    losses = [
        Loss(
            "queue",
            queued,
            factor="SG",
            provenance="log" if measured else "not measured",
            evidence="submitted and not running, at the GPUs asked for",
            parts=tuple(part for part in parts if part.amount),
        )
    ]
    for state, lost in ask.rows(
        "SELECT state, sum(run - kept) AS lost FROM fleet GROUP BY state HAVING lost > 0 "
        "ORDER BY lost DESC, state"
    ):
        losses.append(
            Loss(
                _NAMES.get(state) or state.lower(),
                int(lost),
                factor="RG",
                provenance="log",
                evidence=f"ran in jobs whose last state is {state}; what of it was saved is not "
                "in the table unless it tells useful time",
            )
        )
    return Waterfall(unit="chip_ns", capacity=queued + run, useful=kept, losses=tuple(losses))


def _scheduling(ask: _Asker) -> Factor:
    known, run, queued = ask.row(
        "SELECT count(*), coalesce(sum(run), 0), coalesce(sum(queued), 0) FROM fleet "
        "WHERE queue_ns IS NOT NULL"
    )
    if not known or not run + queued:
        return Factor(None, "no job tells both when it was submitted and when it started")
    return Factor(
        run / (run + queued), "run time / (queue + run time), at the GPUs asked for", known
    )


def _runtime(ask: _Asker) -> Factor:
    ran, told, run, useful = ask.row(
        "SELECT count(*), count(useful_ns), coalesce(sum(run), 0), coalesce(sum(kept), 0) "
        "FROM fleet WHERE run > 0"
    )
    if told < ran or not run:
        return Factor(None, "no column tells how much of each job's run was kept (useful_ns)")
    return Factor(useful / run, "useful time / run time, as the table tells it", ran)


def _dimension(ask: _Asker, name: str) -> Dimension:
    order = _ORDERED.get(name, "sum(run) + sum(queued) DESC, key")
    source = """(SELECT *, length(bin(gpus - 1)) AS bits,
        coalesce(submit_ns, start_ns, end_ns) // 1000 AS at_us FROM fleet)"""
    grouped = f"""
        SELECT {_KEYS[name]} AS key, {_SUMS}, row_number() OVER (ORDER BY {order}) AS place
        FROM {source} GROUP BY key"""  # noqa: S608 - our own names
    rows = ask.rows(f"SELECT * FROM ({grouped}) ORDER BY place")  # noqa: S608
    if all(row[0] is None for row in rows):
        return Dimension(name, ())
    groups = [Group(row[0] or "not told", *(int(value) for value in row[1:6])) for row in rows]
    rest = groups[MAX_GROUPS:]
    if rest:
        sums = [sum(amounts) for amounts in zip(*(_amounts(group) for group in rest), strict=True)]
        groups = [*groups[:MAX_GROUPS], Group(f"{len(rest):,} others", *sums)]
    return Dimension(name, tuple(groups), others=len(rest))


def _amounts(group: Group) -> tuple[int, ...]:
    return (group.jobs, group.queue, group.run, group.not_kept, group.failed)


def _bad_rows(ask: _Asker) -> tuple[BadRows, ...]:
    query = """
        SELECT path, problem."column", problem.reason, count(*) AS n, min(row),
            arg_min(problem."value", row)
        FROM rejected GROUP BY 1, 2, 3 ORDER BY n DESC, 1, 2, 3"""
    return tuple(
        BadRows(path, column, reason, int(n), int(row), value[:80])
        for path, column, reason, n, row, value in ask.rows(query)
    )


def _notes(ask: _Asker, jobs: Jobs, waiting: Factor) -> tuple[Note, ...]:
    notes: list[Note] = []
    contradicted = ask.one("SELECT n FROM contradicted")
    unqueued = jobs.accounted - waiting.jobs
    odd = ask.one("SELECT count(*) FROM fleet WHERE state = 'UNKNOWN'")
    found: tuple[tuple[Literal["info", "warning"], str, int], ...] = (
        (
            "warning",
            "jobs whose duration is more than 1 s off end minus start; the latter counts",
            contradicted,
        ),
        ("warning", "jobs without a final state: none of their run is called useful", odd),
        ("info", "jobs whose queue time is not told: it counts as none", unqueued),
        ("info", "jobs without a run time (not over, or not told): left out", jobs.open),
        ("info", "jobs without GPUs: left out", jobs.without_chips),
        ("info", "rows that repeat another: left out", jobs.copies),
    )
    notes.extend(Note(level=level, text=text, count=n) for level, text, n in found if n)
    notes.append(Note(level="info", text="times without a zone are taken as UTC"))
    return tuple(notes)
