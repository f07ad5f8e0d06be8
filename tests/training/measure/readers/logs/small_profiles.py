"""A profile of a trainer that nobody else has, and a log of it: two launches, a save, a fault."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from goodput.training.measure.readers.logs.profile import Profile, load_profile

HEAD: Final = """
name = "acme"
timestamp = "%Y-%m-%d %H:%M:%S.%f"
zone = "UTC"
stamp = '^\\[(?P<at>[^\\]]+)\\]'
"""
RULES: Final = """
[[rules]]
kind = "launch"
pattern = 'starting on (?P<world>\\d+) ranks'
[[rules]]
kind = "restored"
pattern = 'restored (?P<path>\\S+) at step (?P<step>\\d+)'
[[rules]]
kind = "step"
pattern = 'step (?P<step>[\\d,]+) loss \\S+ took (?P<ms>[\\d.]+) ms'
[[rules]]
kind = "evaluation"
pattern = 'eval done in (?P<seconds>[\\d.]+) s'
[[rules]]
kind = "checkpoint_begin"
pattern = 'writing checkpoint'
[[rules]]
kind = "checkpoint_saved"
pattern = 'checkpoint (?P<path>\\S+) of step (?P<step>\\d+) is safe'
[[rules]]
kind = "fault"
pattern = 'FATAL: (?P<cause>.*)'
[[rules]]
kind = "end"
pattern = 'training finished'
"""
ACME: Final = HEAD + RULES
LINES: Final = (
    "[2026-03-01 10:00:00.000] starting on 16 ranks",
    "[2026-03-01 10:01:40.000] step 1 loss 9.10 took 40000.0 ms",
    "[2026-03-01 10:01:42.000] step 2 loss 9.00 took 2000.0 ms",
    "[2026-03-01 10:01:42.500] writing checkpoint",
    "[2026-03-01 10:01:45.500] checkpoint /ckpt/2 of step 2 is safe",
    "[2026-03-01 10:01:47.500] step 3 loss 8.90 took 2000.0 ms",
    "[2026-03-01 10:01:49.500] step 4 loss 8.80 took 2000.0 ms",
    "[2026-03-01 10:01:50.000] iter: 5 is told by nobody",
    "[2026-03-01 10:01:51.000] FATAL: CUDA error: uncorrectable ECC error encountered",
    "[2026-03-01 10:03:00.000] starting on 16 ranks",
    "[2026-03-01 10:03:20.000] restored /ckpt/2 at step 2",
    "[2026-03-01 10:03:22.000] step 3 loss 8.90 took 2000.0 ms",
    "[2026-03-01 10:03:24.000] step 4 loss 8.80 took 2000.0 ms",
    "[2026-03-01 10:03:30.000] eval done in 6.0 s",
    "[2026-03-01 10:03:32.000] step 5 loss 8.80 took 2000.0 ms",
    "[2026-03-01 10:03:33.000] training finished",
)


def write_profile(folder: Path, text: str = ACME, name: str = "my.toml") -> Path:
    """Write a profile; return its path."""
    path = folder / name
    path.write_text(text)
    return path


def rule(kind: str, pattern: str, **options: str) -> str:
    """One rule as TOML."""
    extra = "".join(f'{key} = "{value}"\n' for key, value in options.items())
    return f"[[rules]]\nkind = \"{kind}\"\npattern = '''{pattern}'''\n{extra}"


def profile_of(folder: Path, *rules: str, head: str = 'name = "x"\n') -> Profile:
    """Load a profile of some rules."""
    return load_profile(write_profile(folder, head + "".join(rules)))


def write_log(folder: Path, lines: Sequence[str] = LINES, name: str = "run.log") -> Path:
    """Write a log; return its path."""
    path = folder / name
    path.write_text("".join(line + "\n" for line in lines))
    return path
