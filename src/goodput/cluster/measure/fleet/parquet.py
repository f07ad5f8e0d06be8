"""Job tables as Parquet (docs/formats/job_table.md): written here, read back, read over globs."""

from typing import TYPE_CHECKING, Final

from goodput.cluster.measure.fleet.relation import COLUMNS, JOBS_SCHEMA, stage
from goodput.core.errors import DataError, InputError

if TYPE_CHECKING:
    import duckdb

_NEEDED: Final = ("gpus", "state")


def load_parquet(connection: "duckdb.DuckDBPyConnection", path: str) -> int:
    """Stage the jobs of one Parquet file, or of all that a pattern or an object URL names.

    Returns:
        Rows added.

    Raises:
        DataError: a column that the account cannot do without is missing, or has another type.
    """
    source = "read_parquet($path, union_by_name=true, filename='_path', file_row_number=true)"
    described = connection.execute(f"DESCRIBE FROM {source}", {"path": path}).fetchall()
    have = {name: kind for name, kind, *_ in described}
    missing = [name for name in _NEEDED if name not in have]
    if missing:
        names = ", ".join(name for name in have if name not in {"_path", "file_row_number"})
        raise DataError(
            f"job table without column {' and '.join(missing)}; it has {names[:300]}", path=path
        )

    def column(name: str) -> str:
        return f'"{name}"::{COLUMNS[name]}' if name in have else f"NULL::{COLUMNS[name]}"

    plain = ", ".join(
        f'{column(name)} AS "{name}"' for name in COLUMNS if name not in {"state", "queue_ns"}
    )
    select = f"""
        SELECT _path AS path, file_row_number + 1 AS row, {plain}, NULL::BIGINT AS told_ns,
            final_state(coalesce(state::VARCHAR, '')) AS state,
            {"start_ns" in have} AS starts_told, NULL AS problem
        FROM {source}"""  # noqa: S608 - our own column names
    before = _rows(connection)
    stage(connection, select, {"path": path})
    return _rows(connection) - before


def _rows(connection: "duckdb.DuckDBPyConnection") -> int:
    found = connection.execute("SELECT count(*) FROM staged").fetchone()
    return int(found[0]) if found else 0


def write_parquet(connection: "duckdb.DuckDBPyConnection", path: str) -> int:
    """Write the table `jobs` to a Parquet file that `load_parquet` reads; return its rows.

    Raises:
        InputError: the file cannot be written.
    """
    import duckdb

    names = ", ".join(f'"{name}"' for name in COLUMNS)
    target = path.replace("'", "''")
    try:
        done = connection.execute(
            f"COPY (SELECT {names} FROM jobs ORDER BY submit_ns, start_ns, job_id) TO '{target}' "  # noqa: S608
            f"(FORMAT parquet, COMPRESSION zstd, KV_METADATA {{schema: '{JOBS_SCHEMA}'}})"
        ).fetchone()
    except duckdb.Error as error:
        problem = str(error).split("\n", 1)[0]
        raise InputError(f"{path} cannot be written: {problem}") from error
    return int(done[0]) if done else 0
