"""TPF206: legacy tensor types, which also name a device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Edit, Effect, Finding, Fix, Safety, Severity, Span
from perflint.rules.base import Calls, CallSite, Rule, device_confidence, often, shown
from perflint.rules.placement import CLASSES
from perflint.semantics.values import Class, Const, Name

_METHODS = {name: name.removesuffix("Tensor").lower() for name in CLASSES}
"""The legacy tensor types, and the methods that cast to their dtypes."""


class LegacyType(Rule):
    """Tensor types such as `torch.LongTensor`, which move the tensors that they cast.

    ## What it does
    Finds `x.type(torch.LongTensor)` and similar casts of tensors that may be on the GPU.

    ## Why is this bad
    `torch.LongTensor` is a dtype and a device: `.type(…)` copies the tensor to the CPU and waits
    for that, although only a cast was intended, and a copy back usually follows. `.long()` and
    `.to(torch.int64)` cast on the tensor's device. For 64 × 1024 numbers the copy took 20 times as
    long on an H200 as the cast.

    ## When it is fine
    - The tensor is on the CPU, and stays there: not reported.
    - `.type(torch.int64)`: a dtype only casts.
    - `torch.cuda.FloatTensor(2, 3)` allocates on the GPU, as `torch.empty` does. With a list or an
      array it copies: TPF117 reports that.

    ## Bad
    ```python
    import torch

    class Loss(torch.nn.Module):
        def forward(self, x, y: torch.Tensor):
            return torch.nn.functional.cross_entropy(x, y.type(torch.LongTensor).cuda())
    ```

    ## Good
    ```python
    import torch

    class Loss(torch.nn.Module):
        def forward(self, x, y: torch.Tensor):
            return torch.nn.functional.cross_entropy(x, y.long())
    ```

    ## Fix safety
    Unsafe: `.type(torch.LongTensor)` becomes `.long()`, and the result stays on the GPU instead of
    moving to the CPU.

    ## How a GPU shows it
    A trace confirms the finding if the cast copied to the CPU, and refutes it if the tensor was there
    already. A profile shows a `Memcpy DtoH` with a `cudaStreamSynchronize` below `aten::to`, and a
    `Memcpy HtoD` soon after it.

    ## References
    - [torch.Tensor](https://docs.pytorch.org/docs/stable/tensors.html): data types
    - [torch.Tensor.type](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.type.html)
    """

    code, name = "TPF206", "legacy-type"
    effect, severity = Effect.TRANSFER, Severity.INFO
    listens = (Calls("torch.Tensor.type"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        cast = _cast(site)
        sure = None if cast is None or site.receiver is None else device_confidence(site.receiver)
        if cast is None or sure is None:
            return
        method = _METHODS[cast]
        yield self.finding(
            site,
            f"{shown(site)} copies the tensor to the CPU, which waits for it{often(site)}",
            confidence=sure,
            help=f"Cast it on the GPU, with `.{method}()`.",
            fix=_casts(site, method),
        )


def _cast(site: CallSite) -> str | None:
    """The legacy type on the CPU to which `.type` casts."""
    given = site.argument("dtype", 0)
    # The value of a parameter or a setting may be intended.
    is_written = isinstance(given, ast.Constant) or (given is not None and site.model.symbols.full_name(given))
    value = site.value(given) if given is not None and is_written else None
    said = value.name if isinstance(value, (Name, Class)) else value.value if isinstance(value, Const) else ""
    name = said.removeprefix("torch.") if isinstance(said, str) and said.startswith("torch.") else ""
    return name if name in _METHODS else None


def _casts(site: CallSite, method: str) -> Fix | None:
    call = site.node
    if len(call.args) + len(call.keywords) != 1 or not isinstance(call.func, ast.Attribute):
        return None
    source = site.model.source
    owner, whole = source.span(call.func.value), source.span(call)
    span = Span(owner.end_line, owner.end_column, whole.end_line, whole.end_column)
    text = source.segment(span)
    if ")" in text.split(".type", 1)[0]:
        return None
    return Fix("Cast it on the GPU", Safety.UNSAFE, (Edit(span, f".{method}()"),))
