"""`goodput demo`: at once, without torch, in 80 columns."""

import os
import subprocess
import sys
import time
from pathlib import Path

from goodput.report import from_json
from small_runs import Cli


def test_text(cli: Cli) -> None:
    ran = cli("demo")
    assert ran.code == 0, ran.err
    assert "2 incidents" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_json(cli: Cli) -> None:
    ledger = from_json(cli("demo", "--json").out)
    assert ledger.state == "completed"
    assert len(ledger.incidents) == 2
    assert ledger.chips == 2


def test_page(cli: Cli, tmp_path: Path) -> None:
    page = tmp_path / "demo.html"
    assert cli("demo", "--html", page).code == 0
    assert page.stat().st_size < 1_500_000


def test_under_5_s_of_cpu_and_without_torch() -> None:
    script = (
        "import sys\nfrom goodput.cli import main\n"
        "try: main(['demo'])\n"
        "except SystemExit as stop: assert stop.code == 0\n"
        "assert 'torch' not in sys.modules"
    )
    before, began = os.times(), time.monotonic()
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=60)
    after = os.times()
    spent_s = sum(after[2:4]) - sum(before[2:4])
    assert spent_s < 5, f"{spent_s:.1f} s of CPU, {time.monotonic() - began:.1f} s in all"
