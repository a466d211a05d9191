"""Compiled regions: the functions that run under torch.compile, in this file and for the sake of others.

A function is compiled when torch.compile gets it, or the module whose `forward` it is, and when one that is
compiled calls it. It is found by the calls that the model has seen, in the file that is checked and in the
files of the project that say "compile"; a few calls deep, for what lies deeper is rarely told right.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from perflint.frozen import dataclass
from perflint.semantics.analysis import analyse
from perflint.semantics.compiling import Calls, Options, Place, calls_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perflint.semantics.frame import Recorder
    from perflint.semantics.project import Module, Project

_COMPILES = re.compile(r"torch\.compile\b|from torch import [^\n]*\bcompile\b|\b(?!re\b|regex\b)\w+\.compile\(")
_DEEPEST = 6
"""Calls between a function that is compiled and one that it is known to run."""
_MOST_FILES = 48
"""Files that are read to the ground for what they compile, and for what lies between them and this one."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """How a function comes to be compiled."""

    options: Options
    file: str
    """The name of the module that compiles it."""
    depth: int = 0
    """Calls between the function that torch.compile gets and this one."""
    in_loop: bool = False
    """Whether a loop, or a `try`, of a compiled function calls it."""


class _Memory:
    """What is known of a project's files."""

    def __init__(self) -> None:
        self.calls: dict[str, Calls | None] = {}
        self.compiling: dict[str, bool] = {}
        self.found: dict[Place, Compiled] | None = None
        """The compiled functions of all files, once they have been looked for."""


_KNOWN: WeakKeyDictionary[Project, _Memory] = WeakKeyDictionary()


def compiled_functions(project: Project, module: Module, recorder: Recorder, text: str) -> Mapping[Place, Compiled]:
    """The compiled functions of a file with this text, by place."""
    memory = _KNOWN.setdefault(project, _Memory())
    others = _compiling(project, memory)
    own = compiles(text)
    if not own and not others:
        return {}
    if module.name not in memory.calls or (own and module.name not in others):
        memory.calls[module.name] = calls_of(project, module, recorder)
    if own and module.name not in others:
        # Its text is not what its file says, or it has none: nobody else is to see what it compiles.
        found = _reached(project, memory, [module.name, *others])
    elif memory.found is None:
        found = memory.found = _reached(project, memory, others)
    else:
        found = memory.found
    return {place: compiled for place, compiled in found.items() if place[0] == module.name}


def _reached(project: Project, memory: _Memory, names: list[str]) -> dict[Place, Compiled]:
    """The functions that torch.compile gets in some files, and what they call."""
    known = [(name, _calls(project, memory, name)) for name in names]
    roots = [(place, Compiled(options, name)) for name, calls in known if calls for place, options in calls.roots]
    # Those that may break come first: what is whole, or fails, says less.
    queue = deque(sorted(roots, key=lambda root: root[1].options.fullgraph is True))
    found: dict[Place, Compiled] = {}
    while queue:
        place, compiled = queue.popleft()
        before = found.get(place)
        if before is not None:
            if before.in_loop or not compiled.in_loop:
                continue
            compiled = replace(before, in_loop=True)
        calls = _calls(project, memory, place[0])
        if calls is None or place in calls.opaque:
            continue
        found[place] = compiled
        if compiled.depth < _DEEPEST:
            for callee in calls.callees.get(place, ()):
                inner = replace(compiled, depth=compiled.depth + 1, in_loop=compiled.in_loop or callee.in_loop)
                queue.append((callee.place, inner))
    return found


def compiles(text: str) -> bool:
    """Whether a file may compile something, by its words."""
    return "compile" in text and "torch" in text and _COMPILES.search(text) is not None


def _compiling(project: Project, memory: _Memory) -> list[str]:
    """The files of a project that may compile something."""
    for name, path in list(project.files.items()):
        if name not in memory.compiling:
            try:
                text = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                # What cannot be read tells nothing; it is reported where it is checked itself.
                text = ""
            memory.compiling[name] = compiles(text)
    return [name for name, found in memory.compiling.items() if found][:_MOST_FILES]


def _calls(project: Project, memory: _Memory, name: str) -> Calls | None:
    if name not in memory.calls:
        if len(memory.calls) >= 2 * _MOST_FILES:
            return None
        memory.calls[name] = None
        module = project.loaded(name)
        if module is not None:
            memory.calls[name] = calls_of(project, module, analyse(project, module))
    return memory.calls[name]
