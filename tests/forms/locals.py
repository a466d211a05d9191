"""Local names introduced and inlined, and results that pass through attributes, dicts, tuples and data classes."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import pairwise

from tests.forms.names import (
    after_imports,
    blocks,
    code,
    expression,
    free,
    functions,
    has_docstring,
    name,
    names,
    own_nodes,
    parameters,
    scopes,
)
from tests.forms.program import Program, marked_like

_PURE = (ast.Name, ast.Constant, ast.Attribute)
_LAZY = (
    ast.Lambda,
    ast.GeneratorExp,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.IfExp,
    ast.BoolOp,
    ast.Await,
    ast.NamedExpr,
)
_HEADS = {ast.If: "test", ast.For: "iter", ast.Assert: "test"} | dict.fromkeys(
    (ast.Return, ast.Assign, ast.Expr, ast.AugAssign, ast.AnnAssign), "value"
)
"""The field of a statement that is computed first."""


def operands_with_names(program: Program) -> None:
    """`print(x.item())` as `value = x.item()` and `print(value)`"""
    _name_all(program, deep=False)


def operands_all_with_names(program: Program) -> None:
    """`print(x.sum().item())` as three statements"""
    _name_all(program, deep=True)


def _name_all(program: Program, deep: bool) -> None:
    naming = _Naming(program.main, deep)
    for block in list(blocks(program.main)):
        block[:] = [new for old in block for new in naming.expanded(old)]


def tests_with_names(program: Program) -> None:
    """`if x.any():` as `flag = x.any()` and `if flag:`"""
    flag = free(program.main, "flag")
    for block in list(blocks(program.main)):
        for index, statement in reversed(list(enumerate(block))):
            if isinstance(statement, ast.If) and not isinstance(statement.test, _PURE) and not _walks(statement.test):
                test = statement.test
                statement.test = marked_like(name(flag), test)
                block.insert(index, *code("FLAG = TEST", FLAG=name(flag), TEST=test))


class _Naming:
    def __init__(self, tree: ast.Module, deep: bool) -> None:
        self._tree = tree
        self._deep = deep
        self._wish = free(tree, "value")
        self._count = 0
        self._new: list[ast.stmt] = []

    def expanded(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements in place of one."""
        field = _HEADS.get(type(statement))
        value = getattr(statement, field) if field else None
        if value is None or _walks(value):
            return [statement]
        self._new = []
        self._operands(value)
        return [*self._new, statement]

    def _operands(self, node: ast.expr) -> None:
        if isinstance(node, _LAZY) or _is_super(node):
            return
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                self._replace(node.func, "value")
            self._replace_all(node.args)
            for each in node.keywords:
                self._replace(each, "value")
        elif isinstance(node, ast.BinOp):
            self._replace(node, "left")
            self._replace(node, "right")
        elif isinstance(node, ast.Compare):
            self._replace(node, "left")
            if len(node.ops) == 1:
                self._replace_all(node.comparators)
        elif isinstance(node, (ast.Attribute, ast.UnaryOp)):
            self._replace(node, "value" if isinstance(node, ast.Attribute) else "operand")
        elif isinstance(node, ast.Subscript):
            self._replace(node, "value")
            self._replace(node, "slice")
        elif isinstance(node, (ast.Tuple, ast.List)):
            self._replace_all(node.elts)
        elif isinstance(node, ast.JoinedStr):
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    self._replace(part, "value")

    def _replace_all(self, nodes: list[ast.expr]) -> None:
        for index, node in enumerate(nodes):
            nodes[index] = self._named(node)

    def _replace(self, parent: ast.AST, field: str) -> None:
        setattr(parent, field, self._named(getattr(parent, field)))

    def _named(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Starred):
            node.value = self._named(node.value)
            return node
        if isinstance(node, (ast.GeneratorExp, ast.Slice, ast.Tuple, ast.UnaryOp)) or _is_pure(node) or _is_super(node):
            return node
        if self._deep:
            self._operands(node)
        self._count += 1
        new = f"{self._wish}_{self._count}"
        self._new += code("NAME = VALUE", NAME=name(new), VALUE=node)
        return marked_like(name(new), node)


def _is_super(node: ast.expr) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "super" for each in ast.walk(node))


def _is_pure(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Constant)) or (isinstance(node, ast.Attribute) and _is_pure(node.value))


def _walks(node: ast.AST) -> bool:
    """True if an expression gives names or waits for other code."""
    return any(isinstance(each, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)) for each in ast.walk(node))


def names_inlined(program: Program) -> None:
    """`value = x.item()` and `print(value)` as `print(x.item())`"""
    for scope in scopes(program.main):
        uses = Counter(
            (node.id, isinstance(node.ctx, ast.Load)) for node in ast.walk(scope) if isinstance(node, ast.Name)
        )
        plain = {each for each in _plain_locals(program.main, scope) if uses[each, True] == uses[each, False] == 1}
        for block in _own_blocks(scope):
            for statement, following in reversed(list(pairwise(block))):
                value = _assigned(statement, plain)
                if value is not None and _inline(following, *value):
                    block.remove(statement)


def _assigned(statement: ast.stmt, plain: set[str]) -> tuple[str, ast.expr] | None:
    if isinstance(statement, ast.Assign) and isinstance(target := statement.targets[0], ast.Name):
        if len(statement.targets) == 1 and target.id in plain and not _walks(statement.value):
            return target.id, statement.value
    return None


def _inline(statement: ast.stmt, name: str, value: ast.expr) -> bool:
    """Put a value in place of a name, if nothing that might matter is computed before it."""
    field = _HEADS.get(type(statement))
    head = getattr(statement, field) if field else None
    if head is None or _walks(head):
        return False
    for node in _in_order(head):
        if isinstance(node, ast.Name) and node.id == name:
            holder = ast.Expr(head)
            _Put(node, value).visit(holder)
            setattr(statement, field or "", holder.value)
            return True
        if not isinstance(node, (*_PURE, ast.expr_context)):
            return False
    return False


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of an expression in the order in which they are computed, up to one that may not be computed once."""
    if isinstance(node, _LAZY):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _in_order(child)
    yield node


class _Put(ast.NodeTransformer):
    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self._old, self._new = old, new

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return marked_like(self._new, node) if node is self._old else node


def _own_blocks(scope: ast.AST) -> list[list[ast.stmt]]:
    inner = {id(block) for each in functions(scope) if each is not scope for block in blocks(each)}
    return [block for block in blocks(scope) if id(block) not in inner]


def _plain_locals(tree: ast.Module, scope: ast.AST) -> set[str]:
    """The variables of a function that only plain assignments bind, and that only it uses."""
    nodes = list(own_nodes(scope))
    targets = [node.targets[0] for node in nodes if isinstance(node, ast.Assign) and len(node.targets) == 1]
    plain = {each.id for each in targets if isinstance(each, ast.Name)}
    counted = {node.target for node in nodes if isinstance(node, ast.AugAssign)}
    for node in nodes:
        if (
            isinstance(node, ast.Name)
            and not isinstance(node.ctx, ast.Load)
            and node not in targets
            and node not in counted
        ):
            plain.discard(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom, ast.ExceptHandler, ast.Global, ast.Nonlocal)):
            plain -= names([node]).bound | names([node]).declared
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            plain -= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            plain -= {getattr(node, "name", "")}
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        plain -= {each.arg for each in parameters(scope.args)}
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return plain - texts


def results_in_attributes(program: Program) -> None:
    """Each local variable as an attribute of an object: `state.x`"""
    state = free(program.main, "State")
    if _keep_in(program, "state", lambda each: expression(f"BOX.{each}", BOX=name("state")), f"state = {state}()"):
        program.main.body[after_imports(program.main) : after_imports(program.main)] = code(f"class {state}:\n    pass")


def results_in_dicts(program: Program) -> None:
    """Each local variable as an entry of a dict: `state["x"]`"""
    _keep_in(program, "state", lambda each: expression(f"state[{each!r}]"), "state = {}")


def _keep_in(program: Program, box: str, place: Callable[[str], ast.expr], made: str) -> bool:
    if free(program.main, box) != box:
        return False
    changed = False
    for scope in list(scopes(program.main)):
        plain = _plain_locals(program.main, scope)
        if not plain:
            continue
        _Kept(plain, place).visit_scope(scope)
        index = after_imports(program.main) if scope is program.main else has_docstring(scope)
        scope.body[index:index] = code(made)
        changed = True
    return changed


class _Kept(ast.NodeTransformer):
    """Other places for the variables of one function."""

    def __init__(self, plain: set[str], place: Callable[[str], ast.expr]) -> None:
        self._plain, self._place = plain, place

    def visit_scope(self, scope: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        scope.body = [self.visit(each) for each in scope.body]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._plain:
            return node
        new = deepcopy(self._place(node.id))
        new.ctx = node.ctx  # type: ignore[attr-defined]
        return marked_like(new, node)


def results_in_tuples(program: Program) -> None:
    """`x = f()` as `pair = (f(), None)` and `x = pair[0]`"""
    _pass_through(program, "pair = VALUE, None\nTARGET = pair[0]", "pair")


def results_in_unpacked_tuples(program: Program) -> None:
    """`x = f()` as `x, other = f(), None`"""
    _pass_through(program, "TARGET, unused = VALUE, None", "unused")


def results_in_data_classes(program: Program) -> None:
    """`x = f()` as `result = Result(f())` and `x = result.value`"""
    made = free(program.main, "Result")
    if _pass_through(program, f"result = {made}(VALUE)\nTARGET = result.value", "result"):
        text = f"from dataclasses import dataclass\nfrom typing import Any\n\n@dataclass\nclass {made}:\n    value: Any"
        program.main.body[after_imports(program.main) : after_imports(program.main)] = code(text)


def _pass_through(program: Program, text: str, wish: str) -> bool:
    if free(program.main, wish) != wish:
        return False
    changed = False
    for scope in scopes(program.main):
        for block in _own_blocks(scope):
            for index, statement in reversed(list(enumerate(block))):
                if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                    continue
                target, value = statement.targets[0], statement.value
                if (
                    isinstance(target, ast.Name)
                    and not isinstance(value, (ast.Constant, ast.Name))
                    and not _walks(value)
                ):
                    block[index : index + 1] = [
                        marked_like(each, statement) for each in code(text, TARGET=target, VALUE=value)
                    ]
                    changed = True
    return changed
