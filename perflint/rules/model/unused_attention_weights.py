"""TPF302: attention weights that are computed and thrown away."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Safety, Severity
from perflint.fixes.edits import with_one_more
from perflint.rules._memory.flows import uses_of
from perflint.rules._methods import is_true
from perflint.rules._numbers import literal
from perflint.rules._project_text import some_file_says
from perflint.rules._visible import is_local, is_private
from perflint.rules.base import Calls, CallSite, Rule
from perflint.rules.precision._region import region
from perflint.rules.worth import cost, sentence
from perflint.semantics.dataflow.flow import Use
from perflint.semantics.model import Model
from perflint.semantics.values import Instance

_NEED_WEIGHTS = 4


class UnusedAttentionWeights(Rule):
    """
    ## What it does
    Finds calls of `nn.MultiheadAttention` whose second result, the attention weights, is thrown
    away: `y, _ = attention(q, k, v)` or `attention(q, k, v)[0]`, without `need_weights=False`.

    ## Why is this bad
    `need_weights` is true by default. The weights, of shape (batch, tokens, tokens), must then
    exist in memory, so that the fused attention kernels cannot be used. It made a training step of
    six layers at 1024 tokens 2.2 × slower under bfloat16 autocast on an H200, and 4% slower in
    float32; the layer alone lost 12% at 512 tokens and 2.8 × at 2048.

    ## When it is fine
    A forward hook reads the weights, the result comes from a subclass, or gradients of gradients
    are computed (the fused kernels do not support them). A call whose second result is read
    anywhere in the function is not reported.

    ## Bad
    ```python
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.attention = nn.MultiheadAttention(width, 8, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y, _ = self.attention(x, x, x)
            return x + y
    ```

    ## Good
    ```python
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.attention = nn.MultiheadAttention(width, 8, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y, _ = self.attention(x, x, x, need_weights=False)
            return x + y
    ```

    ## Fix safety
    Unsafe: the fused kernels add in another order, so the output differs by rounding (1e-7 in
    float32) and gradients with it. With dropout they draw other random numbers, and a row whose
    mask hides everything gives zeros instead of NaN. Forward hooks read the weights, and the fused kernels have no
    second gradients: no fix is offered if a file that may run in the same process says
    `register_forward_hook` or `create_graph=True`.

    ## How a GPU shows it
    A timeline shows `softmax` and `bmm` kernels per layer instead of one flash or
    memory-efficient attention kernel. `benchmarks/rules/layers.py attention-weights` times both.

    A trace records whether a call returned weights, and their shape. Weights confirm the finding; a
    forward hook that gets them refutes it.

    ## References
    - [torch.nn.MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html)
    - [Fused attention](https://docs.pytorch.org/docs/stable/nn.functional.html#attention-mechanisms)
    """

    code, name = "TPF302", "unused-attention-weights"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = ("attention-weights-step-bfloat16", "attention-weights-step-float32")
    costs = None
    listens = (Calls("torch.nn.Module.__call__"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        attention = site.value(site.node.func)
        if not isinstance(attention, Instance) or attention.cls != "torch.nn.MultiheadAttention":
            return
        if site.has_unpacking:
            return
        asked = site.argument("need_weights", _NEED_WEIGHTS)
        if not (asked is None or is_true(asked)) or not _first_item_only(site.model, site.node):
            return
        read_elsewhere = site.model.says("register_forward_hook", "create_graph")
        half = region(site.model).half is not None
        row = cost(f"attention-weights-step-{'bfloat16' if half else 'float32'}")
        yield self.finding(
            site,
            f"`{site.text(site.node.func)}(…)` computes attention weights that nothing reads, and cannot use "
            "the fused kernels",
            severity=row.severity,
            confidence=Confidence.LOW if read_elsewhere else Confidence.HIGH,
            help="Pass `need_weights=False`.",
            fix=None if read_elsewhere or some_file_says(site.model, _READS) else _fix(site),
            cost=sentence(_COST, row.name),
        )


_COST = "unread attention weights make training of 6 transformer layers with 1024 tokens {0} slower"


def _fix(site: CallSite) -> Fix | None:
    asked, source = site.argument("need_weights", _NEED_WEIGHTS), site.model.source
    added = (
        with_one_more(source, site.node, "need_weights=False") if asked is None else Edit(source.span(asked), "False")
    )
    return None if added is None else Fix("Pass `need_weights=False`", Safety.UNSAFE, (added,))


_READS = re.compile(r"register_forward_hook\(|create_graph\s*=\s*True")


def _first_item_only(model: Model, call: ast.Call) -> bool:
    """True if of the pair that a call returns only the first item can be read: `y, _ = f()`, `f()[0]`."""
    parent = model.parent(call)
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return _is_first(parent, call)
    (target,) = parent.targets
    if isinstance(target, ast.Name):
        uses = _uses(model, target)
        return bool(uses) and all(_is_first(model.parent(use), use) for use in uses or ())
    if not isinstance(target, (ast.Tuple, ast.List)) or len(target.elts) != 2:
        return False
    second = target.elts[1]
    name = second.value if isinstance(second, ast.Starred) else second
    return isinstance(name, ast.Name) and _uses(model, name) == ()


def _uses(model: Model, store: ast.Name) -> tuple[Use, ...] | None:
    """The uses of the value that a name gets; None if other functions or files may read it."""
    is_unseen = is_private(model, store) or (store.id == "_" and is_local(model, store))
    return uses_of(model, store) if is_unseen else None


def _is_first(parent: ast.AST | None, pair: ast.expr) -> bool:
    """True for `pair[0]`."""
    if not isinstance(parent, ast.Subscript) or parent.value is not pair or not isinstance(parent.ctx, ast.Load):
        return False
    return literal(parent.slice) == 0
