"""Tensors that are computed on the CPU from nothing but ranges and fills, and then moved."""

from __future__ import annotations

import ast

from perflint.findings import Edit, Fix, Safety, Span
from perflint.fixes.edits import delete_statement, replace, with_argument, within
from perflint.rules._memory.flows import flow_around
from perflint.rules._operators import operators
from perflint.rules._order import has_effects
from perflint.rules._project_text import may_be_traced
from perflint.rules._statements import block_of
from perflint.rules._visible import is_private
from perflint.rules.placement import Move, move
from perflint.semantics.facts import torch_api
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import calls_in, keyword, walk
from perflint.semantics.values import scalar_type
from perflint.source.concrete import code, cst

_FACTORIES = frozenset(f"torch.{name}" for name in "arange zeros ones full eye linspace logspace".split())
_FUNCTIONS = operators("computed", "functions")
_METHODS = _FUNCTIONS | frozenset(
    "unsqueeze squeeze view reshape flatten repeat t transpose permute float double half bfloat16 long int bool".split()
)
"""Operators that read one tensor and return another, or a view of it, on the same device."""
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod)
_DEPTH = 4
_NUMBERS = frozenset(("int", "float", "bool"))


def computed_there(site: CallSite) -> Fix | None:
    """`device=` for the factories, and no move; None if something else takes part, or if the tensor is used before."""
    if site.target not in ("torch.Tensor.to", "torch.Tensor.cuda", "torch.Tensor.type_as"):
        return None
    moved = move(site)
    if any(isinstance(each, ast.NamedExpr) for each in ast.walk(site.node)):
        return None
    if moved is None or not moved.proven or not moved.simple or moved.may_be_none or moved.non_blocking is not None:
        return None
    if moved.other is not None and may_be_traced(site.model):
        return None
    assert isinstance(site.node.func, ast.Attribute)
    receiver = site.node.func.value
    made = _value_of(site.model, receiver) if isinstance(receiver, ast.Name) else receiver
    place = None if made is None else _place(site, moved, made is not receiver)
    factories: list[ast.Call] = []
    if made is None or place is None or not _collects(site.model, made, factories) or not factories:
        return None
    source = site.model.source
    edits: list[Edit] = []
    for each in factories:
        call = source.concrete(each)
        new = with_argument(call, f"device={place}") if isinstance(call, cst.Call) else None
        if new is None:
            return None
        edits.append(replace(source, source.span(each), new))
    if moved.other is None and moved.dtype is None:
        if made is receiver and site.span.line == site.span.end_line:
            return _in_one(site, factories, place)
        last = _without_move(site, receiver) if made is not receiver else _cut(site, receiver)
        if last is None:
            return None
        edits.append(last)
    # With a dtype, the move stays as a cast on the GPU.
    return Fix(_MESSAGE, Safety.UNSAFE, tuple(edits))


_MESSAGE = "Compute the tensor on the GPU"


def _value_of(model: Model, name: ast.Name) -> ast.expr | None:
    """The expression that gave a name its value, if this is the only use of the value."""
    bound = flow_around(model, name).used.get(name)
    if bound is None or not bound.whole or bound.into or len(bound.uses) != 1 or not is_private(model, name):
        return None
    statement = None if bound.node is None else model.parent(bound.node)
    own = statement in block_of(model, statement) if isinstance(statement, ast.Assign) else False
    if not isinstance(statement, ast.Assign) or not own or len(statement.targets) != 1:
        return None
    user = next((outer for outer in model.ancestors(name) if isinstance(outer, ast.stmt)), None)
    return bound.value if user in block_of(model, statement) else None


def _place(site: CallSite, moved: Move, earlier: bool) -> str | None:
    """The device as text; None if it may not be known yet where the tensor is made."""
    node = moved.other or moved.device
    if node is None:
        return '"cuda"'
    if has_effects(site.model, node) or not isinstance(node, (ast.Name, ast.Attribute, ast.Constant)):
        return None
    names = [each for each in walk(node) if isinstance(each, ast.Name)]
    if earlier and not all(_is_parameter(site.model, each) for each in names):
        return None
    text = site.text(node)
    return text if moved.other is None else f"{text}.device"


def _is_parameter(model: Model, name: ast.Name) -> bool:
    """True if a name is a parameter that the function leaves as it is."""
    variable = model.symbols.variable(name)
    return len(variable.bindings) == 1 and isinstance(variable.bindings[0].node, ast.arg)


def _collects(model: Model, node: ast.expr, factories: list[ast.Call]) -> bool:
    """True if an expression is made of factories and numbers; the factories are added to the list."""
    if _is_number(model, node, _DEPTH):
        return not has_effects(model, node)
    if isinstance(node, ast.UnaryOp):
        return _collects(model, node.operand, factories)
    if isinstance(node, ast.BinOp):
        both = isinstance(node.op, _OPERATORS)
        return both and _collects(model, node.left, factories) and _collects(model, node.right, factories)
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        plain = all(isinstance(each, ast.Slice) or _is_none_or_ellipsis(each) for each in parts)
        return plain and _collects(model, node.value, factories)
    return isinstance(node, ast.Call) and _collects_call(model, node, factories)


def _is_number(model: Model, node: ast.expr, depth: int) -> bool:
    """True if an expression is a number of Python, or is computed from such numbers and sizes."""
    members = model.value(node).members
    if members and all(scalar_type(each) in _NUMBERS for each in members):
        return True
    if isinstance(node, ast.UnaryOp):
        return _is_number(model, node.operand, depth)
    if isinstance(node, ast.BinOp):
        return _is_number(model, node.left, depth) and _is_number(model, node.right, depth)
    if not isinstance(node, ast.Name) or depth == 0 or model.value(node).tensor is not None:
        return False
    if node.id in _sizes(model, model.function(node) or model.source.tree):
        return True
    bound = flow_around(model, node).used.get(node)
    value = None if bound is None or not bound.whole or bound.node is None else bound.value
    return value is not None and _is_number(model, value, depth - 1)


@once_per_node
def _sizes(model: Model, body: ast.AST) -> frozenset[str]:
    """The names that the factories in a function or file take as sizes: none of them is a tensor with dimensions."""
    calls = [node for node in calls_in(body) if model.target(node) in _FACTORIES]
    given = [each for call in calls for each in (*call.args, *(item.value for item in call.keywords))]
    return frozenset(each.id for each in given if isinstance(each, ast.Name))


def _collects_call(model: Model, call: ast.Call, factories: list[ast.Call]) -> bool:
    if any(item.arg is None for item in call.keywords) or any(isinstance(each, ast.Starred) for each in call.args):
        return False
    target = torch_api.canonical(model.target(call))
    if target in _FACTORIES:
        named = {item.arg for item in call.keywords}
        if named & {"device", "out", "requires_grad", "pin_memory"} or any(_is_tensor(model, x) for x in call.args):
            return False
        factories.append(call)
        return True
    head, _, leaf = target.rpartition(".")
    if any(_is_tensor(model, item.value) for item in call.keywords) or keyword(call, "out") is not None:
        return False
    if head == "torch.Tensor" and leaf in _METHODS and isinstance(call.func, ast.Attribute):
        numbers = not any(_is_tensor(model, each) for each in call.args)
        return numbers and _collects(model, call.func.value, factories)
    if head == "torch" and leaf in _FUNCTIONS and call.args:
        return all(_collects(model, each, factories) for each in call.args)
    return False


def _is_tensor(model: Model, node: ast.expr) -> bool:
    """True if an argument may be a tensor."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return any(_is_tensor(model, each) for each in node.elts)
    return model.value(node).tensor is not None


def _is_none_or_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or node.value is ...)


def _in_one(site: CallSite, factories: list[ast.Call], place: str) -> Fix | None:
    """The fix where the factories stand inside of the move, which goes."""
    source = site.model.source
    assert isinstance(site.node.func, ast.Attribute)
    receiver = site.node.func.value
    text, span = source.segment(source.span(receiver)), source.span(receiver)
    for each in sorted(factories, key=lambda call: -source.span(call).column):
        call = source.concrete(each)
        new = with_argument(call, f"device={place}") if isinstance(call, cst.Call) else None
        if new is None:
            return None
        where = source.span(each)
        start, end = where.column - span.column, where.end_column - span.column
        text = text[:start] + code(new) + text[end:]
    around = site.model.parent(site.node)
    plain = isinstance(around, (ast.Assign, ast.AnnAssign, ast.Return, ast.keyword, ast.Call)) or not isinstance(
        receiver, (ast.BinOp, ast.UnaryOp)
    )
    if isinstance(around, ast.Call) and around.func is site.node:
        plain = not isinstance(receiver, (ast.BinOp, ast.UnaryOp))
    edit = replace(source, site.span, text if plain else f"({text})")
    return Fix(_MESSAGE, Safety.UNSAFE, (edit,))


def _cut(site: CallSite, receiver: ast.expr) -> Edit | None:
    """The deletion of `.to(device)` at the end of an expression of several lines."""
    source, inner = site.model.source, site.model.source.span(receiver)
    behind = Span(inner.end_line, inner.end_column, site.span.end_line, site.span.end_column)
    text = source.segment(behind)
    blank = len(text) - len(text.lstrip(") \t\r\n"))
    if not text[blank:].startswith("."):
        return None
    # The lines between the last bracket and the method go, too.
    brackets = len(text[:blank].rstrip(" \t\r\n"))
    return Edit(within(source, behind, brackets, len(text)), "")


def _without_move(site: CallSite, receiver: ast.expr) -> Edit | None:
    """The name in place of its move; `x = x.to(device)` goes as a whole. None if comments or names would go with it."""
    model, source = site.model, site.model.source
    statement = model.parent(site.node)
    if isinstance(statement, (ast.NamedExpr, ast.Expr)) or site.span.line != site.span.end_line:
        return None
    if isinstance(statement, ast.Assign) and isinstance(receiver, ast.Name):
        (first, *others) = statement.targets
        if not others and isinstance(first, ast.Name) and first.id == receiver.id:
            if statement.lineno != statement.end_lineno:
                return None
            return delete_statement(source, statement, block_of(model, statement))
    return replace(source, site.span, source.segment(source.span(receiver)))
