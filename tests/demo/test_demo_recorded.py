"""The recorded run that ships: small, neutral, and the story that it should tell."""

import re
import subprocess
import sys
import time

from goodput.demo import recorded_run
from goodput.training.measure.ledger import account
from goodput.training.measure.readers import read

SCRIPT = """
import sys
from goodput.demo import recorded_run
from goodput.training.measure.ledger import account
from goodput.training.measure.readers import read
print(account(read([recorded_run()])).steps.kept)
assert "torch" not in sys.modules
"""


def test_it_tells_of_two_faults() -> None:
    ledger = account(read([recorded_run()]))
    assert (ledger.job, ledger.state, ledger.chips) == ("demo", "completed", 2)
    assert (ledger.steps.kept, ledger.steps.last_step) == (300, 299)
    assert ledger.steps.lost == 14 + 7
    kill, hang = ledger.incidents
    assert (kill.cause, kill.rework_steps) == ("killed", 14)
    assert hang.rework_steps == 7
    # The group's time-out is 20 s, then torchrun waits 30 s for the stopped process.
    assert 17e9 < hang.detection_ns < 23e9
    assert 30e9 < hang.recovery_ns < 36e9
    measured = {loss.name for loss in ledger.waterfall.losses if loss.provenance != "not measured"}
    assert {"startup", "rework", "checkpoint", "evaluation", "communication"} <= measured
    assert not [note for note in ledger.notes if note.level == "error"]


def test_it_is_small_and_names_no_machine() -> None:
    files = sorted(recorded_run().iterdir())
    assert len(files) == 7  # the launcher, and two workers in each of three launches
    assert sum(file.stat().st_size for file in files) < 300_000
    text = "".join(file.read_text() for file in files)
    assert set(re.findall(r'"host":"([^"]*)"', text)) == {"node-1"}
    assert not re.search(r'["\s]/(home|root|tmp|usr|work|Users)\b', text)


def test_it_is_reported_in_seconds_without_torch() -> None:
    began_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.stdout == "300\n", done.stderr
    assert time.monotonic() - began_s < 5
