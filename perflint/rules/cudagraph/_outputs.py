"""Outputs of CUDA graphs: the tensors whose memory the next run of a graph writes to again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence
from perflint.frozen import dataclass
from perflint.rules._memory.operators import ALIASES, LAYS_OUT, VIEWS
from perflint.rules._operators import operators
from perflint.rules._sources import results
from perflint.rules.cudagraph._replays import is_visible, recorded, replays
from perflint.semantics.around import is_inside
from perflint.semantics.binders import How
from perflint.semantics.dataflow.definitions import definitions
from perflint.semantics.facts import torch_api
from perflint.semantics.model import Model
from perflint.semantics.structure import path_of
from perflint.semantics.values import Device, Function, Instance, Tensor
from perflint.source.quoting import quoted

_VIEWS = (VIEWS | LAYS_OUT) - operators("memory", "copies_if_needed")
"""Operators that copy nothing, or nothing if the tensor is laid out as usual."""


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a graph: the call or replay that runs the graph, and the clause that says what overwrites it."""

    run: ast.Call
    clause: str
    confidence: Confidence


def runs_graphs(model: Model) -> bool:
    """True if a file records a graph, or calls something that runs as one."""
    return bool(model.captures.blocks) or any(graphs_of(model, call) for call in model.nodes(ast.Call))


def outputs(model: Model, node: ast.expr, seen: frozenset[ast.AST] = frozenset()) -> Iterator[Output]:
    """The outputs of graphs that an expression may be, or be a view of."""
    node = _viewed(model, node)
    if node in seen:
        return
    seen |= {node}
    if isinstance(node, ast.Call):
        by = graphs_of(model, node)
        if by and not model.says("cudagraph_mark_step_begin"):
            name = quoted(model.source.written(node.func))
            yield Output(
                node, f"the next call of {name} may overwrite it: `{by}` runs it as a CUDA graph", Confidence.MEDIUM
            )
        else:
            yield from _returned(model, node, seen)
    elif path := path_of(node):
        yield from _replayed(model, node, path)
        if isinstance(node, ast.Name):
            for binding in definitions(model.symbols, node, node.id).bindings:
                if binding.how is How.ASSIGNED and isinstance(binding.value, (ast.Call, ast.Name, ast.Attribute)):
                    yield from outputs(model, binding.value, seen)


def graphs_of(model: Model, call: ast.Call) -> str:
    """The call that makes the callee run as CUDA graphs, in words.

    Empty if it does not, and if an argument is on the CPU, for which torch.compile uses no graphs.
    """
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if any(isinstance(tensor := model.value(each).tensor, Tensor) and tensor.device is Device.CPU for each in given):
        return ""
    members = [each for each in model.value(call.func).members if isinstance(each, (Function, Instance))]
    found = [_graphs_of(model, each) for each in members]
    return found[0] if found and all(found) else ""


def _graphs_of(model: Model, callee: Function | Instance) -> str:
    if callee.graphs or isinstance(callee, Instance):
        return callee.graphs
    compiled = model.compiled_function(callee)
    if compiled is not None:
        return compiled.options.text if compiled.depth == 0 and compiled.options.uses_graphs else ""
    return _graphs_by_decorator(model, callee) if callee.module != model.module.name else ""


def _graphs_by_decorator(model: Model, callee: Function) -> str:
    """The decorator that compiles a function of another file to CUDA graphs; empty if it has none."""
    found = model.view.function(callee)
    if found is None:
        return ""
    home, info = found
    for node in getattr(info.node, "decorator_list", ()):
        if isinstance(node, ast.Call) and home.symbols.full_name(node.func) == "torch.compile":
            given = {each.arg: getattr(each.value, "value", None) for each in node.keywords}
            if given.get("mode") in ("reduce-overhead", "max-autotune") or given.get("backend") == "cudagraphs":
                return f"@{ast.unparse(node)}"
    return ""


def _viewed(model: Model, node: ast.expr) -> ast.expr:
    """The expression that another one is a view or a field of: `x` for `x.detach()[0].T`."""
    while True:
        if (isinstance(node, ast.Subscript) and _is_view(model, node.slice)) or (
            isinstance(node, ast.Attribute) and (node.attr in ALIASES or _is_field(model, node))
        ):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            head, _, leaf = torch_api.canonical(model.target(node)).rpartition(".")
            if head != "torch.Tensor" or leaf not in _VIEWS:
                return node
            node = node.func.value
        else:
            return node


def _is_view(model: Model, index: ast.expr) -> bool:
    """True for an index of slices, numbers and texts; a tensor or a list as index copies."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(not isinstance(part, ast.List) and model.value(part).tensor is None for part in parts)


def _is_field(model: Model, node: ast.Attribute) -> bool:
    """True for a tensor in the object that a call returned: `output.logits`."""
    return isinstance(node.value, ast.Call) and bool(graphs_of(model, node.value))


def _returned(model: Model, call: ast.Call, seen: frozenset[ast.AST]) -> Iterator[Output]:
    """The output that a function of the file returns."""
    for info in model.functions_of(call.func):
        if info.node in seen:
            continue
        for result in results(model, info.node):
            for each in outputs(model, result, seen | {info.node}):
                if model.function(each.run) is info.node:
                    yield Output(call, each.clause, each.confidence)


def _replayed(model: Model, node: ast.expr, path: str) -> Iterator[Output]:
    """The output that a recorded block makes under a path, for each replay in the function around a node."""
    for block in recorded(model):
        if path in block.makes and is_visible(model, block, node, path):
            for replay in replays(model):
                if model.function(replay) is model.function(node):
                    clause = f"the next {quoted(model.source.written(replay))} overwrites it"
                    yield Output(replay, clause, Confidence.HIGH)


def records_again(model: Model, code: ast.AST) -> bool:
    """True if a capture begins in a stretch of code: each iteration has a graph of its own."""
    return any(is_inside(model, block.start, code) for block in model.captures.blocks)
