"""Instruments a training process without a change to its script (`goodput train record`).

Python imports the first `sitecustomize` on its path at start-up. This one makes way for the next
one, and then, in a process that may train, waits for `import torch` and calls
`goodput.instrument()`. It must stay cheap: every Python process of the job runs it.
"""

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

# os.path, since importing pathlib would cost every process more than all the rest.
_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
_LAUNCHERS = frozenset({"accelerate", "deepspeed", "goodput", "mpirun", "ray", "torchrun"})
_LAUNCHER_MODULES = (
    "accelerate.commands.",
    "deepspeed.launcher.",
    "goodput",
    "pip",
    "torch.distributed.elastic.",
    "torch.distributed.launch",
    "torch.distributed.run",
)
_CHILD_CODE = ("from multiprocessing.", "import multiprocessing")


def trains(argv: list[str]) -> bool:
    """False for processes that only start or help others.

    Args:
        argv: the interpreter's whole command line (sys.orig_argv).
    """
    words = iter(argv[1:])
    for word in words:
        if word == "-m":
            return not next(words, "").startswith(_LAUNCHER_MODULES)
        if word == "-c":
            return True
        if word in {"-W", "-X"}:
            next(words, "")
        elif not word.startswith("-"):
            return word.rpartition("/")[2] not in _LAUNCHERS and "compile_worker" not in word
    return True


def is_worker(argv: list[str], environ: dict[str, str]) -> bool:
    """True if a launcher says that this process is a rank, so that its record can begin at once.

    Children of multiprocessing inherit the variables of a rank; most of them load data.
    """
    child = any(word.startswith(_CHILD_CODE) for word in argv)
    return not child and environ.get("RANK", "").isdecimal() and "WORLD_SIZE" in environ


class AfterTorch:
    """Import hook: runs `goodput.instrument()` once, right after torch was imported."""

    def find_spec(
        self, name: str, _path: object = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find torch as Python would, with a loader that calls us when it is done."""
        if name != "torch":
            return None
        from importlib.util import find_spec

        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec)  # type: ignore[assignment]  # duck-typed
        return spec


class _Loader:
    """Stands in for a module's own loader until the module is there."""

    def __init__(self, spec: ModuleSpec) -> None:
        self._spec = spec
        self._loader = spec.loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the module's own loader."""
        return None if self._loader is None else self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module with its own loader in place, then instrument it."""
        if self._loader is None:
            return
        module.__spec__ = self._spec
        self._spec.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _instrument()


def _instrument() -> None:
    try:
        from goodput.training.measure.instrument import instrument
        from goodput.training.measure.recorder import start, start_held

        instrument(start() if is_worker(sys.orig_argv, dict(os.environ)) else start_held())
    except Exception as error:  # noqa: BLE001 - the recorder's wall; said on stderr
        text = f"goodput: this process is not instrumented: {type(error).__name__}: {error}\n"
        try:
            os.write(2, text.encode(errors="replace"))
        except OSError:
            return


def _make_way() -> None:
    """Run the sitecustomize that Python would have found without us."""
    sys.path[:] = [entry for entry in sys.path if entry != _HERE]
    spec = PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    if os.environ.get("GOODPUT_INSTRUMENT", "1") != "0" and trains(sys.orig_argv):
        sys.meta_path.insert(0, AfterTorch())
    _make_way()
