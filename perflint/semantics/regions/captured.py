"""Captured regions: code whose kernels a CUDA graph records, and that replay leaves out.

A `with torch.cuda.graph(g):` or `with torch.accelerator.Graph():` block, the code between `g.capture_begin()` and
`g.capture_end()`, the functions and modules passed to `make_graphed_callables`, and the functions of the file that
these call.
"""

from __future__ import annotations

import ast
from collections import deque
from typing import TYPE_CHECKING

from perflint.frozen import dataclass
from perflint.semantics.regions.compile_calls import Reader, is_untested
from perflint.semantics.structure import FUNCTIONS, ancestors
from perflint.semantics.values import Instance, Sequence

if TYPE_CHECKING:
    from perflint.semantics.interpreter.frame import Recorder
    from perflint.semantics.module import Module
    from perflint.semantics.regions.compile_calls import Place
    from perflint.semantics.view import View

GRAPHS = frozenset({"torch.cuda.CUDAGraph", "torch.xpu.XPUGraph", "torch.accelerator.Graph"})
CONTEXTS = frozenset({"torch.cuda.graph", "torch.cuda.graphs.graph", "torch.xpu.graph", "torch.accelerator.Graph"})
GRAPHED = frozenset(f"torch.{name}.make_graphed_callables" for name in ("cuda", "cuda.graphs", "xpu", "xpu.graphs"))
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Capture:
    """The recording of a graph: the expression that begins it, and the statements that it records.

    `body` is empty if functions are recorded that are passed to `make_graphed_callables`.
    """

    start: ast.expr
    body: tuple[ast.stmt, ...] = ()


class Captures:
    """The captured regions of one file."""

    def __init__(self, view: View, module: Module, recorder: Recorder) -> None:
        self.blocks: list[Capture] = []
        self.functions: dict[Place, Capture] = {}
        self._certain: set[Place] = set()
        """The functions that run in each capture: no test on the way decides whether they are called."""
        self._module, self._recorder = module, recorder
        graphed: list[ast.Call] = []
        for node in module.structure.every(ast.With):
            self._with(node)
        for call in module.structure.every(ast.Call):
            target = recorder.targets.get(call, "")
            if target.endswith(".capture_begin") and target.rpartition(".")[0] in GRAPHS:
                self._between(call)
            elif target in GRAPHED and call.args:
                graphed.append(call)
        self._statements = {statement: block for block in self.blocks for statement in block.body}
        if self.blocks or graphed:
            self._follow(Reader(view, module, recorder), graphed)

    def _with(self, node: ast.With) -> None:
        for item in node.items:
            value = self._recorder.values.get(item.context_expr)
            if isinstance(value, Instance) and value.cls in CONTEXTS:
                self.blocks.append(Capture(item.context_expr, tuple(node.body)))

    def _between(self, call: ast.Call) -> None:
        """The statements from `g.capture_begin()` to `g.capture_end()` in one block."""
        statement = self._module.structure.parents.get(call)
        around = self._module.structure.parents.get(statement) if statement is not None else None
        body = getattr(around, "body", None)
        if not isinstance(statement, ast.Expr) or not isinstance(body, list) or statement not in body:
            return
        captured: list[ast.stmt] = []
        for after in body[body.index(statement) + 1 :]:
            ends = after.value if isinstance(after, ast.Expr) else None
            if isinstance(ends, ast.Call) and self._recorder.targets.get(ends, "").endswith(".capture_end"):
                self.blocks.append(Capture(call, tuple(captured)))
                return
            captured.append(after)

    def _follow(self, reader: Reader, graphed: list[ast.Call]) -> None:
        """Add the functions that the blocks and the graphed callables run, also through others."""
        callees = reader.read().callees
        parents = self._module.structure.parents
        queue: deque[tuple[Place, Capture, bool, int]] = deque()
        for call in self._module.structure.every(ast.Call):
            block = self._block(call)
            if block is not None:
                value, always = self._recorder.values.get(call.func), is_untested(parents, call)
                queue += [(place, block, always, 0) for place in reader.functions(value)]
        for call in graphed:
            value = self._recorder.values.get(call.args[0])
            several = value.items if isinstance(value, Sequence) else None
            for each in several or [value]:
                queue += [(place, Capture(call), True, 0) for place in reader.functions(each)]
        while queue:
            place, capture, always, depth = queue.popleft()
            known = place in self.functions and (place in self._certain or not always)
            if known or place[0] != self._module.name or depth > _DEEPEST:
                continue
            self.functions.setdefault(place, capture)
            if always:
                self._certain.add(place)
            queue += [(each.place, capture, always and each.always, depth + 1) for each in callees.get(place, ())]

    def __bool__(self) -> bool:
        """True if the file records anything."""
        return bool(self.blocks or self.functions)

    def surely_of(self, node: ast.AST) -> Capture | None:
        """The capture that runs a node, if no test decides whether it comes to the node."""
        capture = self.of(node)
        return capture if capture is not None and (self.is_in_block(node) or self.is_certain(node)) else None

    def is_in_block(self, node: ast.AST) -> bool:
        """True if a node stands in a recorded block itself, not in a function that one calls."""
        return self._block(node) is not None

    def is_certain(self, node: ast.AST) -> bool:
        """True if no test in the functions that a capture runs decides whether it comes to a node in one of them."""
        parents = self._module.structure.parents
        function = next(each for each in ancestors(parents, node) if isinstance(each, FUNCTIONS))
        place = (self._module.name, function.lineno, function.col_offset)
        return place in self._certain and is_untested(parents, node)

    def of(self, node: ast.AST) -> Capture | None:
        """The capture that a node runs in."""
        if not self:
            return None
        parents = self._module.structure.parents
        outer: ast.AST | None = node
        while outer is not None:
            if isinstance(outer, ast.stmt) and outer in self._statements:
                return self._statements[outer]
            if isinstance(outer, FUNCTIONS):
                found = self.functions.get((self._module.name, outer.lineno, outer.col_offset))
                if found is not None or isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    return found
            outer = parents.get(outer)
        return None

    def _block(self, node: ast.AST) -> Capture | None:
        parents = self._module.structure.parents
        outer: ast.AST | None = node
        while outer is not None and not isinstance(outer, FUNCTIONS):
            if isinstance(outer, ast.stmt) and outer in self._statements:
                return self._statements[outer]
            outer = parents.get(outer)
        return None
