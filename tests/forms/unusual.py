"""Forms that no rule was written for, and that do not keep the meaning.

Most of the programs do not run. They show whether a rule takes a form for granted that the grammar does not promise.
"""

from __future__ import annotations

import ast
from copy import deepcopy

from tests.forms.names import name
from tests.forms.program import Program

KEPT = frozenset({"torch", "nn", "F", "np", "self", "super"})
"""Names that stay as they are, so that the code is still about tensors."""


class _Mutation(ast.NodeTransformer):
    """Changes all calls of a program."""

    def __init__(self) -> None:
        self.count = 0

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        self.count += 1
        return self.changed(node)

    def changed(self, call: ast.Call) -> ast.expr:
        """The call in its new form."""
        return call


def _is_plain(call: ast.Call) -> bool:
    """True if the arguments of a call can be written in another way."""
    unusual = any(isinstance(each, (ast.Starred, ast.GeneratorExp)) for each in call.args)
    return not unusual and all(each.arg for each in call.keywords)


class NamedCallees(_Mutation):
    """`(f := x.item)()`"""

    def changed(self, call: ast.Call) -> ast.expr:
        call.func = ast.NamedExpr(ast.Name(f"callee{self.count}", ast.Store()), call.func)
        return call


class ChosenCallees(_Mutation):
    """`(x.item if flag else x.item)()`"""

    def changed(self, call: ast.Call) -> ast.expr:
        call.func = ast.IfExp(name("flag"), call.func, deepcopy(call.func))
        return call


class ReturnedCallees(_Mutation):
    """`(lambda: x.item)()()`"""

    def changed(self, call: ast.Call) -> ast.expr:
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        call.func = ast.Call(ast.Lambda(nothing, call.func), [], [])
        return call


class NamedArguments(_Mutation):
    """`f(a := x, b := 1)`"""

    def changed(self, call: ast.Call) -> ast.expr:
        if _is_plain(call):
            call.args = [
                ast.NamedExpr(ast.Name(f"value{self.count}_{index}", ast.Store()), each)
                for index, each in enumerate(call.args)
            ]
        return call


class UnpackedArguments(_Mutation):
    """`f(*(x, 1), **{"dim": 0})`"""

    def changed(self, call: ast.Call) -> ast.expr:
        if _is_plain(call):
            call.args = [ast.Starred(ast.Tuple(call.args, ast.Load()), ast.Load())]
            names = [ast.Constant(each.arg) for each in call.keywords]
            call.keywords = [ast.keyword(None, ast.Dict([*names], [each.value for each in call.keywords]))]
        return call


class KeywordArguments(_Mutation):
    """`f(input=x, other=1, dim=0)`"""

    def changed(self, call: ast.Call) -> ast.expr:
        if _is_plain(call):
            taken = {each.arg for each in call.keywords}
            free = [each for each in ("input", "other", "dim", "out", "dtype", "device") if each not in taken]
            moved = len(call.args) - len(free)
            call.keywords = [
                *(ast.keyword(*each) for each in zip(free, call.args[max(moved, 0) :], strict=False)),
                *call.keywords,
            ]
            call.args = call.args[: max(moved, 0)]
        return call


class NoArguments(_Mutation):
    """`f()`"""

    def changed(self, call: ast.Call) -> ast.expr:
        call.args, call.keywords = [], []
        return call


class MoreArguments(_Mutation):
    """`f(x, 1, None, "text", ...)`"""

    def changed(self, call: ast.Call) -> ast.expr:
        if _is_plain(call):
            call.args += [ast.Constant(None), ast.Constant("text"), ast.Constant(...)]
        return call


class IndexedResults(_Mutation):
    """`f(x)[...]`"""

    def changed(self, call: ast.Call) -> ast.expr:
        return ast.Subscript(call, ast.Constant(...), ast.Load())


class AwaitedResults(_Mutation):
    """`await f(x)`, in functions that become coroutines"""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        return ast.AsyncFunctionDef(**{field: getattr(node, field, None) for field in node._fields})

    def changed(self, call: ast.Call) -> ast.expr:
        return ast.Await(call)


class ElementsForNames(_Mutation):
    """`table["x"]` for `x`"""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return node if node.id in KEPT else ast.Subscript(name("table"), ast.Constant(node.id), node.ctx)


class AttributesForNames(_Mutation):
    """`box.x` for `x`"""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return node if node.id in KEPT else ast.Attribute(name("box"), node.id, node.ctx)


class AttributesByText(_Mutation):
    """`getattr(x, "item")` for `x.item`"""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        return ast.Call(name("getattr"), [node.value, ast.Constant(node.attr)], [])


class UnknownNumbers(_Mutation):
    """`NUMBER` for `0`"""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return name("NUMBER") if type(node.value) in (int, float) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        return node


class UnpackedResults(_Mutation):
    """`x, *rest = f(x)`"""

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        rest = ast.Starred(ast.Name("rest", ast.Store()), ast.Store())
        if not isinstance(node.targets[0], ast.Starred):
            node.targets = [ast.Tuple([node.targets[0], rest], ast.Store())]
        return node


MUTATIONS: tuple[type[_Mutation], ...] = (
    NamedCallees,
    UnpackedArguments,
    ElementsForNames,
    ChosenCallees,
    ReturnedCallees,
    NamedArguments,
    KeywordArguments,
    NoArguments,
    MoreArguments,
    IndexedResults,
    AwaitedResults,
    AttributesForNames,
    AttributesByText,
    UnknownNumbers,
    UnpackedResults,
)


def change(program: Program, mutation: type[ast.NodeTransformer]) -> None:
    """Write a program in an unusual form."""
    mutation().visit(program.main)
