"""Neighbours in `nn.Sequential`, by its arguments or by the list that it is built from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from perflint.frozen import dataclass
from perflint.rules._memory.flows import behind
from perflint.semantics.around import class_around
from perflint.semantics.model import Model
from perflint.semantics.structure import walk
from perflint.semantics.symbols import Symbols

_SEQUENTIAL = "torch.nn.Sequential"
_RETURN_SELF = frozenset({"to", "cuda", "cpu", "train", "half", "float", "bfloat16", "double", "apply"})
_TAKE_APART = frozenset({"children", "named_children", "_modules", "insert", "pop", "__getitem__"})


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two expressions whose objects run one after the other. `certain` says that all uses of them are in sight."""

    first: ast.expr
    second: ast.expr
    certain: bool


def neighbours(model: Model, names: Symbols) -> Iterator[Neighbours]:
    """The neighbours in all of a file's sequences that nothing takes apart."""
    for definition in model.nodes(ast.ClassDef):
        if _is_plain_sequential(model, names, definition):
            for first, second in _added(model, definition):
                yield Neighbours(first, second, True)
    for node in model.nodes(ast.Call):
        if names.full_name(node.func) == _SEQUENTIAL:
            certain = _stays_whole(model, node)
        elif _is_base_constructor(model, names, node):
            certain = True
        else:
            continue
        if certain is not None:
            for first, second in _pairs(model, node):
                yield Neighbours(first, second, certain)


def _is_base_constructor(model: Model, names: Symbols, call: ast.Call) -> bool:
    """True if a call is `super().__init__(…)` of a plain sequence."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr != "__init__":
        return False
    if not isinstance(function.value, ast.Call) or ast.unparse(function.value.func) != "super":
        return False
    definition = class_around(model, call)
    return definition is not None and _is_plain_sequential(model, names, definition)


def _is_plain_sequential(model: Model, names: Symbols, definition: ast.ClassDef) -> bool:
    """True if a class is an `nn.Sequential` that runs its children one after the other, and all of them."""
    if [names.full_name(base) for base in definition.bases] != [_SEQUENTIAL]:
        return False
    methods = {each.name for each in definition.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))}
    return "forward" not in methods and "self[" not in model.source.written(definition)


def _added(model: Model, definition: ast.ClassDef) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The children that a sequence adds to itself by two calls of `self.add_module`, one right behind the other."""
    for node in ast.walk(definition):
        for block in (getattr(node, field, None) for field in ("body", "orelse")):
            if isinstance(block, list):
                for first, second in pairwise(block):
                    left, right = _added_by(first), _added_by(second)
                    if left is not None and right is not None:
                        yield left, right


def _added_by(statement: ast.AST) -> ast.expr | None:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return None
    call = statement.value
    if ast.unparse(call.func) != "self.add_module" or len(call.args) != 2:
        return None
    return call.args[1]


# Children


def _pairs(model: Model, call: ast.Call) -> Iterator[tuple[ast.expr, ast.expr]]:
    run: list[ast.expr] = []
    for argument in _spread(model, call.args):
        if isinstance(argument, ast.Starred):
            yield from pairwise(run)
            run = []
            if isinstance(argument.value, ast.Name):
                yield from _list_pairs(model, call, argument.value.id)
        else:
            run.append(behind(model, argument))
    yield from pairwise(run)


def _spread(model: Model, arguments: list[ast.expr]) -> Iterator[ast.expr]:
    """The children that arguments spell, through `*[…]` and `OrderedDict([("name", …), …])`."""
    for argument in arguments:
        if isinstance(argument, ast.Starred) and isinstance(argument.value, (ast.List, ast.Tuple)):
            yield from _spread(model, argument.value.elts)
        elif _is_ordered(model, argument):
            assert isinstance(argument, ast.Call)
            yield from _values(argument.args[0])
        else:
            yield argument


def _is_ordered(model: Model, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
    return name == "OrderedDict" or model.target(node) == "collections.OrderedDict"


def _values(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Dict):
        yield from node.values
    elif isinstance(node, (ast.List, ast.Tuple)):
        for pair in node.elts:
            if isinstance(pair, (ast.Tuple, ast.List)) and len(pair.elts) == 2:
                yield pair.elts[1]
            else:
                yield pair


# Lists


@dataclass(frozen=True, slots=True)
class _Growth:
    """A statement that puts some elements at the end of a list."""

    statement: ast.stmt
    elements: list[ast.expr]


def _list_pairs(model: Model, call: ast.Call, name: str) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The neighbours in a local list that only grows and is only unpacked."""
    function = model.function(call)
    if function is None:
        return
    grown: list[_Growth] = []
    for node in walk(function):
        if isinstance(node, ast.Name) and node.id == name:
            growth = _growth(model, node)
            if growth is not None:
                grown.append(growth)
            elif not _only_reads(model, node):
                return
    for growth in grown:
        yield from pairwise(behind(model, each) for each in growth.elements)
    by_statement = {growth.statement: growth for growth in grown}
    for growth in grown:
        after = _next_in_block(model, growth.statement, name)
        if after in by_statement and growth.elements and by_statement[after].elements:
            first, second = growth.elements[-1], by_statement[after].elements[0]
            if not isinstance(model.parent(second), ast.Assign):
                yield behind(model, first), behind(model, second)


def _growth(model: Model, node: ast.Name) -> _Growth | None:
    """The growth that a mention of a list's name stands for: `a = […]`, `a += […]`, `a.append(x)`, `a.extend([…])`."""
    parent = model.parent(node)
    if isinstance(parent, (ast.Assign, ast.AugAssign)) and not isinstance(node.ctx, ast.Load):
        whole = isinstance(parent, ast.AugAssign) or parent.targets == [node]
        return _Growth(parent, parent.value.elts) if whole and isinstance(parent.value, (ast.List, ast.Tuple)) else None
    if not isinstance(parent, ast.Attribute) or parent.attr not in ("append", "extend"):
        return None
    call = model.parent(parent)
    statement = model.parent(call) if call is not None else None
    if not isinstance(call, ast.Call) or not isinstance(statement, ast.Expr) or len(call.args) != 1:
        return None
    if parent.attr == "append":
        return _Growth(statement, list(call.args))
    added = call.args[0]
    return _Growth(statement, added.elts) if isinstance(added, (ast.List, ast.Tuple)) else _Growth(statement, [])


def _only_reads(model: Model, node: ast.Name) -> bool:
    """True if a mention of a list's name can take nothing out of it: unpacked into a sequence, measured, tested."""
    parent = model.parent(node)
    if isinstance(parent, ast.Starred):
        call = model.parent(parent)
        return isinstance(call, ast.Call) and model.target(call) in (_SEQUENTIAL, "")
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Name) and parent.func.id == "len"
    # Its other initial values say nothing about the items that are appended.
    return isinstance(parent, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and not isinstance(node.ctx, ast.Load)


def _next_in_block(model: Model, statement: ast.stmt, name: str) -> ast.stmt | None:
    """The next statement of the block that mentions a name."""
    parent = model.parent(statement)
    for block in (getattr(parent, field, None) for field in ("body", "orelse", "finalbody")):
        if isinstance(block, list) and statement in block:
            for after in block[block.index(statement) + 1 :]:
                if any(isinstance(each, ast.Name) and each.id == name for each in walk(after)):
                    return after if isinstance(after, ast.stmt) else None
    return None


# The uses of the sequence


def _stays_whole(model: Model, call: ast.Call) -> bool | None:
    """True if a sequence is only called as a whole, None if its children are used apart, False if they may be."""
    node: ast.expr = call
    parent = model.parent(node)
    while isinstance(parent, ast.Attribute) and parent.attr in _RETURN_SELF:
        outer = model.parent(parent)
        if not isinstance(outer, ast.Call):
            return None
        node, parent = outer, model.parent(outer)
    if isinstance(parent, (ast.Subscript, ast.Starred, ast.For, ast.comprehension, ast.Attribute)):
        return None
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return False
    (target,) = parent.targets
    if isinstance(target, ast.Attribute):
        return _attribute_stays_whole(model, target.attr)
    if isinstance(target, ast.Name):
        return _name_stays_whole(model, call, target.id)
    return False


def _attribute_stays_whole(model: Model, name: str) -> bool | None:
    for node in model.nodes(ast.Attribute):
        if node.attr == name and isinstance(node.ctx, ast.Load):
            if not _keeps_whole(model, node):
                return None
    return True


def _name_stays_whole(model: Model, call: ast.Call, name: str) -> bool | None:
    scope = model.function(call) or model.source.tree
    for node in walk(scope):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            if not _keeps_whole(model, node):
                return None
    return False


def _keeps_whole(model: Model, node: ast.expr) -> bool:
    """True if a use of a sequence leaves its children together: not an index, a loop or an unpacking."""
    parent = model.parent(node)
    if isinstance(parent, ast.Attribute):
        return parent.attr not in _TAKE_APART
    if isinstance(parent, ast.Subscript):
        return parent.value is not node
    if isinstance(parent, ast.Call) and parent.func is not node:
        return not (isinstance(parent.func, ast.Name) and parent.func.id in ("list", "enumerate", "iter", "reversed"))
    return not isinstance(parent, (ast.For, ast.comprehension, ast.Starred))
