"""Functions that write tensors to files or draw them, and copy them to the CPU for that."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, surest
from perflint.rules._memory.flows import flow_around
from perflint.rules._operators import operators
from perflint.semantics.dataflow.flow import Flow
from perflint.semantics.sites import CallSite, device_confidence
from perflint.semantics.structure import walk
from perflint.semantics.values import Class, Device, Function, Instance, Kind, Mapping, Sequence, Tensor, Value

_SAVES = ("torch.save", "safetensors.torch.save_file")
_WRITERS = ("torch.utils.tensorboard.SummaryWriter", "tensorboardX.SummaryWriter")
_DRAWS = operators("copies", "draws")
WRITES = (*_SAVES, *_DRAWS)
"""Functions that copy the tensors among their arguments to the CPU at once."""

_DEEPEST = 3
"""Levels of dicts and lists whose tensors are looked for: a checkpoint holds the states of several modules."""
_MOST_USES = 50
_PARAMETER = Tensor(Device.MODEL, Kind.FLOAT, leaf="parameter")


def written(site: CallSite) -> Confidence | None:
    """How sure it is that a call copies a tensor of the device to the CPU; None if it does not."""
    if site.target not in WRITES or is_defined_here(site):
        return None
    nodes = [*site.node.args, *(keyword.value for keyword in site.node.keywords)]
    if any(_is_of_new_module(site, node) for node in nodes):
        return None
    found = [device_confidence(each) for node in nodes for each in _held(site, site.value(node), _DEEPEST)]
    known = [each for each in found if each is not None]
    return surest(*known) if known else None


def is_defined_here(site: CallSite) -> bool:
    """True if the project has the function itself: its waits are reported in its body."""
    return any(isinstance(each, Function) for each in site.value(site.node.func).members)


def _held(site: CallSite, value: Value, depth: int) -> Iterator[Value]:
    """The tensors that a value holds; of a module its parameters, which `torch.save` writes with it."""
    for member in value.members:
        if isinstance(member, Instance) and site.target in _SAVES and site.model.is_module(member):
            yield _PARAMETER
        elif depth and isinstance(member, Mapping):
            for inner in (member.element, *(held for _, held in member.items)):
                yield from _held(site, inner, depth - 1)
        elif depth and isinstance(member, Sequence):
            for inner in member.items or (member.element,):
                yield from _held(site, inner, depth - 1)
        elif member.tensor is not None:
            yield value
            return


def _is_of_new_module(site: CallSite, node: ast.expr) -> bool:
    """True if a node holds the state of a module that its function makes and only saves: it is still on the CPU."""
    if site.target not in _SAVES or site.model.module.structure.default_devices:
        return False
    flow = flow_around(site.model, site.node)
    held = [each.value for each in flow.origins(node)] if isinstance(node, ast.Name) else [node]
    calls = [call for each in held if each is not None for call in walk(each) if _gives_state(call)]
    return bool(calls) and all(_is_only_saved(site, flow, call) for call in calls)


def _gives_state(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict"


def _is_only_saved(site: CallSite, flow: Flow, call: ast.AST) -> bool:
    """True if the module whose state a call gives is new, and nothing else uses it."""
    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    owner = call.func.value
    bounds = flow.origins(owner) if isinstance(owner, ast.Name) else []
    if len(bounds) != 1 or bounds[0].value is None or not _makes(site, bounds[0].value):
        return False
    reach = flow.reach(bounds[0], _MOST_USES)
    return reach is not None and all(_gives_state(_parent(site, _parent(site, use))) for use in reach.uses)


def _parent(site: CallSite, node: ast.AST) -> ast.AST:
    return site.model.parent(node) or node


def _makes(site: CallSite, node: ast.expr) -> bool:
    """True if an expression is a call of a class of the project, and no method of the object."""
    return isinstance(node, ast.Call) and any(
        isinstance(member, Class) for member in site.model.value(node.func).members
    )
