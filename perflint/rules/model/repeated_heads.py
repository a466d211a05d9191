"""TPF312: heads of keys and values that are copied for groups of queries."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules._memory.flows import made
from perflint.rules._words import often
from perflint.rules.base import Calls, Mentions, Rule
from perflint.rules.model._heads import repeated_heads
from perflint.rules.precision._region import region
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import is_none, last_name
from perflint.source.quoting import quoted


class RepeatedHeads(Rule):
    """Attention gets copies of its keys and values, one for each query of a group.

    ## What it does
    Finds calls of `scaled_dot_product_attention` without a mask whose keys or values are the result of
    `repeat_interleave` along the heads, of `x[:, :, None].expand(…).reshape(…)`, or of `einops.repeat`, also in a
    function of the file. Files that mention `enable_gqa` are not reported: they choose.

    ## Why is this bad
    With four queries for each key, all keys and values are written and read four times in each layer of each step; in
    decoding, that is the whole cache for each token. FlashAttention and cuDNN read each head once for its whole group
    if `enable_gqa=True` says so. It is a warning because others measured it: a change of
    [Sapiens2](https://github.com/facebookresearch/sapiens2/pull/3) gave the same numbers bit for bit, with less time in
    bfloat16 on an RTX 5090. The cost has not been measured here.

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
    effect, severity = Effect.TRANSFER, Severity.WARNING
    since = (2, 5)
    listens = (Calls("torch.nn.functional.scaled_dot_product_attention"),)
    mentions = Mentions("repeat", "expand", without=("enable_gqa",))

    def check(self, site: CallSite) -> Iterator[Finding]:
        mask = site.argument("attn_mask", 3)
        if not (mask is None or is_none(mask)) or site.has_unpacking:
            return
        given = [site.argument(name, at) for at, name in enumerate(("query", "key", "value"))]
        found = [None if each is None else repeated_heads(site.model, each) for each in given[1:]]
        copies = [each for each in found if each is not None]
        if not copies or any(each is not None and _is_cast(site, each) for each in given):
            return
        place = copies[0] if site.model.function(copies[0]) is site.model.function(site.node) else site.node
        yield self.finding(
            site,
            f"{quoted(site.text(copies[0]))} copies each head of the keys and values for its queries{often(site)}",
            confidence=Confidence.HIGH if region(site.model).half is not None else Confidence.MEDIUM,
            span=site.model.source.span(place),
            help="In bfloat16 or float16, pass them as they are, with `enable_gqa=True`.",
        )


def _is_cast(site: CallSite, given: ast.expr) -> bool:
    """True if an argument is converted to float32 for the call."""
    made_of = made(site.model, given)
    return isinstance(made_of, ast.Call) and last_name(made_of) == "float"
