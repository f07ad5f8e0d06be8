"""examples/hf_trainer.py: two launches, the second one resumes."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from goodput.core import events

pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", reason="needs transformers")
pytest.importorskip("accelerate", reason="needs accelerate")
pytestmark = [pytest.mark.torch, pytest.mark.integration, pytest.mark.real_processes]

SCRIPT = Path(__file__).parents[2] / "examples" / "hf_trainer.py"


def test_two_launches_are_one_job(tmp_path: Path) -> None:
    drop = {"GOODPUT_DIR", "GOODPUT_JOB", "RANK", "WORLD_SIZE"}
    environment = {k: v for k, v in os.environ.items() if k not in drop}
    for steps in (20, 40):
        subprocess.run(
            [sys.executable, str(SCRIPT), f"--steps={steps}"],
            cwd=tmp_path,
            env={**environment, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
            check=True,
            timeout=240,
            capture_output=True,
        )
    decoder = msgspec.json.Decoder(events.AnyEvent)
    files = [
        [decoder.decode(line) for line in file.read_bytes().splitlines()]
        for file in (tmp_path / "goodput-runs" / "hf-trainer").glob("events-*.jsonl")
    ]
    first, second = sorted(files, key=lambda recorded: recorded[0].m)
    assert [e.next_step for e in second if isinstance(e, events.Resumed)] == [20]
    assert [e.n for e in first if isinstance(e, events.StepEnd)] == list(range(20))
    assert [e.n for e in second if isinstance(e, events.StepEnd)] == list(range(20, 40))
    assert [e.last_step for e in second if isinstance(e, events.Committed)] == [39]
