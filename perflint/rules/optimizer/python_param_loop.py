"""TPF603: a Python loop that updates parameters one by one."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from itertools import chain

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.frozen import dataclass
from perflint.rules._bindings import derived
from perflint.rules._operators import operators
from perflint.rules.base import Files, FileSite, Rule, Site, often, shown
from perflint.rules.optimizer._parameters import ParameterLoop, parameter_loops
from perflint.rules.worth import sentence
from perflint.semantics.model import Model
from perflint.semantics.structure import calls_in, children, keyword, last_name, names_in, root_of, walk
from perflint.semantics.values import Function

_UPDATES = operators("optimizers", "updates")
_LOOSE = frozenset({"copy_", "normal_", "uniform_"})
"""Names of work that is mostly done once; it counts only in code that runs each step."""
_OUT_OF_PLACE = "a moving average computed out of place, parameter by parameter, makes GPT-2 training {2} slower"
_FORMS = frozenset({"view_as", "reshape_as", "expand_as", "type_as", "to"})


class PythonParamLoop(Rule):
    """A Python loop over parameters that updates one tensor at a time.

    ## What it does
    Finds loops over the parameters of a module or of an optimizer's group, or over their gradients,
    whose body changes tensors in place, by methods or by `p *= decay`: moving averages, soft updates of
    target networks, scaling and clipping of gradients, weight decay, clamping, optimizers written by
    hand. Each loop gets one finding, at its iterable.

    ## Why is this bad
    Each iteration launches one or more kernels for one small tensor. With hundreds of parameters
    the CPU takes milliseconds for that, usually longer than the GPU computes.
    `torch._foreach_lerp_` and similar functions take all tensors in one call and launch a few
    kernels. An Adam that loops over 300 parameters took 7.2 times as long on an H200 as one that
    does not. A moving average of a 124 M parameter GPT, one parameter at a time, made its training
    3% slower there, and that of a small network 10%; gradients that were scaled one by one cost 1%. Averages that are
    computed out of place, `slow.copy_(tau * fast + (1 - tau) * slow)`, launch twice as many kernels and allocate a
    tensor for each: training took 26% longer. `slow.copy_(fast.lerp(slow, tau))` launches as many as two operations in
    place, and allocates, too. So averages are warnings, and other updates are information.

    ## When it is fine
    - It runs once: initialisation, copying weights, freezing, checkpoints.
    - Few and large tensors: the kernels take longer than their launches.
    - The body does something different for each parameter.
    - The function is compiled: `torch.compile` fuses what the loop unrolls to.
    - Gradients that are broadcast or reduced in buckets.
    - The other branch does it with `torch._foreach_` functions, as in `_single_tensor_adam` of torch's own
      optimizers: not reported.

    ## Bad
    ```python
    import torch

    @torch.no_grad()
    def update(average: torch.nn.Module, model: torch.nn.Module, decay: float = 0.999):
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow.mul_(decay).add_(fast, alpha=1 - decay)
    ```

    ## Good
    ```python
    import torch

    @torch.no_grad()
    def update(average: torch.nn.Module, model: torch.nn.Module, decay: float = 0.999):
        torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 1 - decay)
    ```

    ## Fix safety
    No fix: the `_foreach_` functions that replace a loop depend on its whole body. For moving
    averages, `torch.optim.swa_utils.AveragedModel` with `get_ema_multi_avg_fn` has the code.

    ## How a GPU shows it
    A trace counts the in-place updates of single tensors in the body of the loop, by device. Four or more on the GPU
    in a step confirm the finding. A profile shows as many small kernels
    as there are parameters, with gaps between them as long as a
    launch takes.

    ## References
    - [torch.optim.swa_utils.AveragedModel](https://docs.pytorch.org/docs/stable/generated/torch.optim.swa_utils.AveragedModel.html)
    - [torch.optim: foreach implementations](https://docs.pytorch.org/docs/stable/optim.html#algorithms)
    """

    code, name = "TPF603", "python-param-loop"
    effect, severity = Effect.COMPUTE, Severity.WARNING
    measured = (
        "average-one-by-one-step-gpt",
        "gradients-scaled-one-by-one-gpt",
        "average-out-of-place-step-gpt",
        "average-one-by-one-policy",
    )
    costs = "a moving average kept parameter by parameter costs GPT-2 training {0}"
    listens = (Files("parameters()", "params", "grads", "gradients", "state_dict()"),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        for found in parameter_loops(model):
            loop = found.loop
            heat = Heat.HOT if _steps(model, loop) else model.heat(loop)
            names = derived(found.loop, names_in(found.target))
            updates = chain(_updates(model, loop.body, names), _augmented(model, found))
            update = next((each for each in updates if heat is Heat.HOT or not _may_be_meant_once(each.node)), None)
            if update is None:
                averaged = None if heat is Heat.COLD else _averaged(model, loop, names)
                if averaged is not None:
                    yield self._by_assignment(site, averaged, heat)
                continue
            if (heat is Heat.COLD and not _is_guarded(model, loop)) or _has_a_twin(model, loop):
                continue
            out_of_place = _is_out_of_place(update.node, names)
            is_average = not _steps(model, loop) and _is_average(update.node, loop, names)
            yield self.finding(
                update.site,
                f"{shown(site, update.node)} runs for each of {shown(site, found.over)}: at "
                f"least one kernel for every parameter{often(update.site)}",
                confidence=Confidence.MEDIUM if heat is Heat.HOT else Confidence.LOW,
                severity=self.severity if out_of_place or is_average else Severity.INFO,
                heat=heat,
                span=model.source.span(found.over),
                cost=sentence(_OUT_OF_PLACE, *self.measured) if out_of_place else None,
                help="Collect the tensors in lists and update all at once: `torch._foreach_mul_`, "
                "`torch._foreach_lerp_` and similar.",
            )

    def _by_assignment(self, site: FileSite, averaged: ast.Assign, heat: Heat) -> Finding:
        return self.finding(
            site,
            f"{shown(site, averaged.value)} runs for each entry or parameter: several kernels and a new tensor "
            "for every one",
            confidence=Confidence.MEDIUM,
            heat=heat,
            span=site.model.source.span(averaged),
            cost=sentence(_OUT_OF_PLACE, *self.measured),
            help="Collect the tensors in lists and update all at once: `torch._foreach_lerp_`.",
        )


def _averaged(model: Model, loop: ast.For | ast.While, names: set[str]) -> ast.Assign | None:
    """The assignment to an entry of a dict, under a key of the loop, of its mean with the value of the loop.

    Also to the data of a parameter of the loop: `slow.data = decay * slow.data + (1 - decay) * fast.data`.
    """
    for part in walk(loop):
        target = part.targets[0] if isinstance(part, ast.Assign) else None
        key = target.slice if isinstance(target, ast.Subscript) else None
        if isinstance(target, ast.Attribute) and target.attr == "data":
            key = target.value
        if not isinstance(part, ast.Assign) or not isinstance(key, ast.Name) or key.id not in names:
            continue
        sums = [each for each in walk(part.value) if isinstance(each, ast.BinOp)]
        is_mean = any(isinstance(each.op, ast.Add) for each in sums) and len(sums) > 2
        text = ast.unparse(part.targets[0])
        has_old = any(isinstance(each, type(target)) and ast.unparse(each) == text for each in walk(part.value))
        if is_mean and has_old and names_in(part.value) & (names - {key.id}):
            return part
    return None


def _steps(model: Model, loop: ast.For | ast.While) -> bool:
    """True if a loop is in the `step` of an optimizer of the project."""
    function = model.function(loop)
    info = model.module.defined_by(function)
    if info is None or info.name != "step" or not info.owner:
        return False
    return "torch.optim.Optimizer" in model.lineage(f"{model.module.name}.{info.owner}")


def _has_a_twin(model: Model, loop: ast.For | ast.While) -> bool:
    """True if a loop is the alternative to a form in the same code that takes all tensors at once."""
    function = model.function(loop)
    if isinstance(function, ast.FunctionDef) and "single_tensor" in function.name:
        return True
    if not model.says("_foreach_"):
        return False
    branches = (outer for outer in model.ancestors(loop) if isinstance(outer, ast.If))
    return any(
        isinstance(part, ast.Attribute) and part.attr.startswith("_foreach_")
        for branch in branches
        for part in walk(branch)
    )


def _is_guarded(model: Model, loop: ast.For | ast.While) -> bool:
    """True if a loop is cold by a condition alone, as an interval is, in a function that is not."""
    function = model.function(loop)
    return isinstance(function, ast.FunctionDef) and model.heat(function.body[0]) is not Heat.COLD


@dataclass(frozen=True, slots=True)
class _Update:
    """A call or statement that changes one tensor in place."""

    site: Site
    node: ast.Call | ast.AugAssign


def _augmented(model: Model, found: ParameterLoop) -> Iterator[_Update]:
    """The statements like `p *= decay` and `p.grad /= norm` that change what a loop goes over, beside inner loops."""
    names = names_in(found.target)
    for node in _nodes_beside(found.loop.body):
        if isinstance(node, ast.AugAssign) and _is_tensor_of(model, node.target, names) and not _is_text(node.value):
            yield _Update(Site(model, node.target), node)


def _is_tensor_of(model: Model, changed: ast.expr, names: set[str]) -> bool:
    """True for a tensor among some names, its data, or its gradient."""
    if isinstance(changed, ast.Attribute):
        return changed.attr in ("data", "grad") and root_of(changed) in names
    if not isinstance(changed, ast.Name) or changed.id not in names:
        return False
    value = model.value(changed)
    return value.is_unknown or value.tensor is not None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _updates(model: Model, body: list[ast.stmt], names: set[str], deeper: bool = True) -> Iterator[_Update]:
    """The calls that change a tensor in place which belongs to this iteration, outside of inner loops.

    Functions of the file that get such a tensor are looked into, one level deep.
    """
    for node in _nodes_beside(body):
        if not isinstance(node, ast.Call):
            continue
        changed = _changed(node)
        if changed is not None and _is_of_turn(changed, names):
            yield _Update(model.call(node), node)
        if deeper and any(root_of(each) in names for each in node.args):
            yield from _passed_on(model, node, names)


def _nodes_beside(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of a block, the outer ones first, without inner loops and functions."""
    waiting: deque[ast.AST] = deque(body)
    while waiting:
        node = waiting.popleft()
        if not isinstance(node, (ast.For, ast.While, ast.FunctionDef, ast.Lambda)):
            yield node
            waiting += children(node)


def _changed(call: ast.Call) -> ast.expr | None:
    """The tensor that a call changes in place: `p.mul_(2)`, `torch.nan_to_num(p.grad, out=p.grad)`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in _UPDATES:
        return call.func.value
    return keyword(call, "out")


def _is_of_turn(node: ast.expr, names: set[str]) -> bool:
    """True for a tensor that is bound in this iteration, or stored under a name of it: `shadow[name].data`."""
    if root_of(node) in names:
        return True
    keys = (part.slice for part in walk(node) if isinstance(part, ast.Subscript))
    return any(isinstance(key, ast.Name) and key.id in names for key in keys)


def _passed_on(model: Model, call: ast.Call, names: set[str]) -> Iterator[_Update]:
    for value in model.value(call.func).members:
        info = model.function_of(value)
        if info is None or not isinstance(value, Function) or not isinstance(info.node, ast.FunctionDef):
            continue
        parameters = [each.arg for each in info.node.args.args][value.receiver is not None :]
        given = {name for name, each in zip(parameters, call.args, strict=False) if root_of(each) in names}
        yield from _updates(model, info.node.body, given, deeper=False)


def _may_be_meant_once(update: ast.Call | ast.AugAssign) -> bool:
    """True if it sets weights to something that was there before, or is drawn: copies, initialisation."""
    if not isinstance(update, ast.Call) or last_name(update) not in _LOOSE:
        return False
    changed = root_of(update.func)
    return not any(_computes(each, changed) for each in update.args)


def _is_out_of_place(update: ast.Call | ast.AugAssign, names: set[str]) -> bool:
    """True if it sets a parameter to a result of several operations: `old.copy_(tau * new + (1 - tau) * old)`."""
    if not isinstance(update, ast.Call) or last_name(update) != "copy_" or not update.args:
        return False
    operations = [part for part in walk(update.args[0]) if isinstance(part, ast.BinOp) and names_in(part) & names]
    return len(operations) > 1


def _is_average(update: ast.Call | ast.AugAssign, loop: ast.For | ast.While, names: set[str]) -> bool:
    """True if it moves a parameter towards another.

    By `lerp_`, `copy_(new.lerp(old, tau))`, `mul_(tau).add_(new)`, or by `old *= tau` and `old += …`, and
    `old.mul_(tau)` and `old.add_(new)`.
    """
    if isinstance(update, ast.AugAssign):
        target = ast.unparse(update.target)
        changes = (each for each in walk(loop) if isinstance(each, ast.AugAssign))
        return {ast.Mult, ast.Add} <= {type(each.op) for each in changes if ast.unparse(each.target) == target}
    changed = _written(update)
    parts = [
        update,
        *(each for each in calls_in(loop) if changed and _written(each) == changed),
    ]
    said = {last_name(call).rstrip("_") for call in calls_in(*parts)}
    taken = {name for part in parts for name in names_in(part)}
    return bool("lerp" in said or {"mul", "add"} <= said) and len(taken & names) > 1


def _written(call: ast.Call) -> str:
    """The text of the tensor that a call changes in place; "" if it changes none."""
    changed = _changed(call)
    return "" if changed is None else ast.unparse(changed)


def _computes(node: ast.AST, changed: str) -> bool:
    """True if a new value is computed, rather than cut out of another tensor."""
    if isinstance(node, ast.Slice):
        return False
    if isinstance(node, ast.BinOp) or _takes(node, changed):
        return True
    return any(_computes(part, changed) for part in ast.iter_child_nodes(node))


def _takes(node: ast.AST, name: str) -> bool:
    """True if a call computes with the value of a name; `view_as` and `to` only take its shape, dtype or device."""
    if not isinstance(node, ast.Call) or last_name(node) in _FORMS:
        return False
    return any(root_of(each) == name for each in node.args)
