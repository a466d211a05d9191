"""The names that code reads and binds, and small pieces of code made of others."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.ClassDef | ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
LOOPS = (ast.For, ast.While)


def name(text: str) -> ast.Name:
    """An expression that reads a name."""
    return ast.Name(text, ast.Load())


def code(text: str, **parts: ast.expr | ast.stmt | Sequence[ast.stmt]) -> list[ast.stmt]:
    """Statements in which names stand for parts: expressions, or statements in the place of a name."""
    return [each for statement in ast.parse(text).body for each in _as_list(_Filled(parts).visit(statement))]


def expression(text: str, **parts: ast.expr) -> ast.expr:
    """An expression in which names stand for parts."""
    (statement,) = code(text, **parts)
    assert isinstance(statement, ast.Expr)
    return statement.value


def _as_list(found: object) -> list[ast.stmt]:
    return found if isinstance(found, list) else [found]  # type: ignore[list-item]


class _Filled(ast.NodeTransformer):
    def __init__(self, parts: dict[str, ast.expr | ast.stmt | Sequence[ast.stmt]]) -> None:
        self._parts = parts

    def visit_Expr(self, node: ast.Expr) -> object:
        part = self._parts.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if part is None or isinstance(part, ast.expr):
            return self.generic_visit(node)
        return list(part) if isinstance(part, Sequence) else part

    def visit_Name(self, node: ast.Name) -> object:
        part = self._parts.get(node.id, node)
        if part is not node and isinstance(part, ast.expr) and isinstance(node.ctx, ast.Store):
            part = deepcopy(part)
            part.ctx = ast.Store()  # type: ignore[attr-defined]
        return part


@dataclass(slots=True)
class Names:
    """The names that code of one scope reads and binds. Free names of functions inside of it count as read."""

    read: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    """Those of `global` and `nonlocal`."""


def names(nodes: Iterable[ast.AST]) -> Names:
    """The names that nodes read and bind."""
    found = Names()
    for node in nodes:
        _collect(node, found)
    return found


def _collect(node: ast.AST, found: Names) -> None:
    if isinstance(node, ast.Name):
        (found.read if isinstance(node.ctx, ast.Load) else found.bound).add(node.id)
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        found.declared.update(node.names)
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        found.bound.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        found.bound.add(node.name)
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        found.read.add(node.target.id)
    if isinstance(node, Scope):
        _collect_scope(node, found)
        return
    for child in ast.iter_child_nodes(node):
        _collect(child, found)


def _collect_scope(node: Scope, found: Names) -> None:
    inner = Names()
    outside: list[ast.AST] = []
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        found.bound.add(node.name)
        outside = [*node.decorator_list, *(node.bases if isinstance(node, ast.ClassDef) else ())]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        given = node.args
        inner.bound.update(each.arg for each in parameters(given))
        outside += [*given.defaults, *(each for each in given.kw_defaults if each)]
        outside += [each.annotation for each in parameters(given) if each.annotation]
    body = getattr(node, "body", None)
    inside = body if isinstance(body, list) else [child for child in ast.iter_child_nodes(node) if child not in outside]
    for child in outside:
        _collect(child, found)
    for child in inside:
        if not isinstance(child, ast.arguments):
            _collect(child, inner)
    found.read |= inner.read - inner.bound
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        # `:=` in a comprehension binds a name of the code around.
        found.bound |= {each.target.id for each in ast.walk(node) if isinstance(each, ast.NamedExpr)}


def parameters(given: ast.arguments) -> list[ast.arg]:
    """All parameters of a function, in order."""
    starred = [each for each in (given.vararg, given.kwarg) if each is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *starred]


def plain_parameters(function: Function) -> list[ast.arg] | None:
    """The parameters of a function that can all be given by position, or None if it has others."""
    given = function.args
    return None if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs else given.args


def imported(tree: ast.Module) -> set[str]:
    """The names that imports at the top level bind."""
    return names(each for each in tree.body if isinstance(each, (ast.Import, ast.ImportFrom))).bound


def imports(tree: ast.Module) -> list[ast.stmt]:
    """Copies of the imports at the top level."""
    return [deepcopy(each) for each in tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]


def after_imports(tree: ast.Module) -> int:
    """The index behind the docstring and the last of the imports that a module begins with."""
    index = 0
    for index, each in enumerate(tree.body):
        docstring = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
        if not docstring and not isinstance(each, (ast.Import, ast.ImportFrom)):
            return index
    return len(tree.body)


def free(tree: ast.AST, wish: str) -> str:
    """A name that a module does not have."""
    taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | set(dir(builtins))
    taken |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    taken |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    taken |= {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    taken |= {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    taken |= {alias.split(".")[0] for alias in taken}
    while wish in taken:
        wish += "_"
    return wish


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements below a node, innermost first."""
    for child in ast.iter_child_nodes(node):
        yield from blocks(child)
    for part in ("body", "orelse", "finalbody"):
        block = getattr(node, part, None)
        if isinstance(block, list) and block:
            yield block


def functions(tree: ast.AST) -> Iterator[Function]:
    """The functions of a module, also those inside of others."""
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def scopes(tree: ast.Module) -> Iterator[ast.Module | Function]:
    """The module and its functions: the code that has variables of its own."""
    yield tree
    yield from functions(tree)


def has_docstring(function: Function) -> bool:
    """True if the first statement of a function is its docstring."""
    return ast.get_docstring(function) is not None


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function or module, without those of functions and classes inside of it."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from own_nodes(child)


def leaves_block(nodes: Iterable[ast.AST], in_loop: bool = False) -> bool:
    """True if code cannot be moved into a function: it returns, yields, or ends a loop around it."""
    for node in nodes:
        if isinstance(
            node,
            (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.AsyncFor, ast.AsyncWith),
        ):
            return True
        if isinstance(node, (ast.Break, ast.Continue)) and not in_loop:
            return True
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if leaves_block(ast.iter_child_nodes(node), in_loop or isinstance(node, LOOPS)):
            return True
    return False
