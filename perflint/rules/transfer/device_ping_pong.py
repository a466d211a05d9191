"""TPF205: data that goes to the CPU and comes back."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity, weakest
from perflint.rules._bindings import assigned
from perflint.rules._memory.flows import made
from perflint.rules._operators import operators
from perflint.rules.base import Calls, CallSite, Mentions, Rule, device_confidence, often, shown
from perflint.rules.placement import MOVES, creation_confidence, move
from perflint.semantics.model import Model
from perflint.semantics.structure import calls_in, walk

_MAKES = ("torch.tensor", "torch.as_tensor")
_LEAVES = frozenset(f"torch.Tensor.{name}" for name in ("cpu", "numpy", "tolist"))
_ARRAY_METHODS = operators("copies", "array_methods")
_LONGEST_TRAIL = 16
"""Expressions that are looked at, from one assignment to the next."""


class DevicePingPong(Rule):
    """Data goes from the GPU to the CPU, is processed there, and goes back.

    ## What it does
    Finds GPU copies of NumPy results that were computed in the same function from the `.cpu()`,
    `.numpy()` or `.tolist()` of a GPU tensor, with only Python, NumPy and torch in between.

    ## Why is this bad
    The CPU waits until the GPU has done all work so far, copies the data, computes on one core, and
    copies the result back, while the GPU is idle. Most of NumPy has a counterpart in torch that
    runs on the GPU. Sorting 64 × 10000 numbers with NumPy took 26 times as long on an H200 as
    `torch.sort`.

    ## When it is fine
    - The operation does not exist on the GPU: `scipy.optimize.linear_sum_assignment`, sparse
      solvers. Data that goes through other libraries is not reported.
    - Data that has to be on the CPU anyway, to be saved or plotted, and is used once more.
    - Torch on the CPU: an operator that the GPU lacks, a generator of random numbers. Not reported.
    - Set-up and other code that runs rarely.

    ## Bad
    ```python
    import numpy as np
    import torch

    class Spectrum(torch.nn.Module):
        def forward(self, x: torch.Tensor):
            spectrum = np.abs(np.fft.rfft(x.cpu().numpy()))
            return torch.from_numpy(spectrum).to(x.device)
    ```

    ## Good
    ```python
    import torch

    class Spectrum(torch.nn.Module):
        def forward(self, x: torch.Tensor):
            return torch.fft.rfft(x).abs()
    ```

    ## Fix safety
    No fix: the equivalent torch operations depend on the code between the two copies.

    ## How a GPU shows it
    A trace records data that leaves the GPU (`.cpu()`, `.tolist()`) and tensors that come to it. It
    confirms the finding if both happened in one function, and refutes it if the data had been on the
    CPU. A profile shows a `Memcpy DtoH` and later a `Memcpy HtoD` of about as many bytes, with no
    kernels in between.

    ## References
    - [Performance tuning guide: avoid unnecessary CPU-GPU
      synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code, name = "TPF205", "device-ping-pong"
    effect, severity = Effect.TRANSFER, Severity.INFO
    listens = (Calls(*MOVES, *_MAKES),)
    mentions = Mentions("numpy")

    def check(self, site: CallSite) -> Iterator[Finding]:
        back = _back(site)
        if back is None:
            return
        confidence, left = back
        there = f"line {left.lineno}" if left.lineno != site.node.lineno else "the same line"
        yield self.finding(
            site,
            f"{shown(site)} copies back to the GPU: {shown(site, left)} on {there} "
            f"copied the same data from it{often(site)}",
            confidence=confidence,
            help="Compute it with torch, on the GPU.",
        )


def _back(site: CallSite) -> tuple[Confidence, ast.Call] | None:
    """How sure it is that a call moves data back to the device, and the call that took it away."""
    if site.target in _MAKES:
        confidence = creation_confidence(site)
        start = site.argument("data", 0)
    else:
        moved = move(site)
        confidence = None if moved is None else moved.confidence
        start = site.owner
    if confidence is None or start is None:
        return None
    trail: list[ast.expr] = []
    left = _left(site.model, start, trail)
    if left is None or not any(_leaves_torch(site.model, node) for node in trail):
        return None
    return weakest(confidence, left[0]), left[1]


def _leaves_torch(model: Model, node: ast.expr) -> bool:
    """True if NumPy computes something. A computation with torch on the CPU mostly has a reason."""
    return any(model.target(call).startswith("numpy.") for call in calls_in(node))


def _left(model: Model, node: ast.expr, trail: list[ast.expr]) -> tuple[Confidence, ast.Call] | None:
    """The call by which the data of an expression left the device, and how sure it is that it was there.

    `trail` gets the expressions that lead there.
    """
    trail.append(node)
    if any(isinstance(part, ast.Call) and not _is_known(model, part) for part in walk(node)):
        return None
    for part in walk(node):
        if isinstance(part, ast.Call):
            site = model.call(part)
            if site.target in _LEAVES and site.receiver is not None:
                sure = device_confidence(site.receiver)
                if sure is not None and not _is_one_number(site):
                    return sure, part
        value = _source(model, part)
        if value is not None and value not in trail and len(trail) < _LONGEST_TRAIL:
            found = _left(model, value, trail)
            if found is not None:
                return found
    return None


def _source(model: Model, node: ast.AST) -> ast.expr | None:
    """The expression that made the value of a name, or of a part of an object."""
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or not isinstance(node.ctx, ast.Load):
        return None
    source = made(model, node)
    if source is not node:
        return source
    return assigned(model, node) if isinstance(node, ast.Name) else None


def _is_known(model: Model, call: ast.Call) -> bool:
    """True if a call is of Python, NumPy or torch: for other libraries there may be no counterpart."""
    target = model.target(call)
    if target.startswith("numpy.ndarray."):
        # In the model, the results of some other libraries are arrays, too.
        return target.rpartition(".")[2] in _ARRAY_METHODS
    return target.startswith(("builtins.", "math.", "numpy.", "torch."))


def _is_one_number(site: CallSite) -> bool:
    tensor = None if site.receiver is None else site.receiver.tensor
    return tensor is not None and tensor.rank == 0
