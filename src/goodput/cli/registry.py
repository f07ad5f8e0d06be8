"""Every command: its name, where it lives, and the line that `--help` shows.

A name with a space is a command of a group. `--help` reads only this file, so it imports no
command; a new command is one file and one line here.
"""

from typing import Final, NamedTuple


class Entry(NamedTuple):
    """Where a command lives and what it is for."""

    target: str
    """`module:attribute` of a click command."""
    help: str
    """One line, at most 60 characters."""


COMPLETION_VARIABLE: Final = "_GOODPUT_COMPLETE"
"""Set by a shell that wants completions (click's protocol)."""

GROUPS: Final[dict[str, str]] = {
    "cluster": "Clusters: account for the chip-time of many jobs.",
    "train": "Training: record a job and account for its time.",
}

COMMANDS: Final[dict[str, Entry]] = {
    "cluster report": Entry(
        "goodput.cli.cluster.report:report", "Account for a fleet from tables of its jobs."
    ),
    "compare": Entry("goodput.cli.compare:compare", "Put runs side by side."),
    "completion": Entry("goodput.cli.completion:completion", "Print a shell's completion script."),
    "demo": Entry("goodput.cli.demo:demo", "Report a recorded job that two faults hit."),
    "doctor": Entry("goodput.cli.doctor:doctor", "Check this machine and installation."),
    "report": Entry("goodput.cli.report:report", "Report where the time of a run went."),
    "train compact": Entry("goodput.cli.train.compact:compact", "Many event files as one."),
    "train profile": Entry("goodput.cli.train.profile:profile", "Try a log profile on a log."),
    "train record": Entry("goodput.cli.train.record:record", "Run a command and record the job."),
    "train report": Entry("goodput.cli.train.report:report", "Account for a job's time."),
}
