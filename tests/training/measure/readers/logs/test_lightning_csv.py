"""Lightning's metrics.csv: steps without times, validation rows, a monitor's times."""

import os
from pathlib import Path

from foreign import jobs, told_by

END = 1_780_000_000


def metrics(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "bert" / "lightning_logs" / "version_0" / "metrics.csv"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    os.utime(path, (END, END))
    return path


def test_steps_counted_from_zero(tmp_path: Path) -> None:
    text = "epoch,step,train_loss,val_loss\n0,49,1.0,\n0,99,0.9,\n0,99,,0.8\n1,149,0.7,\n"
    told = told_by(metrics(tmp_path, text))
    assert [(n, c) for n, c, _, _ in told.steps()] == [(0, 50), (50, 50), (100, 50)]
    assert jobs(told) == ["bert"]
    (note,) = [n for n in told.notes if "no times" in n.text]
    assert note.level == "warning"


def test_times_of_a_monitor(tmp_path: Path) -> None:
    text = "step,train_loss,train|time\n9,1.0,20.0\n19,1.0,30.0\n29,1.0,40.0\n"
    told = told_by(metrics(tmp_path, text))
    assert [(n, c, d) for n, c, _, d in told.steps()] == [
        (0, 10, 20.0),
        (10, 10, 10.0),
        (20, 10, 10.0),
    ]
    assert told.logs[0].last_at_ns == END * 10**9


def test_bad_rows_are_counted(tmp_path: Path) -> None:
    told = told_by(metrics(tmp_path, "step,train_loss\n1,1.0\n,3.0\nx,4.0\n2,1.0\n"))
    assert told.noted("without a step") == 2
    assert len(told.steps()) == 2
