"""Job tables as delimited text: Acme, sacct of a whole cluster, the condensed Philly table.

A layout is one entry of `LAYOUTS`: how its header is known, and the SQL of each column.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from goodput.cluster.measure.fleet.relation import stage
from goodput.core.errors import DataError
from goodput.core.notes import Note

if TYPE_CHECKING:
    import duckdb

_LINE_BYTES: Final = 8 << 20


class Layout(msgspec.Struct, frozen=True):
    """One layout of a delimited job table. Columns are SQL over the columns of the file."""

    name: str
    delimiter: str
    signs: frozenset[str]
    """Columns that show that a file has this layout."""
    needed: tuple[tuple[str, ...], ...]
    """One column of each must be there."""
    columns: Callable[[frozenset[str]], dict[str, str]]
    """SQL text of job_id, user, queue, kind, gpus, submit, start, end, told, state, restarts, given
    the columns that the file has; absent = NULL."""
    where: str = "true"
    """Rows that are jobs."""


def _first(have: frozenset[str], *names: str) -> str:
    found = [f'given("{name}")' for name in names if name in have]
    return f"coalesce({', '.join(found)})" if found else "NULL::VARCHAR"


def _acme(have: frozenset[str]) -> dict[str, str]:
    # `queue` is seconds in the queue in the published files, and a name in tables made like them.
    queue = "NULL::VARCHAR"
    if "queue" in have:
        queue = 'CASE WHEN try_cast("queue" AS DOUBLE) IS NULL THEN given("queue") END'
    partition = _first(have, "partition", "vc")
    return {
        "job_id": _first(have, "job_id"),
        "user": _first(have, "user"),
        "queue": f"coalesce({partition}, {queue})",
        "kind": _first(have, "type"),
        "gpus": _first(have, "gpu_num"),
        "submit": _first(have, "submit_time"),
        "start": _first(have, "start_time"),
        "end": _first(have, "end_time", "stop_time", "fail_time"),
        "told": _first(have, "duration"),
        "state": _first(have, "state"),
    }


def _condensed(have: frozenset[str]) -> dict[str, str]:
    return {
        "job_id": "'row ' || row",
        "queue": _first(have, "cluster"),
        "gpus": _first(have, "num_gpus"),
        "submit": _first(have, "timestamp"),
        "told": _first(have, "duration"),
    }


def _gpus_of(column: str) -> str:
    """SQL of the GPUs in a list such as `cpu=8,gres/gpu=4,gres/gpu:h100=4`."""
    plain = rf"regexp_extract({column}, '(?:^|,)gres/gpu=(\d+)', 1)"
    typed = rf"regexp_extract_all({column}, '(?:^|,)gres/gpu:[^=,]+=(\d+)', 1)"
    total = f"list_sum(list_transform({typed}, lambda n: try_cast(n AS BIGINT)))"
    return f"CASE WHEN {plain} <> '' THEN {plain} ELSE {total}::VARCHAR END"


def _sacct(have: frozenset[str]) -> dict[str, str]:
    tres = [_gpus_of(f'"{name}"') for name in ("AllocTRES", "ReqTRES") if name in have]
    submit, start = _first(have, "Submit"), _first(have, "Start")
    if "Eligible" in have:
        held = f"{_first(have, 'Eligible')}"
        # A wait for another job or a start time is not the queue's; ISO stamps sort as text.
        submit = (
            f"CASE WHEN {held} > {submit} AND ({start} IS NULL OR {held} <= {start}) "
            f"THEN {held} ELSE {submit} END"
        )
    return {
        "job_id": _first(have, "JobID", "JobIDRaw"),
        "user": _first(have, "User"),
        "queue": _first(have, "Partition"),
        "kind": _first(have, "QOS"),
        "gpus": f"coalesce({', '.join(tres)}, '0')",
        "submit": submit,
        "start": start,
        "end": _first(have, "End"),
        "state": _first(have, "State"),
        "restarts": _first(have, "Restarts"),
    }


LAYOUTS: Final = (
    Layout(
        name="Acme",
        delimiter=",",
        signs=frozenset({"job_id", "gpu_num", "submit_time"}),
        needed=(("job_id",), ("gpu_num",), ("submit_time",), ("state",), ("start_time",)),
        columns=_acme,
    ),
    Layout(
        name="sacct",
        delimiter="|",
        signs=frozenset({"State", "Start"}),
        needed=(("JobID", "JobIDRaw"), ("AllocTRES", "ReqTRES"), ("Submit",), ("End",)),
        columns=_sacct,
        where=r"NOT regexp_matches({job_id}, '^\d+(_(\d+|\[[^\]]*\]))?(\+\d+)?\.')",
    ),
    Layout(
        name="Philly (condensed)",
        delimiter=",",
        signs=frozenset({"timestamp", "num_gpus", "duration"}),
        needed=(),
        columns=_condensed,
    ),
)

_NEAR: Final = 2
"""So many known columns of a layout make a file one of it, with others missing."""


def layout_of(header: str) -> tuple[Layout, list[str]] | None:
    """Return the layout that a header line shows, and the columns; None if it shows none."""
    for layout in LAYOUTS:
        names = [
            name.strip().strip('"') for name in header.strip("\ufeff\r\n").split(layout.delimiter)
        ]
        if len(layout.signs & set(names)) >= min(_NEAR, len(layout.signs)):
            return layout, names
    return None


def load_text(
    connection: "duckdb.DuckDBPyConnection", path: str, layout: Layout, names: Sequence[str]
) -> tuple[Note, ...]:
    """Stage the jobs of one file and return what was found about it.

    Raises:
        DataError: a column that the layout cannot do without is missing.
    """
    have = frozenset(names)
    missing = [
        " or ".join(some)
        for some in (*layout.needed, *((s,) for s in layout.signs))
        if not have & set(some)
    ]
    if missing:
        raise DataError(
            f"{layout.name} job table without column {', '.join(dict.fromkeys(missing))}; "
            f"it has {', '.join(names)[:300]}",
            path=path,
            line=1,
        )
    columns = [name or f"_{place}" for place, name in enumerate(names)]
    quote = "" if layout.delimiter == "|" else '"'
    shape = ", ".join("'" + name.replace("'", "''") + "': 'VARCHAR'" for name in columns)
    read = (
        f"read_csv($path, header=true, auto_detect=false, delim='{layout.delimiter}', "
        f"quote='{quote}', escape='{quote}', columns={{{shape}}}, max_line_size={_LINE_BYTES}, "
        "ignore_errors=true, store_rejects=true)"
    )
    stage(connection, _typed(layout.columns(have), layout.where, read), {"path": path})
    return _torn(connection, path, len(names))


def _typed(texts: dict[str, str], where: str, read: str) -> str:
    """SQL that reads the texts of a layout as numbers and instants."""
    wanted = ("job_id", "user", "queue", "kind", "gpus", "submit", "start", "end", "told")
    listed = ", ".join(
        f'{texts.get(name, "NULL::VARCHAR")} AS "{name}_text"'
        for name in (*wanted, "state", "restarts")
    )
    rows = f"SELECT *, row_number() OVER () AS row FROM {read}"  # noqa: S608
    chosen = where.format(job_id=texts["job_id"])
    text = f"SELECT row, {listed} FROM ({rows}) WHERE {chosen}"  # noqa: S608
    instants = ", ".join(f"stamp({name}_text) AS {name}_ns" for name in ("submit", "start"))
    state = "final_state(coalesce(state_text, ''))"
    return f"""
        WITH texts AS ({text}), found AS (
            SELECT *, whole(gpus_text) AS gpus, {instants},
                stamp(end_text) AS end_ns, seconds(told_text) AS told_ns FROM texts)
        SELECT $path AS path, row, job_id_text AS job_id, user_text AS "user",
            queue_text AS queue, kind_text AS kind, gpus, submit_ns, start_ns, end_ns,
            NULL::BIGINT AS run_ns, told_ns, NULL::BIGINT AS useful_ns, NULL::BIGINT AS retried_ns,
            {state} AS state, try_cast(restarts_text AS BIGINT) AS restarts,
            {"start" in texts} AS starts_told,
            coalesce(unread('gpus', gpus_text, gpus, 'not a whole number of GPUs'),
                unread('submit', submit_text, submit_ns, 'not a time'),
                unread('start', start_text, start_ns, 'not a time'),
                unread('end', end_text, end_ns, 'not a time'),
                unread('duration', told_text, told_ns, 'not a number of seconds')) AS problem
        FROM found"""  # noqa: S608


def _torn(connection: "duckdb.DuckDBPyConnection", path: str, width: int) -> tuple[Note, ...]:
    """Lines that are no rows: another number of columns, or bytes that are no text."""
    rejects = "reject_errors JOIN reject_scans USING (scan_id, file_id)"
    query = f"SELECT count(DISTINCT line), min(line) FROM {rejects} WHERE file_path = $path"  # noqa: S608
    found = connection.execute(query, {"path": path}).fetchone()
    if not found or not found[0]:
        return ()
    text = f"lines that are not {width} columns of text, the first at line {found[1]}; skipped"
    return (Note(level="warning", text=text, where=path, count=found[0]),)
