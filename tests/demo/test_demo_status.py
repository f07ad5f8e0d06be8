"""What the demo tells about itself."""

import io
import itertools

import pytest

from goodput.demo.plan import SHORT, Plan
from goodput.demo.progress import Progress
from goodput.demo.status import Snapshot, Struck, clock, news, remaining_s, status_line

PLAN = Plan(steps=100, checkpoint_every=20, kill_step=45, hang_step=70, group_timeout_s=20.0)
KILL = Struck(kind="kill", rank=1, step=45, at_s=30.0)
HANG = Struck(kind="hang", rank=0, step=70, at_s=60.0)


def test_the_story_line_by_line() -> None:
    looks = [
        Snapshot(now_s=0.0),
        Snapshot(now_s=1.0, launches=1),
        Snapshot(now_s=6.0, launches=1, resumed=0),
        Snapshot(now_s=30.0, launches=1, resumed=0, faults=(KILL,)),
        Snapshot(now_s=31.0, launches=2, resumed=-1, faults=(KILL,)),
        Snapshot(now_s=36.0, launches=2, resumed=40, faults=(KILL,)),
        Snapshot(now_s=60.0, launches=2, resumed=40, faults=(KILL, HANG)),
    ]
    told = [news(a, b, PLAN) for a, b in itertools.pairwise(looks)]
    assert told == [
        ["launch 1 of torchrun with 2 processes"],
        ["training begins at step 0"],
        ["fault: SIGKILL to rank 1 in step 45"],
        ["launch 2 of torchrun with 2 processes"],
        ["training resumes at step 40"],
        [
            "fault: SIGSTOP to rank 0 in step 70",
            "       its peer waits 20 s for it, then torchrun gives it 30 s to exit",
        ],
    ]


def test_the_time_left_counts_what_is_still_to_come() -> None:
    quiet = Plan(steps=100, checkpoint_every=20, kill_step=-1, hang_step=-1)
    begun = Snapshot(now_s=6.0, launches=1, resumed=0, step=-1, step_s=0.5, restart_s=4.0)
    assert remaining_s(begun, quiet) == 50.0
    # The kill: 1 s, 4 s, 5 steps again; the hang: 20 + 30 s, 4 s, 10 steps again.
    assert remaining_s(begun, PLAN) == 50.0 + (1 + 4 + 2.5) + (50 + 4 + 5)
    hung = Snapshot(
        now_s=75.0,
        launches=2,
        resumed=40,
        step=69,
        step_s=0.5,
        restart_s=4.0,
        faults=(KILL, HANG),
        fault_open=True,
    )
    # 30 steps, 35 of the 50 s, a restart, 10 steps again.
    assert remaining_s(hung, PLAN) == 15 + 35 + 4 + 5
    # Relaunched: 30 steps, a restart, 10 steps again.
    back = Snapshot(
        now_s=112.0,
        launches=3,
        step=69,
        step_s=0.5,
        restart_s=4.0,
        faults=(KILL, HANG),
    )
    assert remaining_s(back, PLAN) == 15 + 4 + 5
    late = Snapshot(now_s=500.0, launches=2, resumed=40, step=99, faults=(KILL, HANG), step_s=0.5)
    assert remaining_s(late, PLAN) == 0.0


@pytest.mark.parametrize("plan", [Plan(), SHORT])
def test_the_status_fits_in_a_line(plan: Plan) -> None:
    now = Snapshot(now_s=3599.0, launches=3, step=plan.steps - 1, loss=12.345)
    assert len(status_line(now, plan)) < 80
    begun = Snapshot(now_s=12.0, launches=1, resumed=0, step=20, step_s=0.3, restart_s=5.0)
    assert "step  21/" in status_line(begun, plan)


def test_a_clock() -> None:
    assert [clock(s) for s in (-1.0, 0.4, 59.6, 125.0, 3600.0)] == [
        "0:00",
        "0:00",
        "1:00",
        "2:05",
        "60:00",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines_without_a_terminal() -> None:
    out = io.StringIO()
    progress = Progress(PLAN, out)
    for tenth in range(400):
        now_s = tenth / 10
        progress(Snapshot(now_s=now_s, launches=1, resumed=0, step=tenth // 5))
    progress.close()
    lines = out.getvalue().splitlines()
    assert "\r" not in out.getvalue()
    assert "\x1b" not in out.getvalue()
    assert lines[:2] == [
        "[0:00] launch 1 of torchrun with 2 processes",
        "[0:00] training begins at step 0",
    ]
    # A status line each 15 s.
    assert [line.split("]")[0] for line in lines[2:]] == ["[0:15", "[0:30"]


def test_one_line_that_renews_itself_on_a_terminal() -> None:
    out = Terminal()
    progress = Progress(PLAN, out)
    progress(Snapshot(now_s=1.0, launches=1))
    progress(Snapshot(now_s=1.3, launches=1))
    progress.close()
    assert out.getvalue().count("\n") == 1
    assert out.getvalue().endswith("\r\x1b[K")
