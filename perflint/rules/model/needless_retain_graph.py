"""TPF305: a graph that is retained for a second backward pass that never comes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Safety, Severity
from perflint.rules._arguments import dropped
from perflint.rules._methods import in_tests, is_true
from perflint.rules._project_text import some_file_says
from perflint.rules._turns import iteration_around
from perflint.rules.base import Files, FileSite, Rule, Site, shown
from perflint.rules.model._graphs import Turn
from perflint.rules.transfer._loops import Loop
from perflint.semantics.around import statement_of
from perflint.semantics.model import FunctionNode, Model
from perflint.semantics.structure import calls_in, keyword, last_name, names_in, walk

_KEEPS_STATE = r"init_hidden|\.hidden\b|bptt|repackage|reset_state|higher\.|create_graph"
_TAKES = frozenset({"backward", "manual_backward", "grad", "vjp", "jvp"})
_MAY_TAKE = ("backward", "gradient", "penalty", "hessian", "jacobian")
_SETS_UP = frozenset("gradient_clipping clip_gradients sync_gradients gradient_checkpointing_enable".split())


class NeedlessRetainGraph(Rule):
    """A backward pass keeps its graph, but no later backward pass uses it.

    ## What it does
    Finds `loss.backward(retain_graph=True)` in a training loop if no other backward pass of the
    iteration shares a part of the loss's graph, nothing is carried over between iterations, and an
    optimizer's step follows.

    ## Why is this bad
    A backward pass frees the activations while it runs. With `retain_graph=True` they all stay
    until the loss is dropped: next to the gradients, and, if the loss variable stays alive, next to
    the activations of the following forward pass. It costs memory, not time: a training step of a
    GPT-2 took as long on an H200, with 9% more memory at its peak although the loss was dropped at
    once. It often hides a mistake, too: a hidden state that should have been detached.

    ## When it is fine
    - Another loss of the same step shares a part of the graph (`generator(z)` in a GAN), unless the
      last of them keeps the graph.
    - A state is carried between iterations with its graph; `.detach()` is better if that is not
      intended.
    - Gradients of several outputs of one graph are taken in a loop, without an optimizer's step.

    ## Bad
    ```python
    import torch
    from torch import nn
    from torch.utils.data import DataLoader

    def train(loader: DataLoader):
        model = nn.Linear(8, 1).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in loader:
            loss = model(x.cuda()).square().mean()
            optimizer.zero_grad()
            loss.backward(retain_graph=True)
            optimizer.step()
    ```

    ## Good
    ```python
    import torch
    from torch import nn
    from torch.utils.data import DataLoader

    def train(loader: DataLoader):
        model = nn.Linear(8, 1).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in loader:
            loss = model(x.cuda()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    Unsafe: if a module keeps a tensor of one call for the next, the next backward pass needs the graph, and raises
    "Trying to backward through the graph a second time". Gradients are the same. No fix is offered if a `forward` of
    a file that may run in the same process stores anything on its object.

    ## How a GPU shows it
    The peak of `torch.cuda.max_memory_allocated()` falls without it. `benchmarks/rules/models.py --memory
    retain-graph` compares both. A trace marks all nodes of the retained graph that keep tensors. Another backward pass
    through one of them refutes the finding; if none comes until the graph is freed, it is confirmed.

    ## References
    - [torch.Tensor.backward](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html): "in
      nearly all cases setting this option to True is not needed"
    """

    code, name = "TPF305", "needless-retain-graph"
    effect, severity = Effect.MEMORY, Severity.INFO
    measured = ("retain-graph-step-gpt",)
    listens = (Files("retain_graph", also=(".step(",), unlike=_KEEPS_STATE),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        retaining = [call for call in model.nodes(ast.Call) if _retains(call)]
        if not retaining or _a_forward_keeps(model):
            return
        steppers = _steppers(model)
        for call in retaining:
            statement = statement_of(model, call)
            loop = None if statement is None else iteration_around(model, statement)
            if loop is None or not _steps_after(loop, call) or not _is_alone(model, loop, call, steppers):
                continue
            yield self.finding(
                Site(model, call),
                f"{shown(site, call)} keeps the graph and its activations in memory, but no other backward "
                "pass uses them",
                confidence=Confidence.LOW if in_tests(model) else Confidence.MEDIUM,
                help="Remove `retain_graph`: the backward pass then frees the activations.",
                fix=_fix(model, call),
            )


_FORWARD_STORES = re.compile(
    r"^([ \t]*)def forward\b.*(?>\n\1[ \t]+.*|\n\1\).*|\n[ \t]*$)*?\n\1[ \t]+self\.\w+\s*[-+*/]?=(?!=)", re.MULTILINE
)
"""A method `forward` with a store to an attribute of its object among its lines."""


def _retains(call: ast.Call) -> bool:
    if last_name(call) not in ("backward", "manual_backward"):
        return False
    return is_true(keyword(call, "retain_graph"))


def _a_forward_keeps(model: Model) -> bool:
    """True if a `forward` of the file stores results on an object, for later calls."""
    for function in model.nodes(ast.FunctionDef):
        if function.name != "forward":
            continue
        for node in walk(function):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                return True
    return False


def _steppers(model: Model) -> set[str]:
    """The functions of the file that take gradients themselves."""
    return {
        function.name
        for function in model.nodes(ast.FunctionDef)
        if any(isinstance(node, ast.Call) and last_name(node) in _TAKES for node in walk(function))
    }


def _takes_gradients(call: ast.Call, steppers: set[str]) -> bool:
    name = last_name(call)
    if name == "step" and isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) != "self":
        return False
    if name in _TAKES or name in steppers:
        return True
    return any(word in name for word in _MAY_TAKE) and name not in _SETS_UP


def _steps_after(loop: Loop | FunctionNode, call: ast.Call) -> bool:
    later = (node.func for node in calls_in(loop) if node.lineno > call.lineno)
    steps = (method for method in later if isinstance(method, ast.Attribute) and method.attr == "step")
    return any("sched" not in ast.unparse(method.value).lower() for method in steps)


def _is_alone(model: Model, loop: Loop | FunctionNode, call: ast.Call, steppers: set[str]) -> bool:
    """True if no other backward pass of the function goes through the graph of this one."""
    function = model.function(call)
    turn = Turn(model, loop)
    own = turn.origins(*_started(turn, call))
    if own is None:
        return False
    shared = {name for name in own if turn.with_graph(name)}
    if _is_kept(loop, shared):
        return False
    in_loop = set(walk(loop))
    for other in calls_in(function or model.source.tree):
        if other is call or not _takes_gradients(other, steppers):
            continue
        if other not in in_loop:
            return False
        if other.lineno < call.lineno:
            continue
        theirs = turn.origins(*_started(turn, other))
        if theirs is None or theirs & shared:
            return False
    return True


def _is_kept(loop: Loop | FunctionNode, names: set[str]) -> bool:
    """True if something with a graph is stored where a later iteration, or another function, finds it."""
    for node in walk(loop):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in names:
            if any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets):
                return True
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if isinstance(node, ast.Return) and node.value is not None and names_in(node.value) & names:
            return True
    return False


def _started(turn: Turn, call: ast.Call) -> list[ast.expr]:
    """The tensor from which a backward pass, or a function that takes gradients, starts."""
    found = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg != "retain_graph")]
    if isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
        owner = call.func.value
        # `accelerator.backward(loss)` starts from its argument alone.
        if not (call.args and isinstance(owner, ast.Name) and owner.id not in turn.bindings):
            found.append(owner)
    return found


def _fix(model: Model, call: ast.Call) -> Fix | None:
    if some_file_says(model, _FORWARD_STORES):
        return None
    given = next(each for each in call.keywords if each.arg == "retain_graph")
    return Fix("Drop `retain_graph=True`", Safety.UNSAFE, (dropped(model.source, call, given),))
