"""TPF315: flex_attention outside of compiled code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules._methods import serves_tests
from perflint.rules._project_text import project_says
from perflint.rules.base import Calls, CallSite, Rule, often

_COMPILES = re.compile(r"torch\.compile\b|(?<!\bre\.)\bcompile\(")


class UncompiledFlexAttention(Rule):
    """`flex_attention` runs eagerly.

    ## What it does
    Finds calls of `torch.nn.attention.flex_attention.flex_attention` in projects that compile nothing.

    ## Why is this bad
    The function is a program for the compiler: only compiled, it becomes one kernel that skips what the mask hides.
    Eagerly it computes all scores, as a matrix of (batch, heads, tokens, tokens), and applies the mask afterwards.
    torch 2.9 and later warn. With 8192 tokens and a window of 1024, a forward pass of 12 layers takes 69 × as long
    on an H200 (317 ms, not 4.6). For short sequences it is less: eagerly, it took 3.9 to 5.5 times as long for 512
    and 1024 tokens in [a report](https://github.com/pytorch/pytorch/issues/121845).

    ## When it is fine
    - The model around it is compiled, here or by the callers: projects with `torch.compile` are not reported.
    - The search for an error, and comparisons in tests.

    ## Bad
    ```python
    import torch
    from torch import nn
    from torch.nn.attention.flex_attention import flex_attention

    class Attention(nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask) -> torch.Tensor:
            return flex_attention(q, k, v, block_mask=mask)
    ```

    ## Good
    ```python
    import torch
    from torch import nn
    from torch.nn.attention.flex_attention import flex_attention

    flex_attention = torch.compile(flex_attention)

    class Attention(nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask) -> torch.Tensor:
            return flex_attention(q, k, v, block_mask=mask)
    ```

    ## Fix safety
    No fix: the caller may want to compile more than this function.

    ## How a GPU shows it
    A profile shows `bmm` and `softmax` kernels in place of one `triton_tem_fused_flex_attention`.

    ## References
    - [flex_attention](https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html)
    """

    code, name = "TPF315", "uncompiled-flex-attention"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = ("flex-uncompiled",)
    costs = "eager, a forward pass of 12 layers with 8192 tokens and a window of 1024 is {0} slower than compiled"
    since = (2, 5)
    listens = (Calls("torch.nn.attention.flex_attention.flex_attention"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        model = site.model
        if serves_tests(model) or model.compiled(site.node) is not None or project_says(model, _COMPILES):
            return
        yield self.finding(
            site,
            f"`flex_attention` computes all scores, and applies the mask afterwards: nothing compiles it{often(site)}",
            confidence=Confidence.MEDIUM,
            help="Write `flex_attention = torch.compile(flex_attention)` once, at the top of the file.",
        )
