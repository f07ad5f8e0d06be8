"""Put the top of `goodput demo` into README.md, between the lines of its ```text block.

`--check` changes nothing and exits 1 when the README is not up to date.
"""

import os
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
OPENING, CLOSING = "```text\n", "\n```\n"
LAST_SECTION = "attempts ──"
"""The excerpt ends before this section."""


def excerpt() -> str:
    """Return the first sections of the demo's report."""
    env = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-m", "goodput", "demo"],
        env=env,
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=60,
    )
    lines = done.stdout.splitlines()
    end = next(n for n, line in enumerate(lines) if LAST_SECTION in line)
    return "\n".join(lines[:end]).strip()


def main() -> int:
    """Return 0 when the README is (now) up to date."""
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(OPENING)
    _, _, after = rest.partition(CLOSING)
    fresh = f"{before}{OPENING}{excerpt()}{CLOSING}{after}"
    if "--check" in sys.argv:
        return int(fresh != text)
    README.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
