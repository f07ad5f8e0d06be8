"""The fleet ledger: job tables of a whole cluster, accounted for in chip-time.

`open_tables` reads Acme, Philly, sacct and Parquet tables into one relation (the simulator uses it
too); `fleet_ledger` accounts for it. Nothing here loads duckdb before a table is opened.
"""

from goodput.cluster.measure.fleet.account import FAILED_STATES, fleet_ledger
from goodput.cluster.measure.fleet.load import JobTables, looks_like_jobs, open_tables
from goodput.cluster.measure.fleet.parquet import write_parquet
from goodput.cluster.measure.fleet.relation import COLUMNS, JOBS_SCHEMA
from goodput.cluster.measure.fleet.types import FLEET_SCHEMA, FleetLedger, Group

__all__ = [
    "COLUMNS",
    "FAILED_STATES",
    "FLEET_SCHEMA",
    "JOBS_SCHEMA",
    "FleetLedger",
    "Group",
    "JobTables",
    "fleet_ledger",
    "looks_like_jobs",
    "open_tables",
    "write_parquet",
]
