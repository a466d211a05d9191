"""TPF214: a tensor is created from a list of arrays, which torch reads number by number."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Fix, Heat, Safety, Severity
from perflint.fixes.edits import replace
from perflint.fixes.imports import spell
from perflint.rules.base import Calls, CallSite, Rule, often, shown
from perflint.rules.data._workers import worker_functions
from perflint.semantics.values import Array, Sequence, Value

_MAKERS = ("tensor", "as_tensor", "Tensor", "FloatTensor", "DoubleTensor", "LongTensor", "IntTensor", "BoolTensor")
_DEPTH = 3


class ListOfArrays(Rule):
    """A tensor is created from a list of NumPy arrays, which torch reads number by number.

    ## What it does
    Finds `torch.tensor`, `torch.as_tensor`, `torch.FloatTensor` and similar calls on a list or
    tuple of NumPy arrays.

    ## Why is this bad
    torch goes through the list as through any Python sequence: it creates an object for each
    number, determines its type and reads it. NumPy joins the arrays with one copy of memory, and
    `torch.from_numpy` then uses the result without another copy. torch itself warns once per
    process that this is "extremely slow". A training step of a small network took 7.6 times as long
    when it converted a batch of 256 arrays with 512 numbers each. Code that runs less often than
    each step is reported as info.

    ## When it is fine
    - A few numbers, or set-up code that runs once.
    - Lists of NumPy's own numbers, `[x.mean(), y.mean()]`: they are not arrays. Not reported, nor
      are values that may be either, such as results of `numpy.load`.

    ## Bad
    ```python
    import numpy as np
    import torch

    def states(count: int):
        rows = [np.random.rand(512) for _ in range(count)]
        return torch.tensor(rows)
    ```

    ## Good
    ```python
    import numpy as np
    import torch

    def states(count: int):
        rows = [np.random.rand(512) for _ in range(count)]
        return torch.from_numpy(np.stack(rows))
    ```

    ## Fix safety
    Unsafe: the list goes through `numpy.array` first. Values and dtype are the same if all arrays
    have one dtype; for several dtypes, torch and NumPy apply different promotion rules (NumPy turns
    float32 and int64 into float64). Arrays that do not fit together raise an error with another
    text.

    ## How a GPU shows it
    A trace records the CPU time of calls that get a list of arrays; on a GPU it counts as no cost below
    half a percent of a step. In a profile the GPU idles while one thread of the CPU is busy in
    `torch.tensor`.

    ## References
    - [torch.from_numpy](https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html)
    - [numpy.stack](https://numpy.org/doc/stable/reference/generated/numpy.stack.html)
    """

    code, name = "TPF214", "list-of-arrays"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = ("list-of-arrays-policy",)
    costs = "a list of 256 arrays makes the step of a small MLP {0} slower"
    listens = (Calls(*(f"torch.{name}" for name in _MAKERS)),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        given = site.argument("data", 0)
        if given is None or not _is_list_of_arrays(site, given):
            return
        heat = Heat.HOT if _makes_items(site) else site.heat
        yield self.finding(
            site,
            f"{shown(site)} converts a list of arrays number by number{often(site)}",
            heat=heat,
            severity=None if heat is Heat.HOT else Severity.INFO,
            help="Join them with NumPy: `torch.from_numpy(numpy.stack(…))`.",
            fix=_fix(site, given),
        )


def _makes_items(site: CallSite) -> bool:
    """True if the workers of a loader run a place for each item or batch."""
    function = site.model.function(site.node)
    return any(worker.node is function for worker in worker_functions(site.model))


def _is_list_of_arrays(site: CallSite, given: ast.expr) -> bool:
    if len(site.node.args) > 1 and site.target.endswith("Tensor"):
        return False
    members = site.value(given).members
    return bool(members) and all(_holds_arrays(member, _DEPTH) for member in members)


def _holds_arrays(value: Value, depth: int) -> bool:
    """True if a list holds only arrays, or lists of them; an array that may be a single number does not count."""
    if not isinstance(value, Sequence) or value.type not in ("list", "tuple") or depth == 0:
        return False
    elements = value.items or value.element.members
    return bool(elements) and all(_is_array(each) or _holds_arrays(each, depth - 1) for each in elements)


def _is_array(value: Value) -> bool:
    return isinstance(value, Array) and (bool(value.rank) or value.is_image)


def _fix(site: CallSite, given: ast.expr) -> Fix | None:
    source = site.model.source
    spelling = spell(site.model.symbols, "numpy.array", site.node)
    if spelling is None or isinstance(given, ast.Starred):
        return None
    edit = replace(source, source.span(given), f"{spelling.text}({site.text(given)})")
    return Fix("Join the arrays with NumPy", Safety.UNSAFE, (edit,), spelling.imports)
