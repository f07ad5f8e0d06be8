"""The Philly job log: a JSON array of jobs, each with its attempts and the GPUs they held."""

from typing import TYPE_CHECKING, Final

from goodput.cluster.measure.fleet.relation import stage

if TYPE_CHECKING:
    import duckdb

SIGNS: Final = ('"attempts"', '"submitted_time"')
_OBJECT_BYTES: Final = 64 << 20
_SHAPE: Final = """{status: 'VARCHAR', vc: 'VARCHAR', jobid: 'VARCHAR', "user": 'VARCHAR',
    submitted_time: 'VARCHAR', attempts: 'STRUCT(start_time VARCHAR, end_time VARCHAR,
    detail STRUCT(ip VARCHAR, gpus VARCHAR[])[])[]'}"""
_TRIES: Final = """list_transform(coalesce(attempts, []), lambda a: {
    'start': stamp(given(a.start_time)), 'end': stamp(given(a.end_time)),
    'gpus': coalesce(list_sum(list_transform(coalesce(a.detail, []),
        lambda d: len(coalesce(d.gpus, [])))), 0)})"""
_SELECT: Final = f"""
WITH rows AS (
    SELECT *, row_number() OVER () AS row,
        list_filter({_TRIES}, lambda t: t."start" IS NOT NULL) AS tries,
        stamp(given(submitted_time)) AS submit_ns
    FROM read_json($path, format='auto', columns={_SHAPE}, maximum_object_size={_OBJECT_BYTES}))
SELECT $path AS path, row, jobid AS job_id, "user", vc AS queue, NULL::VARCHAR AS kind,
    coalesce(list_max(list_transform(tries, lambda t: t.gpus)), 0)::BIGINT AS gpus,
    submit_ns, tries[1]."start" AS start_ns, tries[-1]."end" AS end_ns,
    CASE WHEN len(tries) > 0 AND len(list_filter(tries, lambda t: t."end" IS NULL)) = 0 THEN
        list_sum(list_transform(tries, lambda t: t."end" - t."start"))::BIGINT END AS run_ns,
    NULL::BIGINT AS told_ns, NULL::BIGINT AS useful_ns,
    CASE WHEN len(list_filter(tries, lambda t: t."end" IS NULL)) = 0 THEN coalesce(list_sum(
        list_transform(tries[:-2], lambda t: t."end" - t."start")), 0)::BIGINT END AS retried_ns,
    final_state(coalesce(status, '')) AS state,
    greatest(len(tries) - 1, 0)::BIGINT AS restarts, true AS starts_told,
    coalesce(unread('submitted_time', given(submitted_time), submit_ns, 'not a time'),
        CASE WHEN len(list_filter(tries, lambda t: t."end" < t."start")) > 0
            THEN trouble('attempts', '', 'an attempt ends before it starts') END) AS problem
FROM rows"""  # noqa: S608


def looks_like_philly(head: str) -> bool:
    """Return whether a file begins as a Philly job log does."""
    return head.lstrip("\ufeff \r\n\t")[:1] in {"[", "{"} and all(sign in head for sign in SIGNS)


def load_philly(connection: "duckdb.DuckDBPyConnection", path: str) -> None:
    """Stage the jobs of one file; a job's GPUs are the most that one of its attempts held."""
    stage(connection, _SELECT, {"path": path})
