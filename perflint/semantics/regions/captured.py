"""Captured regions: code whose kernels a CUDA graph records, and that replay leaves out.

A `with torch.cuda.graph(g):` block, the code between `g.capture_begin()` and `g.capture_end()`, the functions
and modules passed to `make_graphed_callables`, and the functions of the file that these call.
"""

from __future__ import annotations

import ast
from collections import deque
from typing import TYPE_CHECKING

from perflint.frozen import dataclass
from perflint.semantics.regions.compile_calls import Reader
from perflint.semantics.values import Sequence

if TYPE_CHECKING:
    from perflint.semantics.interpreter.frame import Recorder
    from perflint.semantics.module import Module
    from perflint.semantics.regions.compile_calls import Place
    from perflint.semantics.view import View

_CONTEXTS = frozenset({"torch.cuda.graph", "torch.cuda.graphs.graph"})
GRAPHED = frozenset({"torch.cuda.make_graphed_callables", "torch.cuda.graphs.make_graphed_callables"})
_BEGIN, _END = "torch.cuda.CUDAGraph.capture_begin", "torch.cuda.CUDAGraph.capture_end"
_DEEPEST = 4
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
CAPTURING = ("cuda.graph", "make_graphed_callables", "capture_begin")


@dataclass(frozen=True, slots=True)
class Capture:
    """The recording of a graph: the call that begins it, and the statements that it records.

    `body` is empty if functions are recorded that are passed to `make_graphed_callables`.
    """

    call: ast.Call
    body: tuple[ast.stmt, ...] = ()


class Captures:
    """The captured regions of one file."""

    def __init__(self, view: View, module: Module, recorder: Recorder, captures: bool) -> None:
        self.blocks: list[Capture] = []
        self.functions: dict[Place, Capture] = {}
        self._module, self._recorder = module, recorder
        self._statements: dict[ast.stmt, Capture] = {}
        if not captures:
            return
        for node in module.structure.nodes.get(ast.With, ()):
            assert isinstance(node, ast.With)
            self._with(node)
        for call in module.structure.nodes.get(ast.Call, ()):
            assert isinstance(call, ast.Call)
            if recorder.targets.get(call) == _BEGIN:
                self._between(call)
        self._statements = {statement: block for block in self.blocks for statement in block.body}
        self._follow(view)

    def _with(self, node: ast.With) -> None:
        for item in node.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and self._recorder.targets.get(call) in _CONTEXTS:
                self.blocks.append(Capture(call, tuple(node.body)))

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
            if isinstance(ends, ast.Call) and self._recorder.targets.get(ends) == _END:
                self.blocks.append(Capture(call, tuple(captured)))
                return
            captured.append(after)

    def _follow(self, view: View) -> None:
        reader = Reader(view, self._module, self._recorder)
        callees = reader.read().callees
        queue: deque[tuple[Place, Capture, int]] = deque()
        for call in self._module.structure.nodes.get(ast.Call, ()):
            assert isinstance(call, ast.Call)
            block = self._block(call)
            if block is not None:
                queue += [(place, block, 0) for place in reader.functions(self._recorder.values.get(call.func))]
            elif self._recorder.targets.get(call) in GRAPHED and call.args:
                value = self._recorder.values.get(call.args[0])
                several = value.items if isinstance(value, Sequence) else None
                for each in several or [value]:
                    queue += [(place, Capture(call), 0) for place in reader.functions(each)]
        while queue:
            place, capture, depth = queue.popleft()
            if place in self.functions or place[0] != self._module.name or depth > _DEEPEST:
                continue
            self.functions[place] = capture
            queue += [(callee.place, capture, depth + 1) for callee in callees.get(place, ())]

    def of(self, node: ast.AST) -> Capture | None:
        """The capture that a node runs in."""
        if not self.blocks and not self.functions:
            return None
        parents = self._module.structure.parents
        outer: ast.AST | None = node
        while outer is not None:
            if isinstance(outer, ast.stmt) and outer in self._statements:
                return self._statements[outer]
            if isinstance(outer, _FUNCTIONS):
                found = self.functions.get((self._module.name, outer.lineno, outer.col_offset))
                if found is not None or isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    return found
            outer = parents.get(outer)
        return None

    def _block(self, node: ast.AST) -> Capture | None:
        parents = self._module.structure.parents
        outer: ast.AST | None = node
        while outer is not None and not isinstance(outer, _FUNCTIONS):
            if isinstance(outer, ast.stmt) and outer in self._statements:
                return self._statements[outer]
            outer = parents.get(outer)
        return None
