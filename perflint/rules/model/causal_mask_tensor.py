"""TPF311: a causal mask that is passed to attention as a tensor."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules._methods import is_false
from perflint.rules._words import often
from perflint.rules.base import Calls, Mentions, Rule
from perflint.rules.model._causal import is_causal_mask
from perflint.semantics.sites import CallSite


class CausalMaskTensor(Rule):
    """The causal mask is passed to `scaled_dot_product_attention` as a tensor.

    ## What it does
    Finds calls of `scaled_dot_product_attention` whose `attn_mask` is a lower triangle and nothing else: `tril` of
    ones, minus infinity above the diagonal, `generate_square_subsequent_mask`, a comparison of positions, also as a
    buffer of which the first rows and columns are taken.

    ## Why is this bad
    FlashAttention takes no mask: attention runs on another kernel, which reads the mask from memory and computes the
    half that it hides. With `is_causal=True`, no mask is made, stored or read, and the kernel leaves that half out.
    It is a warning because others measured it: a change of [Keras](https://github.com/keras-team/keras/pull/22910)
    made the forward pass of causal attention 1.10 × faster for 1024 tokens and 2.62 × for 4096, on an A100 in float16
    with batches of 4 and 12 heads of 64. The cost has not been measured here.

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
    since = (2, 0)
    listens = (Calls("torch.nn.functional.scaled_dot_product_attention"),)
    mentions = Mentions("tril", "triu", "generate_square_subsequent_mask", "arange")

    def check(self, site: CallSite) -> Iterator[Finding]:
        mask, flag = site.argument("attn_mask", 3), site.argument("is_causal", 5)
        if mask is None or not (flag is None or is_false(flag)) or not is_causal_mask(site.model, mask):
            return
        yield self.finding(
            site,
            f"`attn_mask` is the causal mask, which FlashAttention does not take as a tensor{often(site)}",
            confidence=Confidence.HIGH,
            help="Pass `is_causal=True`, and no mask.",
        )
