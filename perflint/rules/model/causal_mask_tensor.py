"""TPF311: a causal mask that is passed to attention as a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum

from perflint.findings import Effect, Finding, Severity
from perflint.frozen import dataclass
from perflint.rules._memory.flows import made
from perflint.rules._methods import is_false
from perflint.rules._operators import operators
from perflint.rules._sources import called, given, operands, sources
from perflint.rules.base import Calls, CallSite, Mentions, Rule, often
from perflint.semantics.model import Model
from perflint.semantics.structure import is_none, keyword, last_name
from perflint.semantics.values import Const, Dtype, Kind


class _Part(Enum):
    """The part of a matrix whose elements are not zero: its rows are queries and its columns are keys."""

    SEEN = "the diagonal and below"
    LATER = "above the diagonal"
    FROM_DIAGONAL = "the diagonal and above"
    BEFORE = "below the diagonal"
    WHOLE = "all"
    NOTHING = "none"


@dataclass(frozen=True, slots=True)
class _Matrix:
    part: _Part
    is_hiding: bool = False
    """True if the elements are so small that a softmax makes them zero."""
    is_bool: bool = False


_TURNED = {
    _Part.SEEN: _Part.FROM_DIAGONAL,
    _Part.FROM_DIAGONAL: _Part.SEEN,
    _Part.LATER: _Part.BEFORE,
    _Part.BEFORE: _Part.LATER,
}
_OPPOSITE = {
    _Part.SEEN: _Part.LATER,
    _Part.LATER: _Part.SEEN,
    _Part.FROM_DIAGONAL: _Part.BEFORE,
    _Part.BEFORE: _Part.FROM_DIAGONAL,
}
_TRIANGLES: dict[tuple[str, object], _Part] = {
    ("tril", 0): _Part.SEEN,
    ("tril", -1): _Part.BEFORE,
    ("triu", 1): _Part.LATER,
    ("triu", 0): _Part.FROM_DIAGONAL,
}
_KEEP = operators("masks", "keep")
"""Methods that change neither which elements are zero nor their order."""
_MAKES = frozenset({"ones", "ones_like", "new_ones", "full", "full_like", "new_full"})
_CLEARS = frozenset({"zeros", "zeros_like", "new_zeros"})
_TURNS = frozenset({"transpose", "t", "T", "mT"})
_LEAST = -1e4
"""A softmax of a mask with numbers from here on is zero in any float type."""


class _Masks:
    """The matrices that expressions of a file make."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.open: set[ast.expr] = set()
        """The expressions that are being read: one in a loop may need itself."""

    def _of_all(self, node: ast.expr) -> _Matrix | None:
        """The matrix that an expression makes, if all of its sources make the same."""
        found = {self.matrix(each) for each in sources(self.model, node)}
        return found.pop() if len(found) == 1 else None

    def matrix(self, node: ast.expr) -> _Matrix | None:
        """The matrix that an expression makes itself; None for all that is not known."""
        if node in self.open:
            return None
        self.open.add(node)
        found = self._written(node)
        self.open.discard(node)
        tensor = self.model.value(node).tensor
        if found is not None and tensor is not None and tensor.kind is Kind.BOOL:
            return _Matrix(found.part, is_bool=True)
        return found

    def _written(self, node: ast.expr) -> _Matrix | None:
        if isinstance(node, ast.Subscript):
            return self._of_all(node.value) if _begins_first(node.slice) else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return _opposite(self._of_all(node.operand))
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compared(node) or self._positions(node)
        if isinstance(node, ast.BinOp):
            return self._operation(node)
        if isinstance(node, ast.Attribute) and node.attr in _TURNS:
            return _turned(self._of_all(node.value))
        return self._called(node) if isinstance(node, ast.Call) else None

    def _called(self, call: ast.Call) -> _Matrix | None:
        name = called(self.model, call)
        if name == "generate_square_subsequent_mask":
            return _Matrix(_Part.LATER, is_hiding=True)
        if name in _CLEARS:
            return _Matrix(_Part.NOTHING)
        if name in _MAKES:
            return self._full(call, name)
        whole, *rest = operands(self.model, call) or [call.func]
        inner = self._of_all(whole)
        if inner is None:
            return None
        if name in ("tril", "triu", "tril_", "triu_"):
            return self._triangle(inner, name.rstrip("_"), keyword(call, "diagonal") or (rest[0] if rest else None))
        if name in ("logical_not", "bitwise_not"):
            return _opposite(inner)
        if name in ("masked_fill", "masked_fill_") and len(rest) == 2:
            return self._filled(inner, *rest)
        return _turned(inner) if name in _TURNS else inner if name in _KEEP else None

    def _full(self, call: ast.Call, name: str) -> _Matrix:
        fill = given(call, "fill_value", 1) if "full" in name else None
        hides = fill is not None and _is_hiding(self.model, fill)
        return _Matrix(_Part.WHOLE, hides, _is_bool(self.model, keyword(call, "dtype")))

    def _triangle(self, inner: _Matrix, name: str, diagonal: ast.expr | None) -> _Matrix | None:
        shift = Const(0) if diagonal is None else self.model.value(diagonal)
        part = _TRIANGLES.get((name, shift.value)) if isinstance(shift, Const) else None
        return None if part is None or inner.part is not _Part.WHOLE else _Matrix(part, inner.is_hiding, inner.is_bool)

    def _filled(self, inner: _Matrix, where: ast.expr, fill: ast.expr) -> _Matrix | None:
        """`zeros.masked_fill(later, -inf)`, and the fill with zeros of the other part."""
        place = self._of_all(where)
        if place is None:
            return None
        if _is_hiding(self.model, fill) and (inner.part is _Part.NOTHING or inner.part is _OPPOSITE.get(place.part)):
            return _Matrix(place.part, is_hiding=True)
        return (
            inner
            if self.model.value(fill) in (Const(0), Const(0.0)) and place.part is _OPPOSITE.get(inner.part)
            else None
        )

    def _operation(self, node: ast.BinOp) -> _Matrix | None:
        if isinstance(node.op, ast.Sub) and self.model.value(node.left) in (Const(1), Const(1.0)):
            return _opposite(self._of_all(node.right))
        if isinstance(node.op, ast.Mult):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if _is_hiding(self.model, other):
                    inner = self._of_all(one)
                    return None if inner is None else _Matrix(inner.part, is_hiding=True)
        return None

    def _compared(self, node: ast.Compare) -> _Matrix | None:
        """`mask == 0`, `mask == 1`, `mask > 0`."""
        number, operator = self.model.value(node.comparators[0]), node.ops[0]
        inner = self._of_all(node.left) if isinstance(number, Const) else None
        if inner is None or not isinstance(number, Const) or number.value not in (0, 1):
            return None
        stays = (
            isinstance(operator, ast.Eq) == (number.value == 1) if isinstance(operator, (ast.Eq, ast.NotEq)) else None
        )
        if stays is None:
            stays = True if isinstance(operator, ast.Gt) and number.value == 0 and not inner.is_hiding else None
        found = None if stays is None else inner if stays else _opposite(inner)
        return None if found is None else _Matrix(found.part, is_bool=True)

    def _positions(self, node: ast.Compare) -> _Matrix | None:
        """`i[:, None] >= i[None, :]` of positions from zero on."""
        left, right = (self._axis(each) for each in (node.left, node.comparators[0]))
        operators = {ast.GtE: _Part.SEEN, ast.Gt: _Part.BEFORE, ast.Lt: _Part.LATER, ast.LtE: _Part.FROM_DIAGONAL}
        part = operators.get(type(node.ops[0]))
        if part is None or {left, right} != {"rows", "columns"}:
            return None
        return _Matrix(part if left == "rows" else _TURNED[part], is_bool=True)

    def _axis(self, node: ast.expr) -> str:
        """The axis along which positions from zero on stand: "rows" or "columns"; empty if there is none."""
        rows = False
        for each in sources(self.model, node)[:1]:
            node = each
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            rows, node = is_none(parts[-1]) and len(parts) > 1, node.value
        elif isinstance(node, ast.Call) and last_name(node) == "unsqueeze" and isinstance(node.func, ast.Attribute):
            at = self.model.value(node.args[0]) if node.args else None
            if at not in (Const(0), Const(1), Const(-1)):
                return ""
            rows, node = at != Const(0), node.func.value
        made = sources(self.model, node)
        arange = made[0] if len(made) == 1 else None
        if not isinstance(arange, ast.Call) or self.model.target(arange) != "torch.arange":
            return ""
        if len(arange.args) > 1 or keyword(arange, "start") is not None or keyword(arange, "step") is not None:
            return ""
        return "rows" if rows else "columns"


class CausalMaskTensor(Rule):
    """The causal mask is passed to `scaled_dot_product_attention` as a tensor.

    ## What it does
    Finds calls of `scaled_dot_product_attention` whose `attn_mask` is a lower triangle and nothing else: `tril` of
    ones, minus infinity above the diagonal, `generate_square_subsequent_mask`, a comparison of positions, also as a
    buffer of which the first rows and columns are taken.

    ## Why is this bad
    FlashAttention takes no mask: attention runs on another kernel, which reads the mask from memory and computes
    the half that it hides. With `is_causal=True`, no mask is made, stored or read, and the kernel leaves that half
    out. In a forward pass of GPT-2 with 8 × 1024 tokens in bfloat16, that costs 24% on an H200; in its training
    under autocast 9% in the median, but nothing in one of five runs. Longer sequences lose more: a change of
    [Keras](https://github.com/keras-team/keras/pull/22910) made the forward pass of causal attention 1.10 × faster
    for 1024 tokens and 2.62 × for 4096, on an A100 in float16 with batches of 4 and 12 heads of 64.

    ## When it is fine
    - The mask also hides padding, or belongs to a window: it is not causal alone, and not reported.
    - The queries continue a cache: the mask begins at a later row. Not reported;
      `torch.nn.attention.bias.causal_lower_right` has a fast kernel.
    - Masks that come from callers of other files.

    ## Bad
    ```python
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mask", torch.tril(torch.ones(1024, 1024, dtype=torch.bool)))

        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            t = q.shape[-2]
            return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=self.mask[:t, :t])
    ```

    ## Good
    ```python
    import torch
    from torch import nn

    class Attention(nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    ```

    ## Fix safety
    No fix: the mask may have other uses. The result is the same but for rounding.

    ## How a GPU shows it
    A profile shows `fmha_cutlass` or `mem_efficient` kernels instead of `flash_fwd`.

    ## References
    - [scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
    - [torch.nn.attention.bias](https://docs.pytorch.org/docs/stable/nn.attention.bias.html)
    """

    code, name = "TPF311", "causal-mask-tensor"
    effect, severity = Effect.COMPUTE, Severity.WARNING
    measured = ("causal-mask-tensor-prefill", "causal-mask-tensor-gpt")
    costs = "a mask as a tensor makes a forward pass of GPT-2 with 8 × 1024 tokens {0} slower"
    since = (2, 0)
    listens = (Calls("torch.nn.functional.scaled_dot_product_attention"),)
    mentions = Mentions("tril", "triu", "generate_square_subsequent_mask", "arange")

    def check(self, site: CallSite) -> Iterator[Finding]:
        mask, flag = site.argument("attn_mask", 3), site.argument("is_causal", 5)
        if mask is None or not (flag is None or is_false(flag)) or not _is_causal_mask(site.model, mask):
            return
        yield self.finding(
            site,
            f"`attn_mask` is the causal mask, which FlashAttention does not take as a tensor{often(site)}",
            help="Pass `is_causal=True`, and no mask.",
        )


def _is_causal_mask(model: Model, node: ast.expr) -> bool:
    """True if an argument for `attn_mask` lets each position see itself and those before it, and no others."""
    masks = _Masks(model)
    found = [masks.matrix(each) for each in sources(model, node)]
    return bool(found) and all(map(_is_causal, found))


def _is_causal(mask: _Matrix | None) -> bool:
    if mask is None:
        return False
    return mask.part is _Part.LATER if mask.is_hiding else mask.part is _Part.SEEN and mask.is_bool


def _begins_first(index: ast.expr) -> bool:
    """True if an index takes the first rows and columns, and new or leading axes."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(_is_start(each) for each in parts)


def _is_start(part: ast.expr) -> bool:
    if isinstance(part, ast.Slice):
        return part.step is None and (
            part.lower is None or (isinstance(part.lower, ast.Constant) and not part.lower.value)
        )
    return isinstance(part, ast.Constant) and part.value in (None, Ellipsis)


def _is_hiding(model: Model, node: ast.expr) -> bool:
    """True for minus infinity, the least number of a type, and other very small numbers."""
    value, node = model.value(node), made(model, node)
    if isinstance(value, Const) and isinstance(value.value, (int, float)):
        return value.value <= _LEAST
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        operand = made(model, node.operand)
        return last_name(operand) == "inf" or _text_of_float(model, operand) in ("inf", "infinity")
    if isinstance(node, ast.Attribute) and node.attr == "min":
        return isinstance(node.value, ast.Call) and model.target(node.value) == "torch.finfo"
    return _text_of_float(model, node) in ("-inf", "-infinity")


def _text_of_float(model: Model, node: ast.expr) -> str:
    """The text of `float("-inf")`."""
    if not isinstance(node, ast.Call) or last_name(node) != "float" or len(node.args) != 1:
        return ""
    text = model.value(node.args[0])
    return text.value.lower() if isinstance(text, Const) and isinstance(text.value, str) else ""


def _is_bool(model: Model, dtype: ast.expr | None) -> bool:
    value = None if dtype is None else model.value(dtype)
    return isinstance(value, Dtype) and value.kind is Kind.BOOL


def _opposite(inner: _Matrix | None) -> _Matrix | None:
    if inner is None or inner.is_hiding or inner.part not in _OPPOSITE:
        return None
    return _Matrix(_OPPOSITE[inner.part], is_bool=inner.is_bool)


def _turned(inner: _Matrix | None) -> _Matrix | None:
    return (
        None
        if inner is None or inner.part not in _TURNED
        else _Matrix(_TURNED[inner.part], inner.is_hiding, inner.is_bool)
    )
