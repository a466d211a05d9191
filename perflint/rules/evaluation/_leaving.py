"""Decides if tensors that are made while autograd is off are used by code that runs with it on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from perflint.rules._operators import operators
from perflint.rules.evaluation._callees import is_host
from perflint.rules.evaluation._flow import flows
from perflint.rules.evaluation._graph import Fate, Flow
from perflint.rules.evaluation._scopes import Scope, Survey
from perflint.semantics.dataflow.flow import USES, Bound
from perflint.semantics.structure import last_name, path_of, walk

_HOST_BUILTINS = frozenset({"bool", "float", "int", "len", "range", "repr", "round", "str", "time"})
_HOST_METHODS = frozenset({"item", "numpy", "tolist"})
_READS = _HOST_METHODS | {"cpu", "device", "dtype", "numel", "shape", "size"}
_CONTAINERS = operators("gradient", "containers")
"""Callees whose result holds their arguments, and nothing else."""


def leaves(survey: Survey, scope: Scope, within: ast.AST) -> bool:
    """True if tensors of `within`, a function or a `with` statement in `scope`, may leave it by its results.

    False only if all results are known to be Python numbers, text, arrays or containers of those. Tensors that
    the code passes to other functions do not count.
    """
    return may_leave(survey, scope, within, Fate.RETURNED | Fate.STORED)


def may_leave(survey: Survey, scope: Scope, within: ast.AST, ways: Fate) -> bool:
    """True if tensors may leave in one of some ways."""
    flow = flows(survey).of(scope)
    if within is scope.node:
        return any(flow.all_fates.get(place, Fate.NONE) & ways for place in _sources(survey, scope, scope.nodes, flow))
    inside = set(walk(within))
    sources: list[Any] = list(_sources(survey, scope, inside, flow))
    used = survey.names(scope).used
    sources += [node for node in inside if isinstance(node, USES) and node in used and not _is_known(survey, node)]
    return _goes_out(survey, flow, sources, inside, ways)


def _goes_out(survey: Survey, flow: Flow, sources: list[Any], inside: set[ast.AST], ways: Fate) -> bool:
    """True if values of a statement leave it in one of some ways, or are more than read after it."""
    seen, waiting = set(sources), list(sources)
    while waiting:
        place = waiting.pop()
        if flow.ends.get(place, Fate.NONE) & ways:
            return True
        for other in (*flow.edges.get(place, ()), *flow.values.get(place, ())):
            if isinstance(other, ast.AST) and other not in inside:
                if not _is_read(survey.model.parent(other)):
                    return True
            elif other not in seen:
                seen.add(other)
                waiting.append(other)
    return False


def _sources(survey: Survey, scope: Scope, nodes: Any, flow: Flow) -> Iterator[ast.expr | Bound]:
    """The sources of tensors: parameters, calls, attributes of the object, names of other scopes."""
    if nodes is scope.nodes:
        yield from (bound for arg, bound in flow.parameters.items() if arg.arg not in ("self", "cls"))
    for node in nodes:
        if not isinstance(node, ast.expr) or _is_known(survey, node):
            continue
        if isinstance(node, ast.Call):
            if not _is_host_call(node):
                yield node
        elif isinstance(node, ast.Attribute):
            # A computation with an attribute is a call, which is met separately.
            is_part = isinstance(survey.model.parent(node), ast.Attribute)
            if isinstance(node.ctx, ast.Load) and not is_part and path_of(node).startswith("self."):
                yield node
        elif isinstance(node, ast.Name) and survey.is_from_outside(scope, node):
            around = survey.model.parent(node)
            is_callee = isinstance(around, ast.Call) and around.func is node
            if not is_callee and not survey.is_code(node):
                yield node


def _is_known(survey: Survey, node: ast.expr) -> bool:
    return is_host(survey.model.value(node))


def _is_host_call(call: ast.Call) -> bool:
    """True if a call returns data on the CPU, or only a container for its arguments."""
    return last_name(call) in (_HOST_METHODS if isinstance(call.func, ast.Attribute) else _CONTAINERS)


def _is_read(around: ast.AST | None) -> bool:
    """True if the CPU reads a tensor there, without its graph."""
    if isinstance(around, ast.Attribute):
        return around.attr in _READS
    return isinstance(around, ast.Call) and last_name(around) in _HOST_BUILTINS
