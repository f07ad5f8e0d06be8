"""What does it cost to start? CPU time of `goodput --help`, `import goodput`, core dependencies.

Median of 20 fresh processes each, user + system time, against an empty interpreter. The peer is
`import ml_goodput_measurement`, when a Python that has it is named in PEER_PYTHON.
"""

import argparse
import importlib.metadata
import json
import os
import resource
import statistics
import subprocess
import sys

DEPENDENCIES = ("click", "duckdb", "httptools", "msgspec", "numpy", "rich", "uvloop")
IMPORTS = {"rich": "rich.console, rich.table"}


def cpu_ms(command: list[str], runs: int) -> float:
    """Return the median CPU time of a command over fresh processes, ms."""
    samples = []
    for _ in range(runs + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        samples.append(1e3 * spent_s)
    return statistics.median(samples[1:])  # the first run may write .pyc files


def size_mb(distribution: str) -> float:
    """Return the size of an installed distribution's own files, MB, without .pyc files."""
    files = importlib.metadata.files(distribution) or []
    return sum(file.size or 0 for file in files) / 1e6


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    python = sys.executable
    commands = {
        "empty interpreter": [python, "-c", "pass"],
        "goodput --help": [python, "-m", "goodput", "--help"],
        "goodput train --help": [python, "-m", "goodput", "train", "--help"],
        "import goodput": [python, "-c", "import goodput"],
        "import goodput; start": [python, "-c", "import goodput; goodput.start"],
    }
    for name in DEPENDENCIES:
        commands[f"import {name}"] = [python, "-c", f"import {IMPORTS.get(name, name)}"]
    peer = os.environ.get("PEER_PYTHON")
    if peer:
        commands["import ml_goodput_measurement"] = [
            peer,
            "-c",
            "from ml_goodput_measurement import goodput",
        ]
    found = {what: cpu_ms(command, options.runs) for what, command in commands.items()}
    if options.json:
        print(json.dumps(found))
        return
    base = found["empty interpreter"]
    print(f"{'':32}{'CPU ms':>8}{'over empty':>12}{'size MB':>10}")
    for what, value in found.items():
        name = what.removeprefix("import ")
        size = f"{size_mb(name):10.1f}" if name in DEPENDENCIES else ""
        print(f"{what:32}{value:8.1f}{value - base:12.1f}{size}")
    if peer:
        ratio = found["import ml_goodput_measurement"] / found["import goodput; start"]
        print(f"peer / goodput: {ratio:.0f}x")


if __name__ == "__main__":
    main()
