"""TPF210: a sum or list that keeps the graph of each step's loss."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Safety, Severity
from perflint.fixes.edits import insert
from perflint.rules._memory.flows import body_around
from perflint.rules._memory.operators import records
from perflint.rules._methods import calls_named
from perflint.rules._sources import results
from perflint.rules._turns import call_in_loop, iteration_around
from perflint.rules._visible import is_private
from perflint.rules.base import Files, FileSite, Rule, Site, shown
from perflint.rules.transfer._loops import Loop, is_bound_before
from perflint.semantics.around import statement_of
from perflint.semantics.binders import LOOPS
from perflint.semantics.facts import rule_conventions
from perflint.semantics.model import FunctionNode, Model
from perflint.semantics.purpose.given import named_arguments
from perflint.semantics.structure import path_of, walk
from perflint.semantics.values import Evidence, Function, Instance, Tensor, scalar_type
from perflint.source.quoting import quoted

_LEAVES_GRAPH = frozenset("item detach detach_ tolist numpy data backward requires_grad shape device dtype".split())
_FRESH = frozenset(f"torch.{name}" for name in ("tensor", "zeros", "ones", "full", "empty"))
_NUMBERS = frozenset({"builtins.float", "builtins.int", "builtins.str", "builtins.len", "builtins.isinstance"})


class GraphRetainingAccumulate(Rule):
    """Losses are summed, or kept in a list, together with their graphs.

    ## What it does
    Finds `total += loss`, `sums["loss"] += loss` and `losses.append(loss)` in loops that call `loss.backward()`, if the
    sum or list was created before the loop and its gradient is never computed; and `meter.update(loss)`, if this method
    of the project adds its argument to a sum or list of the object. In methods that return the loss to a
    trainer, such as `training_step`, the sum or list is an attribute.

    ## Why is this bad
    The sum references the loss, and the loss references the nodes of its graph. The nodes of every
    step stay in memory until the sum is dropped, with all that custom functions keep in them.
    Memory grows with each step, each addition records a node of its own, and dropping the sum at
    the end traverses all of it. The backward pass has freed the activations, except for retained
    graphs. It is a warning because of the memory: each step keeps 0.33 MiB of the CPU's memory for
    GPT-2 of 124 million parameters and 0.20 MiB for ResNet-50, so that ten thousand steps keep 3.2
    and 2.0 GiB (H200, torch 2.11, `benchmarks/rules/kept_graphs.py`). Over a hundred steps it cost
    no measurable time.

    ## When it is fine
    - `total.backward()` follows: then the graph is needed.
    - Under `torch.no_grad()` there is no graph.
    - `loss.detach()` or `loss.item()` is added (the second waits: TPF101).

    ## Bad
    ```python
    def train(model, loader, optimizer):
        total = 0.0
        for x in loader:
            loss = model(x).sum()
            loss.backward()
            optimizer.step()
            total += loss
        return total.item()
    ```

    ## Good
    ```python
    def train(model, loader, optimizer):
        total = 0.0
        for x in loader:
            loss = model(x).sum()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        return total.item()
    ```

    ## Fix safety
    The fix adds `.detach()`. It is safe if the loss is known to be a tensor, and the sum belongs to
    the function, which starts it with a number or a tensor of its own and only reads numbers from
    it (`.item()`, `float(total)`). It is unsafe if the loss may be another object without `detach`.
    It is risky otherwise: the sum no longer requires a gradient, so a backward pass that starts at
    it teaches the model nothing.

    ## How a GPU shows it
    A trace confirms the finding if the sum has a graph, or if the graph of a loss is still there two
    steps after its backward pass; it refutes it if it is gone. `torch.cuda.memory_allocated()` and the CPU's
    memory grow from step to step; a memory snapshot shows tensors of old steps that nodes of the graph
    hold.

    ## References
    - [FAQ: don't accumulate history across your training
      loop](https://docs.pytorch.org/docs/stable/notes/faq.html)
    """

    code, name = "TPF210", "graph-retaining-accumulate"
    effect, severity = Effect.MEMORY, Severity.WARNING
    listens = (Files("backward(", "def training_step(", "compute_loss(", also=("+=", ".append(", ".update(", ".add(")),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        for loop, loss, start in _losses(site):
            for kept, name, holder in _kept(model, loop, loss):
                if not _lasts(model, loop, name, holder) or _asks_for_gradient(model, loop, name):
                    continue
                if _is_rebound(model, loop, loss, start, kept):
                    continue
                yield self.finding(
                    Site(model, kept),
                    f"{shown(site, kept)} is kept in {quoted(name)} with its graph: the graphs of all steps stay "
                    "in memory",
                    confidence=Confidence.HIGH if model.value(kept).tensor is not None else Confidence.MEDIUM,
                    help=f"Add `{loss}.detach()`.",
                    fix=_fix(model, kept, name, holder),
                )


def _losses(site: FileSite) -> Iterator[tuple[Loop | FunctionNode, str, ast.expr]]:
    """The code that runs each step, the name of a loss in it, and the place that starts its backward pass."""
    model = site.model
    for call in calls_named(site, "backward"):
        loss = _loss(model, call.node)
        loop = None if loss is None else iteration_around(model, call.node)
        if loss is not None and loop is not None:
            yield loop, loss, call.node
    for function in model.nodes(ast.FunctionDef):
        if isinstance(model.parent(function), ast.ClassDef) and rule_conventions.returns_loss(function.name):
            for result in results(model, function):
                value = _of_result(result)
                if isinstance(value, ast.Name):
                    yield function, value.id, value


def _of_result(result: ast.expr) -> ast.expr:
    """The loss of a result, which is it, or the entry of a dict."""
    if not isinstance(result, ast.Dict):
        return result
    named = zip(result.keys, result.values, strict=True)
    return next((value for key, value in named if isinstance(key, ast.Constant) and key.value == "loss"), result)


def _lasts(model: Model, loop: Loop | FunctionNode, name: str, holder: ast.AST) -> bool:
    """True if a sum or list is older than the iteration, and no backward pass of the code around begins at it."""
    if name.startswith("self."):
        stores = (each for each in walk(loop) if isinstance(each, ast.Assign))
        return not any(path_of(target) == name for each in stores for target in each.targets)
    if isinstance(loop, LOOPS):
        return is_bound_before(model, loop, name)
    call = call_in_loop(model, loop)
    if call is None:
        return False
    target: ast.expr = holder.target if isinstance(holder, ast.AugAssign) else holder.func.value  # type: ignore
    use: ast.Name = _unkeyed(target)  # type: ignore[assignment]
    outer = call.outer(model, use, is_rebound=isinstance(holder, ast.AugAssign) and use is target)
    return bool(outer) and is_bound_before(model, call.loop, outer) and not _asks_for_gradient(model, call.loop, outer)


def _loss(model: Model, call: ast.Call) -> str | None:
    """The plain name that a backward pass starts from.

    `loss.backward()`, `scaler.scale(loss).backward()`, `accelerator.backward(loss)`.
    """
    assert isinstance(call.func, ast.Attribute)
    owner: ast.expr = call.func.value
    if call.args and isinstance(call.args[0], ast.Name) and model.value(owner).tensor is None:
        owner = call.args[0]
    if isinstance(owner, ast.Call) and isinstance(owner.func, ast.Attribute) and owner.func.attr == "scale":
        owner = owner.args[0] if owner.args else owner
    if any(keyword.arg in ("retain_graph", "create_graph") for keyword in call.keywords):
        return None
    return owner.id if isinstance(owner, ast.Name) else None


def _kept(model: Model, loop: Loop | FunctionNode, loss: str) -> Iterator[tuple[ast.Name, str, ast.AST]]:
    """The uses of a loss that a sum or a list keeps, each with the name of the sum or list, and the statement."""
    value: ast.expr | None
    for node in walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and _holder(node.target):
            name, value = _holder(node.target), node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _holder(node.func.value):
            given = [*node.args, *(each.value for each in node.keywords)]
            value = next((each for each in given if _with_graph(model, each, loss) is not None), None)
            if value is None or not (_appends(node) or _keeps(model, node, value)):
                continue
            name = _holder(node.func.value)
        else:
            continue
        found = None if name == loss else _with_graph(model, value, loss)
        statement = None if found is None or not records(model, node) else statement_of(model, node)
        around = None if statement is None else iteration_around(model, statement) or model.function(statement)
        if found is not None and around is loop:
            yield found, name, node


def _keeps(model: Model, call: ast.Call, given: ast.expr) -> bool:
    """True if a method of the project adds an argument to a sum or a list of its object: `meter.update(loss)`."""
    members = model.value(call.func).members
    if len(members) != 1 or not isinstance(callee := members[0], Function) or not isinstance(callee.receiver, Instance):
        return False
    found = model.view.function(callee)
    info = None if found is None else found[1]
    if info is None or not isinstance(info.node, ast.FunctionDef) or info.node.decorator_list:
        return False
    name = next((name for name, each in named_arguments(call, info).items() if each is given), "")
    parts = [*walk(info.node)]
    if not name or any(_rebinds(part, name) for part in parts):
        return False
    # A context may be `no_grad`.
    leaves = any(isinstance(part, ast.With) or getattr(part, "attr", "") in _LEAVES_GRAPH for part in parts)
    return not leaves and any(_adds(part, name) for part in parts)


def _rebinds(part: ast.AST, name: str) -> bool:
    return isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Load)


def _adds(part: ast.AST, name: str) -> bool:
    """True for `self.sum += x * n` and `self.losses.append(x)`."""
    if isinstance(part, ast.AugAssign) and isinstance(part.op, ast.Add):
        return path_of(part.target).startswith("self.") and _is_of(part.value, name)
    return _appends(part) and _is_of(part.args[0], name) and path_of(part.func).startswith("self.")  # type: ignore


def _is_of(node: ast.expr, name: str) -> bool:
    """True for a name, and for arithmetic with it."""
    if isinstance(node, ast.BinOp):
        return _is_of(node.left, name) or _is_of(node.right, name)
    return isinstance(node, ast.Name) and node.id == name


def _is_rebound(model: Model, loop: Loop | FunctionNode, loss: str, *between: ast.expr) -> bool:
    """True if a name is bound anew between two places of a loop: `loss = loss.item()`."""
    lines = sorted(node.lineno for node in between)
    uses = model.names(loop, loss)
    return any(isinstance(use.ctx, ast.Store) and lines[0] < use.lineno < lines[-1] for use in uses)


def _appends(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "append"
        and bool(_holder(node.func.value))
        and len(node.args) == 1
    )


def _holder(node: ast.expr) -> str:
    """The name of a sum or list, or the path of one that the object keeps: `self.losses`; empty for others.

    For an entry, `sums["loss"]`, that of the dict.
    """
    node = _unkeyed(node)
    path = path_of(node)
    return path if isinstance(node, ast.Name) or path.startswith("self.") else ""


def _unkeyed(node: ast.expr) -> ast.expr:
    is_entry = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
    return node.value if is_entry else node  # type: ignore[attr-defined]


def _with_graph(model: Model, node: ast.expr, loss: str) -> ast.Name | None:
    """The place where a loss enters an expression with its graph: alone, or through arithmetic."""
    if isinstance(node, ast.Name):
        return node if node.id == loss and not scalar_type(model.value(node)) else None
    if isinstance(node, ast.BinOp):
        return _with_graph(model, node.left, loss) or _with_graph(model, node.right, loss)
    if isinstance(node, ast.Call):
        if model.target(node) in _NUMBERS or not isinstance(node.func, ast.Attribute):
            return None
        return None if node.func.attr in _LEAVES_GRAPH else _with_graph(model, node.func.value, loss)
    return None


def _asks_for_gradient(model: Model, loop: Loop | FunctionNode, name: str) -> bool:
    """True if a sum reaches a backward pass: it is part of a loss, or of the receiver of `backward`."""
    if name.startswith("self."):
        reads = (each for each in model.nodes(ast.Attribute) if path_of(each) == name)
        return any(_reaches_backward(model, each) for each in reads)
    function = body_around(model, loop) if isinstance(loop, LOOPS) else loop
    seen_elsewhere = any(not is_private(model, use) for use in model.names(loop, name))
    for use in model.names(model.source.tree if seen_elsewhere else function, name):
        if isinstance(use.ctx, ast.Load) and _reaches_backward(model, use):
            return True
    return False


def _reaches_backward(model: Model, use: ast.expr) -> bool:
    """True if a use of a sum is part of a statement that computes gradients, or the tensor that they begin at."""
    for outer in model.ancestors(use):
        if isinstance(outer, ast.Call):
            last = outer.func.attr if isinstance(outer.func, ast.Attribute) else ""
            if last in ("backward", "scale", "manual_backward", "grad"):
                return True
        if isinstance(outer, (ast.Assign, ast.AnnAssign)) and _feeds_tensor(model, outer):
            return True
        if isinstance(outer, ast.stmt):
            break
    return False


def _feeds_tensor(model: Model, statement: ast.Assign | ast.AnnAssign) -> bool:
    """True if an assignment computes another tensor from the sum, and `backward` is called on that."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    bound = {part.id for target in targets for part in walk(target) if isinstance(part, ast.Name)}
    started = {
        owner.id
        for call in model.nodes(ast.Call)
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "backward"
        and model.function(call) is model.function(statement)
        for owner in walk(call.func.value)
        if isinstance(owner, ast.Name)
    }
    return bool(bound & started)


def _fix(model: Model, kept: ast.Name, name: str, held: ast.AST) -> Fix:
    span = model.source.span(kept)
    edit = insert(span.end_line, span.end_column, ".detach()")
    if name.startswith("self.") or not isinstance(held, ast.AugAssign) or not _is_only_read(model, held, name):
        return Fix("Add what is detached", Safety.RISKY, (edit,))
    return Fix("Add what is detached", Safety.SAFE if _is_tensor(model, kept) else Safety.UNSAFE, (edit,))


def _is_tensor(model: Model, node: ast.expr) -> bool:
    """True if an expression is surely a tensor, which can be detached."""
    value = model.value(node)
    return isinstance(value, Tensor) and value.evidence >= Evidence.ANNOTATION


def _is_only_read(model: Model, held: ast.AugAssign, name: str) -> bool:
    """True if a sum belongs to its function alone, which begins it and then reads numbers of it."""
    for use in model.names(body_around(model, held), name):
        if not is_private(model, use):
            return False
        if isinstance(use.ctx, ast.Load):
            if not _reads_number(model, use):
                return False
        elif use is not held.target and not _begins(model, use):
            return False
    function = body_around(model, held)
    given = [part.arg for part in walk(function) if isinstance(part, ast.arg)]
    return name not in given


def _begins(model: Model, use: ast.Name) -> bool:
    """True if a name is bound to a number, or to a tensor that nothing else holds, or added to."""
    statement = model.parent(use)
    if isinstance(statement, ast.AugAssign):
        return True
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
        return False
    if scalar_type(model.value(statement.value)):
        return True
    alone = isinstance(statement, ast.AnnAssign) or len(statement.targets) == 1
    return alone and isinstance(statement.value, ast.Call) and model.target(statement.value) in _FRESH


def _reads_number(model: Model, use: ast.Name) -> bool:
    """`total.item()`, `float(total)`."""
    parent = model.parent(use)
    if isinstance(parent, ast.Attribute):
        return parent.attr == "item"
    return isinstance(parent, ast.Call) and use in parent.args and model.target(parent) == "builtins.float"
