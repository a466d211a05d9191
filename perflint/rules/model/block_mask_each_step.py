"""TPF316: a block mask that is built in each step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._guards import is_guarded
from perflint.rules._methods import is_true, serves_tests
from perflint.rules.base import Calls, CallSite, Rule, often, shown
from perflint.semantics.structure import last_name
from perflint.semantics.values import Function

_KEEPS = frozenset({"cache", "lru_cache", "cached", "memoize"})


class BlockMaskEachStep(Rule):
    """The block mask of `flex_attention` is built in each step.

    ## What it does
    Finds calls of `create_block_mask` in code that runs each step, outside of compiled code. If the function of the
    mask reads no tensor, the same mask could be kept; if it does, the call could be compiled.

    ## Why is this bad
    The call evaluates the function for each pair of positions, in a matrix of (tokens, tokens), and then counts
    blocks: it may take longer than the attention. Once in each step, for 8192 tokens and a window of 1024, it makes
    a forward pass of 12 layers 1.5 × as long on an H200 (7.0 ms, not 4.5). The mask of
    [TorchSpec](https://github.com/lightseekorg/TorchSpec/pull/187) took 35.3 ms as it was, and 3.7 compiled, which
    made training of a draft model for Qwen3-8B 1.11 × faster on a GB300. A mask that is kept takes no time.

    ## When it is fine
    - The mask is kept, by length or by a decorator such as `functools.lru_cache`: code under a condition is not
      reported.
    - The call is compiled: `_compile=True`, or `torch.compile(create_block_mask)`, for masks that depend on the batch.

    ## Bad
    ```python
    import torch
    from torch import nn
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    flex_attention = torch.compile(flex_attention)

    def causal(b, h, i, j):
        return i >= j

    class Attention(nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            mask = create_block_mask(causal, None, None, q.shape[2], k.shape[2])
            return flex_attention(q, k, v, block_mask=mask)
    ```

    ## Good
    ```python
    import functools

    import torch
    from torch import nn
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    flex_attention = torch.compile(flex_attention)

    def causal(b, h, i, j):
        return i >= j

    @functools.lru_cache
    def causal_mask(queries: int, keys: int):
        return create_block_mask(causal, None, None, queries, keys)

    class Attention(nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return flex_attention(q, k, v, block_mask=causal_mask(q.shape[2], k.shape[2]))
    ```

    ## Fix safety
    No fix: the mask has to be kept where its lengths are known.

    ## How a GPU shows it
    A profile shows comparisons and reductions over (tokens, tokens) before each attention kernel.

    ## References
    - [create_block_mask](https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html#torch.nn.attention.flex_attention.create_block_mask)
    """

    code, name = "TPF316", "block-mask-each-step"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = ("block-mask-each-step",)
    costs = "a mask for 8192 tokens that is built in each step makes a forward pass of 12 layers {0} slower"
    since = (2, 5)
    listens = (Calls("torch.nn.attention.flex_attention.create_block_mask"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        given = site.argument("mask_mod", 0)
        if site.heat is not Heat.HOT or given is None or serves_tests(site.model) or _is_kept(site):
            return
        if is_true(site.argument("_compile")) or site.model.compiled(site.node) is not None:
            return
        is_same = _reads_no_tensor(site, given)
        yield self.finding(
            site,
            f"{shown(site)} evaluates the mask for each pair of positions{often(site)}",
            confidence=Confidence.MEDIUM,
            help="Keep the mask for each length: its function reads no tensor."
            if is_same
            else "Compile the call once: `create_block_mask = torch.compile(create_block_mask)`.",
        )


def _is_kept(site: CallSite) -> bool:
    """True if a condition or a decorator may keep the mask of an earlier step."""
    function = site.model.function(site.node)
    decorators = function.decorator_list if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    return is_guarded(site.model, site.node) or any(last_name(each) in _KEEPS for each in decorators)


def _reads_no_tensor(site: CallSite, given: ast.expr) -> bool:
    """True if the function of a mask has no free variable that may be a tensor."""
    found = site.value(given).members
    return bool(found) and all(
        isinstance(each, Function) and all(value.tensor is None and not value.is_open for _, value in each.captured)
        for each in found
    )
