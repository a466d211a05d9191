"""Numbers and tensors that a loop brings to the CPU one by one into a list, kept on the device until it is over."""

from __future__ import annotations

import ast

from perflint.findings import Edit, Fix, Safety, Span
from perflint.fixes.edits import replace
from perflint.fixes.imports import spell
from perflint.rules._bindings import alone
from perflint.rules._memory import operators
from perflint.rules._memory.uses import HARMLESS, fates_of_name
from perflint.rules._methods import called_on
from perflint.rules._statements import line_behind, mention_before, shares_last_line, swallows
from perflint.rules._visible import is_local
from perflint.rules.sync._elements import without_detach
from perflint.rules.sync._scalars import DEVICE_TO_HOST_COPY, Read
from perflint.rules.sync._sums import detached, is_data
from perflint.semantics.around import inside
from perflint.semantics.model import Model
from perflint.semantics.purpose.wholes import is_same_each_turn, whole_of
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import arguments, last_name, names_in, walk
from perflint.semantics.values import Kind
from perflint.source.concrete import cst

_Loop = ast.For | ast.AsyncFor | ast.While
_BEHIND = frozenset("numpy detach float double half bfloat16 long int bool squeeze flatten clone".split())
"""Methods without arguments that give the same result for a copy on the CPU later."""
_MODES = frozenset(
    f"torch.{each}"
    for each in """no_grad inference_mode enable_grad set_grad_enabled autocast amp.autocast cuda.amp.autocast
    autograd.no_grad autograd.inference_mode""".split()
)
"""Contexts of which a copy to the CPU does not depend."""
_FREES = ("torch.cuda.empty_cache", "torch.cuda.stream", "torch.cuda.set_stream", "torch.cuda.Stream")
_LARGE = 3
"""Dimensions from which on a tensor may be a batch of images or of hidden states, too large to be kept."""


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
    whole = f"{name.id} = {stack.text}({name.id}).tolist() if {name.id} else []"
    last = line_behind(source, loop, whole)
    if last is None:
        return None
    new = detached(site.concrete, "", is_data=is_data(model, read.tensor))
    if not _has_own_memory(model, read.tensor):
        new = cst.Call(cst.Attribute(new, cst.Name("clone")))
    edits = (replace(source, source.span(site.node), new), last)
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
        before = mention_before(model, outer, name.id)
        if isinstance(before, ast.Assign) and _empties(before, name.id):
            return outer
    return None


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


def gathered_on_device(site: CallSite) -> Fix | None:
    """Append the tensor itself, and copy all of them after the loop; None if the list or a tensor may change before."""
    model, source = site.model, site.model.source
    tensor = None if site.receiver is None else site.receiver.tensor
    if tensor is None or (tensor.rank or 0) >= _LARGE or model.is_scripted(site.node.lineno):
        return None
    if whole_of(site) is not None or is_same_each_turn(site):
        # One copy in front of the loop is better.
        return None
    whole, detaches = _whole(model, site.node)
    name = appended_to(model, whole)
    loop = None if name is None else gathering_loop(model, name)
    if name is None or loop is None or _depends_on_place(model, site.node, loop):
        return None
    behind = _behind(site, whole)
    if behind is None or site.owner is None:
        return None
    copied = source.segment(behind).replace(".detach()", "")
    last = line_behind(source, loop, f"{name.id} = [each{copied} for each in {name.id}]")
    if last is None:
        return None
    own = "" if _has_own_memory(model, site.owner, copies=True) else ".clone()"
    edits = (Edit(behind, (".detach()" if detaches else "") + own), last)
    message = "Keep the tensors on the GPU and copy them after the loop"
    # Tensors of unknown dimensions may be images: all of them may not fit.
    safety = Safety.DISPLAY if tensor.rank is None else Safety.UNSAFE
    return Fix(message, safety, edits, leaves=(DEVICE_TO_HOST_COPY,))


def _whole(model: Model, copy: ast.Call) -> tuple[ast.Call, bool]:
    """The last of the calls of methods behind a copy, and True if one of them drops the graph."""
    detaches = False
    while (call := called_on(model, copy)) is not None and last_name(call) in _BEHIND and not arguments(call):
        detaches |= last_name(call) == "detach"
        copy = call
    return copy, detaches


def _behind(site: CallSite, whole: ast.Call) -> Span | None:
    """The span from the dot before the copy to the end of the methods behind it, if that is one line."""
    source = site.model.source
    assert isinstance(site.node.func, ast.Attribute)
    method, last = source.span(site.node.func), source.span(whole)
    start = method.end_column - len(site.node.func.attr) - 1
    found = Span(method.end_line, start, last.end_line, last.end_column)
    text = source.segment(found)
    return found if text.startswith(f".{site.node.func.attr}") and "\n" not in text and "#" not in text else None


def _depends_on_place(model: Model, copy: ast.Call, loop: ast.stmt) -> bool:
    """True if a copy may give another result behind the loop, or if the loop frees memory of the GPU."""
    for outer in inside(model, copy):
        if outer is loop:
            break
        if isinstance(outer, (ast.With, ast.AsyncWith)):
            contexts = [each.context_expr for each in outer.items]
            if not all(isinstance(each, ast.Call) and model.target(each) in _MODES for each in contexts):
                return True
    return any(isinstance(each, ast.Call) and model.target(each) in _FREES for each in walk(loop))


def _has_own_memory(model: Model, tensor: ast.expr, *, copies: bool = False) -> bool:
    """True if nothing else keeps or changes a tensor after it was kept; with `copies`, if each iteration makes it."""
    if not isinstance(tensor, ast.Name):
        return operators.is_fresh(model, without_detach(tensor) if copies else tensor)
    made = alone(model, tensor) if copies else None
    if copies and (made is None or not operators.is_fresh(model, without_detach(made))):
        return False
    fates = fates_of_name(model, tensor, copies=copies)
    return fates is not None and fates <= HARMLESS
