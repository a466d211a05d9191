"""TPF211: a copy of a tensor that nothing else holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Safety, Severity
from perflint.rules._memory.flows import behind
from perflint.rules._memory.operators import is_fresh
from perflint.rules.base import Calls, CallSite, Rule, often, shown
from perflint.rules.transfer._clones import without_clone
from perflint.semantics.values import Device


class CopyOfFreshTensor(Rule):
    """`.clone()` of a tensor that was created for this expression alone.

    ## What it does
    Finds `.clone()` on the result of arithmetic (`(a + b).clone()`), of `torch.cat`, `stack` and `where`,
    of `repeat`, `gather` and indexing by `index_select`, and of factories.

    ## Why is this bad
    The result has its own memory, which nothing else holds: the copy reads and writes all of it for
    nothing, and autograd records one more node. The cost grows with the tensor: for a sum of 38 MB
    on an H200, `(x + y).clone()` took 1.7 times as long as `x + y`.

    ## When it is fine
    - Views share memory: `x.view(…)`, `x.detach()`, `x[0]`, `expand`, `permute`. They are not reported.
    - Operations that keep their result for the backward pass (`exp`, `softmax`, `sigmoid`): writing into
      the result in place would break it. They are not reported.
    - `clone(memory_format=…)` changes the layout.

    ## Bad
    ```python
    import torch

    class Residual(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor):
            return (x + y).clone()
    ```

    ## Good
    ```python
    import torch

    class Residual(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor):
            return x + y
    ```

    ## Fix safety
    `.clone()` is removed. Values, strides and gradients are the same. Safe if all operands of the
    arithmetic are known to be tensors and numbers. Unsafe otherwise: an object of another class may
    return an object that it holds itself.

    ## How a GPU shows it
    A trace confirms the finding if the memory of the copied tensor was freed in the same expression,
    and refutes it if something else held that memory. A profile shows `aten::clone` with a copy kernel
    right after the kernel that computed the tensor.

    ## References
    - [torch.clone](https://docs.pytorch.org/docs/stable/generated/torch.clone.html)
    """

    code, name = "TPF211", "copy-of-fresh-tensor"
    effect, severity = Effect.ALLOCATION, Severity.INFO
    listens = (Calls("torch.Tensor.clone"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        call = site.node
        if call.args or call.keywords or not isinstance(call.func, ast.Attribute):
            return
        made = behind(site.model, call.func.value)
        if not is_fresh(site.model, made, surely=False):
            return
        tensor = None if site.receiver is None else site.receiver.tensor
        yield self.finding(
            site,
            f"{shown(site)} copies a tensor that nothing else refers to{often(site)}",
            confidence=Confidence.LOW if tensor is None or tensor.device is Device.CPU else Confidence.HIGH,
            help="Remove `.clone()`.",
            fix=without_clone(site, Safety.SAFE if is_fresh(site.model, made) else Safety.UNSAFE),
        )
