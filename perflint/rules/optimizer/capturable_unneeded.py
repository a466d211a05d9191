"""TPF607: an optimizer that is prepared for a CUDA graph that is never captured."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.rules._arguments import dropped
from perflint.rules._methods import is_true
from perflint.rules._project_text import project_says
from perflint.rules._since import CAPTURABLE
from perflint.rules.base import Calls, CallSite, Rule
from perflint.rules.optimizer._graphs import CAPTURES, COMPILES
from perflint.semantics.model import Model
from perflint.semantics.values import Const, Mapping, Sequence, Value

_NAMES = ("lr", "betas", "eps", "weight_decay", "momentum")
_WRITES = re.compile(rf"[\"'](?:{'|'.join(_NAMES)})[\"']\](?:\[\d\])?\s*(?:\.\w+_\(|=\s*torch\.)")
"""`group["lr"].fill_(…)` and `group["lr"] = torch.tensor(…)`."""


class CapturableUnneeded(Rule):
    """`capturable=True` without a CUDA graph.

    ## What it does
    Finds optimizers that are created with `capturable=True` in projects of which no file captures a
    CUDA graph or compiles anything.

    ## Why is this bad
    A capturable optimizer keeps its step counters on the GPU and computes bias corrections there,
    in kernels of a few numbers for each parameter. Outside of a graph that is slower than
    arithmetic on the CPU; the documentation says that it "can impair ungraphed performance". It
    made training of a 124 M parameter GPT 5% slower on an H200.

    ## When it is fine
    - The step is captured, or compiled, outside of the project.
    - A hyperparameter is a tensor (`lr=torch.tensor(1e-3)`): without the argument, torch updates
      the parameters one by one, or raises with `foreach=True`.
    - `fused=True` as well: the fused form counts on the GPU anyway.

    ## Bad
    ```python
    import torch

    def make(model: torch.nn.Module):
        return torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True)
    ```

    ## Good
    ```python
    import torch

    def make(model: torch.nn.Module):
        return torch.optim.AdamW(model.parameters(), lr=1e-3)
    ```

    ## Fix safety
    Unsafe: without the argument, capturing the step in a graph fails; the counters are tensors on
    the CPU, in checkpoints too, and updates differ in the last bits. CUDA graphs, the compiler and tensors as
    hyperparameters (`lr`, `betas`, also in groups of parameters or set later) rely on the argument: there is no
    finding if a file of the project has one of them.

    ## How a GPU shows it
    A trace records whether a CUDA graph captured the step, which refutes the finding. A profile shows
    `aten::_foreach_pow`, `aten::_foreach_sub_` and similar operators on tensors of
    one number below `Optimizer.step`; torch warns once about a capturable optimizer that steps
    outside of a graph.

    ## References
    - [torch.optim.Adam](https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html): `capturable`
    """

    code, name = "TPF607", "capturable-unneeded"
    effect, severity = Effect.COMPUTE, Severity.WARNING
    measured = ("adamw-capturable-step-gpt",)
    costs = "`capturable=True` costs GPT-2 training {0}"
    listens = (Calls(*CAPTURABLE),)
    since = (2, 0)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if not is_true(site.argument("capturable")) or site.argument("fused") is not None:
            return
        if _has_tensors(site) or project_says(site.model, _GRAPHS):
            return
        keyword = next(item for item in site.node.keywords if item.arg == "capturable")
        edit = dropped(site.model.source, site.node, keyword)
        yield self.finding(
            site,
            f"`{site.target.rpartition('.')[2]}` counts its steps on the GPU (`capturable=True`), but no file of the "
            "project captures a CUDA graph: each parameter costs small kernels in place of arithmetic on the CPU",
            confidence=Confidence.MEDIUM,
            # It is made once, but steps each time.
            heat=Heat.HOT,
            help="Remove `capturable`.",
            fix=Fix("Leave `capturable` out", Safety.UNSAFE, (edit,)),
        )


_GRAPHS = re.compile(f"{CAPTURES}|{COMPILES}")


def _has_tensors(site: CallSite) -> bool:
    """True if a hyperparameter of the optimizer that a call makes is a tensor, or code of the project makes it one."""
    given = [keyword.value for keyword in site.node.keywords] + site.node.args[1:]
    params = site.argument("params", 0)
    return (
        any(_holds_tensor(site.value(each)) for each in given if each is not params)
        or (params is not None and _group_holds_tensor(site.value(params)))
        or any(_holds_tensor(site.value(value)) for value in _assigned(site.model))
        or project_says(site.model, _WRITES)
    )


def _holds_tensor(value: Value) -> bool:
    """True if a value is a tensor, or a sequence with one."""
    return any(
        member.tensor is not None
        or (isinstance(member, Sequence) and any(map(_holds_tensor, member.items or (member.element,))))
        for member in value.members
    )


def _group_holds_tensor(value: Value) -> bool:
    """True if a list of groups of parameters has one with a tensor beside its parameters."""
    lists = [member for member in value.members if isinstance(member, Sequence)]
    groups = [group for each in lists for item in each.items or (each.element,) for group in item.members]
    items = [item for group in groups if isinstance(group, Mapping) for item in group.items]
    return any(key != "params" and _holds_tensor(value) for key, value in items)


def _assigned(model: Model) -> list[ast.expr]:
    """The values that code of the file assigns to hyperparameters: `group["lr"] = value`."""
    return [
        assignment.value
        for assignment in model.nodes(ast.Assign)
        for target in assignment.targets
        if isinstance(target, ast.Subscript)
        and isinstance(key := model.value(target.slice), Const)
        and key.value in _NAMES
    ]
