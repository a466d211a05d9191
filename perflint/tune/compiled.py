"""Compiles the models of a program, with the mode that replays CUDA graphs."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from perflint.findings import Edit
from perflint.fixes.edits import indentation, insert, one_level
from perflint.fixes.imports import import_edits
from perflint.semantics.structure import path_of
from perflint.source.text import Source
from perflint.tune.edited import edited
from perflint.tune.evidence import Evidence
from perflint.tune.graphs.outlining import Model
from perflint.tune.graphs.purity import short, stored_names
from perflint.tune.graphs.reached import Function, first_line
from perflint.tune.graphs.writing import HELPERS
from perflint.tune.refused import Refused

OVERHEAD = 'mode="reduce-overhead"'
_MARK = "torch.compiler.cudagraph_mark_step_begin()"
_EAGER = '@torch.compiler.set_stance("force_eager")'
_EAGER_SINCE = (2, 6)
_SINCE = (2, 2)
"""The first torch with `torch.nn.Module.compile` and `torch.compiler.cudagraph_mark_step_begin`."""


def compiled(texts: Mapping[str, str], evidence: Evidence, mode: str = OVERHEAD) -> dict[str, str]:
    """The files that hold the models of the step, which are compiled there, with graphs by default. Raises Refused.

    Where the step is a graph already, its kernels are compiled and no other graphs made.
    """
    seen = evidence.seen
    mode = "" if any(each.name in text for text in texts.values() for each in HELPERS) else mode
    if evidence.busy is None:
        raise Refused("the steps use no GPU", 1)
    if seen.compiles:
        raise Refused("the program compiles by itself", 1)
    if seen.distributed:
        raise Refused("the process is one of a group", 1)
    if not seen.models:
        raise Refused("the step calls no model with parameters", 1)
    _require_one_pass(texts, seen.lines)
    paths = {path for each in seen.models for path in (each.path, each.holder)}
    paths |= {path for path, _ in seen.evaluations} | ({*seen.steps} & {*texts})
    finders = {path: Finder(Source(path, texts[path])) for path in paths}
    places = dict.fromkeys((each.holder, each.name, *finders[each.holder].place(each)) for each in seen.models)
    edits: dict[str, list[Edit]] = defaultdict(list)
    # On an older torch, the program stays as it is.
    is_old = evidence.oldest is not None and evidence.oldest < _SINCE
    for path, name, line, margin in places:
        call = f"{name}.compile({mode})"
        old = f' and hasattr({name}, "compile")' if is_old else ""
        text = f"{margin}if torch.cuda.is_available(){old}:\n{margin}{one_level(margin)}{call}\n"
        edits[path].append(insert(line, 1, text))
    if len(places) > 1 and mode:
        path, body = _step_of(finders, evidence)
        edits[path].append(_mark(finders[path].source, body[0], is_old))
    has_stance = evidence.oldest is None or evidence.oldest >= _EAGER_SINCE
    for path, line in seen.evaluations if has_stance else ():
        edits[path] += finders[path].eager(line)
    for path, changes in edits.items():
        if any("torch." in each.text for each in changes):
            changes += import_edits(finders[path].source, ["import torch"])
    return {path: edited(finders[path].source, changes) for path, changes in edits.items()}


def _require_one_pass(texts: Mapping[str, str], lines: Mapping[str, Collection[int]]) -> None:
    """Raise Refused if a backward pass that ran keeps its graph for another one, which no compiled model allows."""
    for path, ran in lines.items():
        for call in (node for node in ast.walk(ast.parse(texts.get(path, ""))) if isinstance(node, ast.Call)):
            kept = {each.arg for each in call.keywords if ast.unparse(each.value) == "True"}
            if call.lineno in ran and kept & {"retain_graph", "create_graph"}:
                raise Refused(f"`{short(call)}` ({path}:{call.lineno}) keeps what a compiled model does not", call)


def _step_of(finders: Mapping[str, Finder], evidence: Evidence) -> tuple[str, list[ast.stmt]]:
    """The file and the statements of one step: those of the loop around it, or of the function that makes it.

    Raises Refused.
    """
    first = evidence.seen.models[0]
    try:
        return first.path, finders[first.path].loop(first.line).body
    except Refused as refused:
        for path, line in ((path, line) for path, lines in evidence.seen.steps.items() for line in sorted(lines)):
            if path in finders:
                return path, finders[path].body(line)
        raise refused


def _mark(source: Source, first: ast.stmt, is_old: bool) -> Edit:
    margin = indentation(source, first.lineno)
    test = f'{margin}if hasattr(torch, "compiler"):\n{one_level(margin)}' if is_old else ""
    return insert(first.lineno, 1, f"{test}{margin}{_MARK}\n")


class Finder:
    """Finds the places of a file behind which names of models stay the same."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._parents = {child: node for node in ast.walk(source.tree) for child in ast.iter_child_nodes(node)}

    def place(self, model: Model) -> tuple[int, str]:
        """The line in front of which the model is compiled, and its margin. Raises Refused."""
        if model.copies > 1:
            raise Refused("the model is replicated", model.holder_line)
        if not model.name:
            raise Refused(f"no name for the model of {model.path}:{model.line} was found", model.holder_line)
        statement = self.statement(model.holder_line)
        if model.name.startswith("self."):
            return self._behind_binding(statement, model.name)
        name = model.name.partition(".")[0]
        around = list(self._statements_around(statement))
        stores = [each for each in (statement, *around) if name in stored_names(each)]
        if any(isinstance(each, (ast.For, ast.While)) for each in stores) or statement in stores:
            raise Refused(f"`{name}` is bound again in the loop", statement)
        outer = [each for each in (statement, *around) if each not in stores][-1]
        self._require_bound(name, outer)
        if not self.source.lines[outer.lineno - 1][: self.source.span(outer).column - 1].isspace() and outer.col_offset:
            raise Refused("two statements share a line", outer)
        return outer.lineno, indentation(self.source, outer.lineno)

    def eager(self, line: int) -> Iterator[Edit]:
        """The edit that keeps a function from compiling: its shapes and modes would need graphs of their own."""
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.FunctionDef) and first_line(node) == line:
                if not any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(node)):
                    yield insert(node.lineno, 1, f"{indentation(self.source, node.lineno)}{_EAGER}\n")

    def loop(self, line: int) -> ast.For | ast.While:
        """The innermost loop around a line. Raises Refused."""
        statement = self.statement(line)
        for each in (statement, *self._statements_around(statement)):
            if isinstance(each, (ast.For, ast.While)):
                return each
        raise Refused("several models are called outside of a loop", line)

    def body(self, line: int) -> list[ast.stmt]:
        """The statements of the innermost loop around a line, or of its function. Raises Refused."""
        try:
            return self.loop(line).body
        except Refused:
            node: ast.AST = self.statement(line)
            while not isinstance(node, (ast.Module, Function)):
                node = self._parents[node]
            body = node.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
            if not body:
                raise
            is_text = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
            return body[1:] if is_text and len(body) > 1 else body

    def statement(self, line: int) -> ast.stmt:
        """The innermost statement on a line."""
        found: ast.stmt | None = None
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
                found = node
        if found is None:
            raise Refused("the source is another one than that which ran", line)
        return found

    def _statements_around(self, node: ast.AST) -> Iterator[ast.stmt]:
        """The statements of the same function around a node, the innermost first."""
        while not isinstance(node := self._parents[node], (ast.Module, *_SCOPES)):
            # A branch `elif` is a statement without a line of its own.
            if isinstance(node, ast.stmt) and not self.source.lines[node.lineno - 1].lstrip().startswith("elif"):
                yield node

    def _require_bound(self, name: str, statement: ast.stmt) -> None:
        """Raise Refused if a name is a parameter of the function of a statement."""
        scope: ast.AST = statement
        while not isinstance(scope, (ast.Module, *_SCOPES)):
            scope = self._parents[scope]
        if isinstance(scope, Function) and name not in stored_names(scope):
            raise Refused(f"the model `{name}` is passed as an expression, not by a name", statement)

    def _behind_binding(self, statement: ast.stmt, name: str) -> tuple[int, str]:
        """The place behind the last statement that binds an attribute, in the only method that does."""
        holder: ast.AST = statement
        while not isinstance(holder, (ast.Module, ast.ClassDef)):
            holder = self._parents[holder]
        attribute = ".".join(name.split(".")[:2])
        bound = [
            (method, each)
            for method in holder.body
            if isinstance(method, ast.FunctionDef)
            for each in method.body
            if attribute in {path_of(node) for node in _stored(each)} and not _is_none(getattr(each, "value", None))
        ]
        if not bound or len({method for method, _ in bound}) > 1:
            raise Refused(f"`{name}` is not made in one method of its class", statement)
        last = bound[-1][1]
        return (last.end_lineno or last.lineno) + 1, indentation(self.source, last.lineno)


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def _stored(statement: ast.stmt) -> Iterator[ast.AST]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node


def _is_none(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
