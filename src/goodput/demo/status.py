"""What the demo tells while it runs: a line for each thing that happens, and the time left.

Pure: snapshots of the run in, text out.
"""

from typing import Final

import msgspec

from goodput.demo.plan import TORCHRUN_GRACE_S, Plan

FIRST_STEP_S: Final = 0.3
FIRST_RESTART_S: Final = 6.0
"""What a step and a restart take before one was measured (assumed: two quiet cores)."""


class Struck(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that has happened."""

    kind: str
    rank: int
    step: int
    at_s: float


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One look at the run. Seconds count from its start."""

    now_s: float
    launches: int = 0
    """Launches of torchrun so far."""
    step: int = -1
    """Last step that rank 0 completed, of an earlier attempt while a new one starts; -1 = none."""
    resumed: int = -1
    """First step of the running attempt; -1 = it has not got there."""
    step_s: float = 0.0
    """Mean step time of the last attempt that made steps; 0 = not known."""
    restart_s: float = 0.0
    """From the last launch to where training began; 0 = not known."""
    loss: float | None = None
    faults: tuple[Struck, ...] = ()
    """So far."""
    fault_open: bool = False
    """The last fault hit the running attempt."""


def news(before: Snapshot, now: Snapshot, plan: Plan) -> list[str]:
    """Return a line for each thing that happened between two looks."""
    lines = []
    for fault in now.faults[len(before.faults) :]:
        name = "SIGKILL" if fault.kind == "kill" else "SIGSTOP"
        lines.append(f"fault: {name} to rank {fault.rank} in step {fault.step}")
        if fault.kind == "hang":
            lines.append(
                f"       its peer waits {plan.group_timeout_s:.0f} s for it, then torchrun gives "
                f"it {TORCHRUN_GRACE_S:.0f} s to exit"
            )
    if now.launches > before.launches:
        lines.append(f"launch {now.launches} of torchrun with 2 processes")
    if now.resumed >= 0 and (now.launches, now.resumed) != (before.launches, before.resumed):
        what = "training begins" if now.resumed == 0 else "training resumes"
        lines.append(f"{what} at step {now.resumed}")
    return lines


def status_line(now: Snapshot, plan: Plan) -> str:
    """Return where the run is, in less than 80 columns."""
    loss = "" if now.loss is None else f"  loss {now.loss:.2f}"
    left_s = remaining_s(now, plan)
    return (
        f"[{clock(now.now_s)}] step {now.step + 1:3d}/{plan.steps}  launch {max(now.launches, 1)}"
        f"{loss}  about {clock(left_s)} left"
    )


def remaining_s(now: Snapshot, plan: Plan) -> float:
    """Return the expected seconds to the end: steps, rework, restarts and waits still to come."""
    step_s = now.step_s or FIRST_STEP_S
    restart_s = now.restart_s or FIRST_RESTART_S
    left_s = (plan.steps - 1 - now.step) * step_s
    happened = {fault.kind for fault in now.faults}
    for kind, step in (("kill", plan.kill_step), ("hang", plan.hang_step)):
        if step >= 0 and kind not in happened:
            left_s += _wait_s(kind, plan) + restart_s + step % plan.checkpoint_every * step_s
    if now.fault_open or now.resumed < 0:
        left_s += restart_s + (now.step + 1) % plan.checkpoint_every * step_s
    if now.fault_open:
        last = now.faults[-1]
        left_s += max(_wait_s(last.kind, plan) - (now.now_s - last.at_s), 0.0)
    return left_s


def clock(seconds: float) -> str:
    """Return minutes and seconds, `2:05`."""
    whole = max(round(seconds), 0)
    return f"{whole // 60}:{whole % 60:02d}"


def _wait_s(kind: str, plan: Plan) -> float:
    """Return how long a fault keeps the job from being relaunched, seconds."""
    return plan.group_timeout_s + TORCHRUN_GRACE_S if kind == "hang" else 1.0
