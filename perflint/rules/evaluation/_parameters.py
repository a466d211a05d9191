"""Decides if a module has parameters that autograd records: activations, poolings and fixed filters have none."""

from __future__ import annotations

import ast
import re

from perflint.rules._methods import is_true
from perflint.rules.evaluation._scopes import Survey, dotted
from perflint.semantics.module import Module
from perflint.semantics.structure import keyword, last_name, walk
from perflint.semantics.values import Instance, Value

_WITHOUT = re.compile(
    r"Loss|Pool|Pad|Dropout|LU$|Soft|Hard|Sigmoid|Tanh|Flatten|Identity|Upsampl|Shuffl|Similarity|Distance|Fold|"
    r"ChannelShuffle|Threshold|Mish|Module$|Sequential|ModuleList|ModuleDict|ParameterList|ParameterDict|InstanceNorm"
)
"""Names in torch.nn of modules without parameters of their own."""
_DEEPEST = 4


def may_have_parameters(survey: Survey, value: Value) -> bool:
    """True if a module may have parameters with gradients: not if the known code of its class has none."""
    made = [member.cls for member in value.members if isinstance(member, Instance)]
    return not made or any(_may_have(survey, name) for name in made)


def _may_have(survey: Survey, name: str) -> bool:
    if name.startswith("torch.nn."):
        plain = name.rpartition(".")[2]
        return plain in ("Module", "Sequential", "ModuleList", "PReLU") or _WITHOUT.search(plain) is None
    module, _, qualname = name.rpartition(".")
    home = survey.model.view.loaded(module)
    info = home.klass(qualname) if home is not None else None
    return home is None or info is None or _makes_parameters(home, info.node, _DEEPEST)


def _makes_parameters(home: Module, node: ast.ClassDef, depth: int) -> bool:
    """True if a class makes parameters, or parts that are not seen."""
    for base in node.bases:
        if _full_name(home, base) != "torch.nn.Module" and _part_makes(home, dotted(base), depth):
            return True
    return any(isinstance(inner, ast.Call) and _call_makes(home, inner, depth) for inner in walk(node))


def _call_makes(home: Module, call: ast.Call, depth: int) -> bool:
    name, last = _full_name(home, call.func), last_name(call)
    if name in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
        asked = keyword(call, "requires_grad")
        return asked is None or is_true(asked)
    if name.startswith("torch.nn.") and not name.startswith("torch.nn.functional."):
        return last[:1].isupper() and (last == "PReLU" or _WITHOUT.search(last) is None)
    made_here = any(c.isupper() for c in last[:1]) and not name.startswith(("torch.", "numpy.", "self."))
    return made_here and not last.endswith(("Error", "Warning")) and _part_makes(home, dotted(call.func), depth)


def _full_name(home: Module, node: ast.expr) -> str:
    head, dot, rest = dotted(node).partition(".")
    return f"{home.imports.get(head, head)}{dot}{rest}"


def _part_makes(home: Module, name: str, depth: int) -> bool:
    """True if a class that another is made of, or of the kind of, makes parameters; so does one that is not seen."""
    part = home.klass(name) if name and depth else None
    return part is None or _makes_parameters(home, part.node, depth - 1)
