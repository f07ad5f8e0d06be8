"""Clusters as a sense: job tables in, one account of the whole fleet out."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from goodput.cluster.measure.fleet import (
    FleetLedger,
    JobTables,
    fleet_ledger,
    looks_like_jobs,
    open_tables,
)
from goodput.core.errors import InputError
from goodput.report.fleet import fleet_html, fleet_json, fleet_terminal


class FleetAccount(NamedTuple):
    """The ledger of a fleet, able to render itself."""

    ledger: FleetLedger

    @property
    def name(self) -> str:
        """What the fleet is called."""
        return self.ledger.name

    def terminal(self) -> str:
        """Return the report as text for standard output."""
        return fleet_terminal(self.ledger)

    def html(self) -> str:
        """Return the report as one page."""
        return fleet_html(self.ledger)

    def json(self) -> bytes:
        """Return the ledger as JSON (docs/cluster.md)."""
        return fleet_json(self.ledger)


def account(
    paths: Sequence[str],
    *,
    name: str = "",
    strict: bool = False,
    also: Callable[[JobTables], object] | None = None,
) -> FleetAccount:
    """Return the account of all the jobs that the paths hold.

    Args:
        paths: job tables, folders, patterns, or URLs of Parquet files.
        name: how to call the fleet; empty = after the first path.
        strict: a row that cannot be true is an error.
        also: called with the open tables, e.g. to export them.

    Raises:
        DataError: nothing can be read, or a bad row with `strict`.
    """
    with open_tables(paths) as tables:
        ledger = fleet_ledger(tables, name=name or Path(paths[0]).name or paths[0])
        if strict and ledger.bad_rows:
            raise _bad(ledger)
        if also is not None:
            also(tables)
    return FleetAccount(ledger)


def _bad(ledger: FleetLedger) -> InputError:
    bad = min(ledger.bad_rows, key=lambda one: (one.path, one.row))
    value = f" {bad.value!r}" if bad.value else ""
    return InputError(
        f"{bad.path}: row {bad.row}, column {bad.column}{value}: {bad.reason} "
        f"({ledger.jobs.bad:,} bad rows in all). Without --strict they are left out and counted"
    )


class ClusterSense:
    """Recognises job tables (see Sense)."""

    def claims(self, path: Path) -> bool:
        """Return whether a path holds a job table."""
        files = path.rglob("*") if path.is_dir() else (path,)
        return any(_ours(file) for file in files if file.is_file())

    def accounts(self, paths: Sequence[Path]) -> tuple[FleetAccount, ...]:
        """Return the one account of all the jobs."""
        return (account([str(path) for path in paths]),)

    def comparison(self, sides: Sequence[Sequence[Path]], names: Sequence[str]) -> FleetAccount:
        """Refuse: fleets are reported one by one.

        Raises:
            InputError: always.
        """
        del sides, names
        raise InputError(
            "job tables cannot be compared: report each with `goodput cluster report --json`"
        )


SENSE: Final = ClusterSense()


def _ours(file: Path) -> bool:
    try:
        return looks_like_jobs(file)
    except (OSError, EOFError):
        return False
