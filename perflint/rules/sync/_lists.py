"""Numbers that a loop reads one by one into a list, kept on the device until the loop is over."""

from __future__ import annotations

import ast

from perflint.findings import Fix, Safety
from perflint.fixes.edits import in_newlines_of, indentation, insert, replace, with_last_comments
from perflint.fixes.imports import spell
from perflint.rules._memory import operators
from perflint.rules._memory.flows import flow_around
from perflint.rules._memory.uses import Fate, Uses
from perflint.rules._statements import block_of, lets_pass, swallows
from perflint.rules._visible import is_local
from perflint.rules.sync._scalars import DEVICE_TO_HOST_COPY, Read
from perflint.rules.sync._sums import detached, is_data, shares_last_line
from perflint.semantics.around import inside
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import names_in, walk
from perflint.semantics.values import Kind
from perflint.source.concrete import cst

_Loop = ast.For | ast.AsyncFor | ast.While
_READS = {Fate.READ, Fate.COMPUTED, Fate.COPIED}


def listed_on_device(site: CallSite, read: Read) -> Fix | None:
    """`.detach()` in place of `.item()`, and one copy after the loop; None if the list is used before."""
    model, source = site.model, site.model.source
    tensor = read.value.tensor
    if site.target != "torch.Tensor.item" or site.node.args or tensor is None or tensor.rank != 0:
        return None
    name = appended_to(model, site.node)
    loop = None if name is None else gathering_loop(model, name)
    if tensor.kind is Kind.UNKNOWN and _may_change(model, read.tensor):
        return None
    stack = spell(model.symbols, "torch.stack", site.node)
    if name is None or loop is None or stack is None:
        return None
    end = with_last_comments(source, source.span(loop)).end_line
    if end > len(source.lines) or not source.lines[end - 1].endswith(("\n", "\r")):
        return None
    new = detached(site.concrete, "", is_data=is_data(model, read.tensor))
    if not _is_only_read(model, read.tensor):
        new = cst.Call(cst.Attribute(new, cst.Name("clone")))
    line = f"{indentation(source, loop.lineno)}{name.id} = {stack.text}({name.id}).tolist() if {name.id} else []\n"
    edits = (
        replace(source, source.span(site.node), new),
        insert(end + 1, 1, in_newlines_of(source, end, line)),
    )
    message = "Keep the numbers on the GPU and read them once after the loop"
    return Fix(message, Safety.UNSAFE, edits, stack.imports, leaves=(DEVICE_TO_HOST_COPY,))


def _may_change(model: Model, tensor: ast.expr) -> bool:
    """True if an expression may give whole numbers in one iteration and other numbers in the next."""
    if isinstance(tensor, ast.Name):
        bindings = model.symbols.variable(tensor).bindings
        return len(bindings) != 1 or isinstance(bindings[0].value, ast.IfExp)
    return any(isinstance(each, ast.IfExp) for each in walk(tensor))


def appended_to(model: Model, read: ast.Call) -> ast.Name | None:
    """The name of the list in `name.append(read)` and `name += [read]`, as a statement of its own."""
    call = model.parent(read)
    if isinstance(call, ast.List):
        statement = model.parent(call)
        is_added = isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add) and call.elts == [read]
        target = statement.target if isinstance(statement, ast.AugAssign) and is_added else None
        return target if isinstance(target, ast.Name) else None
    if not isinstance(call, ast.Call) or call.args != [read] or call.keywords:
        return None
    method = call.func
    if not isinstance(method, ast.Attribute) or method.attr != "append" or not isinstance(method.value, ast.Name):
        return None
    return method.value if isinstance(model.parent(call), ast.Expr) else None


def gathering_loop(model: Model, name: ast.Name) -> _Loop | None:
    """The loop right after `name = []` in whose iterations nothing but this `append` uses the list."""
    for outer in inside(model, name):
        if not isinstance(outer, (ast.For, ast.AsyncFor, ast.While)):
            continue
        if outer.orelse or shares_last_line(model, outer) or swallows(model, outer) or not is_local(model, name):
            return None
        if [use for use in walk(outer) if isinstance(use, ast.Name) and use.id == name.id] != [name]:
            return None
        if _starts_empty(model, outer, name.id):
            return outer
    return None


def _starts_empty(model: Model, statement: ast.stmt, name: str) -> bool:
    """True if the list is empty where a statement begins."""
    block = block_of(model, statement)
    for before in reversed(block[: block.index(statement)]):
        if name in names_in(before):
            return isinstance(before, ast.Assign) and _empties(before, name)
    around = model.parent(statement)
    # `with torch.no_grad():` between the two runs its body once.
    within = isinstance(around, ast.With) and all(lets_pass(model, item) for item in around.items)
    return isinstance(around, ast.With) and within and _starts_empty(model, around, name)


def _empties(statement: ast.Assign, name: str) -> bool:
    """True for `name = []`, and for `name, other = [], []`, if nothing else in the statement uses the name."""
    target, *others = statement.targets
    pairs = [(target, statement.value)]
    if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
        pairs = list(zip(target.elts, statement.value.elts, strict=False))
    made = [value for each, value in pairs if isinstance(each, ast.Name) and each.id == name]
    is_whole = isinstance(target, ast.Name) or not any(isinstance(each, ast.Starred) for each, _ in pairs)
    if others or len(made) != 1 or not is_whole or name in names_in(statement.value):
        return False
    return isinstance(made[0], ast.List) and not made[0].elts


def _is_only_read(model: Model, tensor: ast.expr) -> bool:
    """True if nothing writes to a tensor after it was kept."""
    if not isinstance(tensor, ast.Name):
        return operators.is_fresh(model, tensor)
    bound = flow_around(model, tensor).used.get(tensor)
    if bound is None or not isinstance(bound.node, ast.Name):
        return False
    uses = Uses(model)
    uses.name(bound.node)
    return uses.fates <= _READS
