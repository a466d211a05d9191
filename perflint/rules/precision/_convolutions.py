"""Which modules are networks of two-dimensional convolutions, as far as the code shows."""

from __future__ import annotations

import ast
import re

from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.module import Module
from perflint.semantics.structure import keyword, last_name, path_of, walk
from perflint.semantics.values import Const, Dtype, Instance, Sequence, Value

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
_HALF = frozenset({"half", "float16", "bfloat16"})
_DEEPEST = 4


def is_convolutional(model: Model, callee: ast.expr) -> bool:
    """True if the callee is certainly a module of two-dimensional convolutions, without attention."""
    members = model.value(callee).members
    known = [each for each in members if isinstance(each, Instance) and each.cls != "torch.nn.Module"]
    if known:
        return all(_holds_convolutions(model, each, _DEEPEST) for each in known)
    return any(_is_made_by_library(model, call) for call in _makers(model, callee))


def is_half(model: Model, callee: ast.expr) -> bool:
    """True if the code that makes a module, or a statement on it, converts it to float16 or bfloat16."""
    return any(_converts(model, call) for call in _makers(model, callee))


def _makers(model: Model, callee: ast.expr) -> list[ast.Call]:
    """The calls in the values that a name or attribute is bound to, and in the statements that are calls on it."""
    path, here = path_of(callee), {None, model.function(callee), *model.ancestors(callee)}
    bound = _bound(model, model.source.tree).get(path, ()) if path else ()
    made = [node.value for node in bound if "." in path or model.function(node) in here]
    return [call for value in made for call in walk(value) if isinstance(call, ast.Call)]


def _converts(model: Model, call: ast.Call) -> bool:
    """True for `.half()`, `.to(torch.bfloat16)` and `make(dtype=torch.float16)`."""
    name = last_name(call)
    if name in ("half", "bfloat16"):
        return not call.args and isinstance(call.func, ast.Attribute)
    given = [each.value for each in call.keywords if each.arg in ("dtype", "torch_dtype")]
    values = map(model.value, [*given, *call.args] if name == "to" else given)
    return any(isinstance(value, Dtype) and value.name in _HALF for value in values)


@once_per_node
def _bound(model: Model, tree: ast.Module) -> dict[str, list[ast.Assign | ast.Expr]]:
    """The assignments of a file, and the statements that only call methods, by the names and attributes of these."""
    found: dict[str, list[ast.Assign | ast.Expr]] = {}
    for node in model.nodes(ast.Assign):
        for path in dict.fromkeys(map(path_of, node.targets)):
            found.setdefault(path, []).append(node)
    for statement in model.nodes(ast.Expr):
        called = statement.value
        while isinstance(called, ast.Call) and isinstance(called.func, ast.Attribute):
            called = called.func.value
        if called is not statement.value and (path := path_of(called)):
            found.setdefault(path, []).append(statement)
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
