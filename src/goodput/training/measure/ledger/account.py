"""The training ledger: a pure function from events to an exact account of chip-time.

Walk: plan.py (what happened) -> paint.py (whose time it was) -> split.py (inside a step)
-> books.py (times the chips, summed) -> summary.py and views.py (in words and in bins).
"""

from goodput.training.measure.eventlog import EventLog
from goodput.training.measure.ledger.books import keep_books
from goodput.training.measure.ledger.memo import Memo
from goodput.training.measure.ledger.options import Options
from goodput.training.measure.ledger.summary import summarise
from goodput.training.measure.ledger.types import Ledger


def account(log: EventLog, options: Options | None = None, memo: Memo | None = None) -> Ledger:
    """Return the exact account of a job.

    Args:
        log: events of one job (`EventLog.job` picks one out of several).
        options: what to look at and what the user knows; see `Options`.
        memo: give the same one again when the log has grown, and what has not changed is not
            computed again; the result is the same.

    Raises:
        InputError: the log holds no job, or more than one; or an option names what is not there.
        AccountingError: a sum is off: a bug in goodput, never the input's fault.
    """
    return summarise(keep_books(log, options, memo), log)
