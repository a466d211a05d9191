"""Steps into the program's imports: to act after one, and to lead them from one folder to its copy."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from types import ModuleType
from typing import Any


def when_imported(name: str, do: Callable[[], None]) -> None:
    """Do something as soon as the program has imported a module, at once where it has."""
    if name in sys.modules:
        do()
    else:
        sys.meta_path.insert(0, _Finder(name, do))


class _Finder:
    """Finds one module as the others do, and acts after it has been run."""

    def __init__(self, name: str, do: Callable[[], None]) -> None:
        self._name = name
        self._do = do

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                self._wrap(spec)
                return spec
        return None

    def _wrap(self, spec: ModuleSpec) -> None:
        loader: Any = spec.loader
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            # Two may wait for one module.
            vars(loader).pop("exec_module", None)
            execute(module)
            self._do()

        loader.exec_module = exec_module


class Redirect:
    """Finds modules as the others do, but those of a folder in its copy.

    A project that is installed in editable mode is found by entries and finders in its environment
    that name the original. Folders of `shared` and what the copy lacks stay where they are.
    """

    def __init__(self, original: str, copy: str, shared: tuple[str, ...] = ()) -> None:
        self._roots = tuple({os.path.join(path, "") for path in (original, os.path.realpath(original))})
        self._shared = tuple(os.path.join(path, "") for path in shared)
        self._copy = copy

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return self._moved(spec)
        return None

    def _moved(self, spec: ModuleSpec) -> ModuleSpec:
        folders = spec.submodule_search_locations
        places = None if folders is None else [self._place(folder) or folder for folder in folders]
        origin = self._place(spec.origin) if spec.has_location and spec.origin else None
        if origin is not None:
            return spec_from_file_location(spec.name, origin, submodule_search_locations=places) or spec
        if places is not None and places != list(folders or ()):
            spec.submodule_search_locations = places
        return spec

    def _place(self, path: str) -> str | None:
        """The path in the copy for a path of the original; None for other paths."""
        for root in self._roots:
            if path.startswith(root) and not path.startswith(self._shared):
                place = os.path.join(self._copy, path[len(root) :])
                return place if os.path.exists(place) else None
        return None
