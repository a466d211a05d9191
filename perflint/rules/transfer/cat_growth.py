"""TPF207: a tensor that grows by concatenation in a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.frozen import dataclass
from perflint.rules._memory.bodies import memory_around
from perflint.rules._memory.flows import behind, target_of
from perflint.rules._memory.operators import written
from perflint.rules._statements import line_before, line_behind, shares_last_line, swallows
from perflint.rules._turns import call_in_loop, iteration_around
from perflint.rules._visible import is_local
from perflint.rules.base import Calls, CallSite, Rule, often, shown
from perflint.rules.transfer._loops import Loop, is_bound_before
from perflint.semantics.around import loops_around, statement_of
from perflint.semantics.binders import LOOPS
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import FunctionNode, Model
from perflint.semantics.structure import names_in, walk
from perflint.semantics.values import Const
from perflint.source.quoting import quoted

_CONCATENATES = tuple(f"torch.{name}" for name in ("cat", "concat", "concatenate", "hstack", "vstack", "row_stack"))


@dataclass(frozen=True, slots=True)
class _Growth:
    """`name = torch.cat([name, more])` in a loop that does not look at the name otherwise.

    `name` is the text of an element, too: `parts[key]`.
    """

    name: str
    loop: Loop | FunctionNode
    """The code of one iteration."""
    statement: ast.Assign
    target: ast.expr
    tensors: ast.List | ast.Tuple

    @property
    def places(self) -> set[ast.AST]:
        """The nodes that read the old tensor and bind the new one."""
        return {*walk(self.target), *walk(self.tensors)}


class CatGrowth(Rule):
    """A tensor grows by `torch.cat` on each iteration of a loop.

    ## What it does
    Finds `out = torch.cat([out, more])` along the first dimension, in loops that do not use `out` for
    anything else, and the same with an element, `parts[key] = torch.cat([parts[key], more])`.

    ## Why is this bad
    Each iteration allocates a tensor for all parts so far and copies them: over n iterations that
    is n²/2 parts instead of n, and memory for two copies at a time. If the parts are collected in a
    list, they are copied once, by one `torch.cat` after the loop. The cost grows with the number of
    iterations: 256 parts of 64 × 1000 took 76 times as long as one `torch.cat` on an H200.

    ## When it is fine
    - The loop needs the parts so far: tokens that the model reads, key-value caches, dense blocks.
      Such loops are not reported.
    - A handful of iterations, or parts of a few numbers. Concatenation along other dimensions is
      normal (channels, features of a few inputs) and is not reported.

    ## Bad
    ```python
    import torch

    def predict(model, loader):
        outputs = torch.empty(0, device="cuda")
        for x in loader:
            outputs = torch.cat([outputs, model(x)])
        return outputs
    ```

    ## Good
    ```python
    import torch

    def predict(model, loader):
        outputs = []
        for x in loader:
            outputs.append(model(x))
        return torch.cat(outputs)
    ```

    ## Fix safety
    Unsafe: `out` becomes a list while the loop runs and one `torch.cat` follows it. The values are
    the same. All parts stay in memory until the end, and shapes that do not fit raise after the
    loop. No fix is offered if a part may be written to before the loop ends, if an error in the
    loop may be caught in the function (`try`, `contextlib.suppress`), or if other functions use
    `out`.

    ## How a GPU shows it
    A trace records whether an input of `cat` is the result of an earlier call at the same place, and
    how many bytes were copied again; it refutes the finding if no call extended an earlier result. A
    profile shows `CatArrayBatchedCopy` kernels that take longer on each iteration, and the caching
    allocator asks for ever larger blocks.

    ## References
    - [torch.cat](https://docs.pytorch.org/docs/stable/generated/torch.cat.html)
    """

    code, name = "TPF207", "cat-growth"
    effect, severity = Effect.ALLOCATION, Severity.INFO
    listens = (Calls(*_CONCATENATES),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if (found := _growth(site) or _growth_of_element(site)) is not None:
            yield self.finding(
                site,
                f"{shown(site)} copies all of {quoted(found.name)} in each iteration{often(site)}",
                confidence=Confidence.MEDIUM if site.heat is Heat.HOT else Confidence.LOW,
                help="Append to a list, and concatenate once after the loop.",
                fix=_fix(site, found),
            )


def _growth(site: CallSite) -> _Growth | None:
    extended = _extended(site)
    if extended is None:
        return None
    statement, target, tensors = extended
    if not isinstance(target, ast.Name):
        return None
    loop = iteration_around(site.model, statement)
    if loop is None or not _is_older(site.model, loop, target):
        return None
    found = _Growth(target.id, loop, statement, target, tensors)
    return found if _is_only_gathered(site.model, found) else None


def _is_older(model: Model, loop: Loop | FunctionNode, target: ast.Name) -> bool:
    """True if a tensor is older than the iteration, whose other code in the loop around a function leaves it alone."""
    if isinstance(loop, LOOPS):
        return is_bound_before(model, loop, target.id)
    call = call_in_loop(model, loop)
    outer = "" if call is None else call.outer(model, target, is_rebound=True)
    if call is None or not outer or not is_bound_before(model, call.loop, outer):
        return False
    inside = {*walk(call.node), *walk(target_of(model, call.node) or call.node)}
    return all(use in inside for use in model.names(call.loop, outer))


def _growth_of_element(site: CallSite) -> _Growth | None:
    """The growth of an element in each iteration of a loop: `parts[key] = torch.cat([parts[key], more])`.

    A loop over the keys grows no element twice; the loop around it does.
    """
    extended = _extended(site)
    if extended is None:
        return None
    statement, target, tensors = extended
    if not isinstance(target, (ast.Subscript, ast.Attribute)) or not isinstance(target.value, ast.Name):
        return None
    index = names_in(target) - {target.value.id}
    if any(isinstance(part, ast.Call) for part in walk(target)):
        return None
    for loop in loops_around(site.model, statement):
        if not isinstance(loop, LOOPS):
            return None
        bound = names_in(loop.target) if isinstance(loop, (ast.For, ast.AsyncFor)) else set()
        if index & bound:
            index -= bound
        elif not index or not index & _changes(site.model, loop).bound:
            found = _Growth(site.text(target), loop, statement, target, tensors)
            is_old = is_bound_before(site.model, loop, target.value.id)
            return found if is_old and _elements_are_gathered(site.model, found, target.value.id) else None
        else:
            return None
    return None


def _extended(site: CallSite) -> tuple[ast.Assign, ast.expr, ast.List | ast.Tuple] | None:
    """The statement `x = torch.cat([x, more])` along the first dimension, its target and the tensors of the call."""
    target, given = target_of(site.model, site.node), site.argument("tensors", 0)
    statement = None if target is None else statement_of(site.model, target)
    tensors = None if given is None else behind(site.model, given)
    if target is None or not isinstance(statement, ast.Assign):
        return None
    along = site.argument("dim", 1)
    if along is not None and site.value(along) != Const(0):
        return None
    if not isinstance(tensors, (ast.List, ast.Tuple)):
        return None
    text = site.text(target)
    return (statement, target, tensors) if any(site.text(item) == text for item in tensors.elts) else None


def _elements_are_gathered(model: Model, found: _Growth, name: str) -> bool:
    """True if the loop otherwise only asks for an element or a key, or adds the first part of an element."""
    inside = found.places
    for use in model.names(found.loop, name):
        if use not in inside and (isinstance(use.ctx, ast.Store) or not _adds_first(model, use, name)):
            return False
    return sum(1 for _ in model.names(found.tensors, name)) == 1


def _adds_first(model: Model, use: ast.Name, name: str) -> bool:
    """True for `parts.append(first)`, `key in parts`, and `parts[key] = first` after such a test."""
    parent = model.parent(use)
    if isinstance(parent, ast.Attribute):
        return parent.attr == "append"
    if isinstance(parent, ast.Compare):
        return isinstance(parent.ops[0], (ast.In, ast.NotIn))
    if not isinstance(parent, ast.Subscript) or not isinstance(parent.ctx, ast.Store):
        return False
    branches = (outer for outer in model.ancestors(use) if isinstance(outer, ast.If))
    return any(isinstance(branch.test, ast.Compare) and name in names_in(branch.test) for branch in branches)


def _is_only_gathered(model: Model, found: _Growth) -> bool:
    """True if the loop has no other use of the tensor than a test for its existence, and does not start it again."""
    inside = found.places
    for use in model.names(found.loop, found.name):
        if use in inside:
            continue
        if isinstance(use.ctx, ast.Store) or not (_asks_for_existence(model, use) or _is_returned(model, found, use)):
            return False
    return sum(1 for _ in model.names(found.tensors, found.name)) == 1


def _is_returned(model: Model, found: _Growth, use: ast.Name) -> bool:
    """True if a function that makes one iteration returns the tensor."""
    outer = model.parent(use)
    if isinstance(outer, ast.Tuple):
        outer = model.parent(outer)
    return isinstance(outer, ast.Return) and not isinstance(found.loop, LOOPS)


def _asks_for_existence(model: Model, use: ast.Name) -> bool:
    parent = model.parent(use)
    return isinstance(parent, ast.Compare) and isinstance(parent.ops[0], (ast.Is, ast.IsNot))


def _fix(site: CallSite, found: _Growth) -> Fix | None:
    """`out = [out]` before the loop, `out.append(more)` in it, `out = torch.cat(out)` after it."""
    source, model = site.model.source, site.model
    loop = found.loop
    if not isinstance(loop, LOOPS) or found.statement.value is not site.node or found.tensors not in walk(site.node):
        return None
    first, *more = found.tensors.elts
    written: list[ast.expr | ast.keyword] = [*site.node.args, *site.node.keywords]
    others = [each for each in written if found.tensors not in (each, getattr(each, "value", None))]
    if not (isinstance(first, ast.Name) and first.id == found.name) or len(more) != 1:
        return None
    if any(isinstance(each, ast.Starred) for each in more) or not all(_is_literal(each) for each in others):
        return None
    inside = set(walk(found.statement))
    if any(use not in inside for use in model.names(loop, found.name)):
        return None
    if _may_change_later(model, loop, more[0]) or _is_seen_half_done(model, found):
        return None
    rest = "".join(f", {_argument(site, each)}" for each in others)
    joined = f"{found.name} = {source.written(site.node.func)}({found.name}{rest})"
    last = line_behind(source, loop, joined) if _stands_alone(model, loop) else None
    if last is None:
        return None
    first_line = line_before(source, loop.lineno, f"{found.name} = [{found.name}]")
    edits = (first_line, Edit(source.span(found.statement), f"{found.name}.append({site.text(more[0])})"), last)
    return Fix("Gather in a list and concatenate once", Safety.UNSAFE, edits)


def _is_seen_half_done(model: Model, found: _Growth) -> bool:
    """True if other code may see the name while it is a list, or go on after an error of the loop's body."""
    uses = model.names(found.statement, found.name)
    return not all(is_local(model, use) for use in uses) or swallows(model, found.statement)


def _may_change_later(model: Model, loop: Loop, part: ast.expr) -> bool:
    """True if the loop may write to a tensor after adding it: a list shows the write, a copy by `cat` does not."""
    used, changes = names_in(part), _changes(model, loop)
    if not used & changes.bound and not any(isinstance(node, ast.Call) for node in walk(part)):
        # The same object in each iteration.
        return True
    begin, end = (loop.lineno, loop.col_offset), (loop.end_lineno or 0, loop.end_col_offset or 0)
    if memory_around(model, part).is_written(part, begin, end):
        return True
    return changes.writes_tensor or bool(changes.written & used)


@dataclass(frozen=True, slots=True)
class _Changes:
    """The names that a loop binds, the names whose values it writes to, and True if it writes to any tensor."""

    bound: frozenset[str]
    written: frozenset[str]
    writes_tensor: bool
    leaves: bool
    """True if its body leaves it, or holds another loop."""


@once_per_node
def _changes(model: Model, loop: Loop) -> _Changes:
    inside = [node for statement in loop.body for node in walk(statement)]
    stores = [each for node in inside for each in written(model, node)]
    return _Changes(
        frozenset(node.id for node in walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)),
        frozenset(name for each in stores for name in names_in(each)),
        any(model.value(each).tensor is not None for each in stores),
        any(isinstance(part, (ast.Return, ast.Yield, ast.YieldFrom, *LOOPS)) for part in inside),
    )


def _argument(site: CallSite, node: ast.expr | ast.keyword) -> str:
    return f"{node.arg}={site.text(node.value)}" if isinstance(node, ast.keyword) else site.text(node)


def _is_literal(node: ast.expr | ast.keyword) -> bool:
    if isinstance(node, ast.keyword):
        return _is_literal(node.value)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant))


def _stands_alone(model: Model, loop: Loop) -> bool:
    """True if the loop has lines of its own, no `else`, and no loop around it that would take up a list."""
    return not loop.orelse and not shares_last_line(model, loop) and not _changes(model, loop).leaves
