"""The layers of a file whose sizes the source shows, and which of these sizes are widths."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from perflint.semantics.model import Model
from perflint.semantics.values import Const, Instance, Scalar, Value

TINY = 32
"""Below this, filling up to the next multiple costs more than it saves, or nothing can be measured."""
LARGE = 512
"""From here a size counts though only one layer of the file has it: its product alone is dear."""
VOCABULARY = 8192
"""An output from here on is taken for a vocabulary, or another table of classes as large."""

_CONVOLUTIONS = {f"torch.nn.{name}{n}d" for name in ("Conv", "ConvTranspose") for n in (1, 2, 3)}
_TRANSFORMERS = {f"torch.nn.Transformer{part}" for part in ("", "EncoderLayer", "DecoderLayer")}
_TAKERS = {
    "torch.nn.LayerNorm": "normalized_shape",
    "torch.nn.RMSNorm": "normalized_shape",
    **{f"torch.nn.BatchNorm{n}d": "num_features" for n in (1, 2, 3)},
    **{f"torch.nn.InstanceNorm{n}d": "num_features" for n in (1, 2, 3)},
}


@dataclass(frozen=True, slots=True)
class Size:
    """One argument of a layer. `by_default` says that it is a default which a caller may override."""

    name: str
    value: int
    by_default: bool = False


@dataclass(frozen=True, slots=True)
class Layer:
    """A constructor call with the sizes that products with its weights have.

    `kind` is "linear", "convolution" or "attention"; `inner` is what each output is summed
    over, `outer` how many outputs there are. Attention has its width in both.
    """

    call: ast.Call
    made: Instance
    kind: str
    inner: Size | None
    outer: Size | None
    heads: Size | None = None

    @property
    def sizes(self) -> tuple[Size, ...]:
        """Those that are known."""
        return tuple(size for size in (self.inner, self.outer) if size is not None)

    @property
    def is_tiny(self) -> bool:
        """Whether its product is too small for its sizes to matter."""
        return any(size.value < TINY for size in self.sizes)


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers of a file, and the sizes that one hands on to another."""

    all: tuple[Layer, ...]
    handed_on: frozenset[int]

    def is_width(self, size: Size) -> bool:
        """Whether a size is the model's own choice: one layer puts it out and another takes it in, or it is large.

        The rest are what data and task prescribe: image channels, features, classes.
        """
        return size.value in self.handed_on or size.value >= LARGE


def layers(model: Model) -> Layers:
    """The layers that a file constructs with known sizes."""
    found: list[Layer] = []
    put_out: set[int] = set()
    taken_in: set[int] = set()
    for node in model.everything():
        if not isinstance(node, ast.Call) or not model.target(node).startswith("torch.nn."):
            continue
        made = model.value(node)
        if not isinstance(made, Instance) or made.arguments is None:
            continue
        layer = _layer(node, made)
        if layer is not None:
            found.append(layer)
            taken_in.update(size.value for size in (layer.inner,) if size)
            put_out.update(size.value for size in (layer.outer,) if size)
        taken_in.update(_of_others(made, _TAKERS.get(made.cls)))
        put_out.update(_of_others(made, "embedding_dim" if made.cls == "torch.nn.Embedding" else None))
    return Layers(tuple(found), frozenset(put_out & taken_in))


def _of_others(made: Instance, name: str | None) -> Iterator[int]:
    size = size_of(made, name) if name else None
    if size is not None:
        yield size.value


def _layer(call: ast.Call, made: Instance) -> Layer | None:
    if made.cls == "torch.nn.Linear":
        return Layer(call, made, "linear", size_of(made, "in_features"), size_of(made, "out_features"))
    if made.cls in _CONVOLUTIONS:
        if made.argument("groups") not in (None, Const(1)):
            return None
        return Layer(call, made, "convolution", size_of(made, "in_channels"), size_of(made, "out_channels"))
    if made.cls == "torch.nn.MultiheadAttention":
        width = size_of(made, "embed_dim")
        return Layer(call, made, "attention", width, width, _heads(width, size_of(made, "num_heads")))
    if made.cls in _TRANSFORMERS:
        width = size_of(made, "d_model")
        inner = size_of(made, "dim_feedforward") or width
        return Layer(call, made, "attention", width, inner, _heads(width, size_of(made, "nhead")))
    return None


def _heads(width: Size | None, number: Size | None) -> Size | None:
    """The size of one head."""
    if width is None or number is None or number.value <= 0 or width.value % number.value:
        return None
    by_default = width.by_default or number.by_default
    return Size("the size of a head", width.value // number.value, by_default)


def size_of(made: Instance, name: str) -> Size | None:
    """A size that a constructor was given, or defaults to by a parameter; None where it is not known."""
    value = made.argument(name)
    if value is None:
        return None
    known, by_default = _known(value)
    return None if known is None else Size(name, known, by_default)


def _known(value: Value) -> tuple[int | None, bool]:
    by_default = isinstance(value, Scalar)
    constant = value.default if isinstance(value, Scalar) else value
    if isinstance(constant, Const) and isinstance(constant.value, int) and not isinstance(constant.value, bool):
        return constant.value, by_default
    return None, False


def padded(value: int, multiple: int) -> int:
    """The next multiple."""
    return -(-value // multiple) * multiple
