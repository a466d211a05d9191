"""TPF310: distances of all pairs of points, computed from all their differences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity, surest
from perflint.rules._memory.flows import behind
from perflint.rules._numbers import literal
from perflint.rules.base import Calls, CallSite, Rule, device_confidence, often, shown
from perflint.semantics.structure import keyword
from perflint.semantics.values import Const

_NORMS = ("torch.norm", "torch.linalg.norm", "torch.linalg.vector_norm", "torch.Tensor.norm")
_SUMS = ("torch.sum", "torch.Tensor.sum")
_SPACE = re.compile(
    r"(?:^|[^a-z])(?:coords?|coordinates|pts|points?|pos|positions?|xyz|xy|cent(?:er|re|roid)s?)\d*(?:[^a-z]|$)"
)
"""Names for points of the plane or of space."""
_POWERS = frozenset({"pow", "square", "abs", "absolute"})


class DifferencesForDistances(Rule):
    """Distances between two sets of points are computed from a tensor of all differences.

    ## What it does
    Finds norms, and sums of squares or absolute values, over the last dimension of
    `a[:, None] - b[None]` and similar expressions (`a.unsqueeze(1) - b`), if the difference has no
    other use.

    ## Why is this bad
    n and m points of d numbers have n × m × d differences, which are written and read several
    times, and kept for the backward pass. `torch.cdist` needs n × m numbers, and for the Euclidean
    distance it usually computes a matrix product. The distances of 2048 points of 128 numbers took
    23 times as long on an H200, a training with a vector quantiser 19% longer, one of metric
    learning 16%.

    ## When it is fine
    - Few points, or few numbers each: both forms are launch-bound. Tensors named points, positions
      or centres are assumed to be points of the plane or of space, and get severity info.
    - The differences themselves are needed: directions, forces. Not reported.
    - Points that lie close to each other: the matrix product loses digits if the distance is small
      compared with the points' own length. `compute_mode="donot_use_mm_for_euclid_dist"` keeps the
      digits, and still saves the memory.
    - A second derivative: `cdist` does not have one for some norms.

    ## Bad
    ```python
    import torch

    class Nearest(torch.nn.Module):
        def __init__(self, codes: int = 1024, width: int = 64):
            super().__init__()
            self.codes = torch.nn.Parameter(torch.randn(codes, width))

        def forward(self, x: torch.Tensor):
            return torch.norm(x[:, None] - self.codes[None], dim=-1).argmin(1)
    ```

    ## Good
    ```python
    import torch

    class Nearest(torch.nn.Module):
        def __init__(self, codes: int = 1024, width: int = 64):
            super().__init__()
            self.codes = torch.nn.Parameter(torch.randn(codes, width))

        def forward(self, x: torch.Tensor):
            return torch.cdist(x, self.codes).argmin(1)
    ```

    ## Fix safety
    No fix: last digits differ, and squared distances need a product by hand, or the square of
    `cdist`.

    ## How a GPU shows it
    A profile shows element-wise kernels over n × m × d numbers, and a memory peak of that size.

    A trace records the shape and the bytes of what is reduced. Differences of several points by several
    others confirm the finding; a single point, or a matrix, refutes it.

    ## References
    - [torch.cdist](https://docs.pytorch.org/docs/stable/generated/torch.cdist.html)
    """

    code, name = "TPF310", "differences-for-distances"
    effect, severity = Effect.MEMORY, Severity.WARNING
    measured = ("differences-for-distances-vector-quantiser", "differences-for-distances-metric-learning")
    costs = "it makes the step of a vector quantiser {0} slower, and one of metric learning {1}"
    listens = (Calls(*_NORMS, *_SUMS),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        difference = None if site.has_unpacking else _difference(site)
        if difference is None:
            return
        operands = (device_confidence(site.value(each)) for each in (difference.left, difference.right))
        known = [each for each in operands if each is not None]
        yield self.finding(
            site,
            f"{shown(site)} writes the differences of all pairs to memory to compute distances{often(site)}",
            # Of two or three numbers each there is little to multiply, and digits count.
            severity=Severity.INFO if _SPACE.search(site.text(difference)) else None,
            confidence=surest(*known) if known else Confidence.LOW,
            help="Use `torch.cdist`, and square it if squared distances are needed.",
        )


def _difference(site: CallSite) -> ast.BinOp | None:
    """The differences of all pairs that a call reduces over their last dimension."""
    given = _operand(site)
    if given is None or not _is_last(site):
        return None
    reduced: ast.expr | None = behind(site.model, given)
    if site.target in _SUMS and reduced is not None:
        power = _powered(reduced)
        reduced = None if power is None else behind(site.model, power)
    if not isinstance(reduced, ast.BinOp) or not isinstance(reduced.op, ast.Sub):
        return None
    return reduced if _is_of_all_pairs(site, reduced) else None


def _operand(site: CallSite) -> ast.expr | None:
    if site.target.startswith("torch.Tensor."):
        return site.owner
    return site.argument("input", 0)


def _is_last(site: CallSite) -> bool:
    """True if the last of three dimensions is reduced, and no other."""
    given = keyword(site.node, "dim")
    norm, method = site.target in _NORMS, site.target.startswith("torch.Tensor.")
    position = (0 if method else 1) + norm
    if given is None and len(site.node.args) > position:
        given = site.node.args[position]
    value = None if given is None else site.value(given)
    return value in (Const(-1), Const(2))


def _powered(node: ast.expr) -> ast.expr | None:
    """The operand that is squared, or made positive: `d ** 2`, `d * d`, `d.pow(2)`, `torch.square(d)`, `d.abs()`."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value == 2:
            return node.left
        same = isinstance(node.op, ast.Mult) and ast.dump(node.left) == ast.dump(node.right)
        return node.left if same and not isinstance(node.left, ast.Name) else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _POWERS:
        return None
    owner = node.func.value
    if isinstance(owner, ast.Name) and owner.id == "torch":
        return node.args[0] if node.args else None
    return owner


def _is_of_all_pairs(site: CallSite, node: ast.BinOp) -> bool:
    """True if two sets of points are spread along two dimensions: `a[:, None] - b[None]`, `a.unsqueeze(1) - b`."""
    left, right = (_spread(behind(site.model, each)) for each in (node.left, node.right))
    if left is None and right is None:
        return False
    if left is not None and right is not None:
        return left != right and {left, right} <= {0, 1, 2, -2, -3}
    # The other side has no dimension of size 1 that is written down: its points come last by themselves.
    spread, other = (left, node.right) if left is not None else (right, node.left)
    if spread not in (1, -2) or not isinstance(other, (ast.Name, ast.Attribute)):
        return False
    value = site.value(other)
    return value.is_unknown or (value.tensor is not None and value.tensor.rank in (None, 2))


def _spread(node: ast.expr) -> int | None:
    """The dimension of size 1 that an expression puts into a tensor; None if it puts none, or several."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "unsqueeze":
        given = node.args[0] if node.args else keyword(node, "dim")
        return literal(given)
    if not isinstance(node, ast.Subscript):
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    new = [at for at, part in enumerate(parts) if isinstance(part, ast.Constant) and part.value is None]
    whole = all(
        isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None
        for at, part in enumerate(parts)
        if at not in new
    )
    return new[0] if len(new) == 1 and whole and len(parts) <= 3 else None
