"""The one relation that every job table becomes, and the SQL that reads and judges its values.

A loader gives a SELECT with the columns of `PARSED`; `settle` makes the tables `jobs` and
`rejected` of it.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import duckdb

JOBS_SCHEMA: Final = "goodput.jobs/1.0"
COLUMNS: Final[dict[str, str]] = {
    "job_id": "VARCHAR",
    "user": "VARCHAR",
    "queue": "VARCHAR",
    "kind": "VARCHAR",
    "gpus": "BIGINT",
    "submit_ns": "BIGINT",
    "start_ns": "BIGINT",
    "end_ns": "BIGINT",
    "run_ns": "BIGINT",
    "queue_ns": "BIGINT",
    "useful_ns": "BIGINT",
    "retried_ns": "BIGINT",
    "state": "VARCHAR",
    "restarts": "BIGINT",
}
"""Columns of a job table (docs/formats/job_table.md); NULL = the source does not tell."""

PARSED: Final = (
    "path",
    "row",
    "job_id",
    "user",
    "queue",
    "kind",
    "gpus",
    "submit_ns",
    "start_ns",
    "end_ns",
    "run_ns",
    "told_ns",
    "useful_ns",
    "retried_ns",
    "state",
    "restarts",
    "starts_told",
    "problem",
)
"""What a loader selects: `run_ns` is beyond doubt (sum of attempts), `told_ns` a duration column;
`starts_told`: no start means that it never ran; `problem`: what could not be read, or NULL."""

LATEST_NS: Final = 7_258_032_000 * 10**9
"""Start of 2200: what lies beyond is no time, and differences stay within 64 bits."""
MOST_GPUS: Final = 10**8
"""More is a mistake; sums over any number of rows stay within 128 bits."""
_NS: Final = (
    "submit_ns",
    "start_ns",
    "end_ns",
    "run_ns",
    "told_ns",
    "useful_ns",
    "retried_ns",
)

# `given` first lets through what is no mark of absence by its length or digit: most cells.
_MACROS: Final = """
SET TimeZone = 'UTC';
CREATE MACRO given(x) AS CASE WHEN strlen(x) > 13 OR x[1] BETWEEN '0' AND '9' THEN x
    WHEN lower(trim(x)) IN
    ('', 'none', 'null', 'nan', 'nat', 'unknown', 'n/a', 'none assigned')
    THEN NULL ELSE trim(x) END;
CREATE MACRO seconds(x) AS try_cast(try_cast(x AS DECIMAL(19, 9)) * 1000000000 AS BIGINT);
CREATE MACRO whole(x) AS CASE WHEN try_cast(x AS DOUBLE) = trunc(try_cast(x AS DOUBLE))
    THEN try_cast(try_cast(x AS DOUBLE) AS BIGINT) END;
CREATE MACRO stamp(x) AS CASE
    WHEN try_cast(x AS TIMESTAMPTZ) BETWEEN TIMESTAMPTZ '1971-01-01 00:00:00+00'
        AND TIMESTAMPTZ '2199-12-31 00:00:00+00'
    THEN epoch_us(try_cast(x AS TIMESTAMPTZ)) * 1000 ELSE seconds(x) END;
CREATE MACRO trouble(c, v, r) AS {'column': c, 'value': v::VARCHAR, 'reason': r};
CREATE MACRO unread(c, raw, found, r) AS
    CASE WHEN raw IS NOT NULL AND found IS NULL THEN trouble(c, raw, r) END;
CREATE MACRO final_state(x) AS CASE upper(split_part(rtrim(trim(x), '+'), ' ', 1))
    WHEN 'PASS' THEN 'COMPLETED' WHEN 'SUCCEEDED' THEN 'COMPLETED' WHEN 'SUCCESS' THEN 'COMPLETED'
    WHEN 'KILLED' THEN 'CANCELLED' WHEN 'CANCELED' THEN 'CANCELLED' WHEN 'CANCEL' THEN 'CANCELLED'
    WHEN 'COMPLETE' THEN 'COMPLETED' WHEN 'FAIL' THEN 'FAILED'
    WHEN '' THEN 'UNKNOWN' ELSE upper(split_part(rtrim(trim(x), '+'), ' ', 1)) END;
"""

_PROBLEM: Final = """
coalesce(problem,
    CASE WHEN gpus IS NULL THEN trouble('gpus', '', 'no number of GPUs')
    WHEN gpus < 0 THEN trouble('gpus', gpus, 'negative')
    WHEN submit_ns IS NULL AND start_ns IS NULL AND end_ns IS NULL AND run_ns IS NULL
        AND told_ns IS NULL THEN trouble('submit', '', 'no time at all')
    WHEN run_ns < 0 OR told_ns < 0 THEN trouble('duration', coalesce(run_ns, told_ns) // 1000000000
        || ' s', 'negative')
    WHEN end_ns < start_ns THEN trouble('end', (end_ns - start_ns) // 1000000000 || ' s',
        'ends before it starts')
    WHEN start_ns < submit_ns THEN trouble('start', (start_ns - submit_ns) // 1000000000 || ' s',
        'starts before it is submitted')
    WHEN end_ns < submit_ns THEN trouble('end', (end_ns - submit_ns) // 1000000000 || ' s',
        'ends before it is submitted')
    WHEN run_ns > end_ns - coalesce(start_ns, submit_ns)
        THEN trouble('duration', run_ns // 1000000000 || ' s', 'ran longer than start to end')
    WHEN useful_ns < 0 OR useful_ns > coalesce(run_ns, end_ns - start_ns, told_ns)
        THEN trouble('useful', useful_ns, 'not within the run time')
    END)
"""

_RUN: Final = """
coalesce(run_ns, end_ns - start_ns,
    CASE WHEN state NOT IN ('RUNNING', 'PENDING', 'SUSPENDED') THEN told_ns END,
    CASE WHEN starts_told AND start_ns IS NULL AND submit_ns IS NOT NULL AND end_ns IS NOT NULL
        AND state NOT IN ('COMPLETED', 'RUNNING', 'PENDING', 'SUSPENDED') THEN 0 END)
"""

_QUEUE: Final = """
CASE WHEN ran_ns IS NULL OR submit_ns IS NULL THEN NULL
    WHEN end_ns IS NOT NULL THEN greatest(end_ns - submit_ns - ran_ns, 0)
    WHEN start_ns IS NOT NULL THEN start_ns - submit_ns END
"""


def prepare(connection: "duckdb.DuckDBPyConnection") -> None:
    """Make the macros and the empty table `staged` that loaders fill."""
    connection.execute(_MACROS)
    types = {"path": "VARCHAR", "row": "BIGINT", "told_ns": "BIGINT", "starts_told": "BOOLEAN"}
    types["problem"] = 'STRUCT("column" VARCHAR, "value" VARCHAR, reason VARCHAR)'
    columns = ", ".join(f'"{name}" {COLUMNS.get(name) or types[name]}' for name in PARSED)
    connection.execute(f"CREATE TEMP TABLE staged ({columns})")


def stage(connection: "duckdb.DuckDBPyConnection", select: str, values: dict[str, object]) -> None:
    """Add the rows of a loader's SELECT, whose columns are those of `PARSED`."""
    sound = {name: f'"{name}"' for name in PARSED}
    for name in _NS:
        sound[name] = f"CASE WHEN {name} BETWEEN -{LATEST_NS} AND {LATEST_NS} THEN {name} END"
    beyond = " ".join(
        f"WHEN {name} NOT BETWEEN {low} AND {high} THEN trouble('{name}', {name}, '{why}')"
        for name, low, high, why in (
            *((name, 0, LATEST_NS, "not between 1970 and 2199") for name in _NS[:3]),
            *((name, -LATEST_NS, LATEST_NS, "longer than can be") for name in _NS[3:]),
            ("gpus", -MOST_GPUS, MOST_GPUS, "more than can be"),
        )
    )
    # Jobs without a name are told apart by their rows, or equal ones would count once.
    sound["job_id"] = "coalesce(job_id, 'row ' || row)"
    sound["problem"] = f"coalesce(problem, CASE {beyond} END)"
    connection.execute(
        f"INSERT INTO staged SELECT {', '.join(sound.values())} FROM ({select})",  # noqa: S608
        values,
    )


def settle(connection: "duckdb.DuckDBPyConnection") -> None:
    """Make `jobs` (COLUMNS, one row per job run) and `rejected` (path, row, problem) of `staged`.

    Rows that say the same as another are kept once. `contradicted` holds how many rows have a
    duration that is more than a second off their start and end.
    """
    names = ", ".join(f'"{name}"' for name in COLUMNS if name not in {"run_ns", "queue_ns"})
    connection.execute(f"""
        CREATE TEMP TABLE judged AS
            SELECT * EXCLUDE (problem), {_PROBLEM} AS problem, {_RUN} AS ran_ns FROM staged;
        CREATE TEMP TABLE rejected AS
            SELECT path, row, problem FROM judged WHERE problem IS NOT NULL;
        CREATE TEMP TABLE contradicted AS
            SELECT count(*) AS n FROM judged
            WHERE problem IS NULL AND abs(told_ns - (end_ns - start_ns)) > 1000000000;
        CREATE TEMP TABLE jobs AS
            SELECT DISTINCT {names}, ran_ns AS run_ns, {_QUEUE} AS queue_ns
            FROM judged WHERE problem IS NULL;
    """)  # noqa: S608 - our own column names
