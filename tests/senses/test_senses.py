"""Which sense a path belongs to."""

from pathlib import Path

import pytest

from goodput import senses
from goodput.core.errors import InputError
from small_runs import WriteRun


class Serving:
    """A second sense, so that there is something to tell apart."""

    def claims(self, path: Path) -> bool:
        return path.suffix == ".bench"


SERVING = Serving()


@pytest.mark.parametrize("name", senses.SENSES)
def test_every_sense_loads(name: str) -> None:
    for method in ("claims", "accounts", "comparison"):
        assert callable(getattr(senses.sense(name), method))


def test_a_run_folder_is_training(write_run: WriteRun) -> None:
    run = write_run("job")
    assert senses.detect([run]) is senses.sense("training")
    assert senses.sense("training").claims(run / "events-job.jsonl")


def test_other_files_are_not_training(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    (tmp_path / "x.log").write_text("step 1\n")
    assert not senses.sense("training").claims(tmp_path)


def test_unclaimed_and_missing_paths_get_the_default(tmp_path: Path) -> None:
    assert senses.detect([tmp_path, tmp_path / "gone"]) is senses.sense(senses.DEFAULT_SENSE)


def test_two_senses_cannot_be_reported_together(
    write_run: WriteRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(senses.SENSES, "serving", "test_senses:SERVING")
    bench = tmp_path / "a.bench"
    bench.touch()
    assert isinstance(senses.detect([bench]), Serving)
    with pytest.raises(InputError, match=r"a\.bench is serving"):
        senses.detect([write_run("job"), bench])
