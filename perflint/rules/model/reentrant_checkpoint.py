"""TPF307: activation checkpointing in its old form, because `use_reentrant` is not passed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Fix, Safety, Severity
from perflint.fixes.edits import with_one_more
from perflint.rules._since import NO_REENTRY, NO_REENTRY_SEQUENTIAL
from perflint.rules.base import Calls, CallSite, Rule, shown
from perflint.semantics.model import Model

_SEQUENTIAL = "torch.utils.checkpoint.checkpoint_sequential"


class ReentrantCheckpoint(Rule):
    """Activation checkpointing runs in its old form, because `use_reentrant` is not passed.

    ## What it does
    Finds `torch.utils.checkpoint.checkpoint(…)` and `checkpoint_sequential(…)` without `use_reentrant`.

    ## Why is this bad
    Without the argument torch 2.13 still uses `use_reentrant=True`, and warns. That form runs a
    backward pass inside the backward pass. It recomputes the whole function, while the new form
    stops at the last tensor that is needed. It loses autograd state inside the function (hooks of
    DDP, `torch.autograd.grad`). If no input requires a gradient, the parameters inside get none at
    all. torch announces that the default will become an error. The cost goes both ways: a training
    step of six layers was 5% slower in float32 on an H200, but 22% faster under bfloat16
    autocast, where the step was limited by the CPU work of the new form.

    ## When it is fine
    - `use_reentrant` is passed, True or False, or comes from `**kwargs` or `functools.partial`.
    - Code that must run with torch before 2.1.

    ## Bad
    ```python
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    class Stack(nn.Module):
        def __init__(self, layers: nn.ModuleList):
            super().__init__()
            self.layers = layers

        def forward(self, x: torch.Tensor):
            for layer in self.layers:
                x = checkpoint(layer, x)
            return x
    ```

    ## Good
    ```python
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    class Stack(nn.Module):
        def __init__(self, layers: nn.ModuleList):
            super().__init__()
            self.layers = layers

        def forward(self, x: torch.Tensor):
            for layer in self.layers:
                x = checkpoint(layer, x, use_reentrant=False)
            return x
    ```

    ## Fix safety
    Risky: the new form raises an error if the second run of the function differs from the first,
    which the old one does not notice; parameters that got no gradient may get one. `preserve_rng_state` means the same
    in both forms, and no other argument depends on the form.

    ## How a GPU shows it
    A timeline shows `CheckpointFunctionBackward` with a whole forward pass in it.
    `benchmarks/rules/models.py reentrant` times both. A trace looks for that node in the
    graph of the result, and confirms the finding if it is there: without cost if all calls were under autocast,
    where the new form was slower when measured. The finding is refuted if autograd was off or nothing inside
    required a gradient.

    ## References
    - [torch.utils.checkpoint](https://docs.pytorch.org/docs/stable/checkpoint.html), which lists the differences
    - [TorchFix TOR003](https://github.com/pytorch-labs/torchfix)
    """

    code, name = "TPF307", "reentrant-checkpoint"
    effect, severity = Effect.COMPUTE, Severity.INFO
    measured = ("reentrant-checkpoint-step-bfloat16",)
    since = (2, 1)
    listens = (Calls("torch.utils.checkpoint.checkpoint", _SEQUENTIAL),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if any(keyword.arg is None or keyword.arg == "use_reentrant" for keyword in site.node.keywords):
            return
        if site.target == _SEQUENTIAL and (len(site.node.args) > 3 or site.has_unpacking):
            return
        # A name that is bound to the function may have `use_reentrant` set, or also be bound to other functions.
        if site.model.symbols.full_name(site.node.func) != site.target:
            return
        if _is_for_a_version(site.model, site.node):
            return
        edit = with_one_more(site.model.source, site.node, "use_reentrant=False")
        since = NO_REENTRY_SEQUENTIAL if site.target == _SEQUENTIAL else NO_REENTRY
        fix = None if edit is None else Fix("Pass `use_reentrant=False`", Safety.RISKY, (edit,), since=since)
        yield self.finding(
            site,
            f"{shown(site)} runs the reentrant form, which recomputes more and does not support `torch.autograd.grad`",
            help="Pass `use_reentrant=False`.",
            fix=fix,
        )


def _is_for_a_version(model: Model, node: ast.AST) -> bool:
    """True if a test of a version decides whether a node runs: the other branch is for newer versions."""
    return any(
        isinstance(outer, ast.If) and "version" in ast.unparse(outer.test).lower() for outer in model.ancestors(node)
    )
