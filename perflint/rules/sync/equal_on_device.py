"""TPF121: torch.equal and torch.allclose of GPU tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity, surest
from perflint.rules._memory.flows import flow_around
from perflint.rules.base import Calls, CallSite, Rule, device_confidence, often, shown
from perflint.rules.sync._scalars import TRUTH_OF_TENSOR

_NAMES = ("equal", "allclose", "is_nonzero")


class EqualOnDevice(Rule):
    """
    ## What it does
    Finds `torch.equal`, `torch.allclose`, `torch.is_nonzero` and their methods on GPU tensors.

    ## Why is this bad
    They return a Python bool: the CPU waits for everything that the tensors depend on, and for the
    comparison itself.

    ## When it is fine
    Tests, set-up code, tensors on the CPU. `torch.isclose` and `==` stay on the GPU.

    ## Bad
    ```python
    import torch

    class Solver(torch.nn.Module):
        def forward(self, x: torch.Tensor):
            for _ in range(100):
                new = torch.sigmoid(x)
                if torch.allclose(x, new):
                    break
                x = new
            return x
    ```

    ## Good
    ```python
    import torch

    class Solver(torch.nn.Module):
        def forward(self, x: torch.Tensor):
            for _ in range(100):
                x = torch.sigmoid(x)
            return x
    ```

    ## Fix safety
    No fix: keep a flag on the GPU, or test it every few steps.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line; a trace shows `aten::equal` or
    `aten::allclose` with a `Memcpy DtoH` and a `cudaStreamSynchronize`.

    ## References
    - [torch.equal](https://docs.pytorch.org/docs/stable/generated/torch.equal.html)
    """

    code, name = "TPF121", "equal-on-device"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("equal-on-device-gpt", "equal-on-device-gpt-host-work", "equal-on-device-policy")
    listens = (Calls(*(f"torch.{name}" for name in _NAMES), *(f"torch.Tensor.{name}" for name in _NAMES)),)

    replaces = (TRUTH_OF_TENSOR,)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if (confidence := _confidence(site)) is not None:
            yield self.finding(
                site,
                f"{shown(site)} makes the CPU wait for the GPU to answer{often(site)}",
                confidence=confidence,
                help="Keep the answer on the GPU (`(a == b).all()`, `torch.isclose`) and read it every few steps.",
            )


def _confidence(site: CallSite) -> Confidence | None:
    is_method = site.target.startswith("torch.Tensor.")
    first = site.owner if is_method else site.argument("input", 0)
    given = [first, site.argument("other", 0 if is_method else 1)]
    operands = [each for each in given if each is not None]
    # Both must be on one device: if one is known to be on the CPU, so is the other.
    found = [(site.value(node).tensor, device_confidence(site.value(node))) for node in operands]
    if not found or any(tensor is not None and confidence is None for tensor, confidence in found):
        return None
    if site.target.endswith(".allclose") and all(tensor is None for tensor, _ in found):
        # Nothing but tensors can be compared so.
        return Confidence.LOW
    sure = [confidence for _, confidence in found if confidence is not None]
    best = surest(*sure) if sure else None
    if best is Confidence.LOW:
        # Unknown tensors are mostly compared in set-up code and tests.
        return None
    # Callers often pass one tensor twice, or tensors of different shapes: then torch reads no elements.
    is_given = site.target.endswith(".equal") and all(_is_parameter(site, node) for node in operands)
    return Confidence.LOW if is_given else best


def _is_parameter(site: CallSite, node: ast.expr) -> bool:
    """True for a parameter that still has the value which the caller passed."""
    found = flow_around(site.model, node).used.get(node) if isinstance(node, ast.Name) else None
    return found is not None and isinstance(found.node, ast.arg)
