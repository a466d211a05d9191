"""Whether an expression may carry a gradient: whether it comes from a model that is trained, or from data."""

from __future__ import annotations

import ast

from perflint.rules.evaluation._contexts import suspended_in_text
from perflint.rules.evaluation._modules import Modules
from perflint.rules.evaluation._runs import is_named_as_model
from perflint.rules.evaluation._scopes import Survey, dotted
from perflint.semantics.bindings import How, definitions
from perflint.semantics.structure import last_name, walk
from perflint.semantics.values import Instance

_CUTS = frozenset({"argmax", "argmin", "data", "detach", "device", "dtype", "item", "numpy", "shape", "size", "tolist"})
_DEEPEST = 12


def carries(survey: Survey, modules: Modules, expression: ast.expr, depth: int = _DEEPEST) -> bool:
    """Whether a gradient may flow back from an expression into a model or a parameter.

    What a function is given, and what code that is not seen returns for data, is taken for data.
    """
    if depth == 0 or isinstance(expression, ast.Lambda):
        return True
    if isinstance(expression, (ast.Constant, ast.Compare, ast.JoinedStr)):
        return False
    if isinstance(expression, ast.Name):
        return _name_carries(survey, modules, expression, depth)
    if isinstance(expression, ast.Attribute):
        path = dotted(expression)
        if expression.attr in _CUTS or path.startswith(("torch.", "np.", "numpy.")):
            return False
        if path.startswith("self."):
            return _is_parameter(survey, expression)
        return carries(survey, modules, expression.value, depth - 1)
    if isinstance(expression, ast.Call):
        return _call_carries(survey, modules, expression, depth)
    parts = [child for child in ast.iter_child_nodes(expression) if isinstance(child, (ast.expr, ast.comprehension))]
    inner = [part.iter if isinstance(part, ast.comprehension) else part for part in parts]
    return any(carries(survey, modules, part, depth - 1) for part in inner)


def _name_carries(survey: Survey, modules: Modules, name: ast.Name, depth: int) -> bool:
    found = definitions(name, survey.model.ancestors(name), name.id)
    for binding in found.bindings:
        if binding.how in (How.PARAMETER, How.IMPORT, How.DEFINITION) or binding.value is None:
            continue
        if suspended_in_text(survey, survey.scope_around(binding.value), binding.value):
            continue
        if any(inner is name for inner in walk(binding.value)):
            # `x = f(x)` in a loop: what it was before comes by other bindings.
            continue
        if carries(survey, modules, binding.value, depth - 1):
            return True
    return False


def _call_carries(survey: Survey, modules: Modules, call: ast.Call, depth: int) -> bool:
    if last_name(call) in _CUTS:
        return False
    if last_name(call) in ("Parameter", "requires_grad_") or _asks_for_gradient(call):
        return True
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if _runs_model(survey, modules, call):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        copies = [modules.holder(call, dotted(each)) for each in (call.func, owner) if dotted(each)]
        if not any(modules.follows(each) or modules.stays(each) or modules.is_frozen(each) for each in copies):
            return True
    elif isinstance(call.func, ast.Attribute):
        given.append(call.func.value)
    for other in survey.called(call) if _is_of_file(survey, call.func) else ():
        recorded = (inner for inner in other.calls if not suspended_in_text(survey, other, inner))
        if any(_runs_model(survey, modules, inner) for inner in recorded):
            return True
    return any(carries(survey, modules, each, depth - 1) for each in given)


def _runs_model(survey: Survey, modules: Modules, call: ast.Call) -> bool:
    """Whether a call runs a module, or a method of one."""
    model, path = survey.model, dotted(call.func)
    if model.target(call) == "torch.nn.Module.__call__":
        return True
    if path and modules.holder(call, path) in modules.held:
        return True
    if path and is_named_as_model(survey, call.func):
        return True
    if not isinstance(call.func, ast.Attribute):
        return False
    value, owner = model.value(call.func.value), dotted(call.func.value)
    if isinstance(value, Instance) and model.is_module(value):
        return True
    return bool(owner) and modules.holder(call, owner) in modules.held


def _is_of_file(survey: Survey, callee: ast.expr) -> bool:
    """Whether a callee of a function's name is that function: methods of objects that are not seen are others."""
    if isinstance(callee, ast.Attribute):
        return dotted(callee.value) in ("self", "cls") or isinstance(survey.model.value(callee.value), Instance)
    return True


def _asks_for_gradient(call: ast.Call) -> bool:
    return any(
        keyword.arg == "requires_grad" and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
        for keyword in call.keywords
    )


def _is_parameter(survey: Survey, attribute: ast.Attribute) -> bool:
    """Whether the file makes an attribute of `self` a parameter somewhere."""
    path = dotted(attribute)
    values = [node.value for node in survey.all(ast.Assign) if any(dotted(target) == path for target in node.targets)]
    made = (inner for value in values for inner in walk(value))
    return any(isinstance(inner, ast.Call) and last_name(inner) == "Parameter" for inner in made)
