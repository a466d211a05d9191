"""Compiles the models of a program, with the mode that replays CUDA graphs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from perflint.findings import Edit
from perflint.fixes.edits import indentation, insert
from perflint.fixes.imports import import_edits
from perflint.frozen import dataclass
from perflint.semantics.structure import path_of
from perflint.source.text import Source
from perflint.tune.edited import edited
from perflint.tune.evidence import Evidence
from perflint.tune.graphs.outlining import Seen
from perflint.tune.graphs.purity import stored_names
from perflint.tune.graphs.reached import Function
from perflint.tune.graphs.writing import HELPER
from perflint.tune.refused import Refused

_MODE = 'mode="reduce-overhead"'
_MARK = "torch.compiler.cudagraph_mark_step_begin()"
_AGAINST = (
    (re.compile(r"\bDataParallel\b"), "the model is replicated"),
    (re.compile(rf"\b{HELPER}\b"), "the step is a graph already"),
)
_DEPTH = 4
"""Calls through which the name of a model is followed."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A statement in front of which a model is compiled, and the name of the model there."""

    statement: ast.stmt
    name: str


def compiled(texts: Mapping[str, str], evidence: Evidence) -> dict[str, str]:
    """The file that steps the optimizer, with its models compiled. Raises Refused."""
    if evidence.busy is None:
        raise Refused("the steps use no GPU", 1)
    if evidence.seen.compiles:
        raise Refused("the program compiles by itself", 1)
    if evidence.seen.distributed:
        raise Refused("the process is one of a group", 1)
    for path, text in texts.items():
        for pattern, reason in _AGAINST:
            found = pattern.search(text)
            if found is not None:
                raise Refused(f"{reason} ({path}:{text.count(chr(10), 0, found.start()) + 1})", 1)
    stepped = next(iter(evidence.seen.steps), None)
    if stepped is None:
        raise Refused("no line of the project steps an optimizer", 1)
    source = Source(stepped, texts[stepped])
    calls = sorted(_model_calls(source.tree, stepped, evidence.seen), key=lambda call: (call.lineno, call.col_offset))
    if not calls:
        raise Refused("the function that steps the optimizer calls no model with parameters", 1)
    finder = _Finder(source.tree)
    places = dict.fromkeys(finder.place(call) for call in calls)
    edits = []
    for place in places:
        margin = indentation(source, place.statement.lineno)
        edits.append(insert(place.statement.lineno, 1, f"{margin}{place.name}.compile({_MODE})\n"))
    if len(places) > 1:
        edits += [*import_edits(source, ["import torch"]), _mark(source, finder.loop(calls[0]))]
    return {stepped: edited(source, edits)}


def _model_calls(tree: ast.Module, path: str, seen: Seen) -> Iterator[ast.Call]:
    """The calls of models with parameters in the functions that step the optimizer."""
    named = {(line, name) for (file, line), names in seen.models.items() if file == path for name in names}
    inner = {node for each in ast.walk(tree) if isinstance(each, Function) for node in _nodes(each)}
    scopes = [{node for node in ast.walk(tree) if node not in inner}]
    scopes += [set(_nodes(each)) for each in ast.walk(tree) if isinstance(each, Function)]
    steps = set(seen.steps[path])
    stepping = [nodes for nodes in scopes if steps & {getattr(node, "lineno", 0) for node in nodes}]
    for node in (node for nodes in stepping for node in nodes):
        if not isinstance(node, ast.Call):
            continue
        name, lines = path_of(node.func), range(node.lineno, (node.end_lineno or 0) + 1)
        if any((line, name) in named for line in lines):
            yield node


def _nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function but for its decorators and arguments, without those of functions inside it."""
    body = getattr(function, "body", [])
    waiting: list[ast.AST] = [*body] if isinstance(body, list) else [body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function):
            waiting.extend(ast.iter_child_nodes(node))


def _mark(source: Source, loop: ast.For | ast.While) -> Edit:
    first = loop.body[0]
    return insert(first.lineno, 1, f"{indentation(source, first.lineno)}{_MARK}\n")


class _Finder:
    """Finds the places behind which names of models stay the same."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}

    def place(self, call: ast.Call) -> _Place:
        """The place at which the called model is compiled. Raises Refused."""
        return self._of_name(call, path_of(call.func), _DEPTH)

    def loop(self, node: ast.AST) -> ast.For | ast.While:
        """The innermost loop around a node. Raises Refused."""
        above: ast.AST | None = node
        while above is not None and not isinstance(above, (ast.For, ast.While)):
            above = self._parents.get(above)
        if above is None:
            raise Refused("several models are called outside of a loop", node)
        return above

    def _of_name(self, use: ast.AST, name: str, depth: int) -> _Place:
        statement = use
        while not isinstance(self._parents[statement], (ast.Module, Function)):
            statement = self._parents[statement]
        scope = self._parents[statement]
        if name.startswith("self."):
            return self._of_attribute(scope, name)
        assert isinstance(statement, ast.stmt)
        body = getattr(scope, "body", [])
        before = body[: body.index(statement)] if isinstance(body, list) and statement in body else []
        if any(name in stored_names(each) for each in before):
            if name in stored_names(statement):
                raise Refused(f"`{name}` is bound again in the loop", statement)
            return _Place(statement, name)
        if depth and isinstance(scope, ast.FunctionDef):
            return self._of_argument(scope, name, depth)
        raise Refused(f"the model `{name}` is made in another place than the loop", use)

    def _of_argument(self, function: ast.FunctionDef, name: str, depth: int) -> _Place:
        """The place for a name that the callers of a function give, or that is one of the module."""
        names = [each.arg for each in function.args.args]
        calls = [
            node for node in ast.walk(self._tree) if isinstance(node, ast.Call) and path_of(node.func) == function.name
        ]
        if not calls:
            raise Refused(f"`{function.name}` is called from another file", function)
        places = set()
        for call in calls:
            given: ast.expr | None = ast.Name(name)
            if name in names:
                at = names.index(name)
                given = next((each.value for each in call.keywords if each.arg == name), None)
                given = given or (call.args[at] if at < len(call.args) else None)
            if not isinstance(given, ast.Name):
                raise Refused(f"the model `{name}` is passed as an expression, not by a name", call)
            places.add(self._of_name(call, given.id, depth - 1))
        if len(places) > 1:
            raise Refused(f"`{function.name}` gets several models", function)
        return places.pop()

    def _of_attribute(self, method: ast.AST, name: str) -> _Place:
        """The statement of `__init__` behind the last one that binds an attribute."""
        holder = self._parents.get(method)
        made = [each for each in getattr(holder, "body", ()) if getattr(each, "name", "") == "__init__"]
        body = made[0].body if made else []
        bound = [at for at, each in enumerate(body) if name in {path_of(node) for node in _stored(each)}]
        if not bound or bound[-1] + 1 == len(body):
            raise Refused(f"`{name}` is not made in the `__init__` of its class", method)
        return _Place(body[bound[-1] + 1], name)


def _stored(statement: ast.stmt) -> Iterator[ast.AST]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node
