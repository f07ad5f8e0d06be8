"""The sitecustomize that instruments a job's processes: which of them, and how politely."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from recordings import clean_environ, events_in, files, kinds

from goodput.core.events import Process
from goodput.training.measure.launch import INJECT_FOLDER, record


@pytest.fixture(scope="module")
def inject() -> ModuleType:
    """The file as a module of another name, so that nothing is installed here."""
    path = INJECT_FOLDER / "sitecustomize.py"
    spec = importlib.util.spec_from_file_location("goodput_inject_under_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("command", "trains"),
    [
        ("python train.py", True),
        ("python -u train.py --local-rank=0", True),
        ("python -X dev -W ignore train.py", True),
        ("python -m my.trainer", True),
        ("python -c import-torch", True),
        ("python", True),
        ("python /usr/bin/torchrun --nproc_per_node=2 train.py", False),
        ("python -u -m torch.distributed.run train.py", False),
        ("python -m torch.distributed.launch train.py", False),
        ("python -m accelerate.commands.launch train.py", False),
        ("python /opt/bin/accelerate launch train.py", False),
        ("python /opt/bin/goodput train record -- x", False),
        ("python -m goodput train record -- x", False),
        ("python /opt/torch/_inductor/compile_worker/__main__.py", False),
        ("python torchrun_my_model.py", True),
    ],
)
def test_launchers_and_helpers_are_left_alone(
    inject: ModuleType, command: str, *, trains: bool
) -> None:
    assert inject.trains(command.split()) is trains


@pytest.mark.parametrize(
    ("argv", "environ", "worker"),
    [
        (["python", "train.py"], {"RANK": "0", "WORLD_SIZE": "2"}, True),
        (["python", "train.py"], {}, False),
        (["python", "train.py"], {"RANK": "0"}, False),
        (
            ["python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()"],
            {"RANK": "0", "WORLD_SIZE": "2"},
            False,
        ),
    ],
)
def test_only_a_rank_of_a_launcher_records_from_its_first_moment(
    inject: ModuleType, argv: list[str], environ: dict[str, str], *, worker: bool
) -> None:
    assert inject.is_worker(argv, environ) is worker


def start_python(code: str, *folders: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(str(folder) for folder in (INJECT_FOLDER, *folders))
    return subprocess.run(
        [sys.executable, "-c", code],
        env=clean_environ(PYTHONPATH=path, **environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_another_sitecustomize_runs_as_it_would_have(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('other', __file__); VALUE = 7\n")
    done = start_python("import sitecustomize; print(sitecustomize.VALUE)", tmp_path)
    assert done.stdout.splitlines() == [f"other {tmp_path / 'sitecustomize.py'}", "7"]
    assert done.stderr == ""


def test_our_folder_is_not_left_on_the_path_and_nothing_heavy_is_imported() -> None:
    done = start_python(
        f"import sys; print({str(INJECT_FOLDER)!r} in sys.path, "
        "sorted({'goodput', 'msgspec', 'pathlib', 'typing'} & set(sys.modules)))"
    )
    assert done.stdout.strip() == "False []"


def test_an_import_that_cannot_be_instrumented_still_works_and_says_so_once(
    tmp_path: Path,
) -> None:
    (tmp_path / "torch.py").write_text("VALUE = 3\n")
    code = (
        "import torch, importlib; print(torch.VALUE, type(torch.__spec__.loader).__name__, "
        "torch.__loader__ is torch.__spec__.loader); importlib.reload(torch)"
    )
    done = start_python(code, tmp_path, GOODPUT_DIR=str(tmp_path / "runs"))
    assert done.returncode == 0
    assert done.stdout.strip() == "3 SourceFileLoader True"
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("goodput: this process is not instrumented: ")
    assert files(tmp_path / "runs") == []


def test_without_torch_or_when_switched_off_nothing_happens(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("VALUE = 3\n")
    assert start_python("import json").stderr == ""
    done = start_python("import torch", tmp_path, GOODPUT_INSTRUMENT="0")
    assert (done.returncode, done.stderr) == (0, "")


TRAINER = """
import torch
from torch.utils.data import DataLoader, TensorDataset

def main():
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(24, 4), torch.randn(24, 1))
    loader = DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context="spawn")
    for x, y in loader:
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()

if __name__ == "__main__":
    main()
"""


@pytest.mark.torch
@pytest.mark.real_processes
def test_a_plain_script_and_its_data_workers_leave_one_recorded_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    for name in set(os.environ) - set(clean_environ()):
        monkeypatch.delenv(name)
    script = tmp_path / "train.py"
    script.write_text(TRAINER)
    assert record([sys.executable, str(script)], dir=tmp_path / "runs") == 0
    workers = [
        written
        for written in map(events_in, files(tmp_path / "runs"))
        if isinstance(written[0], Process) and written[0].role == "worker"
    ]
    assert len(workers) == 1, "neither the data worker nor a helper made a file"
    assert kinds(workers[0]).count("step") >= 6


@pytest.mark.torch
@pytest.mark.real_processes
def test_a_script_that_only_evaluates_leaves_no_worker_file(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done = start_python(
        "import torch; print(torch.nn.Linear(2, 2)(torch.ones(1, 2)).shape)",
        GOODPUT_DIR=str(tmp_path / "runs"),
    )
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "runs") == []
