"""Which modules are networks of two-dimensional convolutions, as far as the code shows."""

from __future__ import annotations

import ast
import re

from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.module import Module
from perflint.semantics.structure import keyword, last_name, path_of, walk
from perflint.semantics.values import Const, Instance, Sequence, Value

_CONVOLUTIONS = re.compile(r"(Lazy)?Conv(Transpose)?2d$")
_OTHER = re.compile(
    r"Attention|Transformer|Embedding|LSTM|GRU|RNN|Conv(Transpose)?[13]d|scaled_dot_product|attn", re.IGNORECASE
)
"""Layers that do not benefit from another layout, or that prevent it."""
_LIBRARIES = ("torchvision.models.", "segmentation_models_pytorch.", "timm.", "torch.hub.load")
_NETWORKS = re.compile(
    r"(?:^|[./_])(?:seresne|wide_resne|resne|vgg|densenet|efficientnet|mobilenet|regnet|convnext|inception|googlenet"
    r"|shufflenet|mnasnet|squeezenet|fcn_resnet|deeplab|lraspp|unet|fpn|pspnet|linknet|darknet|rexnet|hrnet)",
    re.IGNORECASE,
)
"""Networks of convolutions as libraries name them; `resne` begins `resnet` and `resnext`."""
_DEEPEST = 4


def is_convolutional(model: Model, callee: ast.expr) -> bool:
    """True if the callee is certainly a module of two-dimensional convolutions, without attention."""
    members = model.value(callee).members
    known = [each for each in members if isinstance(each, Instance) and each.cls != "torch.nn.Module"]
    if known:
        return all(_holds_convolutions(model, each, _DEEPEST) for each in known)
    path, here = path_of(callee), {None, model.function(callee), *model.ancestors(callee)}
    assigned = _assignments(model, model.source.tree).get(path, ())
    made = [node.value for node in assigned if "." in path or model.function(node) in here]
    calls = [call for value in made for call in walk(value) if isinstance(call, ast.Call)]
    return any(_is_made_by_library(model, call) for call in calls)


@once_per_node
def _assignments(model: Model, tree: ast.Module) -> dict[str, list[ast.Assign]]:
    """The assignments of a file by the names and attributes that they bind."""
    found: dict[str, list[ast.Assign]] = {}
    for node in model.nodes(ast.Assign):
        for path in dict.fromkeys(map(path_of, node.targets)):
            found.setdefault(path, []).append(node)
    return found


def _is_made_by_library(model: Model, call: ast.Call) -> bool:
    target = model.target(call)
    if not target.startswith(_LIBRARIES):
        return False
    named = [each.value for argument in call.args if isinstance(each := model.value(argument), Const)]
    names = [target.rpartition(".")[2], *(each for each in named if isinstance(each, str))]
    return any(_NETWORKS.search(name) for name in names)


def _holds_convolutions(model: Model, value: Value, depth: int) -> bool:
    if not isinstance(value, Instance) or depth == 0:
        return False
    if value.cls.startswith("torch.nn."):
        if _CONVOLUTIONS.search(value.cls):
            return True
        parts = [part for _, argument in value.arguments or () for part in _parts(argument)]
        return any(_holds_convolutions(model, part, depth - 1) for part in parts)
    module, _, qualname = value.cls.rpartition(".")
    home = model.view.loaded(module)
    info = home.klass(qualname) if home is not None else None
    return home is not None and info is not None and _convolutions(home, info.node, set()) > 1


def _parts(value: Value) -> tuple[Value, ...]:
    if isinstance(value, Sequence):
        return value.items if value.items is not None else (value.element,)
    return value.members


def _convolutions(home: Module, node: ast.ClassDef, seen: set[str]) -> int:
    """How many convolutions a class and the classes of its file that it uses make; none where there is attention."""
    count = 0
    for call in (part for part in walk(node) if isinstance(part, ast.Call)):
        name = last_name(call)
        if _OTHER.search(name) or (_CONVOLUTIONS.search(name) and _is_along_one_axis(call)):
            return 0
        if _CONVOLUTIONS.search(name):
            count += 1
        inner = home.klass(name) if name not in seen else None
        if inner is not None:
            seen.add(name)
            if any(_OTHER.search(last_name(part)) for part in walk(inner.node) if isinstance(part, ast.Call)):
                return 0
            count += _convolutions(home, inner.node, seen)
    return count


def _is_along_one_axis(call: ast.Call) -> bool:
    """True if the kernel of a convolution is as those of signals are, which were folded into an image: (5, 1)."""
    kernel = call.args[2] if len(call.args) > 2 else keyword(call, "kernel_size")
    sides = kernel.elts if isinstance(kernel, ast.Tuple) else []
    return len(sides) == 2 and ast.dump(sides[0]) != ast.dump(sides[1])
