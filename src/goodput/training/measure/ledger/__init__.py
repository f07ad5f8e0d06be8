"""The training ledger: events in, an exact account of chip-time out. Start at account.py."""

from goodput.training.measure.ledger.account import account
from goodput.training.measure.ledger.books import Books, keep_books
from goodput.training.measure.ledger.memo import Memo
from goodput.training.measure.ledger.options import Options
from goodput.training.measure.ledger.types import LOSS_FACTORS, Incident, Ledger

__all__ = [
    "LOSS_FACTORS",
    "Books",
    "Incident",
    "Ledger",
    "Memo",
    "Options",
    "account",
    "keep_books",
]
