"""Loops over the parameters of a module, of an optimizer's group or of two modules side by side."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.frozen import dataclass
from perflint.rules._memory.flows import made
from perflint.rules._operators import operators
from perflint.rules._turns import heads
from perflint.semantics.facts import rule_conventions
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name, names_in

_METHODS = frozenset({"parameters", "named_parameters", "buffers", "named_buffers"})
_PASS_ON = operators("optimizers", "pass_on")
_Nothing: frozenset[str] = frozenset()


def goes_over_parameters(model: Model, node: ast.expr, seen: frozenset[str] = _Nothing) -> bool:
    """True if a loop over something goes over parameters, of a module or of an optimizer's group, or over gradients.

    `seen` are names that are being looked up already.
    """
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "params"
    if isinstance(node, ast.Name):
        return node.id not in seen and _holds_parameters(model, node, seen | {node.id})
    if isinstance(node, ast.Attribute):
        return bool(rule_conventions.holds_parameters(node.attr))
    if isinstance(node, ast.BinOp):
        return any(goes_over_parameters(model, part, seen) for part in (node.left, node.right))
    if isinstance(node, ast.IfExp):
        return any(goes_over_parameters(model, part, seen) for part in (node.body, node.orelse))
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return _keeps_parameters(model, node, seen)
    return isinstance(node, ast.Call) and _gives_parameters(model, node, seen)


def _gives_parameters(model: Model, node: ast.Call, seen: frozenset[str]) -> bool:
    if isinstance(node.func, ast.Attribute):
        if node.func.attr in _METHODS:
            return True
        if node.func.attr in ("values", "items", "keys"):
            owner = made(model, node.func.value)
            return isinstance(owner, ast.Call) and last_name(owner) == "state_dict"
    if model.target(node) not in _PASS_ON:
        return False
    return any(goes_over_parameters(model, part, seen) for part in node.args)


def _keeps_parameters(model: Model, node: ast.ListComp | ast.GeneratorExp, seen: frozenset[str]) -> bool:
    """True if a comprehension selects parameters or takes their gradients: `[p.grad for p in model.parameters()]`."""
    first = node.generators[0]
    kept = node.elt.func if isinstance(node.elt, ast.Call) else node.elt
    while isinstance(kept, ast.Attribute):
        kept = kept.value
    return (
        len(node.generators) == 1
        and isinstance(kept, ast.Name)
        and kept.id in names_in(first.target)
        and goes_over_parameters(model, first.iter, seen)
    )


def _holds_parameters(model: Model, node: ast.Name, seen: frozenset[str]) -> bool:
    """True if a name of the same function is given the parameters of something, and nothing else."""
    function = model.function(node)
    given = [
        each.value
        for each in model.nodes(ast.Assign)
        if any(isinstance(target, ast.Name) and target.id == node.id for target in each.targets)
        and model.function(each) is function
    ]
    # A name that is passed in may be bound to a list of itself.
    passed = _is_passed(function, node.id) and bool(rule_conventions.holds_parameters(node.id))
    if passed and all(node.id in names_in(value) for value in given):
        return True
    return bool(given) and all(goes_over_parameters(model, value, seen) for value in given)


def _is_passed(function: ast.AST | None, name: str) -> bool:
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return False
    return any(
        each.arg == name for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    )


@dataclass(frozen=True, slots=True)
class ParameterLoop:
    """A loop over parameters."""

    loop: ast.For | ast.While
    target: ast.expr
    over: ast.expr


def parameter_loops(model: Model) -> Iterator[ParameterLoop]:
    """The loops of a file over parameters; of nested ones the innermost."""
    loops: list[ast.For | ast.While] = [*model.nodes(ast.For), *model.nodes(ast.While)]
    for loop in loops:
        for target, over in heads(model, loop):
            if goes_over_parameters(model, over):
                yield ParameterLoop(loop, target, over)
