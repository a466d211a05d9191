"""Tensors that torch or Python takes as numbers, where it expects one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence
from perflint.rules._operators import operators
from perflint.rules.sync._dimensions import has_dimensions
from perflint.rules.sync._indices import Index, parts
from perflint.semantics.binders import How
from perflint.semantics.dataflow.definitions import definitions
from perflint.semantics.facts import torch_api
from perflint.semantics.sites import CallSite, SubscriptSite, device_confidence
from perflint.semantics.values import Device, Evidence, Instance, Kind, Sequence, Tensor, Unknown, Value, scalar_type

_PYTHON = operators("numbers", "takes_numbers")
_BOUNDS = {f"torch.{name}": 1 for name in ("clamp", "clamp_", "clip", "clip_")} | {
    f"torch.Tensor.{name}": 0 for name in ("clamp", "clamp_", "clip", "clip_")
}
"""Functions whose bounds are two tensors or two numbers, with the position of the first bound."""
_LISTS_OF_MODULES = frozenset(f"torch.nn.{name}" for name in ("ModuleList", "Sequential", "ParameterList"))
TAKERS = (*_PYTHON, *_BOUNDS, *torch_api.numbers())
"""The functions that take numbers."""


def taken_as_numbers(site: CallSite | SubscriptSite) -> list[tuple[ast.expr, Confidence]]:
    """The tensors that are read as numbers, with how sure each is."""
    if isinstance(site, SubscriptSite):
        return _indexed(site)
    if site.target.startswith("math."):
        return [found for node in site.node.args for found in _converted(site, node)]
    return [found for node in _expected(site) for found in _read(site, node)]


def _expected(site: CallSite) -> Iterator[ast.expr]:
    """The arguments of a call for which numbers are expected."""
    if site.target in _PYTHON:
        yield from site.node.args
    for number in torch_api.numbers().get(site.target, ()):
        given = site.argument(number.name, number.position)
        if given is not None:
            yield given
        if number.several and number.position is not None:
            yield from site.node.args[number.position + 1 :]
    first = _BOUNDS.get(site.target)
    bounds = () if first is None else (site.argument("min", first), site.argument("max", first + 1))
    if any(each is not None and scalar_type(site.value(each)) in ("int", "float") for each in bounds):
        yield from filter(None, bounds)


def _converted(site: CallSite, node: ast.expr) -> Iterator[tuple[ast.expr, Confidence]]:
    """The expressions that become a Python number in any case: if one may be a tensor, it is read."""
    value = site.value(node)
    confidence = device_confidence(value)
    if value.tensor is not None and confidence is not None and confidence is not Confidence.LOW:
        yield node, confidence


def _read(site: CallSite | SubscriptSite, node: ast.expr) -> Iterator[tuple[ast.expr, Confidence]]:
    if isinstance(node, (ast.Tuple, ast.List)):
        for element in node.elts:
            yield from _read(site, element)
        return
    value = site.value(node)
    tensor = value.tensor
    if tensor is None or tensor.rank not in (0, None) or tensor.evidence is Evidence.USE:
        return
    if not isinstance(value, Tensor) and not _is_one_number(value, tensor):
        return
    if _is_entry(node) and tensor.evidence < Evidence.ANNOTATION and tensor.kind is Kind.UNKNOWN:
        # Of the results of a model, too, only some are tensors: `range(output["batch_size"])`.
        return
    confidence = device_confidence(value)
    # A number is so much more likely here that a mere possibility of a device tensor says nothing.
    if confidence is not None and confidence is not Confidence.LOW:
        yield node, confidence


def _is_one_number(value: Value, tensor: Tensor) -> bool:
    """True for a tensor that surely holds one integer, where other calls may pass something unknown."""
    others = (member for member in value.members if member is not tensor)
    return tensor.rank == 0 and tensor.kind is Kind.INT and all(isinstance(member, Unknown) for member in others)


def _is_entry(node: ast.expr) -> bool:
    """True for `x.name` and `x["name"]`."""
    if isinstance(node, ast.Attribute):
        return True
    key = node.slice if isinstance(node, ast.Subscript) else None
    return isinstance(key, ast.Constant) and isinstance(key.value, str)


def _indexed(site: SubscriptSite) -> list[tuple[ast.expr, Confidence]]:
    found: list[tuple[ast.expr, Confidence]] = []
    receiver = site.value(site.node.value)
    index = site.node.slice
    for node in index.elts if isinstance(index, ast.Tuple) else [index]:
        if isinstance(node, ast.Slice):
            bounds = [bound for bound in (node.lower, node.upper, node.step) if bound is not None]
            found += [number for bound in bounds for number in _read(site, bound)]
    return found or _positions(site, receiver)


def _positions(site: SubscriptSite, receiver: Value) -> list[tuple[ast.expr, Confidence]]:
    """Whole parts of an index that are read: of lists any tensor, of tensors those without dimensions."""
    found: list[tuple[ast.expr, Confidence]] = []
    for part in parts(site):
        confidence = device_confidence(part.value)
        if confidence is None:
            continue
        tensor = receiver.tensor
        read = _is_listed(receiver)
        if tensor is not None:
            index = part.value.tensor
            # A tensor on the CPU can only be indexed by numbers and by other tensors on the CPU.
            in_host = tensor.device is Device.CPU
            read = part.kind is Index.SCALAR_TENSOR or (in_host and _may_be_number(part.node, index))
            read = read or (part.kind is Index.POSITIONS and index is not None and _is_element(site, part.node, index))
        if read and not has_dimensions(site.model, part.node):
            found.append((part.node, confidence))
    return found


def _is_listed(receiver: Value) -> bool:
    if isinstance(receiver, Instance):
        return receiver.cls in _LISTS_OF_MODULES
    return isinstance(receiver, Sequence) and receiver.type in ("list", "tuple", "range", "size")


def _may_be_number(node: ast.expr, index: Tensor | None) -> bool:
    """True if an index may be a tensor of no dimensions."""
    if index is None or index.kind not in (Kind.INT, Kind.UNKNOWN) or index.evidence <= Evidence.USE:
        return False
    return index.rank in (0, None)


def _is_element(site: SubscriptSite, node: ast.expr, index: Tensor) -> bool:
    """True for a name of one element that the function also reads: `i = order[0]`, `i.item()`, `boxes[i]`."""
    if not isinstance(node, ast.Name) or index.rank is not None:
        return False
    found = definitions(site.model.symbols, node, node.id)
    assigned = [bound for bound in found.bindings if bound.how is How.ASSIGNED and bound.whole]
    targets = [bound.node for bound in assigned if _is_selected(bound.value)]
    if found.is_open or not targets or len(targets) < len(found.bindings):
        return False
    later = site.model.destinations.later
    return any(_is_read(site, load) for target in targets if isinstance(target, ast.Name) for load in later(target))


def _is_selected(value: ast.expr | None) -> bool:
    """True for `x[0]` and `x[-1]`."""
    if not isinstance(value, ast.Subscript):
        return False
    index = value.slice.operand if isinstance(value.slice, ast.UnaryOp) else value.slice
    return isinstance(index, ast.Constant) and type(index.value) is int


def _is_read(site: SubscriptSite, name: ast.Name) -> bool:
    method = site.model.parent(name)
    return isinstance(method, ast.Attribute) and method.attr == "item"
