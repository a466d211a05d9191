"""Captures and replays of CUDA graphs in one scope: the inputs and outputs of a graph, and its replays."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.frozen import dataclass
from perflint.semantics.around import class_around, inside, is_inside
from perflint.semantics.binders import LOOPS
from perflint.semantics.model import FunctionNode, Model
from perflint.semantics.regions.captured import GRAPHS, Capture
from perflint.semantics.structure import calls_in, keyword, path_of, walk


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded block with the paths that it reads from outside and those that it makes.

    `scope` is the function that holds it, None for the top level.
    """

    capture: Capture
    scope: FunctionNode | None
    owner: ast.ClassDef | None
    reads: frozenset[str]
    makes: frozenset[str]


def recorded(model: Model) -> Iterator[Recorded]:
    """The recorded blocks of a file."""
    for capture in model.captures.blocks:
        reads: set[str] = set()
        makes: set[str] = set()
        for statement in capture.body:
            for node in walk(statement):
                if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
                    path = place_of(node)
                    if not path:
                        continue
                    if isinstance(node.ctx, ast.Store):
                        makes.add(path)
                    elif path not in makes:
                        reads.add(path)
        scope = model.function(capture.start)
        owner = class_around(model, capture.start)
        if owner is not None:
            # The methods that the block calls read the attributes of the same object.
            reads |= _read_by_methods(model, capture, owner) - makes
        yield Recorded(capture, scope, owner, frozenset(reads), frozenset(makes))


def place_of(node: ast.AST) -> str:
    """The path of a name or attribute, also of an item under a text, `buffers["x"]`; empty for others."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        path = path_of(node.value)
        return f'{path}["{node.slice.value}"]' if path else ""
    return path_of(node)


def _read_by_methods(model: Model, capture: Capture, owner: ast.ClassDef) -> set[str]:
    """The attributes of `self` that the methods of a class read when a capture runs them."""
    reads: set[str] = set()
    for method in owner.body:
        if isinstance(method, ast.FunctionDef) and model.captures.of(method.body[0]) is capture:
            parts = [each for each in walk(method) if isinstance(each, ast.Attribute) and path_of(each)]
            stored = {path_of(each) for each in parts if isinstance(each.ctx, ast.Store)}
            reads |= {path for each in parts if (path := path_of(each)).startswith("self.") and path not in stored}
    return reads


def replays(model: Model) -> list[ast.Call]:
    """The calls of `replay` of a graph; by name where the object is not known."""
    found = []
    for call in model.nodes(ast.Call):
        target = model.target(call)
        named = isinstance(call.func, ast.Attribute) and call.func.attr == "replay" and not call.args
        if named and (not target or target.removesuffix(".replay") in GRAPHS):
            found.append(call)
    return found


def replays_of(model: Model, block: Recorded) -> list[ast.Call]:
    """The replays that may be those of the graph of a block: under the same name, or in code that records none."""
    path = path_of(graph_of(block.capture.start))
    recording = {model.function(each.start) for each in model.captures.blocks}
    found = []
    for call in replays(model):
        name = path_of(call.func).removesuffix(".replay")
        is_other = name != path and (model.function(call) in recording or name.startswith("self."))
        if not is_other and (name != path or is_visible(model, block, call, path)):
            found.append(call)
    return found


def graph_of(start: ast.expr) -> ast.expr:
    """The graph that a capture fills, by the expression that begins it."""
    given = start.args[0] if isinstance(start, ast.Call) and start.args else None
    if given is None and isinstance(start, ast.Call):
        given = keyword(start, "cuda_graph") or keyword(start, "xpu_graph") or start.func
    graph = start if given is None else given
    return graph.value if isinstance(graph, ast.Attribute) and graph.attr == "capture_begin" else graph


def is_visible(model: Model, block: Recorded, node: ast.AST, path: str) -> bool:
    """True if a path means the same at a node as in a block.

    In one scope or a function nested in it, as a global, or as `self` of one class.
    """
    if model.function(node) is block.scope:
        return True
    if "." not in path:
        path = path.partition("[")[0]
        symbols, function = model.symbols, model.function(node)
        if block.scope is not None and function is not None:
            if symbols.resolve(symbols.scope(function), path).scope is symbols.scope(block.scope):
                return True
        return all(is_global(model, scope, path) for scope in (model.function(node), block.scope))
    if path.startswith("self.") and block.owner is not None:
        return any(outer is block.owner for outer in model.ancestors(node))
    return False


def is_global(model: Model, scope: FunctionNode | None, name: str) -> bool:
    """True if a name in a function is that of the file: it is declared `global`, or only the file binds it."""
    symbols = model.symbols
    return scope is None or symbols.resolve(symbols.scope(scope), name).scope is symbols.module


def loop_around(model: Model, node: ast.AST) -> ast.AST | None:
    """The innermost loop around a node in its function."""
    return next((outer for outer in inside(model, node) if isinstance(outer, LOOPS)), None)


def is_between(model: Model, node: ast.AST, capture: Capture, every: list[ast.Call]) -> bool:
    """True if a node runs between replays: in a loop with one, or in a function with one that does not record."""
    loop = loop_around(model, node)
    while loop is not None:
        if is_inside(model, capture.start, loop):
            return False
        if any(is_inside(model, call, loop) for call in every):
            return True
        loop = loop_around(model, loop)
    function = model.function(node)
    if function is None or function is model.function(capture.start):
        return False
    return any(call in every for call in calls_in(function))
