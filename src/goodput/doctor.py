"""What this machine and installation can do: the checks behind `goodput doctor`.

Nothing here loads torch or ray: what is installed is read from package metadata, accelerators from
the device files that their drivers make.
"""

import importlib
import importlib.metadata
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, Literal

import msgspec

from goodput import __version__

DOCTOR_SCHEMA: Final = "goodput.doctor/1.0"
DISTRIBUTION: Final = "goodput-ml"

Status = Literal["ok", "info", "warning", "broken"]

CORE_MODULES: Final = {
    "click": "click",
    "duckdb": "duckdb",
    "google-crc32c": "google_crc32c",
    "httptools": "httptools",
    "msgspec": "msgspec",
    "numpy": "numpy",
    "rich": "rich",
    "uvloop": "uvloop",
}
"""Distribution name of each core dependency, and the module it brings."""

EXTRA_ADDS: Final = {
    "ray": "sweeps and simulations over more than one machine",
    "torch": "instrument() for PyTorch, FLOP counting",
}
"""What each extra of the distribution adds, in the user's words."""

LOW_DISK_BYTES: Final = 1 << 30  # assumed: a day of step events of 64 ranks is a few hundred MB
FULL_DISK_BYTES: Final = 64 << 20  # assumed: below this a run cannot be recorded
CLOCK_SAMPLE_S: Final = 0.02
CLOCK_TOLERANCE_NS: Final = 5_000_000  # assumed: NTP slews at most 0.5 ms per s (RFC 5905, 11.3)
OLDEST_WALL_S: Final = 1_735_689_600  # 2025-01-01T00:00:00Z: this program did not exist before


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    status: Status
    text: str
    remedy: str = ""
    """What to do about it; empty when there is nothing to do."""


class Extra(msgspec.Struct, frozen=True):
    """One optional part of the distribution."""

    name: str
    installed: bool
    version: str
    adds: str
    pip: str
    """The line that installs it."""


class Checkup(msgspec.Struct, frozen=True):
    """Everything that `goodput doctor` says."""

    schema: str
    goodput: str
    healthy: bool
    checks: tuple[Check, ...]
    extras: tuple[Extra, ...]


def examine(*, runs_dir: Path) -> Checkup:
    """Return the state of this machine and installation.

    Args:
        runs_dir: where runs would be recorded; need not exist, and is not made.
    """
    checks = (
        _python(),
        _platform(),
        *(_core(name, module) for name, module in sorted(CORE_MODULES.items())),
        _torch(),
        _accelerators(),
        _writable(runs_dir),
        _disk(runs_dir),
        _clocks(),
        _boot(),
    )
    return Checkup(
        schema=DOCTOR_SCHEMA,
        goodput=__version__,
        healthy=all(check.status != "broken" for check in checks),
        checks=checks,
        extras=extras(),
    )


def extras() -> tuple[Extra, ...]:
    """Return every extra that the distribution declares, and whether it is installed."""
    requirements: dict[str, list[str]] = {}
    for line in _requirements():
        match = re.match(r"([A-Za-z0-9._-]+).*;.*\bextra\s*==\s*['\"]([^'\"]+)", line)
        if match:
            requirements.setdefault(match[2], []).append(match[1])
    found = []
    for name, packages in sorted(requirements.items()):
        versions = [_version(package) for package in packages]
        found.append(
            Extra(
                name=name,
                installed=all(versions),
                version=", ".join(version for version in versions if version),
                adds=EXTRA_ADDS.get(name, ""),
                pip=f"pip install '{DISTRIBUTION}[{name}]'",
            )
        )
    return tuple(found)


def _requirements() -> list[str]:
    try:
        return importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return []


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _python() -> Check:
    text = f"{platform.python_implementation()} {platform.python_version()} ({sys.executable})"
    if sys.version_info >= (3, 14):
        return Check("python", "warning", text, "tested on 3.11 to 3.13")
    return Check("python", "ok", text)


def _platform() -> Check:
    text = f"{platform.platform(terse=True)}, {platform.machine()}, {os.cpu_count()} CPUs"
    if sys.platform.startswith(("linux", "darwin")):
        return Check("platform", "ok", text)
    return Check("platform", "warning", text, "tested on Linux only")


def _core(name: str, module: str) -> Check:
    try:
        importlib.import_module(module)
    except ImportError as error:
        if name == "uvloop" and sys.platform == "win32":
            return Check(name, "info", "does not exist on this platform; asyncio is used")
        return Check(name, "broken", f"cannot be imported: {error}", f"pip install {name}")
    return Check(name, "ok", _version(name) or "no metadata")


def _torch() -> Check:
    version = _version("torch")
    if not version:
        return Check("torch", "info", "not installed; only PyTorch training needs it")
    if "+cpu" in version:
        build = "CPU build"
    elif "+cu" in version or any(
        (dist.metadata["Name"] or "").lower().startswith("nvidia-cublas")
        for dist in importlib.metadata.distributions()
    ):
        build = "CUDA build"
    else:
        build = "ROCm build" if "+rocm" in version else "build not known without importing it"
    return Check("torch", "ok", f"{version}, {build} (not imported)")


def _accelerators() -> Check:
    dev = Path("/dev")
    nvidia = sum(1 for path in dev.glob("nvidia[0-9]*") if path.name[6:].isdigit())
    found = [f"{nvidia} NVIDIA GPU(s)"] if nvidia else []
    if (dev / "kfd").exists():
        found.append("AMD GPU driver (kfd)")
    tpus = len(list(dev.glob("accel[0-9]*")))
    if tpus:
        found.append(f"{tpus} accel device(s)")
    return Check("accelerators", "info", ", ".join(found) or "none seen; CPU only")


def _existing(path: Path) -> Path:
    """Return the nearest ancestor that exists (the path itself if it does)."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path


def _writable(runs_dir: Path) -> Check:
    place = _existing(runs_dir)
    will = "" if place == runs_dir.absolute() else ", will be made on first use"
    remedy = "set GOODPUT_DIR to a folder that you can write"
    if not place.is_dir():
        return Check("runs folder", "broken", f"{place} is not a folder", remedy)
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"goodput doctor\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return Check("runs folder", "broken", f"{runs_dir}: {error.strerror or error}", remedy)
    return Check("runs folder", "ok", f"{runs_dir} (writable{will})")


def _disk(runs_dir: Path) -> Check:
    usage = shutil.disk_usage(_existing(runs_dir))
    text = f"{usage.free / 2**30:,.1f} GiB free of {usage.total / 2**30:,.1f}"
    if usage.free < FULL_DISK_BYTES:
        return Check("disk", "broken", text, "free some space: records would be dropped")
    if usage.free < LOW_DISK_BYTES:
        return Check("disk", "warning", text, "a long run may fill it: records would be dropped")
    return Check("disk", "ok", text)


def _clocks() -> Check:
    wall, monotonic = time.time_ns(), time.monotonic_ns()
    time.sleep(CLOCK_SAMPLE_S)
    wall_ns, monotonic_ns = time.time_ns() - wall, time.monotonic_ns() - monotonic
    apart_ns = abs(wall_ns - monotonic_ns)
    text = f"wall and monotonic {apart_ns / 1e3:,.0f} us apart over {monotonic_ns / 1e6:,.0f} ms"
    if monotonic_ns <= 0:
        return Check("clocks", "broken", f"the monotonic clock stands still; {text}")
    if time.time() < OLDEST_WALL_S:
        return Check("clocks", "warning", f"the wall clock says {time.ctime()}", "set the clock")
    if apart_ns > CLOCK_TOLERANCE_NS:
        return Check("clocks", "warning", text, "the wall clock was stepped just now: check NTP")
    return Check("clocks", "ok", text)


def _boot() -> Check:
    path = Path("/proc/sys/kernel/random/boot_id")
    try:
        boot = path.read_text(encoding="ascii").strip()
    except OSError:
        return Check("boot id", "info", "not available: processes are aligned by their wall clocks")
    return Check("boot id", "ok", boot)
