"""Training as a sense: event folders and saved ledgers in, one account per job out."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from goodput import report
from goodput.core.errors import ConfigError, InputError
from goodput.core.events import Ended
from goodput.core.hardware import find_chip, normalise_dtype, peak_flops
from goodput.training.measure.eventlog import EventLog
from goodput.training.measure.ledger import Memo, Options, account
from goodput.training.measure.ledger.types import LEDGER_SCHEMA, Ledger
from goodput.training.measure.readers import FORMATS, Folder
from goodput.training.measure.readers.logs.profile import load_profile

HEAD_BYTES: Final = 4096
NS_PER_S: Final = 1_000_000_000
SAVED_LEDGER: Final = f'{{"schema":"{LEDGER_SCHEMA.rsplit(".", 1)[0]}.'.encode()
"""How a ledger begins that `goodput train report --json` wrote."""


class Moment(NamedTuple):
    """An instant, absolute or relative to the start of the job."""

    ns: int
    from_start: bool = False
    """True: `ns` counts from the start of the job; False: it is Unix time."""


class Stretch(NamedTuple):
    """A window of time; None = from the start, or to the end of the account."""

    begin: Moment | None
    end: Moment | None


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What a user asks of a training report."""

    job: str = ""
    """Only this job; empty = every job found."""
    exclude: tuple[Stretch, ...] = ()
    window: Stretch | None = None
    as_of: Moment | None = None
    profiles: tuple[Path, ...] = ()
    """TOML files that describe users' own logs (docs/formats/profiles.md)."""
    options: Options = Options()
    """Everything else; its own `exclude`, `window` and `as_of_ns` are replaced."""


class JobAccount(NamedTuple):
    """One job's ledger, able to render itself."""

    ledger: Ledger

    @property
    def name(self) -> str:
        """The job's name."""
        return self.ledger.job

    def terminal(self) -> str:
        """Return the report as text for standard output."""
        return report.render_terminal(self.ledger)

    def html(self) -> str:
        """Return the report as one page."""
        return report.render_html(self.ledger)

    def json(self) -> bytes:
        """Return the ledger as JSON (docs/formats/ledger.md)."""
        return report.to_json(self.ledger)


class Comparison(NamedTuple):
    """Several jobs side by side; the first is the baseline."""

    ledgers: tuple[Ledger, ...]
    names: tuple[str, ...]

    @property
    def name(self) -> str:
        """The names that are compared."""
        return " / ".join(self.names)

    def terminal(self) -> str:
        """Return the comparison as text for standard output."""
        return report.compare_terminal(self.ledgers, self.names)

    def html(self) -> str:
        """Return the comparison as one page."""
        return report.compare_html(self.ledgers, self.names)

    def json(self) -> bytes:
        """Return the comparison as JSON."""
        return report.compare_json(self.ledgers, self.names)


def accounts(paths: Sequence[Path], query: Query) -> tuple[JobAccount, ...]:
    """Return one account per job that the paths hold, in the order of job names.

    Args:
        paths: event files, folders that hold some at any depth, or saved ledgers (JSON).
        query: what part of it, and under which assumptions.

    Raises:
        DataError: nothing can be read.
        ConfigError: there is no such chip, dtype or rank, or a profile cannot be used.
        InputError: there is no such job, or options are given that a saved ledger cannot follow.
    """
    saved = [path for path in paths if path.is_file() and _head(path).startswith(SAVED_LEDGER)]
    if saved and query != Query():
        raise InputError(f"{saved[0]} is a finished ledger: options apply only to recorded events")
    ledgers = [report.from_json(path.read_bytes()) for path in saved]
    events = [path for path in paths if path not in saved]
    if events:
        ledgers.extend(_from_events(events, query))
    return tuple(JobAccount(ledger) for ledger in sorted(ledgers, key=lambda ledger: ledger.job))


class Watch:
    """Growing files of running jobs, accounted for again and again.

    Args:
        paths: event files, logs, or folders that hold some at any depth.
        query: what part of it, and under which assumptions.

    Raises:
        ConfigError: there is no such chip or dtype, or a profile cannot be used.
    """

    def __init__(self, paths: Sequence[Path], query: Query) -> None:
        _check_chip(query.options)
        self._query = query
        self._folder = Folder(paths, [load_profile(path) for path in query.profiles])
        self._memos: dict[str, Memo] = {}
        """What the last account of each job computed: a poll costs what has changed."""
        self.over = False
        """Every job said, by the last account, that it is over."""

    def poll(self) -> bool:
        """Read what is new; return whether there was anything.

        Raises:
            DataError: a path does not exist or cannot be opened.
        """
        return self._folder.poll()

    def accounts(self) -> tuple[JobAccount, ...]:
        """Return one account per job, as far as the files have grown.

        Raises:
            DataError: nothing can be read.
            InputError: there is no such job.
        """
        log = self._folder.log()
        ledgers = sorted(_ledgers(log, self._query, self._memos), key=lambda ledger: ledger.job)
        ended = {
            process.header.job
            for process in log.processes
            if any(isinstance(event, Ended) for event in process.events)
        }
        self.over = all(one.state == "completed" or one.job in ended for one in ledgers)
        return tuple(JobAccount(ledger) for ledger in ledgers)


def _from_events(paths: Sequence[Path], query: Query) -> Iterable[Ledger]:
    watch = Watch(paths, query)
    watch.poll()
    return [one.ledger for one in watch.accounts()]


def _ledgers(log: EventLog, query: Query, memos: dict[str, Memo]) -> Iterable[Ledger]:
    for job in [query.job] if query.job else log.jobs:
        mine = log.job(job)
        _check_rank(mine, query.options.rank)
        options = query.options
        if query.exclude or query.window or query.as_of:
            whole = account(mine, msgspec.structs.replace(options, views=False))
            options = resolve(query, begin_ns=whole.started_at_ns, end_ns=whole.ended_at_ns)
        yield account(mine, options, memos.setdefault(job, Memo()))


def _check_chip(options: Options) -> None:
    """Raise ConfigError for a chip or dtype that the hardware table does not have."""
    if options.chip and options.dtype:
        peak_flops(options.chip, options.dtype)
    elif options.chip:
        find_chip(options.chip)
    elif options.dtype:
        normalise_dtype(options.dtype)


def _check_rank(log: EventLog, rank: int | None) -> None:
    world = max(max(one.header.world, one.header.rank + 1) for one in log.processes)
    if rank is not None and rank >= world:
        raise ConfigError(f"rank = {rank}: the job {log.jobs[0]!r} has ranks 0 to {world - 1}")


def resolve(query: Query, *, begin_ns: int, end_ns: int) -> Options:
    """Return the options with every moment as Unix time.

    Args:
        query: what was asked.
        begin_ns: start of the job, Unix ns.
        end_ns: end of its account, Unix ns.

    Raises:
        ConfigError: a window ends before it begins.
    """

    def at(moment: Moment) -> int:
        return begin_ns + moment.ns if moment.from_start else moment.ns

    def bounds(stretch: Stretch) -> tuple[int, int]:
        return (
            begin_ns if stretch.begin is None else at(stretch.begin),
            end_ns if stretch.end is None else at(stretch.end),
        )

    return msgspec.structs.replace(
        query.options,
        exclude=tuple(bounds(stretch) for stretch in query.exclude),
        window=bounds(query.window) if query.window else None,
        as_of_ns=at(query.as_of) if query.as_of else None,
    )


class TrainingSense:
    """Recognises event folders and saved ledgers (see Sense)."""

    def claims(self, path: Path) -> bool:
        """Return whether a path holds events or a saved ledger."""
        files = path.rglob("*") if path.is_dir() else (path,)
        return any(_ours(file) for file in files if file.is_file())

    def accounts(self, paths: Sequence[Path]) -> tuple[JobAccount, ...]:
        """Return one account per job."""
        return accounts(paths, Query())

    def comparison(self, sides: Sequence[Sequence[Path]], names: Sequence[str]) -> Comparison:
        """Return the one job of each side, beside each other."""
        ledgers = []
        for paths in sides:
            found = accounts(paths, Query())
            if len(found) != 1:
                jobs = ", ".join(one.name for one in found)
                raise ConfigError(
                    f"{' '.join(map(str, paths))} holds {len(found)} jobs ({jobs}): "
                    "give the folder of one"
                )
            ledgers.append(found[0].ledger)
        return Comparison(tuple(ledgers), tuple(names) or tuple(one.job for one in ledgers))


SENSE: Final = TrainingSense()


def _ours(file: Path) -> bool:
    head = _head(file)
    return head.startswith(SAVED_LEDGER) or any(detects(file, head) for detects, _ in FORMATS)


def _head(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(HEAD_BYTES)
    except OSError:
        return b""
