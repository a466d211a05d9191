"""Tensors that a loop copies to the CPU one by one into a list, kept on the device until the loop is over."""

from __future__ import annotations

import ast

from perflint.findings import Edit, Fix, Safety, Span
from perflint.fixes.edits import in_newlines_of, indentation, insert, with_last_comments
from perflint.rules._bindings import alone
from perflint.rules._memory import operators
from perflint.rules._memory.flows import flow_around
from perflint.rules._memory.uses import Fate, Uses
from perflint.rules.sync._lists import appended_to, gathering_loop
from perflint.rules.sync._scalars import DEVICE_TO_HOST_COPY
from perflint.semantics.around import inside
from perflint.semantics.model import Model
from perflint.semantics.purpose.wholes import is_same_each_turn, whole_of
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import walk

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
    end = with_last_comments(source, source.span(loop)).end_line
    behind = _behind(site, whole)
    if behind is None or end > len(source.lines) or not source.lines[end - 1].endswith(("\n", "\r")):
        return None
    assert isinstance(site.node.func, ast.Attribute)
    own = "" if _has_own_memory(model, site.node.func.value) else ".clone()"
    copied = source.segment(behind).replace(".detach()", "")
    line = f"{indentation(source, loop.lineno)}{name.id} = [each{copied} for each in {name.id}]\n"
    edits = (
        Edit(behind, (".detach()" if detaches else "") + own),
        insert(end + 1, 1, in_newlines_of(source, end, line)),
    )
    message = "Keep the tensors on the GPU and copy them after the loop"
    # Tensors of unknown dimensions may be images: all of them may not fit.
    safety = Safety.DISPLAY if tensor.rank is None else Safety.UNSAFE
    return Fix(message, safety, edits, leaves=(DEVICE_TO_HOST_COPY,))


def _whole(model: Model, copy: ast.Call) -> tuple[ast.Call, bool]:
    """The last of the calls of methods behind a copy, and True if one of them drops the graph."""
    detaches = False
    while True:
        method = model.parent(copy)
        call = model.parent(method) if isinstance(method, ast.Attribute) and method.attr in _BEHIND else None
        if not isinstance(method, ast.Attribute) or not isinstance(call, ast.Call) or call.args or call.keywords:
            return copy, detaches
        detaches |= method.attr == "detach"
        copy = call


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


def _has_own_memory(model: Model, tensor: ast.expr) -> bool:
    """True if each iteration makes a new tensor that is only read afterwards: nothing else keeps or changes it."""
    if not isinstance(tensor, ast.Name):
        return operators.is_fresh(model, _without_detach(tensor))
    made, bound = alone(model, tensor), flow_around(model, tensor).used.get(tensor)
    if made is None or bound is None or not isinstance(bound.node, ast.Name):
        return False
    uses = Uses(model, copies=True)
    uses.name(bound.node)
    return operators.is_fresh(model, _without_detach(made)) and uses.fates <= {Fate.READ, Fate.COMPUTED, Fate.COPIED}


def _without_detach(node: ast.expr) -> ast.expr:
    """The tensor whose graph `.detach()` drops."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach"
    return node.func.value if is_call else node  # type: ignore[attr-defined]
