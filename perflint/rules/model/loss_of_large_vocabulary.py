"""TPF319: a cross entropy that needs the scores of all words for all tokens at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Severity
from perflint.rules._memory.flows import made
from perflint.rules._numbers import integer
from perflint.rules._sources import called, operands
from perflint.rules.base import Calls, CallSite, Mentions, Rule, often, shown
from perflint.semantics.model import Model
from perflint.semantics.values import Const, Dtype, Instance, Value

_SHAPES = frozenset({"view", "reshape", "flatten", "contiguous", "transpose", "permute", "movedim", "squeeze"})
_LARGE = 16384
"""A vocabulary; a layer with as many classes for other things is rare."""


class LossOfLargeVocabulary(Rule):
    """The cross entropy of a language model is computed from the scores of all words for all tokens at once.

    ## What it does
    Finds `cross_entropy(head(hidden), labels)` with a linear layer of 16,384 and more outputs, as far as the source
    shows them: in the layer, or in a `view(-1, 128256)`.

    ## Why is this bad
    The scores, their copy in float32, and their gradients are the largest tensors of the step. For 8,192 tokens and
    128,256 words each is 4.2 GB in float32. A loss that computes them in chunks holds those of one chunk, which
    leaves memory for a larger batch. Measured on an H200 with AdamW and four layers of width 2048: eight chunks
    lower the peak from 21.3 to 13.3 GiB, and a step takes 74.8 ms instead of 58.1, as the scores are computed a
    second time. So it is a matter of memory.

    ## When it is fine
    - Memory to spare.
    - Models under `torch.compile`, which may fuse the copies, but keeps the scores.

    ## Bad
    ```python
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self, body: nn.Module):
            super().__init__()
            self.body, self.head = body, nn.Linear(4096, 128256, bias=False)

        def forward(self, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            logits = self.head(self.body(ids))
            return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
    ```

    ## Good
    ```python
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self, body: nn.Module):
            super().__init__()
            self.body, self.head = body, nn.Linear(4096, 128256, bias=False)

        def forward(self, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            hidden, options = self.body(ids).flatten(0, 1), nn.LinearCrossEntropyOptions()
            return nn.functional.linear_cross_entropy(hidden, self.head.weight, labels.flatten(), options=options)
    ```

    ## Fix safety
    No fix: the sums are added in another order.

    ## How a GPU shows it
    `torch.cuda.max_memory_allocated()` falls by several times the size of the scores.

    ## References
    - [linear_cross_entropy](https://docs.pytorch.org/docs/main/generated/torch.nn.functional.linear_cross_entropy.html),
      torch 2.13: "Enabling chunking will decrease the memory usage"
    - [Liger kernels](https://github.com/linkedin/Liger-Kernel): `LigerFusedLinearCrossEntropyLoss`, for other versions
    """

    code, name = "TPF319", "loss-of-large-vocabulary"
    effect, severity = Effect.MEMORY, Severity.INFO
    measured = ("loss-of-large-vocabulary",)
    listens = (Calls("torch.nn.functional.cross_entropy", "torch.nn.Module.__call__"),)
    mentions = Mentions("cross_entropy", "CrossEntropyLoss")

    def check(self, site: CallSite) -> Iterator[Finding]:
        scores = site.argument("input", 0) if _is_loss(site) else None
        found = None if scores is None else _layer(site.model, scores)
        if found is None:
            return
        layer, copy = found
        # The copy in float32 is the largest of the tensors.
        place = site if copy is None else site.model.call(copy)
        yield self.finding(
            place,
            f"{shown(site, layer)} makes the scores of all words for all tokens at once, and the loss needs them "
            f"in float32, with gradients{often(site)}",
            help="Compute layer and loss in chunks: `linear_cross_entropy` of torch 2.13 with "
            "`options=LinearCrossEntropyOptions()`, or the fused loss of Liger.",
        )


def _is_loss(site: CallSite) -> bool:
    loss = site.value(site.node.func)
    is_module = isinstance(loss, Instance) and loss.cls == "torch.nn.CrossEntropyLoss"
    return is_module or site.target == "torch.nn.functional.cross_entropy"


def _layer(model: Model, node: ast.expr) -> tuple[ast.Call, ast.Call | None] | None:
    """The call of the layer with a large vocabulary that made the scores, and their copy in float32 on the way."""
    words, copy = 0, None
    node = made(model, node)
    while True:
        if isinstance(node, ast.Subscript):
            node = made(model, node.value)
            continue
        if not isinstance(node, ast.Call):
            return None
        name, (first, *rest) = called(model, node), operands(model, node) or [node.func]
        if name == "float" or (name == "to" and any(_is_float32(model.value(each)) for each in rest)):
            copy = node
        elif name in _SHAPES:
            words = max([words, *(integer(model, each) or 0 for each in rest)])
        else:
            return (node, copy) if max(words, _outputs(model, node)) >= _LARGE and _is_linear(model, node) else None
        node = made(model, first)


def _is_float32(value: Value) -> bool:
    return isinstance(value, Dtype) and value.name in ("float32", "float")


def _is_linear(model: Model, call: ast.Call) -> bool:
    layer = model.value(call.func)
    is_layer = isinstance(layer, Instance) and layer.cls == "torch.nn.Linear"
    return is_layer or model.target(call) == "torch.nn.functional.linear"


def _outputs(model: Model, call: ast.Call) -> int:
    """The number of outputs of a linear layer that a call runs; 0 if it is not known."""
    layer = model.value(call.func)
    size = layer.argument("out_features") if isinstance(layer, Instance) else None
    return size.value if isinstance(size, Const) and isinstance(size.value, int) else 0
