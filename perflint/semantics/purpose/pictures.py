"""Decides if code draws pictures, or copies them to the CPU, which shows, writes or sends them."""

from __future__ import annotations

import ast

from perflint.semantics.around import inside
from perflint.semantics.facts import conventions
from perflint.semantics.facts.rule_conventions import draws_by_name, holds_pictures
from perflint.semantics.heat.training import takes_steps
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import last_name, walk


def draws(model: Model, node: ast.AST) -> bool:
    """True if the code around a node draws, shows or writes pictures, by its names or by what it calls."""
    module = model.module
    if conventions.draws(module.name, module.packages) or _is_in_drawing_function(model, node):
        return True
    function = None if model.is_offered else model.function(node)
    return function is not None and not takes_steps(model, function) and _paints(model, function)


def _is_in_drawing_function(model: Model, node: ast.AST) -> bool:
    """True if a function or class around a node says that it draws pictures, or belongs to a viewer."""
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return any(isinstance(outer, definitions) and draws_by_name(outer.name) for outer in model.ancestors(node))


def joins_pictures(site: CallSite) -> bool:
    """True for `images.append(x.cpu())` and `{"image": x.cpu()}`, in a function that does not train."""
    function = site.model.function(site.node)
    if function is not None and takes_steps(site.model, function):
        return False
    inner: ast.AST = site.node
    for outer in inside(site.model, site.node):
        if isinstance(outer, ast.Call) and inner in outer.args:
            holder = outer.func.value if isinstance(outer.func, ast.Attribute) else None
            return last_name(outer) in ("append", "extend", "put") and bool(
                holder and holds_pictures(last_name(holder))
            )
        if isinstance(outer, ast.Dict):
            keys = [key for key, value in zip(outer.keys, outer.values, strict=True) if value is inner]
            return any(isinstance(key, ast.Constant) and bool(holds_pictures(str(key.value))) for key in keys)
        if isinstance(outer, ast.stmt):
            return False
        inner = outer
    return False


@once_per_node
def _paints(model: Model, function: ast.AST) -> bool:
    calls = (node for node in walk(function) if isinstance(node, ast.Call))
    return any(model.target(call).startswith(_PAINTERS) for call in calls)


_PAINTERS = ("matplotlib.pyplot.", "cv2.im", "cv2.resize", "PIL.Image.fromarray", "torchvision.utils.save_image")
"""Functions that draw, show or write pictures on the CPU."""
