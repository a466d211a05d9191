"""TPF126: linear algebra whose success the CPU checks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.fixes.edits import replace
from perflint.fixes.imports import spell
from perflint.rules._operators import operators
from perflint.rules._since import UNCHECKED
from perflint.rules._statements import swallows
from perflint.rules.base import Calls, CallSite, Rule, device_confidence, often, shown
from perflint.rules.placement import operand_confidence
from perflint.semantics.structure import keyword
from perflint.semantics.values import Const, Evidence, Scalar, Sequence, Tensor
from perflint.source.concrete import code, cst

_UNCHECKED = {
    "torch.linalg.inv": ("torch.linalg.inv_ex", "[0]"),
    "torch.inverse": ("torch.linalg.inv_ex", "[0]"),
    "torch.linalg.cholesky": ("torch.linalg.cholesky_ex", "[0]"),
    "torch.linalg.solve": ("torch.linalg.solve_ex", "[0]"),
    "torch.linalg.lu_factor": ("torch.linalg.lu_factor_ex", "[:2]"),
    "torch.linalg.ldl_factor": ("torch.linalg.ldl_factor_ex", "[:2]"),
}
_METHODS = {
    "torch.Tensor.inverse": "torch.linalg.inv_ex",
    "torch.Tensor.cholesky": "torch.linalg.cholesky_ex",
    "torch.cholesky": "torch.linalg.cholesky_ex",
}
"""Older forms, which get a fix without further arguments."""
_CHECKED = frozenset(_UNCHECKED) | {"torch.Tensor.inverse", "torch.cholesky", "torch.Tensor.cholesky"}
_ITERATIVE = operators("checks", "iterative")
_NORMS = frozenset({"torch.linalg.matrix_norm", "torch.linalg.cond", "torch.linalg.norm"})


class LinalgChecked(Rule):
    """
    ## What it does
    Finds linear algebra on GPU tensors that makes the CPU wait. `inv`, `solve`, `cholesky`,
    `lu_factor` and `ldl_factor` check whether they succeeded. `eig`, `eigh`, `svd`, `pinv`,
    `lstsq`, `matrix_rank`, `matrix_exp` and functions built on them read values from the GPU while
    they run.

    ## Why is this bad
    The CPU waits for everything queued before the call and for the call itself, even for batches of
    3 × 3 matrices.

    ## When it is fine
    Set-up code, matrices on the CPU, a result that decides what runs next. `qr`, `det`, `slogdet`,
    `solve_triangular`, `cholesky_solve` and `lu_solve` do not wait.

    ## Bad
    ```python
    import torch

    class Warp(torch.nn.Module):
        def forward(self, points, homography: torch.Tensor):
            return points @ torch.linalg.inv(homography)
    ```

    ## Good
    ```python
    import torch

    class Warp(torch.nn.Module):
        def forward(self, points, homography: torch.Tensor):
            inverse, _ = torch.linalg.inv_ex(homography)
            return points @ inverse
    ```

    ## Fix safety
    No fix is written, but one is shown: `inv`, `solve`, `cholesky`, `lu_factor` and `ldl_factor` become
    their `_ex` forms, which do not check; `x.inverse()` becomes `torch.linalg.inv_ex(x)[0]` if x is
    certainly a tensor. A singular input then silently gives a useless result instead of an error, so you
    have to know that the input is regular, or to test the second result later. No fix is shown if the
    code around the call handles that error: `try: cholesky(x)` and `except` with a regularized x.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line; a trace shows the solver's
    `Memcpy DtoH` and `cudaStreamSynchronize`.

    ## References
    - [torch.linalg.inv_ex](https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv_ex.html)
    - [torch.linalg.eigh](https://docs.pytorch.org/docs/stable/generated/torch.linalg.eigh.html): "this
      function synchronizes that device with the CPU"
    """

    code, name = "TPF126", "linalg-checked"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("linalg-checked-gpt", "linalg-checked-gpt-host-work", "linalg-checked-policy")
    listens = (Calls(*_CHECKED, *_ITERATIVE, *_NORMS, "torch.linalg.matrix_power"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        confidence = _confidence(site)
        if confidence is None:
            return
        text = shown(site)
        if site.target in _CHECKED:
            what = f"{text} makes the CPU wait for the GPU to say whether it worked"
            cure = "Use the `_ex` form, which does not check, if the input is known to be regular."
        else:
            what = f"{text} reads from the GPU while it works: the CPU waits"
            cure = "Move it out of the step, call it once for a whole batch, or use `qr`, `cholesky_ex` or `solve_ex`."
        yield self.finding(site, what + often(site), confidence=confidence, help=cure, fix=_fix(site))


def _confidence(site: CallSite) -> Confidence | None:
    if not _waits(site):
        return None
    if site.target.startswith("torch.Tensor."):
        found = None if site.receiver is None else device_confidence(site.receiver)
    else:
        operand = site.argument("input", 0) or site.argument("A", 0)
        found = None if operand is None else operand_confidence(site.value(operand))
    # Unknown matrices in set-up code are mostly on the CPU.
    return None if found is Confidence.LOW and site.heat is Heat.COLD else found


def _waits(site: CallSite) -> bool:
    """True if the arguments ask for a singular value decomposition, or an inverse."""
    if site.target == "torch.linalg.matrix_power":
        power = site.argument("n", 1)
        value = None if power is None else site.value(power)
        return isinstance(value, Const) and isinstance(value.value, int) and value.value < 0
    if site.target not in _NORMS:
        return True
    order = site.argument("p" if site.target.endswith("cond") else "ord", 1)
    if order is None or site.value(order) == Const(None):
        return site.target.endswith("cond")
    spectral = site.value(order) in (Const(2), Const(-2), Const("nuc"))
    return spectral and not (site.target == "torch.linalg.norm" and not _is_matrix(site))


def _is_matrix(site: CallSite) -> bool:
    """True if `torch.linalg.norm` takes the norm of matrices: of a vector it is a sum."""
    dim = site.argument("dim", 2)
    if dim is not None:
        return isinstance(site.value(dim), Sequence) and not isinstance(site.value(dim), (Const, Scalar))
    operand = site.argument("A", 0)
    tensor = None if operand is None else site.value(operand).tensor
    return tensor is not None and tensor.rank == 2


def _fix(site: CallSite) -> Fix | None:
    if site.target in _METHODS:
        return _of_method(site)
    if site.target not in _UNCHECKED or keyword(site.node, "out") is not None:
        return None
    if swallows(site.model, site.node):
        return None
    name, part = _UNCHECKED[site.target]
    function = spell(site.model.symbols, name, site.node)
    if function is None:
        return None
    new = code(site.concrete.with_changes(func=cst.parse_expression(function.text))) + part
    return Fix(
        f"Use {name}, which does not check",
        Safety.DISPLAY,
        (replace(site.model.source, site.span, new),),
        function.imports,
        since=UNCHECKED[name],
    )


def _of_method(site: CallSite) -> Fix | None:
    """`torch.linalg.inv_ex(x)[0]` for `x.inverse()`, if x is certainly a tensor: other classes have the method, too."""
    method = site.target.startswith("torch.Tensor.")
    operand = site.receiver if method else site.value(site.node.args[0]) if site.node.args else None
    if not isinstance(operand, Tensor) or operand.evidence < Evidence.ANNOTATION or swallows(site.model, site.node):
        return None
    owner = site.owner
    if isinstance(owner, ast.BinOp) and any(site.value(each).is_unknown for each in (owner.left, owner.right)):
        # An operator of another class may take the tensor.
        return None
    if site.node.keywords or len(site.node.args) != (not method):
        return None
    name = _METHODS[site.target]
    function = spell(site.model.symbols, name, site.node)
    given = site.concrete.func.value if method and isinstance(site.concrete.func, cst.Attribute) else None
    if function is None or (method and given is None):
        return None
    text = code(given.with_changes(lpar=[], rpar=[])) if given is not None else code(site.concrete.args[0].value)
    if "\n" in text:
        return None
    edit = replace(site.model.source, site.span, f"{function.text}({text})[0]")
    message = f"Use {name}, which does not check"
    return Fix(message, Safety.DISPLAY, (edit,), function.imports, since=UNCHECKED[name])
