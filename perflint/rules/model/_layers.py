"""Layers with a bias, norms that cancel it, and which of them meet on one axis."""

from __future__ import annotations

import ast

from perflint.frozen import dataclass
from perflint.rules._arguments import passed
from perflint.semantics.model import Model
from perflint.semantics.symbols import Symbols
from perflint.semantics.values import Const, Instance, Partial

_LAYERS = {
    **{f"torch.nn.{lazy}Conv{n}d": n for lazy in ("", "Lazy") for n in (1, 2, 3)},
    **{f"torch.nn.{lazy}ConvTranspose{n}d": n for lazy in ("", "Lazy") for n in (1, 2, 3)},
    "torch.nn.Linear": 0,
}
"""The dimensions after the channels in the output of a layer; the features of a linear layer come last."""
_NORMS = {
    **{f"torch.nn.{lazy}BatchNorm{n}d": n for lazy in ("", "Lazy") for n in (1, 2, 3)},
    **{f"torch.nn.{lazy}InstanceNorm{n}d": n for lazy in ("", "Lazy") for n in (1, 2, 3)},
    "torch.nn.SyncBatchNorm": None,
}
"""The dimensions after the channels in the input of a norm; None if their number is free."""


@dataclass(frozen=True, slots=True)
class Built:
    """A constructor call and the object that it makes."""

    call: ast.Call
    made: Instance

    @property
    def kind(self) -> str:
        """The class's own name."""
        return self.made.cls.rpartition(".")[2]


def layer(model: Model, names: Symbols, node: ast.AST) -> Built | None:
    """The layer that an expression constructs, all arguments in sight; None for anything else."""
    built = _built(model, names, node)
    return built if built is not None and built.made.cls in _LAYERS else None


def norm(model: Model, names: Symbols, node: ast.AST) -> Built | None:
    """The norm that an expression constructs, all arguments in sight; None for anything else."""
    built = _built(model, names, node)
    return built if built is not None and built.made.cls in _NORMS else None


def is_norm(value: Instance) -> bool:
    """True if an object is a norm that may cancel a bias."""
    return value.cls in _NORMS


def _built(model: Model, names: Symbols, node: ast.AST) -> Built | None:
    # A class that comes in by a parameter may be any class: the call must name it.
    if not isinstance(node, ast.Call) or not names.full_name(node.func).startswith("torch."):
        return None
    made = model.value(node)
    if not isinstance(made, Instance) or made.arguments is None or isinstance(model.value(node.func), Partial):
        return None
    return Built(node, made)


def has_bias(built: Built) -> bool:
    """True if a layer certainly has a bias: it is true by default, or said to be."""
    bias = built.made.argument("bias")
    return bias is None or bias == Const(True)


def cancels(first: Built, second: Built) -> bool:
    """True if a norm subtracts, channel by channel, the bias of the layer right before it."""
    if first.made.cls == "torch.nn.Linear":
        return _cancels_linear(first, second)
    behind = _NORMS[second.made.cls]
    if behind is not None and behind != _LAYERS[first.made.cls]:
        return False
    out, features = first.made.argument("out_channels"), second.made.argument("num_features")
    return not (isinstance(out, Const) and isinstance(features, Const) and out != features)


def _cancels_linear(first: Built, second: Built) -> bool:
    # A linear layer works on the last axis, a batch norm on the second: they are the same in two
    # dimensions. In three the norm's size is that of another axis, so equal sizes tell.
    if second.made.cls not in ("torch.nn.BatchNorm1d", "torch.nn.SyncBatchNorm"):
        return False
    out, features = first.made.argument("out_features"), second.made.argument("num_features")
    if isinstance(out, Const) and isinstance(features, Const):
        return out == features
    size = passed(first.call, first.made, "out_features")
    other = passed(second.call, second.made, "num_features")
    return size is not None and other is not None and ast.unparse(size) == ast.unparse(other)
