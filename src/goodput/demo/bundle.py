"""Refreshes the recorded run from a fresh one: `python -m goodput.demo.bundle RUN_FOLDER`.

The event files are copied as they are, but for the names of the machine and of its folders.
"""

import shutil
import sys
from pathlib import Path

import msgspec

from goodput.core.errors import DataError
from goodput.core.events import Process
from goodput.demo.plan import JOB, Folder
from goodput.demo.recorded import recorded_run

HOST = "node-1"
BOOT = "00000000-0000-4000-8000-000000000001"


def bundle(source: Folder, target: Path) -> tuple[Path, ...]:
    """Copy a run's event files under neutral names and return the copies.

    Args:
        source: a finished demo run.
        target: replaced if it exists.

    Raises:
        DataError: a file holds an absolute path that is not the run's.
    """
    copies: dict[Path, bytes] = {}
    for path in sorted((source.events / JOB).glob("events-*.jsonl")):
        content = path.read_bytes()
        header = msgspec.json.decode(content.split(b"\n", 1)[0], type=Process)
        for private, neutral in (
            (header.boot, BOOT),
            (f"{source.root.absolute()}/", ""),
            (f"{Path(sys.executable).parent}/", ""),
        ):
            content = content.replace(private.encode(), neutral.encode())
        content = content.replace(f'"host":"{header.host}"'.encode(), f'"host":"{HOST}"'.encode())
        for number, line in enumerate(content.split(b"\n"), start=1):
            if b'"/' in line or b" /" in line:
                raise DataError(f"an absolute path: {line.decode()}", path=path, line=number)
        copies[target / path.name.replace(header.host, HOST)] = content
    # Only now: all of the new run is known to be good.
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for copy, content in copies.items():
        copy.write_bytes(content)
    return tuple(copies)


if __name__ == "__main__":
    for file in bundle(Folder(Path(sys.argv[1])), recorded_run()):
        sys.stdout.write(f"{file} {file.stat().st_size} bytes\n")
