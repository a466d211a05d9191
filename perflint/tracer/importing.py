"""Steps into the program's imports: to act after one, and to lead them from one folder to its copy."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from importlib._bootstrap_external import FileLoader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from types import ModuleType
from typing import Any

_waiting: dict[str, list[Callable[[], None]]] = {}
"""By module, the functions to call as soon as the program has imported it."""


def when_imported(name: str, do: Callable[[], None]) -> None:
    """Call `do` as soon as the program has imported a module, at once if it has been imported already."""
    if name in sys.modules:
        do()
        return
    _waiting.setdefault(name, []).append(do)
    _watch_loaders()


@functools.cache
def _watch_loaders() -> None:
    """Have each loader of a module that is waited for call the functions once it has run the module.

    An entry in `sys.meta_path` would not see all of them: a program can ask another finder, make a spec from a file,
    ask for a spec that it never runs, or keep one and run it later. Each of these makes a loader.
    """
    create = FileLoader.__init__

    @functools.wraps(create)
    def created(loader: Any, *arguments: Any, **keywords: Any) -> None:
        create(loader, *arguments, **keywords)
        if loader.name in _waiting:
            loader.exec_module = functools.partial(_execute, loader)

    FileLoader.__init__ = created  # type: ignore[method-assign, assignment]


def _execute(loader: Any, module: ModuleType) -> None:
    type(loader).exec_module(loader, module)
    vars(loader).pop("exec_module", None)
    if loader.name in sys.modules:
        for do in _waiting.pop(loader.name, ()):
            do()


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
