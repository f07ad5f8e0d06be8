"""Several files of one job become one job: who belongs together, whose steps count, which launcher.

What we recorded ourselves stays as it is, beside what a scheduler says of it.
"""

from collections.abc import Sequence

from goodput.core.notes import Note
from goodput.training.measure.eventlog import ProcessLog
from goodput.training.measure.readers.attach import attach
from goodput.training.measure.readers.choose import choose
from goodput.training.measure.readers.kin import Group, group


def join(processes: Sequence[ProcessLog]) -> tuple[list[ProcessLog], list[Note]]:
    """Return the process logs with the files of each job joined, and what was joined and why.

    Args:
        processes: as read, of any number of files and jobs.
    """
    if all(process.header.origin != "log" for process in processes):
        return list(processes), []
    launchers = [p for p in processes if p.header.role == "launcher" and p.header.origin == "log"]
    others = [p for p in processes if p.header.role == "launcher" and p.header.origin != "log"]
    workers = [p for p in processes if p.header.role != "launcher"]
    groups, notes = group(workers)
    chosen = []
    for one in groups:
        members, left = choose(one.members)
        chosen.append(Group(tuple(members), one.aliases))
        notes.extend(left)
    joined, told = attach(chosen, launchers)
    out = [*others, *joined]
    out.sort(key=lambda p: (p.at_ns(p.header), p.header.rank, p.header.pid, p.path))
    return out, [*notes, *told]
