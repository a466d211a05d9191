"""TPF318: a cache of keys and values that grows by concatenation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._memory.flows import flow_around, made
from perflint.rules._sources import sources
from perflint.rules.base import CallSite, Files, FileSite, Rule, often, shown
from perflint.semantics.facts.tensors import makes_tensors
from perflint.semantics.model import Model
from perflint.semantics.structure import path_of, walk
from perflint.semantics.values import Const

_JOINS = ("torch.cat", "torch.concat", "torch.concatenate")


class GrowingCache(Rule):
    """A module keeps a tensor that grows by `torch.cat` in each call.

    ## What it does
    Finds `self.k = torch.cat([self.k, k], dim=…)` along another dimension than the first in code that runs each step,
    and the same with the entries of a dict or list.

    ## Why is this bad
    Each token allocates a new cache and copies all of the old one: over n tokens that is n²/2 rows in place of n,
    in each layer, and memory for two caches at a time. The shapes change with each token, so that neither a
    compiled graph nor a CUDA graph can be used again. A buffer of the greatest length is written in place. Measured
    on an H200 in bfloat16: 64 tokens after 16 × 4096 take a decoder of 1.3 billion parameters 4.4 × as long as with
    a buffer, and 8.8 × as long as with a buffer and a CUDA graph. GPT-2, after 8 × 512, loses nothing by itself:
    writing to the buffer launches as many kernels. With a graph, which only the buffer allows, it is 7.2 × as fast.

    ## When it is fine
    - A few tokens, or a cache that is filled once.
    - The length has no bound that memory could hold.

    ## Bad
    ```python
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.k, self.v = nn.Linear(512, 1536), None, None

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = self.qkv(x).chunk(3, -1)
            if self.k is not None:
                k, v = torch.cat([self.k, k], dim=1), torch.cat([self.v, v], dim=1)
            self.k, self.v = k, v
            return nn.functional.scaled_dot_product_attention(q, k, v)
    ```

    ## Good
    ```python
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self, longest: int = 2048):
            super().__init__()
            self.qkv = nn.Linear(512, 1536)
            self.register_buffer("k", torch.zeros(1, longest, 512))
            self.register_buffer("v", torch.zeros(1, longest, 512))

        def forward(self, x: torch.Tensor, position: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            q, k, v = self.qkv(x).chunk(3, -1)
            self.k.index_copy_(1, position, k)
            self.v.index_copy_(1, position, v)
            return nn.functional.scaled_dot_product_attention(q, self.k, self.v, attn_mask=mask)
    ```

    ## Fix safety
    No fix: the greatest length and a mask have to be known.

    ## How a GPU shows it
    A profile shows `CatArrayBatchedCopy` kernels that take longer with each token.

    ## References
    - [transformers: static cache](https://huggingface.co/docs/transformers/main/en/kv_cache)
    """

    code, name = "TPF318", "growing-cache"
    effect, severity = Effect.ALLOCATION, Severity.ERROR
    measured = ("growing-cache-decoder", "growing-cache-decoder-graph", "growing-cache-gpt", "growing-cache-gpt-graph")
    costs = "decoding after 16 × 4096 tokens is {0} slower than with a buffer, and {1} than with its graph"
    listens = (Files("torch.cat(", "torch.concat", "cat(", also=("self.", "[")),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        seen: set[ast.Call] = set()
        for statement in model.nodes(ast.Assign):
            for target, value in _pairs(model, statement):
                for call in _growths(model, target, value):
                    if call in seen or not (model.heat(call) is Heat.HOT or _grows_with_others(model, target, call)):
                        continue
                    seen.add(call)
                    grown: CallSite = model.call(call)
                    yield self.finding(
                        grown,
                        f"{shown(grown, call)} copies all of `{grown.text(target)}` in each call{often(grown)}",
                        confidence=Confidence.MEDIUM,
                        help="Write into a buffer of the greatest length, by `index_copy_` or a slice.",
                    )


def _grows_with_others(model: Model, target: ast.expr, call: ast.Call) -> bool:
    """True if a function lets two parts of an object grow, keys and values, unless it is known to run rarely."""
    function = model.function(call)
    if model.heat(call) is Heat.COLD or function is None or not path_of(target).startswith("self."):
        return False
    grown = {
        path_of(each)
        for statement in walk(function)
        if isinstance(statement, ast.Assign)
        for each, value in _pairs(model, statement)
        if any(True for _ in _growths(model, each, value))
    }
    return len(grown) > 1


def _pairs(model: Model, statement: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment that outlive a call, with their values."""
    target, value = statement.targets[0], statement.value
    both = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        both = list(zip(target.elts, value.elts, strict=True))
    yield from ((one, other) for one, other in both if _outlives(model, one))


def _outlives(model: Model, target: ast.expr) -> bool:
    """True for a part of `self`, or of an object that the function gets."""
    holder = target
    while isinstance(holder, (ast.Attribute, ast.Subscript)):
        holder = holder.value
    if holder is target or not isinstance(holder, ast.Name):
        return False
    origins = flow_around(model, holder).origins(holder)
    return bool(origins) and all(isinstance(each.node, ast.arg) for each in origins)


def _growths(model: Model, target: ast.expr, value: ast.expr) -> Iterator[ast.Call]:
    """The calls that join the old value of a target with more, and whose result becomes the new one."""
    text = model.source.written(target)
    for call in sources(model, value):
        if not isinstance(call, ast.Call) or model.target(call) not in _JOINS:
            continue
        joined, along = (model.call(call).argument(name, at) for at, name in enumerate(("tensors", "dim")))
        joined = None if joined is None else made(model, joined)
        elements = joined.elts if isinstance(joined, (ast.List, ast.Tuple)) else []
        first = [made(model, each) for each in elements[:1]]
        if along is not None and model.value(along) != Const(0) and len(elements) == 2:
            if any(model.source.written(each) == text for each in first) and not _is_other(model, elements[1]):
                yield call


def _is_other(model: Model, added: ast.expr) -> bool:
    """True for padding, and for a part of another object: two objects become one."""
    added = made(model, added)
    return isinstance(added, ast.Attribute) or (isinstance(added, ast.Call) and makes_tensors(model.target(added)))
