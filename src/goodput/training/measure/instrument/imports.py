"""Doing something right after a module is imported, without importing it ourselves.

torch.distributed.checkpoint takes 0.3 to 0.6 s of CPU to import, which most scripts need not pay.
"""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def after_import(name: str, do: Callable[[ModuleType], object]) -> Callable[[], None]:
    """Call `do` with a module now, or as soon as the program has imported it.

    Args:
        name: the module.
        do: called once with it; must not raise.

    Returns:
        Takes the wish back, if it has not come true yet.
    """
    module = sys.modules.get(name)
    if module is not None:
        do(module)
        return lambda: None
    finder = _AfterImport(name, do)
    sys.meta_path.insert(0, finder)
    return finder.remove


class _AfterImport(MetaPathFinder):
    """Finds one module as everybody else would, with a loader that tells when it is done."""

    def __init__(self, name: str, do: Callable[[ModuleType], object]) -> None:
        self._name = name
        self._do = do

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname != self._name:
            return None
        self.remove()
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Telling(spec, spec.loader, self._do)
        return spec


class _Telling(Loader):
    """A module's own loader, and a call when the module has run."""

    def __init__(
        self, spec: ModuleSpec, loader: Loader, do: Callable[[ModuleType], object]
    ) -> None:
        self._spec = spec
        self._loader = loader
        self._do = do

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module is to look as if nobody had stood in for its loader.
        self._spec.loader = module.__loader__ = self._loader
        module.__spec__ = self._spec
        self._loader.exec_module(module)
        self._do(module)
