"""Decides if the outputs of a model are used up before it is called again, as the replays of a CUDA graph need."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Span
from perflint.semantics.structure import Structure, path_of
from perflint.semantics.symbols import Symbols
from perflint.source.text import Source
from perflint.tracer.changes.made import Made

_KEEPING = frozenset("add append appendleft extend insert put put_nowait send setdefault setattr update".split())
"""Methods and functions that store their arguments."""
_VIEWS = frozenset(
    "chunk contiguous detach expand flatten float movedim narrow permute reshape select split squeeze swapaxes to "
    "transpose type unbind unflatten unsqueeze values items view view_as".split()
)
"""Methods whose result may share the memory of the tensor or hold it."""
_THROUGH = (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Starred, ast.IfExp, ast.BoolOp, ast.keyword)
_NEW = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.FormattedValue, ast.Expr, ast.AugAssign, ast.Assert, ast.If, ast.While)


def kept_output(made: Made, called: Span) -> str:
    """The reason why an output of the model may be read after a later call; empty if the file shows none.

    `called` is the call that the trace saw. The other calls of the model's name in the file count, too.
    """
    seen = [call for call in made.calls if made.source.span(call) == called or path_of(call.func) == made.name]
    if not any(made.source.span(call) == called for call in seen):
        return "the call that the trace saw is not in the file any more"
    uses = _Uses(made.source, made.structure, made.symbols)
    return next((reason for call in seen if (reason := uses.of_call(call))), "")


class _Uses:
    """The uses of outputs in one file."""

    def __init__(self, source: Source, structure: Structure, symbols: Symbols) -> None:
        self._source = source
        self._structure = structure
        self._symbols = symbols

    def of_call(self, call: ast.Call) -> str:
        """The reason why the output of one call may be read later; empty if it is used up."""
        statement = self._structure.parents.get(call)
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is not call:
            return self._of_value(call)
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if len(targets) > 1:
            return f"line {call.lineno} binds the output to several names"
        for name in _names(targets[0]):
            if name is None:
                return f"line {call.lineno} stores the output"
            if reason := self._of_name(name, call):
                return reason
        return ""

    def _of_name(self, name: ast.Name, call: ast.Call) -> str:
        variable = self._symbols.variable(name)
        if variable.is_captured or variable.is_shared:
            return f"other functions use the output `{name.id}`"
        end = (call.end_lineno or 0, call.end_col_offset or 0)
        for use in variable.uses:
            if (use.lineno, use.col_offset) < end:
                return f"line {use.lineno} reads `{name.id}`, which may be the output of the call before"
            if reason := self._of_value(use):
                return reason
        return ""

    def _of_value(self, node: ast.expr) -> str:
        """The reason for an expression whose value is the output."""
        child: ast.AST = node
        while (outer := self._structure.parents.get(child)) is not None:
            if isinstance(outer, ast.Call) and child is not outer.func:
                name = outer.func.attr if isinstance(outer.func, ast.Attribute) else path_of(outer.func)
                return self._kept(node) if name in _KEEPING else ""
            if isinstance(outer, ast.Attribute):
                method = self._structure.parents.get(outer)
                if isinstance(method, ast.Call) and method.func is outer:
                    if outer.attr not in _VIEWS:
                        return ""
                    outer = method
            elif isinstance(outer, ast.Subscript):
                if child is not outer.value:
                    return ""
            elif isinstance(outer, _NEW):
                return ""
            elif not isinstance(outer, _THROUGH):
                return self._kept(node)
            child = outer
        return ""

    def _kept(self, node: ast.expr) -> str:
        return f"line {node.lineno} keeps `{self._source.segment(self._source.span(node))}` for later"


def _names(target: ast.expr) -> Iterator[ast.Name | None]:
    """The names that a target binds; None for another target."""
    for each in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
        yield each if isinstance(each, ast.Name) else None
