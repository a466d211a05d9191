"""The layers of a file whose sizes the source shows, and which of these sizes are widths."""

from __future__ import annotations

import ast
from functools import cached_property

from perflint.frozen import dataclass
from perflint.rules._arguments import passed
from perflint.semantics.binders import defaults
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.values import Const, Instance, Scalar, Value

TINY = 32
"""Below this, filling up to the next multiple costs more than it saves, or nothing can be measured."""
LARGE = 512
"""From here a size counts although only one layer of the file has it: its product alone is expensive."""
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
    """One argument of a layer. `by_default` says that it is a default which a caller may override.

    `written` is where the file writes that default, if it does.
    """

    name: str
    value: int
    by_default: bool = False
    written: ast.expr | ast.stmt | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """A constructor call with the sizes that products with its weights have.

    `kind` is "linear", "convolution" or "attention"; `inner` is the number of products in the
    sum for each output, `outer` the number of outputs. Attention has its width in both.
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
        """True if its product is too small for its sizes to matter."""
        return any(size.value < TINY for size in self.sizes)


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers of a file, and the sizes that one passes to another."""

    all: tuple[Layer, ...]
    handed_on: frozenset[int]
    embeddings: tuple[tuple[ast.Call, Size], ...]
    """With the numbers of their rows."""

    def is_width(self, size: Size) -> bool:
        """True if a size is the model's own choice: one layer puts it out and another takes it in, or it is large.

        Data and task prescribe the others: image channels, features, classes.
        """
        return size.value in self.handed_on or size.value >= LARGE


@once
def layers(model: Model) -> Layers:
    """The layers that a file constructs with known sizes."""
    reader = _Reader(model)
    found: list[Layer] = []
    embeddings: list[tuple[ast.Call, Size]] = []
    put_out: set[int] = set()
    taken_in: set[int] = set()
    for node in model.nodes(ast.Call):
        target = model.target(node)
        if not target.startswith("torch.nn."):
            continue
        made = model.value(node)
        # `nn.Linear(3, 3).cuda()` returns a layer that it does not construct.
        if not isinstance(made, Instance) or made.arguments is None or made.cls != target:
            continue
        layer = _layer(node, made, reader)
        if layer is not None:
            found.append(layer)
            taken_in.update(size.value for size in (layer.inner,) if size)
            put_out.update(size.value for size in (layer.outer,) if size)
        elif made.cls in _TAKERS:
            taken_in.update(size.value for size in (reader.size(node, made, _TAKERS[made.cls]),) if size)
        elif made.cls == "torch.nn.Embedding":
            put_out.update(size.value for size in (reader.size(node, made, "embedding_dim"),) if size)
            embeddings += [(node, size) for size in (reader.size(node, made, "num_embeddings"),) if size]
    return Layers(tuple(found), frozenset(put_out & taken_in), tuple(embeddings))


def _layer(call: ast.Call, made: Instance, reader: _Reader) -> Layer | None:
    def size(name: str) -> Size | None:
        return reader.size(call, made, name)

    if made.cls == "torch.nn.Linear":
        return Layer(call, made, "linear", size("in_features"), size("out_features"))
    if made.cls in _CONVOLUTIONS:
        if made.argument("groups") not in (None, Const(1)):
            return None
        return Layer(call, made, "convolution", size("in_channels"), size("out_channels"))
    if made.cls == "torch.nn.MultiheadAttention":
        width = size("embed_dim")
        return Layer(call, made, "attention", width, width, _heads(width, size("num_heads")))
    if made.cls in _TRANSFORMERS:
        width = size("d_model")
        return Layer(call, made, "attention", width, size("dim_feedforward") or width, _heads(width, size("nhead")))
    return None


def _heads(width: Size | None, number: Size | None) -> Size | None:
    """The size of one head."""
    if width is None or number is None or number.value <= 0 or width.value % number.value:
        return None
    by_default = width.by_default or number.by_default
    return Size("the size of a head", width.value // number.value, by_default)


class _Reader:
    """Reads the sizes that a file's constructor calls are given."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @cached_property
    def _fields(self) -> dict[str, ast.Assign | ast.AnnAssign]:
        return _fields(self._model)

    def size(self, call: ast.Call, made: Instance, name: str) -> Size | None:
        """A size that is known, be it as the default of a parameter or of a configuration's field."""
        given = passed(call, made, name)
        value, by_default = _known(made.argument(name))
        if value is not None:
            return Size(name, value, by_default, self._written(given, value) if by_default else None)
        field = self._fields.get(given.attr) if isinstance(given, ast.Attribute) else None
        if field is None:
            return None
        return Size(name, _number(field.value) or 0, True, field)

    def _written(self, given: ast.expr | None, value: int) -> ast.expr | ast.stmt | None:
        """The place of the default that is the value of an expression: at a field, or at a parameter around."""
        if isinstance(given, ast.Attribute):
            field = self._fields.get(given.attr)
            return field if field is not None and _number(field.value) == value else None
        function = self._model.function(given) if isinstance(given, ast.Name) else None
        if function is None or not isinstance(given, ast.Name):
            return None
        default = defaults(function).get(given.id)
        return default if default is not None and _number(default) == value else None


def _fields(model: Model) -> dict[str, ast.Assign | ast.AnnAssign]:
    """The numbers that the bodies of classes assign, by name; those that something else assigns too are left out."""
    found: dict[str, ast.Assign | ast.AnnAssign] = {}
    unclear: set[str] = set()
    unclear.update(node.attr for node in model.nodes(ast.Attribute) if not isinstance(node.ctx, ast.Load))
    unclear.update(node.arg for node in model.nodes(ast.keyword) if node.arg and _number(node.value) is not None)
    assignments: list[ast.Assign | ast.AnnAssign] = [*model.nodes(ast.Assign), *model.nodes(ast.AnnAssign)]
    for node in assignments:
        if isinstance(model.parent(node), ast.ClassDef):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(target, ast.Name) and _number(node.value) is not None:
                if target.id in found:
                    unclear.add(target.id)
                found[target.id] = node
    return {name: node for name, node in found.items() if name not in unclear}


def _number(node: ast.expr | None) -> int | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None


def _known(value: Value | None) -> tuple[int | None, bool]:
    """A number, and True if it is only a default."""
    by_default = isinstance(value, Scalar)
    constant = value.default if isinstance(value, Scalar) else value
    # No dimension is larger, and no larger number can always be written out.
    if isinstance(constant, Const) and type(constant.value) is int and abs(constant.value) < 1 << 63:
        return constant.value, by_default
    return None, False


def padded(value: int, multiple: int) -> int:
    """The next multiple."""
    return -(-value // multiple) * multiple
