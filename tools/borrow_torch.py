"""Make torch importable in this virtual environment without installing it, if the user has one.

A Python on PATH (or in PYTHON) of the same version that imports torch lends its site-packages by a
.pth file: ours come first, torch comes from there. Exits 1 when there is none to borrow.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

PROBE = """
import sys, pathlib, torch, torch.distributed
print("%d.%d" % sys.version_info[:2], torch.__version__, pathlib.Path(torch.__file__).parents[1])
"""
PROBE_TIMEOUT_S = 120
LEND = Path(sysconfig.get_path("purelib")) / "goodput_borrowed_torch.pth"


def probe(python: str) -> list[str]:
    """Return [Python's version, torch's version, its site-packages], or [] without torch."""
    command = [python, "-c", PROBE]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.strip().split(" ", 2) if done.returncode == 0 else []


def candidates() -> list[str]:
    """Return the Pythons to ask, without this environment's own."""
    names = [os.environ.get("PYTHON", ""), "python3", "python"]
    found = dict.fromkeys(shutil.which(name) for name in names if name)
    # Compared by folder: the environment's python is a link to the one that made it.
    return [path for path in found if path and Path(path).parent != Path(sys.executable).parent]


def borrow() -> bool:
    """Return whether torch can be imported here now, borrowing it if need be."""
    if importlib.util.find_spec("torch"):
        return True
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    for python in candidates():
        match probe(python):
            case [theirs, version, folder] if theirs == ours:
                LEND.write_text(f"{folder}\n", encoding="utf-8")
                if probe(sys.executable):
                    print(f"using torch {version} of {python}")
                    return True
                LEND.unlink()
    return False


def main() -> int:
    """Return 0 when torch is importable (with `--give-back`: when it is no longer borrowed)."""
    if "--give-back" in sys.argv:
        LEND.unlink(missing_ok=True)
        return 0
    return 0 if borrow() else 1


if __name__ == "__main__":
    sys.exit(main())
