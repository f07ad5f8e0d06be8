"""Every error that goodput raises on purpose.

GoodputError
├── InputError (ValueError)       what the user gave cannot be used
│   ├── DataError                 a file's content: path, line, value
│   └── ConfigError               an option or a key: name, value
├── AccountingError               a number that must never be printed (MFU over 100 %)
└── MissingExtraError (ImportError)  an optional library is not installed: prints the pip line

A message says what was wrong (value printed), where (file:line, job, rank) and what to do.
"""

from pathlib import Path


class GoodputError(Exception):
    """Root of the tree: catch this to catch everything that goodput raises on purpose."""


class InputError(GoodputError, ValueError):
    """What the user gave cannot be used."""


class DataError(InputError):
    """A file's content cannot be used.

    Args:
        problem: what is wrong, with the offending value.
        path: the file or folder.
        line: 1-based line number, when the problem is on a line.
        remedy: what to do about it.
    """

    def __init__(
        self,
        problem: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        remedy: str = "",
    ) -> None:
        where = "" if path is None else f"{path}:{line}: " if line is not None else f"{path}: "
        super().__init__(f"{where}{problem}" + (f". {remedy}" if remedy else ""))
        self.path = None if path is None else str(path)
        self.line = line


class ConfigError(InputError):
    """An option or configuration key has a value that cannot be used."""


class AccountingError(GoodputError):
    """A number came out that must never be printed: the accounting refuses it."""


class MissingExtraError(GoodputError, ImportError):
    """An optional library is missing.

    Args:
        feature: what the user asked for.
        extra: the extra of goodput-ml that brings the library.
    """

    def __init__(self, feature: str, *, extra: str) -> None:
        super().__init__(f"{feature} needs an extra: pip install 'goodput-ml[{extra}]'")
        self.extra = extra
