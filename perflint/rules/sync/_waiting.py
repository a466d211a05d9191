"""Decides if the code at the place of a `synchronize` needs the GPU to be done with its work.

The place is the innermost loop around the call, which runs as often; else the outermost function around it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Heat
from perflint.rules._memory.bodies import memory_around, position
from perflint.rules._memory.flows import flow_around
from perflint.rules._memory.uses import Position
from perflint.rules._methods import is_false
from perflint.rules._operators import operators
from perflint.rules._visible import is_local
from perflint.semantics.around import statement_of
from perflint.semantics.binders import LOOPS, targets
from perflint.semantics.dataflow.flow import Use
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import FUNCTIONS, GROWS, calls_in, keyword, last_name, root_of, walk
from perflint.semantics.values import Const, Device, DeviceValue, Value

_CLOCKS = operators("waits", "clocks")
_CAPTURES = operators("waits", "captures")
_STREAMS = frozenset(f"torch.{name}" for name in ("cuda.stream", "cuda.Stream", "Stream", "cuda.ExternalStream"))
_PROFILES_OR_SHARES = tuple(sorted(operators("waits", "profiles_or_shares")))
_METHODS_THAT_NEED_IT = frozenset(("elapsed_time", "wait_stream", "record_stream"))
_COPY = "torch.Tensor.copy_"
_REPLAY = "torch.cuda.CUDAGraph.replay"
_CPU = (Const("cpu"), DeviceValue(Device.CPU))
_MOST_USES = 80


def is_needed(site: CallSite) -> bool:
    """True if code at the place of a call times, captures, profiles or shares the work that the call waits for."""
    model, place, function = site.model, *_places(site.model, site.node)
    for call in calls_in(place):
        is_as_frequent = site.heat is Heat.COLD or model.heat(call) is not Heat.COLD
        if is_as_frequent and (_asks_for_it(model, call) or _captures(model, call) or _copies(site, call, place)):
            return True
    if place is function:
        return _is_timed_by_caller(model, function)
    return any(_asks_for_it(model, call) for call in _contexts(model, site.node)) or any(
        position(call) > _end(place) and _captures(model, call) for call in calls_in(function)
    )


def _is_timed_by_caller(model: Model, function: ast.AST) -> bool:
    """True if the file takes the time at the place of a call of a function, by its name."""
    callers = (call for call in model.nodes(ast.Call) if last_name(call) == getattr(function, "name", None))
    return any(model.target(call) in _CLOCKS for caller in callers for call in calls_in(_places(model, caller)[0]))


def _places(model: Model, node: ast.AST) -> tuple[ast.AST, ast.AST]:
    """The innermost loop around a node, and the outermost function or the file; the latter twice without a loop."""
    loop: ast.AST | None = None
    function: ast.AST = model.source.tree
    for outer in model.ancestors(node):
        if isinstance(outer, FUNCTIONS):
            function = outer
        elif loop is None and isinstance(outer, LOOPS):
            loop = outer
    return loop or function, function


def _contexts(model: Model, node: ast.AST) -> Iterator[ast.Call]:
    """The calls that make the contexts around a node."""
    for outer in model.ancestors(node):
        if isinstance(outer, (ast.With, ast.AsyncWith)):
            yield from (item.context_expr for item in outer.items if isinstance(item.context_expr, ast.Call))


def _asks_for_it(model: Model, call: ast.Call) -> bool:
    target = model.target(call)
    if target in _CLOCKS or target in _STREAMS or target.startswith(_PROFILES_OR_SHARES):
        return True
    return isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS_THAT_NEED_IT


def _captures(model: Model, call: ast.Call) -> bool:
    return model.target(call) in _CAPTURES


def _copies(site: CallSite, call: ast.Call, place: ast.AST) -> bool:
    """True if a call copies without a wait, and the CPU reads or fills the same memory after the wait."""
    given = keyword(call, "non_blocking")
    if given is None or is_false(given):
        return False
    copy = site.model.call(call)
    return _is_read_after(site, copy) if goes_to_cpu(copy) else is_filled_again(copy, place)


def goes_to_cpu(copy: CallSite) -> bool:
    if copy.target != _COPY or copy.receiver is None:
        given = [*copy.node.args, *(each.value for each in copy.node.keywords)]
        return _is_on(copy.value(copy.node), Device.CPU) or any(copy.value(each) in _CPU for each in given)
    source = copy.argument("src", 0)
    if _is_on(copy.receiver, Device.CPU):
        return True
    # A copy to an unknown place goes to the CPU, unless it comes from there, or a CUDA graph reads it.
    is_from_cpu = source is not None and _is_on(copy.value(source), Device.CPU)
    return not is_from_cpu and not _is_on(copy.receiver, Device.CUDA, Device.MODEL) and not _fills_graph(copy)


def _fills_graph(copy: CallSite) -> bool:
    """True if a graph is replayed after a copy: it fills the input of the graph."""
    function = copy.model.function(copy.node) or copy.model.source.tree
    return any(
        position(copy.node) < position(call) and copy.model.target(call) == _REPLAY for call in calls_in(function)
    )


def _is_on(value: Value, *devices: Device) -> bool:
    return any(getattr(member, "near", None) in devices for member in value.members) or (
        value.tensor is not None and value.tensor.device in devices
    )


def _is_read_after(site: CallSite, copy: CallSite) -> bool:
    """True if a copy to the CPU may be read after the wait, in the same turn of the loop or in the next one."""
    model, flow = site.model, flow_around(site.model, copy.node)
    for holder in holders(copy) or [copy.node]:
        if not isinstance(holder, ast.Name) or not is_local(model, holder):
            # Other code may read it.
            return True
        bounds = [flow.stored[holder]] if holder in flow.stored else flow.origins(holder)
        if not bounds or any(isinstance(bound.node, ast.arg) for bound in bounds):
            return True
        for bound in bounds:
            reach = flow.reach(bound, _MOST_USES)
            if reach is None or any(_is_after_wait(site, copy, use) for use in reach.uses if use is not holder):
                return True
    return False


def _is_after_wait(site: CallSite, copy: CallSite, use: Use) -> bool:
    """True if a use of a copy follows the wait, or puts the copy where other code may use it after the wait."""
    copied, waited, used = map(position, (copy.node, site.node, use))
    if copied < used < waited:
        return not isinstance(site.model.parent(use), ast.Attribute)
    # In a loop a turn may begin anywhere.
    return copied < waited < used or used < copied < waited or waited < used < copied


def holders(copy: CallSite) -> list[ast.expr]:
    """The names, attributes and containers that get the result of a copy; empty if unknown code does."""
    if copy.target == _COPY and copy.owner is not None:
        return [copy.owner]
    for outer in copy.model.ancestors(copy.node):
        if isinstance(outer, ast.Assign):
            return [part for target in outer.targets for part in targets(target)]
        if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Attribute) and outer.func.attr in GROWS:
            return [outer.func.value]
        if isinstance(outer, (ast.Call, ast.stmt)):
            return []
    return []


def is_filled_again(copy: CallSite, place: ast.AST) -> bool:
    """True if the CPU writes to the memory that a copy to the GPU reads, and that outlives a turn of the place."""
    source = copy.argument("src", 0) if copy.target == _COPY else copy.owner
    if source is None:
        return False
    # `host[step % 2]` is part of the same memory in each turn.
    root = root_of(source)
    if any(isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == root for node in walk(place)):
        return False
    memory, statement = memory_around(copy.model, copy.node), statement_of(copy.model, copy.node) or copy.node
    # `batch[key] = batch[key].to(device)` fills no memory.
    line, column = position(statement)
    parts = (position(place), (line, column - 1)), (_end(statement), _end(place))
    return any(memory.is_written(source, begin, end) for begin, end in parts)


def _end(node: ast.AST) -> Position:
    return getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)
