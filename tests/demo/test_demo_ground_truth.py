"""A real two-process run, killed once and hung once: the ledger against the run's own clocks."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

from goodput.core.errors import InputError
from goodput.demo import truth
from goodput.demo.bundle import bundle
from goodput.demo.orchestrate import run
from goodput.demo.plan import SHORT, Folder, Plan
from goodput.demo.status import Snapshot, news
from goodput.demo.witness import read_marks
from goodput.training.faults import read_truth
from goodput.training.faults.truthlog import Closed, Gone, Sent
from goodput.training.measure.ledger import Ledger, account
from goodput.training.measure.readers import read

pytestmark = [
    pytest.mark.torch,
    pytest.mark.real_processes,
    pytest.mark.skipif(sys.platform != "linux", reason="fault injection needs Linux"),
]

TOLERANCE = 0.02
"""Of all chip-time, for each class."""


class Show:
    """One demo run and both accounts of it."""

    def __init__(self, root: Path) -> None:
        self.lines: list[str] = []
        self._before = Snapshot(now_s=0.0)
        self.folder = run(root / "run", plan=SHORT, watcher=self._watch)
        self.truth = truth.read(self.folder)
        self.ledger: Ledger = account(read([self.folder.events]))

    def _watch(self, now: Snapshot) -> None:
        self.lines += news(self._before, now, SHORT)
        self._before = now


def ledger_classes(ledger: Ledger) -> dict[str, int]:
    """The ledger's amounts under the names of the truth."""
    amounts = {loss.name: loss.amount for loss in ledger.waterfall.losses}
    in_steps = ("slow", "straggler", "communication", "inefficiency")
    return {
        "steps": ledger.waterfall.useful + sum(amounts.pop(name) for name in in_steps),
        # What no record explains is what the truth knows as the end of the processes.
        "teardown": amounts.pop("unattributed"),
        "other": 0,
        **amounts,
    }


def test_the_ledger_agrees_with_what_really_happened(tmp_path: Path) -> None:
    show = Show(tmp_path)
    each_class_agrees(show)
    capacity_and_steps_agree(show)
    each_incident_agrees(show)
    the_injector_did_what_was_planned(show)
    it_learnt_and_resumed(show)
    it_can_become_the_recorded_run(show, tmp_path / "recorded")


def each_class_agrees(show: Show) -> None:
    booked, capacity = ledger_classes(show.ledger), show.truth.capacity
    # No record says when in its step a rank was stopped: the ledger promises one step.
    torn_ns = len(show.truth.strikes) * show.ledger.steps.p90_ns * show.truth.chips
    allowed = dict.fromkeys(truth.CLASSES, TOLERANCE * capacity)
    allowed |= {name: max(allowed[name], torn_ns) for name in ("detection", "rework")}
    off = {name: booked[name] - show.truth.classes[name] for name in truth.CLASSES}
    wrong = {name: amount for name, amount in off.items() if abs(amount) > allowed[name]}
    assert not wrong, {name: f"{amount / capacity:+.2%}" for name, amount in off.items()}


def capacity_and_steps_agree(show: Show) -> None:
    assert sum(show.truth.classes.values()) == show.truth.capacity
    assert show.ledger.waterfall.capacity == pytest.approx(show.truth.capacity, rel=0.005)
    assert show.ledger.steps.kept == show.truth.kept_steps == SHORT.steps
    assert show.ledger.steps.lost == show.truth.lost_steps
    assert show.ledger.saved.last_step == SHORT.steps - 1


def each_incident_agrees(show: Show) -> None:
    assert [strike.kind for strike in show.truth.strikes] == ["kill", "hang"]
    assert len(show.ledger.incidents) == 2
    step_ns = show.ledger.steps.p90_ns
    for incident, strike in zip(show.ledger.incidents, show.truth.strikes, strict=True):
        assert incident.rework_steps == strike.rework_steps
        detection_ns = strike.noticed_ns - strike.at_ns
        assert incident.detection_ns == pytest.approx(detection_ns, abs=step_ns + 5e8)
        recovery_ns = strike.relaunched_ns - strike.noticed_ns
        assert incident.recovery_ns == pytest.approx(recovery_ns, abs=5e8)
    kill, hang = show.ledger.incidents
    assert kill.cause == "killed"
    assert hang.detection_ns / 1e9 == pytest.approx(SHORT.group_timeout_s, abs=2.5)


def the_injector_did_what_was_planned(show: Show) -> None:
    entries = read_truth(show.folder.faults)
    signals = [(e.signal, e.rank, e.step) for e in entries if isinstance(e, Sent)]
    assert signals == [("SIGKILL", 1, SHORT.kill_step), ("SIGSTOP", 0, SHORT.hang_step)]
    assert isinstance(entries[-1], Closed)
    assert entries[-1].missed == ()
    # Three launches of two workers, and each of them was seen to go.
    assert len({entry.pid for entry in entries if isinstance(entry, Gone)}) == 6


def it_learnt_and_resumed(show: Show) -> None:
    said = show.folder.log.read_text(errors="replace")
    losses = [float(line.split("loss")[1]) for line in said.splitlines() if "  loss " in line]
    assert losses[-1] < losses[0] - 1.5
    resumed = [line for line in said.splitlines() if line.startswith("resumed at step")]
    assert resumed == ["resumed at step 4", "resumed at step 12"]
    assert show.lines == [
        "launch 1 of torchrun with 2 processes",
        "training begins at step 0",
        "fault: SIGKILL to rank 1 in step 6",
        "launch 2 of torchrun with 2 processes",
        "training resumes at step 4",
        "fault: SIGSTOP to rank 0 in step 15",
        "       its peer waits 8 s for it, then torchrun gives it 30 s to exit",
        "launch 3 of torchrun with 2 processes",
        "training resumes at step 12",
    ]


def it_can_become_the_recorded_run(show: Show, target: Path) -> None:
    copies = bundle(show.folder, target)
    assert sum(copy.stat().st_size for copy in copies) < 300_000
    again = account(read([target]))
    assert again.waterfall == show.ledger.waterfall
    host = os.uname().nodename
    assert all(f'"{host}"'.encode() not in copy.read_bytes() for copy in copies)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Folder, "subprocess.Popen[str]"]]:
    demo = subprocess.Popen(
        [sys.executable, "-m", "goodput.demo", "--out", str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    yield Folder(tmp_path / "run"), demo
    demo.terminate()  # it ends its job first
    demo.communicate()


def test_ctrl_c_leaves_a_partial_run_that_can_be_reported(
    running: tuple[Folder, "subprocess.Popen[str]"],
) -> None:
    folder, demo = running
    until = time.monotonic() + 60
    workers: list[Path] = []
    while time.monotonic() < until and demo.poll() is None:
        workers = sorted(folder.truth.glob("worker-*.log"))
        done = [mark for path in workers for mark in read_marks(path) if mark.what == "step_end"]
        if len(done) > 6:
            break
        time.sleep(0.1)
    demo.send_signal(signal.SIGINT)
    said, _ = demo.communicate(timeout=60)
    assert demo.returncode == 130, said
    assert f"goodput train report {folder.events}" in said
    for path in workers:
        assert not Path("/proc", path.stem.removeprefix("worker-")).exists()
    ledger = account(read([folder.events]))
    assert ledger.steps.executed >= 3
    assert ledger.state in {"stopped", "failed"}


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(InputError, match="not empty"):
        run(tmp_path)
    command = [sys.executable, "-m", "goodput.demo", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "is not empty: name a new folder" in done.stderr) == (2, True)
    assert (tmp_path / "mine").read_text() == "precious"


def test_the_plan_that_ships_is_the_documented_one() -> None:
    plan = msgspec.json.decode(b"{}", type=Plan)
    assert (plan.steps, plan.group_timeout_s) == (300, 20.0)
    assert [fault.kind for fault in plan.faults.faults] == ["kill", "hang"]
    assert Plan(kill_step=-1, hang_step=-1).faults.faults == ()
