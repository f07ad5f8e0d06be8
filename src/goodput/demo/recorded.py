"""The recorded demo run that ships with the package: real event files, a report without torch."""

from importlib.resources import files
from pathlib import Path


def recorded_run() -> Path:
    """Return the folder with the event files of a recorded demo run (about three minutes of it)."""
    return Path(str(files("goodput.demo"))) / "data" / "recorded"
