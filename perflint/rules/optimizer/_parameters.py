"""Loops over the parameters of a module, of an optimizer's group or of two modules side by side."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.rules._methods import call_site
from perflint.semantics.model import Model
from perflint.semantics.structure import names_in, walk

_METHODS = frozenset({"parameters", "named_parameters", "buffers", "named_buffers"})
_PASS_ON = frozenset(f"builtins.{name}" for name in ("zip", "list", "enumerate", "filter", "tuple", "reversed"))


def goes_over_parameters(model: Model, node: ast.expr, names: bool = True) -> bool:
    """Whether a loop over something goes over the parameters of a module or of an optimizer's group."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "params"
    if isinstance(node, ast.Name):
        return names and _holds_parameters(model, node)
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        return True
    if call_site(model, node).target not in _PASS_ON:
        return False
    return any(goes_over_parameters(model, part, names) for part in node.args)


def _holds_parameters(model: Model, node: ast.Name) -> bool:
    """Whether a name of the same function is given the parameters of something, and nothing else."""
    function = model.function(node)
    given = [
        each.value
        for each in model.nodes(ast.Assign)
        if any(isinstance(target, ast.Name) and target.id == node.id for target in each.targets)
        and model.function(each) is function
    ]
    return bool(given) and all(goes_over_parameters(model, value, names=False) for value in given)


def parameter_loops(model: Model) -> Iterator[ast.For]:
    """The loops of a file over parameters; of nested ones the innermost."""
    for loop in model.nodes(ast.For):
        if goes_over_parameters(model, loop.iter):
            yield loop


def derived_names(loop: ast.For) -> set[str]:
    """The names that a loop binds, and those that its body makes of them."""
    found = names_in(loop.target)
    for node in walk(loop):
        if isinstance(node, ast.Assign) and names_in(node.value) & found:
            found |= {name for target in node.targets for name in names_in(target)}
    return found
