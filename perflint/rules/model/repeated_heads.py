"""TPF312: heads of keys and values that are copied for groups of queries."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules._memory.flows import made
from perflint.rules._numbers import integer
from perflint.rules._sources import called, operands, sources
from perflint.rules.base import Calls, CallSite, Mentions, Rule, often, shown
from perflint.rules.precision._region import region
from perflint.semantics.model import Model
from perflint.semantics.structure import is_none, keyword, last_name
from perflint.semantics.values import Const

_SAME = frozenset({"to", "type_as", "type", "contiguous", "float", "half", "bfloat16", "clone", "cuda", "detach"})
_JOINS = frozenset({"reshape", "view", "flatten", "contiguous"})
_SPREADS = frozenset({"expand", "repeat"})
_HEADS = 1
"""The axis of the heads of the arguments of attention: (batch, heads, tokens, width)."""


class RepeatedHeads(Rule):
    """Attention gets copies of its keys and values, one for each query of a group.

    ## What it does
    Finds calls of `scaled_dot_product_attention` without a mask whose keys or values are the result of
    `repeat_interleave` along the heads, of `x[:, :, None].expand(…).reshape(…)`, or of `einops.repeat`, also in a
    function of the file. Files that mention `enable_gqa` are not reported: they choose.

    ## Why is this bad
    With four queries for each key, all keys and values are written and read four times in each layer of each step;
    in decoding, that is the whole cache for each token. FlashAttention and cuDNN read each head once for its whole
    group if `enable_gqa=True` says so. On an H200 in bfloat16, a decoder with 1.3 billion parameters takes 2.3 × as
    long for a token after 4096, with a batch of 16 and four queries for each key. Training of GPT-2 with 8 × 1024
    tokens takes no longer than chance explains (3%), and the source rarely shows which of the two it is: so a
    finding is a warning. A change of [Sapiens2](https://github.com/facebookresearch/sapiens2/pull/3) gave the same
    numbers bit for bit, with less time in bfloat16 on an RTX 5090.

    ## When it is fine
    - In float32, on a GPU before Ampere, and with a mask, no kernel but the plain one takes fewer heads, and that one
      is slower than the copies: 3 × in float32 in
      [a report](https://github.com/pytorch/pytorch/pull/181528). Calls with a mask are not reported.
    - Heads in another order, as `repeat` or `expand` before the heads gives them: not reported.
    - A single key for each query, or torch before 2.5.

    ## Bad
    ```python
    import torch
    import torch.nn.functional as F

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, group: int) -> torch.Tensor:
        k = k.repeat_interleave(group, dim=1)
        v = v.repeat_interleave(group, dim=1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    ```

    ## Good
    ```python
    import torch
    import torch.nn.functional as F

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    ```

    ## Fix safety
    No fix: in float32 it would be slower.

    ## How a GPU shows it
    A profile shows a copy of all keys and one of all values before each attention kernel.

    ## References
    - [scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
    """

    code, name = "TPF312", "repeated-heads"
    effect, severity = Effect.TRANSFER, Severity.ERROR
    measured = ("repeated-heads-decoding", "repeated-heads-gpt")
    costs = "after 4096 tokens, copied heads make a step of decoding {0} slower; training of GPT-2 loses nothing"
    since = (2, 5)
    listens = (Calls("torch.nn.functional.scaled_dot_product_attention"),)
    mentions = Mentions("repeat", "expand", without=("enable_gqa",))

    def check(self, site: CallSite) -> Iterator[Finding]:
        mask = site.argument("attn_mask", 3)
        if not (mask is None or is_none(mask)) or site.has_unpacking:
            return
        given = [site.argument(name, at) for at, name in enumerate(("query", "key", "value"))]
        found = [None if each is None else _repeated_heads(site.model, each) for each in given[1:]]
        copies = [each for each in found if each is not None]
        if not copies or any(each is not None and _is_cast(site, each) for each in given):
            return
        place = copies[0] if site.model.function(copies[0]) is site.model.function(site.node) else site.node
        yield self.finding(
            site,
            f"{shown(site, copies[0])} copies each head of the keys and values for its queries{often(site)}",
            confidence=Confidence.HIGH if region(site.model).half is not None else Confidence.MEDIUM,
            # Only decoding loses as much as the rule's severity says.
            severity=Severity.WARNING,
            span=site.model.source.span(place),
            help="In bfloat16 or float16, pass them as they are, with `enable_gqa=True`.",
        )


def _is_cast(site: CallSite, given: ast.expr) -> bool:
    """True if an argument is converted to float32 for the call."""
    made_of = made(site.model, given)
    return isinstance(made_of, ast.Call) and last_name(made_of) == "float"


def _repeated_heads(model: Model, node: ast.expr) -> ast.Call | None:
    """The call that copies each head of a key or value several times, one after the other; None if there is none."""
    seen: set[ast.expr] = set()
    copies = (_copies(model, source, _HEADS, seen) for source in sources(model, node))
    return next((each for each in copies if each is not None), None)


def _copies(model: Model, node: ast.expr, axis: int, seen: set[ast.expr]) -> ast.Call | None:
    """The call that copies along an axis of the value of an expression."""
    node = made(model, node)
    while isinstance(node, ast.Call) and node not in seen:
        seen.add(node)
        inner, *rest = operands(model, node) or [node.func]
        name = called(model, node)
        if name in ("transpose", "swapaxes", "swapdims"):
            axis = _other(model, rest, axis)
        elif name == "permute":
            axis = _taken(model, rest, axis)
        elif name == "repeat_interleave":
            return node if _is_along(model, node, rest, axis) else None
        elif name in _JOINS and _is_widened(model, inner, axis):
            return node
        elif name == "repeat" and model.target(node) in ("einops.repeat", "einops.einops.repeat"):
            return node if _is_grouped(rest) else None
        elif name not in _SAME:
            return None
        if axis < 0:
            return None
        found = sources(model, inner)
        if len(found) > 1:
            return next((each for each in (_copies(model, one, axis, seen) for one in found) if each is not None), None)
        node = found[0]
    return None


def _of_four(axis: int | None) -> int:
    return -1 if axis is None else axis % 4


def _other(model: Model, axes: list[ast.expr], axis: int) -> int:
    """The axis that a transposition puts at a place; -1 if it is not known."""
    first, second = [_of_four(integer(model, each)) for each in axes] if len(axes) == 2 else (-1, -1)
    if -1 in (first, second):
        return -1
    return second if axis == first else first if axis == second else axis


def _taken(model: Model, order: list[ast.expr], axis: int) -> int:
    axes = order[0].elts if len(order) == 1 and isinstance(order[0], (ast.Tuple, ast.List)) else order
    return _of_four(integer(model, axes[axis])) if len(axes) == 4 else -1


def _is_along(model: Model, call: ast.Call, rest: list[ast.expr], axis: int) -> bool:
    """True if `repeat_interleave` copies each element of an axis a number of times."""
    times, along = keyword(call, "repeats"), keyword(call, "dim")
    if times is None and rest:
        times, *rest = rest
    along = along or (rest[0] if rest else None)
    if times is None or model.value(times).tensor is not None or model.value(times) == Const(1):
        return False
    at = integer(model, along)
    return at is not None and _of_four(at) == axis


def _is_widened(model: Model, node: ast.expr, axis: int) -> bool:
    """True for `x[:, :, None].expand(…)`: a new axis behind the heads, along which nothing is copied yet."""
    for each in sources(model, node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in _SPREADS:
            if any(_new_axis(model, new) == axis + 1 for new in sources(model, each.func.value)):
                return True
    return False


def _new_axis(model: Model, node: ast.expr) -> int | None:
    """The place of the axis that `x[:, :, None]` or `x.unsqueeze(2)` adds."""
    if isinstance(node, ast.Call) and last_name(node) == "unsqueeze":
        at = integer(model, keyword(node, "dim") or operands(model, node)[-1])
        return None if at is None else at % 5
    parts = node.slice.elts if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) else []
    new = [place for place, part in enumerate(parts) if is_none(part)]
    rest = [part for part in parts if not is_none(part)]
    is_plain = all(isinstance(part, ast.Slice) and part.lower is None and part.upper is None for part in rest)
    return new[0] if len(new) == 1 and is_plain else None


def _is_grouped(rest: list[ast.expr]) -> bool:
    """True for `b h t d -> b (h n) t d`."""
    text = rest[0].value if rest and isinstance(rest[0], ast.Constant) else None
    left, _, right = text.partition("->") if isinstance(text, str) else ("", "", "")
    names = left.split()
    inner = right.partition("(")[2].partition(")")[0].split()
    return len(names) == 4 and len(inner) == 2 and inner[0] == names[_HEADS] and inner[1] not in names
