"""The code on docs/quickstart.md runs, and what it records is reported."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "quickstart.md").read_text(encoding="utf-8")

AROUND = """
first_step, last_step, model = 0, 250, None
batches = iter(range(last_step))
train_step = save = lambda _: None
"""


def test_the_explicit_way(tmp_path: Path) -> None:
    section = PAGE.split("### 3. Explicit")[1]
    found = re.search(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert found
    env = {**os.environ, "GOODPUT_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", AROUND + found[1]], env=env, check=True, timeout=60)
    done = subprocess.run(
        [sys.executable, "-m", "goodput", "report", str(tmp_path / "gpt2"), "--json"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    ledger = json.loads(done.stdout)
    assert ledger["chips"] == 8
    assert ledger["steps"]["kept"] == 250
    assert ledger["state"] == "completed"
    assert ledger["saved"]["last_step"] == 249  # a normal end saves what the last checkpoint lacks
