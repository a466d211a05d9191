"""TPF209: double precision on the GPU that comes from NumPy's default."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Safety, Severity
from perflint.fixes.edits import replace, with_argument
from perflint.fixes.imports import spell
from perflint.rules._memory.flows import ahead, behind
from perflint.rules._methods import called_on
from perflint.rules._operators import operators
from perflint.rules._project_text import project_says
from perflint.rules.base import Calls, CallSite, Rule, often, shown
from perflint.rules.placement import MOVES, creation_confidence, move
from perflint.rules.transfer._batches import batch_of
from perflint.semantics.dataflow.definitions import definitions
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.structure import keyword, last_name
from perflint.semantics.values import NONE, Array, Instance

_TAKES_DTYPE = frozenset({"torch.tensor", "torch.as_tensor"})
_KEEPS_DTYPE = operators("double", "keeps_dtype")
_DOUBLES = operators("double", "doubles")
"""Functions whose arrays hold float64 by default."""


class AccidentalFloat64(Rule):
    """An array of NumPy's default dtype becomes a float64 tensor on the GPU.

    ## What it does
    Finds `torch.from_numpy`, `torch.tensor` and `torch.as_tensor` of arrays that NumPy creates in
    double precision by default (`np.random.randn`, `np.zeros`, `np.linspace`), if the tensor goes
    to the GPU with that dtype. An item of a dataset goes there with the batches of a loader in the same file.

    ## Why is this bad
    A float64 tensor takes twice the memory and twice the time to copy. Arithmetic with it is
    float64, until the result meets a module's float32 weights and raises or is cast. Consumer GPUs
    compute float64 at 1/32 or 1/64 of the rate of float32. Data-centre GPUs have units for float64:
    on an H200 a matrix product of 2048 × 2048 took less time than in float32 (0.28 ms against
    0.34), which does not use TF32 by default. Copies and everything else still move twice the
    bytes.

    ## When it is fine
    - Double precision is intended: scientific code that requests it with `dtype=torch.float64` or
      `.double()`.
    - The array is cast (`.float()`, `dtype=torch.float32`, `np.float32`): not reported.
    - The tensor stays on the CPU.

    ## Bad
    ```python
    import numpy as np
    import torch

    def noise(n: int):
        return torch.from_numpy(np.random.randn(n)).cuda()
    ```

    ## Good
    ```python
    import numpy as np
    import torch

    def noise(n: int):
        return torch.from_numpy(np.random.randn(n)).float().cuda()
    ```

    ## Fix safety
    Unsafe: `dtype=torch.float32` is added to `torch.tensor` and `torch.as_tensor`. Results have the
    precision of float32. Modules in double precision need float64: no fix is offered if a file of the project casts
    to it (`.double()`, `set_default_dtype`). `torch.from_numpy` has no dtype argument, and gets no fix.

    ## How a GPU shows it
    A trace records the dtype of each tensor that comes to a GPU: float64 confirms the finding, another
    dtype or a tensor that stays on the CPU refutes it. A profile shows kernels with `double` in their
    names, `dgemm` among them, and copies of eight bytes per element.

    ## References
    - [torch.from_numpy](https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html)
    - [CUDA C++ programming guide: arithmetic
      instructions](https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#arithmetic-instructions)
    """

    code, name = "TPF209", "accidental-float64"
    effect, severity = Effect.COMPUTE, Severity.INFO
    listens = (Calls("torch.from_numpy", *sorted(_TAKES_DTYPE)),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        given = behind(site.model, site.node.args[0]) if site.node.args else None
        confidence = None if given is None or not _is_double(site.model, given) else _confidence(site)
        if confidence is None:
            return
        yield self.finding(
            site,
            f"{shown(site)} puts NumPy's float64 on the GPU{often(site)}",
            confidence=confidence,
            help="Cast it on the CPU: `.float()`, or `dtype=torch.float32`.",
            fix=_fix(site),
        )


_DOUBLE = re.compile(r"set_default_(?:dtype|tensor_type)\(|\.double\(\)|\.to\((?:dtype=)?torch\.(?:float64|double)\)")


def _is_double(model: Model, node: ast.expr) -> bool:
    """True if an expression is an array that NumPy made in double precision by default."""
    if isinstance(node, ast.BinOp):
        parts = (node.left, node.right)
        return any(_is_double(model, part) for part in parts) and isinstance(model.value(node), Array)
    if isinstance(node, ast.Name):
        found = definitions(model.symbols, node, node.id)
        made = found.bindings[0] if len(found.bindings) == 1 and not found.is_open else None
        return made is not None and made.whole and isinstance(made.value, ast.Call) and _is_double(model, made.value)
    if not isinstance(node, ast.Call):
        return False
    dtype = keyword(node, "dtype")
    if dtype is not None or any(item.arg is None for item in node.keywords):
        return False
    target = model.target(node)
    if target in ("numpy.zeros", "numpy.ones", "numpy.empty") and len(node.args) > 1:
        return False
    return target in _DOUBLES and isinstance(model.value(node), Array)


def _confidence(site: CallSite) -> Confidence | None:
    """How sure it is that the tensor goes to the device as it is."""
    if keyword(site.node, "dtype") is not None or site.has_unpacking:
        return None
    here = creation_confidence(site)
    if here is not None:
        return None if _is_cast(site) else here
    node: ast.expr = site.node
    while True:
        node = ahead(site.model, node)
        call = called_on(site.model, node)
        if call is None:
            return _of_batches(site, node)
        if last_name(call) in ("to", "cuda"):
            moved = move(site.model.call(call))
            cast = moved is None or moved.dtype is not None or moved.other is not None
            return None if cast or moved is None or _is_cast(site.model.call(call)) else moved.confidence
        if last_name(call) not in _KEEPS_DTYPE:
            return None
        node = call


def _of_batches(site: CallSite, item: ast.AST) -> Confidence | None:
    """How sure it is that the batches of a dataset, whose items are such tensors, go to the device as they are."""
    model, outer = site.model, site.model.parent(item)
    function = model.function(item)
    while isinstance(outer, (ast.Tuple, ast.Dict)):
        outer = model.parent(outer)
    info = model.module.defined_by(function) if isinstance(outer, ast.Return) else None
    if info is None or not info.owner or info.name != "__getitem__" or project_says(model, _DOUBLE):
        return None
    return _moved_batches(model).get(f"{model.module.name}.{info.owner}")


@once
def _moved_batches(model: Model) -> dict[str, Confidence]:
    """How sure it is that the batches of a dataset are moved to the device without a cast, by its class."""
    found: dict[str, Confidence] = {}
    for call in model.nodes(ast.Call):
        if model.target(call) not in MOVES:
            continue
        site = model.call(call)
        moved = move(site)
        batch = None if moved is None or site.owner is None or _is_cast(site) else batch_of(site, site.owner)
        if moved is None or batch is None or moved.dtype is not None or moved.other is not None:
            continue
        plain = [loader for loader in batch.loaders if loader.argument("collate_fn") in (None, NONE)]
        datasets = (member for loader in plain for member in (loader.argument("dataset") or NONE).members)
        found.update((dataset.cls, moved.confidence) for dataset in datasets if isinstance(dataset, Instance))
    return found


def _is_cast(site: CallSite) -> bool:
    """True if the next call on the result changes its dtype."""
    attribute = site.model.parent(site.node)
    if not isinstance(attribute, ast.Attribute):
        return False
    return attribute.attr in ("float", "half", "bfloat16", "to", "type", "type_as", "long", "int", "bool", "double")


def _fix(site: CallSite) -> Fix | None:
    if site.target not in _TAKES_DTYPE or project_says(site.model, _DOUBLE):
        return None
    dtype = spell(site.model.symbols, "torch.float32", site.node)
    new = with_argument(site.concrete, f"dtype={dtype.text}") if dtype else None
    if dtype is None or new is None:
        return None
    return Fix("Make it float32", Safety.UNSAFE, (replace(site.model.source, site.span, new),), dtype.imports)
