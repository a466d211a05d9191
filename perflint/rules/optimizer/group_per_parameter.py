"""TPF609: an optimizer with a group, or an optimizer, for each parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules._memory.flows import made
from perflint.rules._sources import given
from perflint.rules._turns import heads
from perflint.rules.base import Files, FileSite, Rule, Site, shown
from perflint.semantics.around import loops_around
from perflint.semantics.model import Model
from perflint.semantics.structure import calls_in, keyword, last_name, names_in, walk

_PARAMETERS = frozenset({"parameters", "named_parameters"})
_MERGES = r"reduce_param_groups|merge_param|_groups\.setdefault|defaultdict"


class GroupPerParameter(Rule):
    """An optimizer gets a group of its own for each parameter, or each parameter an optimizer.

    ## What it does
    Finds `{"params": [p], …}` for each `p` of `model.parameters()` or `named_parameters()`, and `AdamW([p])` for each.

    ## Why is this bad
    The fast forms of optimizers update all tensors of one group in a few kernels. With a group for each tensor, they
    launch kernels for each, and Python goes through hundreds of groups in each step. On an H200, a training step of
    GPT-2 took 20% longer with a group for each parameter, and 23% longer with an optimizer for each. Others measured
    it, too: [RF-DETR](https://github.com/roboflow/rf-detr/pull/1409) merged 465 groups into 28, and a training step
    took 23% less time, on an L4 with torch 2.9.

    ## When it is fine
    - Each parameter has a learning rate of its own.
    - An optimizer for each parameter in a hook of its gradient saves the memory of the gradients: reported as
      information.
    - The groups are merged afterwards.

    ## Bad
    ```python
    import torch

    def build(model: torch.nn.Module):
        groups = [
            {"params": [p], "weight_decay": 0.0 if p.ndim < 2 else 0.1} for p in model.parameters() if p.requires_grad
        ]
        return torch.optim.AdamW(groups, lr=1e-3, fused=True)
    ```

    ## Good
    ```python
    import torch

    def build(model: torch.nn.Module):
        parameters = [p for p in model.parameters() if p.requires_grad]
        groups = [
            {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
            {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": 0.1},
        ]
        return torch.optim.AdamW(groups, lr=1e-3, fused=True)
    ```

    ## Fix safety
    No fix: the state of an optimizer in old checkpoints has the old groups.

    ## How a GPU shows it
    A profile shows a short `multi_tensor_apply` kernel for each parameter, with gaps between them.

    ## References
    - [torch.optim: per-parameter options](https://docs.pytorch.org/docs/stable/optim.html#per-parameter-options)
    """

    code, name = "TPF609", "group-per-parameter"
    effect, severity = Effect.COMPUTE, Severity.WARNING
    measured = ("group-per-parameter-step-gpt", "optimizer-per-parameter-step-gpt")
    costs = "a group for each parameter makes GPT-2 training {0} slower, and an optimizer for each {1}"
    listens = (Files("parameters()", also=("params", "optim"), unlike=_MERGES),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        for node, what in (*_groups(model), *_optimizers(model)):
            yield self.finding(
                Site(model, node),
                f"{shown(site, node)} makes {what} for each parameter",
                # It is made once, and each step goes through it.
                heat=Heat.HOT,
                help="Put all parameters with the same settings into one group.",
            )


def _groups(model: Model) -> Iterator[tuple[ast.expr, str]]:
    """The groups of one parameter that a loop makes."""
    for group in model.nodes(ast.Dict):
        for key, value in zip(group.keys, group.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "params" and _is_of_loop(model, group, value):
                yield group, "a group"
    for call in model.nodes(ast.Call):
        held = keyword(call, "params") if model.target(call) == "builtins.dict" else None
        if held is not None and _is_of_loop(model, call, held):
            yield call, "a group"


def _optimizers(model: Model) -> Iterator[tuple[ast.expr, str]]:
    """The optimizers of one parameter that a loop makes."""
    for call in model.nodes(ast.Call):
        if model.target(call).startswith("torch.optim.") and model.target(call).count(".") == 2:
            parameters = given(call, "params", 0)
            if isinstance(parameters, ast.List) and _is_of_loop(model, call, parameters):
                yield call, "an optimizer"


def _is_of_loop(model: Model, node: ast.expr, held: ast.expr) -> bool:
    """True if `[p]`, or `p`, is the element of a loop over the parameters of a module."""
    elements = held.elts if isinstance(held, (ast.List, ast.Tuple)) else [held]
    if len(elements) != 1 or not isinstance(elements[0], ast.Name):
        return False
    for loop in loops_around(model, node):
        for target, source in heads(model, loop):
            if elements[0].id in names_in(target):
                over = [made(model, part) for part in walk(source) if isinstance(part, (ast.Name, ast.Call))]
                return any(last_name(each) in _PARAMETERS for each in calls_in(*over))
    return False
