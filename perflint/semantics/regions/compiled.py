"""Compiled regions: the functions of a file that run under torch.compile.

A function is compiled if it is passed to torch.compile, or if it is the `forward` of such a module, or if a
compiled function calls it, in whatever file of the project.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from perflint.frozen import dataclass, replace
from perflint.semantics.regions.compile_calls import Options, Place, calls_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perflint.semantics.interpreter.frame import Recorder
    from perflint.semantics.module import Module
    from perflint.semantics.view import View

COMPILES = re.compile(r"\b(?!re\b|regex\b)\w+\s*\.\s*compile\b|\bimport [^\n]*\bcompile\b")
"""The words of a file that may compile something, whatever it calls torch."""
DEEPEST = 6
"""Calls between a function that is compiled and one that it is known to run."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """How a function comes to be compiled."""

    options: Options
    depth: int = 0
    """Calls between the function that torch.compile gets and this one."""
    in_loop: bool = False
    """True if a loop, or a `try`, of a compiled function calls it."""


def compiled_functions(
    view: View, module: Module, recorder: Recorder, elsewhere: Iterable[tuple[Place, Compiled]]
) -> Mapping[Place, Compiled]:
    """The compiled functions of a file by place, and those of other files that it compiles or that they call.

    `elsewhere` are the functions of the file that compiled code of other files runs.
    """
    calls = calls_of(view, module, recorder)
    roots = [*((place, Compiled(options)) for place, options in calls.roots), *elsewhere]
    # Calls that allow graph breaks come first, before those with `fullgraph=True`.
    queue = deque(sorted(roots, key=lambda root: root[1].options.fullgraph is True))
    found: dict[Place, Compiled] = {}
    while queue:
        place, compiled = queue.popleft()
        before = found.get(place)
        if before is not None:
            if before.in_loop or not compiled.in_loop:
                continue
            compiled = replace(before, in_loop=True)
        if place in calls.opaque:
            continue
        found[place] = compiled
        if compiled.depth < DEEPEST:
            for callee in calls.callees.get(place, ()):
                inner = replace(compiled, depth=compiled.depth + 1, in_loop=compiled.in_loop or callee.in_loop)
                queue.append((callee.place, inner))
    return found
