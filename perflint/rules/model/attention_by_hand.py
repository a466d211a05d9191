"""TPF303: attention from two products and a softmax."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules.base import Files, FileSite, Rule, Site, shown
from perflint.rules.model._attention import attentions
from perflint.rules.precision._region import region
from perflint.rules.worth import cost, sentence

_FUSED = (
    r"(?i:scaled_dot_product_attention|flash_attn|xformers|memory_efficient|flex_attention|\bsdpa\b"
    r"|attn_implementation|fused_attn)"
)

_COST = "attention by hand makes training of 6 transformer layers with 1024 tokens {0} slower"


class AttentionByHand(Rule):
    """Attention is computed by a product, a softmax and a product, and its weights are not used otherwise.

    ## What it does
    Finds `softmax(q @ k.transpose(-2, -1) * scale, dim=-1) @ v`, in one expression or over several
    statements, with `@`, `matmul`, `bmm` or `einsum`, masks, casts and dropout in between, if only
    the second product uses the weights.

    ## Why is this bad
    The scores and the weights, of shape (batch, heads, tokens, tokens), are written to memory and
    read again, five times and more with a mask and dropout, and kept for the backward pass.
    `scaled_dot_product_attention` computes the same in one kernel that stores neither. Written by
    hand, a training step of six layers at 1024 tokens was 1.5 × slower under bfloat16 autocast on
    an H200, and 8% slower in float32; at 256 tokens 19% and 4%. It also took 3.1 times the
    memory (4.0 GiB instead of 1.3), in float32 twice as much.

    ## When it is fine
    - The weights are read, here or by a hook: code that returns or stores them is not reported.
    - Scores that are changed before the product: a cap by `tanh`, a mixture of heads, a softmax
      over another axis. (`torch.nn.attention.flex_attention` supports such changes of scores, when
      compiled.)
    - The file also has the fused form and chooses between them: not reported.
    - Gradients of gradients: the fused kernels do not support them.
    - A bias that is added to the scores can be passed as `attn_mask`, but not every kernel supports
      it: reported with low confidence.

    ## Bad
    ```python
    import torch
    from torch import nn

    class Attention(nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor):
            scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
            scores = scores.masked_fill(mask, float("-inf"))
            return scores.softmax(dim=-1) @ v
    ```

    ## Good
    ```python
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Attention(nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=~mask)
    ```

    ## Fix safety
    No fix: only the author knows the meaning of the mask, the scale and the position of the heads.
    In a mask of Booleans True means that a pair takes part, which is the opposite of `masked_fill`.
    A row whose mask hides everything gives other numbers, dropout draws other random numbers, and
    sums are rounded in another order.

    ## How a GPU shows it
    A timeline shows two `bmm` kernels with a `softmax` between them per layer, instead of one flash or
    memory-efficient attention kernel. `benchmarks/rules/models.py attention-by-hand` times both.

    A trace records the shapes of the tensors that a softmax returns: the weights of a matrix or more
    confirm the finding, those of a vector, or over another dimension, refute it.

    ## References
    - [scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
    - [FlexAttention](https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html)
    """

    code, name = "TPF303", "attention-by-hand"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = ("attention-by-hand-1024-step-bfloat16", "attention-by-hand-1024-step-float32")
    costs = None
    since = (2, 0)
    listens = (Files("softmax", "Softmax", also=("matmul", "bmm", "einsum", " @ "), unlike=_FUSED),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        written = [*attentions(model)]
        if not written:
            return
        half = region(model).half is not None
        hooked = model.says("register_forward_hook", "create_graph")
        for found in written:
            yield self.finding(
                Site(model, found.softmax),
                f"{shown(site, found.product)} is attention by hand: its weights are written to memory, read "
                "again and kept for the backward pass",
                severity=cost(f"attention-by-hand-1024-step-{'bfloat16' if half else 'float32'}").severity,
                confidence=Confidence.LOW if found.biased or hooked else Confidence.MEDIUM,
                help="Use `torch.nn.functional.scaled_dot_product_attention`.",
                cost=sentence(_COST, f"attention-by-hand-1024-step-{'bfloat16' if half else 'float32'}"),
            )
