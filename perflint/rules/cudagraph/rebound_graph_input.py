"""TPF803: binding a graph's input to another tensor instead of copying into it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.fixes.edits import replace
from perflint.rules._memory.flows import made
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.rules.cudagraph._replays import Recorded, is_between, is_visible, loop_around, place_of, recorded, replays
from perflint.semantics.around import is_inside
from perflint.semantics.model import Model
from perflint.semantics.regions.captured import Capture
from perflint.semantics.structure import last_name, path_of, walk
from perflint.semantics.values import Const, Instance, Mapping, Origin, Scalar, scalar_type
from perflint.source.concrete import code, cst
from perflint.source.quoting import quoted

_SCHEDULERS = "torch.optim.lr_scheduler."
_Rebinding = ast.Assign | ast.AugAssign


class ReboundGraphInput(Rule):
    """A CUDA graph's input is bound to another tensor before a replay.

    ## What it does
    Finds assignments such as `static_x = batch.cuda()` between the capture of a CUDA graph that reads
    `static_x` and a `replay()` of it; also of attributes (`self.static_x = x`) in the methods of the
    class that captures, and of entries of a dict. Python numbers that a graph has read count too, also a learning rate
    that a scheduler, or `group["lr"] = rate`, changes between replays of a recorded `optimizer.step()`.

    ## Why is this bad
    A graph holds addresses. It reads the memory that `static_x` had when it was recorded, whatever
    the name refers to later: the replay computes with the old batch, again and again, without an
    error. A number, such as a learning rate, has become part of the kernels' arguments. It is a
    warning because results are wrong, not because of what it costs.

    ## When it is fine
    `static_x.copy_(batch)` and other in-place operations. A name that is bound again before the
    capture, or before another capture. Names that the captured block does not read. A learning rate that is a tensor.

    ## Bad
    ```python
    import torch

    def train(model, optimizer, loader, static_x, static_y):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = torch.nn.functional.mse_loss(model(static_x), static_y)
            loss.backward()
        for x, y in loader:
            static_x = x.cuda()
            static_y = y.cuda()
            graph.replay()
            optimizer.step()
    ```

    ## Good
    ```python
    import torch

    def train(model, optimizer, loader, static_x, static_y):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = torch.nn.functional.mse_loss(model(static_x), static_y)
            loss.backward()
        for x, y in loader:
            static_x.copy_(x)
            static_y.copy_(y)
            graph.replay()
            optimizer.step()
    ```

    ## Fix safety
    Risky: `static_x = batch` becomes `static_x.copy_(batch)`, which is probably the intention, so
    results change. A batch of another shape raises, or is broadcast; the old tensor no longer keeps
    its contents.

    ## How a GPU shows it
    The outputs of two replays with different batches are equal.

    ## References
    - [CUDA graphs](https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs): "fill the graph's input
      memory with new data"
    """

    code, name = "TPF803", "rebound-graph-input"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (Files("replay"),)
    since = (1, 10)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        if not model.captures.blocks:
            return
        seen: set[_Rebinding] = set()
        for block in recorded(model):
            for assignment, path in _rebound(model, block):
                if assignment in seen:
                    continue
                seen.add(assignment)
                is_number = _is_number(model, block, path)
                text = model.source.written(assignment)
                yield self.finding(
                    site,
                    f"{quoted(text)} does not reach the CUDA graph of line {block.capture.start.lineno}: it still reads"
                    + (" the number" if is_number else " the memory")
                    + f" of `{path}` at the time of the capture",
                    confidence=Confidence.HIGH if not is_number else Confidence.MEDIUM,
                    heat=Heat.HOT if loop_around(model, assignment) is not None else Heat.WARM,
                    span=model.source.span(assignment),
                    help=f"Copy into it: `{path}.copy_(…)`."
                    if not is_number
                    else "Keep the number in a tensor on the GPU, and fill that.",
                    fix=None if is_number or _is_global(model, assignment, path) else _fix(model, assignment, path),
                )
        for node, capture in _frozen_rates(model):
            yield self.finding(
                site,
                f"{shown(site, node)} does not reach the CUDA graph of line {capture.start.lineno}: "
                "its step still uses the learning rate at the time of the capture",
                heat=Heat.HOT,
                span=model.source.span(node),
                help="Make the optimizer with a tensor on the GPU, `lr=torch.tensor(…)`: schedulers fill it.",
            )


def _rebound(model: Model, block: Recorded) -> Iterator[tuple[_Rebinding, str]]:
    """Assignments to an input of a recorded block that stand before a replay, but not before a capture."""
    every = replays(model)
    assignments: list[_Rebinding] = [*model.nodes(ast.Assign), *model.nodes(ast.AugAssign)]
    for assignment in assignments:
        targets = assignment.targets if isinstance(assignment, ast.Assign) else [assignment.target]
        if len(targets) != 1:
            continue
        path = place_of(targets[0])
        if path not in block.reads:
            path = _entry_of_dict(model, block, targets[0])
        if not path or not is_visible(model, block, assignment, path):
            continue
        if any(is_inside(model, assignment, statement) or assignment is statement for statement in block.capture.body):
            continue
        brings_data = _is_number(model, block, path) or _brings_data(assignment, path)
        if _precedes_replay(model, block, assignment, every) and brings_data:
            yield assignment, path


def _entry_of_dict(model: Model, block: Recorded, target: ast.expr) -> str:
    """The text of an entry of a dict that a recorded block reads as a whole, `static[name]`; empty for others."""
    path = path_of(target.value) if isinstance(target, ast.Subscript) else ""
    # `static[name] = x` changes a tensor in place.
    if not isinstance(target, ast.Subscript) or not isinstance(model.value(target.value), Mapping):
        return ""
    parts = (part for statement in block.capture.body for part in walk(statement))
    uses = (part for part in parts if isinstance(part, (ast.Name, ast.Attribute)) and path_of(part) == path)
    is_read = any(not isinstance(model.parent(use), (ast.Subscript, ast.Attribute)) for use in uses)
    return model.source.written(target) if is_read else ""


def _precedes_replay(model: Model, block: Recorded, assignment: _Rebinding, every: list[ast.Call]) -> bool:
    scope = model.function(assignment)
    if scope is block.scope:
        if assignment.lineno < block.capture.start.lineno:
            return False
        # Where the loop around it records again, the name is new for the new graph.
        loop = loop_around(model, assignment)
        if loop is not None and is_inside(model, block.capture.start, loop):
            return False
    elif _may_record(scope, block):
        return False
    after = [call for call in every if model.function(call) is scope and call.lineno > assignment.lineno]
    return bool(after) or _is_set_again(model, assignment, block, every)


def _is_set_again(model: Model, assignment: _Rebinding, block: Recorded, every: list[ast.Call]) -> bool:
    """True if a method sets an attribute anew that the object had for the capture, and another method replays."""
    target = assignment.targets[0] if isinstance(assignment, ast.Assign) else assignment.target
    path, scope, owner = path_of(target), model.function(assignment), block.owner
    if owner is None or scope is None or not path.startswith("self."):
        return False
    if getattr(scope, "name", "__init__") == "__init__" or not any(is_inside(model, call, owner) for call in every):
        return False
    for other in model.nodes(ast.Assign):
        function = model.function(other)
        is_first = function is block.scope or getattr(function, "name", "") == "__init__"
        if is_first and function is not scope and is_inside(model, other, owner):
            if any(path_of(each) == path for each in other.targets) and model.value(other.value).tensor is not None:
                return True
    return False


def _may_record(scope: ast.AST | None, block: Recorded) -> bool:
    """True if a scope mentions the function that records: its assignments may be meant for the capture."""
    if block.scope is None:
        # The file records when it is loaded, before its functions run.
        return False
    if scope is None or not isinstance(block.scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return True
    name = block.scope.name
    return any(last_name(node) == name for node in walk(scope) if isinstance(node, (ast.Attribute, ast.Name)))


def _brings_data(assignment: _Rebinding, path: str) -> bool:
    """True if other data is meant: not None, and not a view or result of the old value."""
    if isinstance(assignment, ast.AugAssign):
        return False
    value = assignment.value
    if isinstance(value, ast.Constant) and value.value is None:
        return False
    return all(place_of(node) != path for node in walk(value))


def _is_number(model: Model, block: Recorded, path: str) -> bool:
    for statement in block.capture.body:
        for node in walk(statement):
            if isinstance(node, ast.expr) and place_of(node) == path:
                return scalar_type(model.value(node)) in ("int", "float", "bool")
    return False


def _is_global(model: Model, assignment: _Rebinding, path: str) -> bool:
    """True if a `global` or `nonlocal` statement names the input: a copy would leave it behind without a use."""
    function = model.function(assignment)
    return function is not None and model.symbols.declares(function, path)


def _fix(model: Model, assignment: _Rebinding, path: str) -> Fix | None:
    new = model.source.concrete(assignment.value)
    if not isinstance(new, cst.BaseExpression) or isinstance(assignment.value, (ast.Tuple, ast.Constant)):
        return None
    edit = replace(model.source, model.source.span(assignment), f"{path}.copy_({code(new)})")
    return Fix("Copy into the graph's input", Safety.RISKY, (edit,))


def _frozen_rates(model: Model) -> Iterator[tuple[ast.Call | ast.Assign | ast.AugAssign, Capture]]:
    """The changes of a learning rate around replays that the recorded step of its optimizer does not see."""
    recorded = _recorded(model)
    if not recorded:
        return
    every = replays(model)
    for node, optimizer in (*_scheduled(model), *_assigned(model)):
        capture = None if optimizer.origin is None else recorded.get(optimizer.origin)
        if capture is not None and is_between(model, node, capture, every):
            yield node, capture


def _recorded(model: Model) -> dict[Origin, Capture]:
    """The captures of steps of optimizers whose learning rate is a number, by the place that makes the optimizer."""
    found: dict[Origin, Capture] = {}
    for call in model.nodes(ast.Call):
        if model.target(call) != "torch.optim.Optimizer.step":
            continue
        optimizer, capture = model.call(call).receiver, model.captures.of(call)
        if capture is not None and isinstance(optimizer, Instance) and optimizer.origin is not None:
            rate = optimizer.argument("lr")
            is_number = rate is None or (isinstance(rate, Scalar) and rate.type == "float") or isinstance(rate, Const)
            if optimizer.arguments is not None and is_number:
                found[optimizer.origin] = capture
    return found


def _scheduled(model: Model) -> Iterator[tuple[ast.Call, Instance]]:
    """The steps of schedulers, with the optimizer."""
    for call in model.nodes(ast.Call):
        target = model.target(call)
        if target.startswith(_SCHEDULERS) and target.endswith(".step"):
            scheduler = model.call(call).receiver
            optimizer = scheduler.argument("optimizer") if isinstance(scheduler, Instance) else None
            if isinstance(optimizer, Instance):
                yield call, optimizer


def _assigned(model: Model) -> Iterator[tuple[ast.Assign | ast.AugAssign, Instance]]:
    """The assignments `group["lr"] = rate` of numbers, with the optimizer of the group."""
    statements: list[ast.Assign | ast.AugAssign] = [*model.nodes(ast.Assign), *model.nodes(ast.AugAssign)]
    for statement in statements:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        if isinstance(target, ast.Subscript) and model.value(target.slice) == Const("lr"):
            optimizer = _owner(model, target.value)
            if isinstance(optimizer, Instance):
                yield statement, optimizer


def _owner(model: Model, group: ast.expr) -> object:
    """The optimizer of `optimizer.param_groups[0]`, or of the variable of a loop over its groups."""
    group = made(model, group)
    if isinstance(group, ast.Subscript):
        group = group.value
    elif isinstance(group, ast.Name):
        named = (each for each in model.nodes(ast.For) if path_of(each.target) == group.id)
        group = next((each.iter for each in named if is_inside(model, group, each)), group)
    if isinstance(group, ast.Attribute) and group.attr == "param_groups":
        return model.value(group.value)
    return None
