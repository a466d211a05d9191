"""Whether the CPU needs the value of a wait at its place, or could do without it, or take it later."""

from __future__ import annotations

import ast

from perflint.findings import Need
from perflint.semantics.around import inside, loops_around, statement_of
from perflint.semantics.binders import LOOPS, defaults
from perflint.semantics.dataflow.destinations import Use
from perflint.semantics.dataflow.origins import Origin, Source
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.purpose.pictures import joins_pictures
from perflint.semantics.purpose.taken import is_taken
from perflint.semantics.purpose.wholes import is_added_up, is_same_each_turn, whole_of
from perflint.semantics.sites import CallSite, ExpressionSite, device_confidence
from perflint.semantics.structure import block_in, is_none, last_name, names_in, place_in, tested, walk

_GATHERED = (Use.LIST, Use.SUM, Use.KEPT)
"""Uses of values that can be read later, and many at once."""


def need_of_copy(site: ExpressionSite) -> Need:
    """Whether the CPU needs a copy of a tensor at its place."""
    model = site.model
    if not isinstance(site, CallSite):
        return need_of_read(site)
    if model.demand.is_on_cpu(site.node) or is_taken(site) or joins_pictures(site):
        return Need.NOW
    if whole_of(site) is not None or is_same_each_turn(site) or is_added_up(site) or _is_carried_back(site):
        return Need.ONCE
    if model.in_numpy.needs(site.node):
        return Need.ARRAY
    return Need.LATER if model.destinations.of(site.node) in _GATHERED else Need.OPEN


def need_of_read(site: ExpressionSite) -> Need:
    """Whether the CPU needs a number of a tensor at its place."""
    if site.model.demand.is_on_cpu(site.node):
        return Need.NOW
    return Need.LATER if site.model.destinations.of(site.node) in _GATHERED else Need.OPEN


def need_of_move(site: ExpressionSite) -> Need:
    """Whether a tensor must move to the GPU at its place."""
    if _is_carried_back(site):
        return Need.ONCE
    return Need.ARRAY if isinstance(site, CallSite) and _copies_array(site) else Need.OPEN


def need_of_numbers(site: ExpressionSite) -> Need:
    """Whether a few numbers of the CPU must move to the GPU at their place."""
    if isinstance(site, CallSite):
        if _is_round_trip(site) or _is_of_read(site):
            return Need.ONCE
        if _carries_numbers(site):
            return Need.NOW
    return Need.NOW if _is_missing_argument(site) else Need.OPEN


def need_of_selection(site: ExpressionSite) -> Need:
    """Whether a selection waits alone, or beside another wait for its results."""
    return Need.BESIDE if _is_counted(site) or site.model.demand.is_result(site.node) else Need.OPEN


def need_of_text(site: ExpressionSite) -> Need:
    """Whether a text of a tensor waits alone, or behind a test of its numbers: `if overlap[0] > 0.5: print(boxes)`."""
    inner: ast.AST = site.node
    for outer in inside(site.model, site.node):
        if isinstance(outer, ast.If) and inner is not outer.test and _asks_tensor(site, outer.test):
            return Need.BESIDE
        inner = outer
    return Need.OPEN


def need_of_cleaning(site: ExpressionSite) -> Need:
    """Whether memory is freed alone, or after a loop that frees it in each iteration."""
    return Need.BESIDE if isinstance(site, CallSite) and _follows_loop_that_calls(site) else Need.OPEN


def _is_missing_argument(site: ExpressionSite) -> bool:
    """True for a tensor of numbers for an argument that a call leaves out: repeated calls can pass it.

    `def encode(x, lengths=None): if lengths is None: lengths = torch.tensor([x.shape[-1]], device=x.device)`.
    Not in code that a package offers, whose callers are unknown.
    """
    if site.model.is_offered:
        return False
    function, statement = site.model.function(site.node), statement_of(site.model, site.node)
    outer = None if statement is None else site.model.parent(statement)
    if function is None or not isinstance(statement, ast.Assign) or not isinstance(outer, ast.If):
        return False
    name = _missing(outer.test) if statement in outer.body else ""
    is_bound = any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
    return is_bound and is_none(defaults(function).get(name))


def _is_counted(site: ExpressionSite) -> bool:
    """True for positions whose number a test asks for, since the CPU needs the number to go on.

    `found = mask.nonzero()`, then `if len(found) == 0: return`. Not in code that a package offers: its users may run it
    in each step.
    """
    target = _target(site) if isinstance(site, CallSite) and not site.model.is_offered else None
    if not isinstance(target, ast.Name):
        return False
    return any(_is_number_in_test(site.model, load) for load in site.model.destinations.later(target))


def _is_number_in_test(model: Model, name: ast.Name) -> bool:
    """True for a name in `if len(name) > n:` and `if name.numel() == 0:`."""
    inner: ast.AST = name
    for outer in model.ancestors(name):
        if isinstance(outer, ast.If):
            return inner is outer.test and any(_counts(part, name) for part in walk(outer.test))
        if isinstance(outer, ast.stmt):
            return False
        inner = outer
    return False


def _counts(node: ast.AST, name: ast.Name) -> bool:
    """True for `len(name)`, `name.numel()`, `name.size(0)` and `name.shape[0]`."""
    if isinstance(node, ast.Subscript):
        shape = node.value
        return isinstance(shape, ast.Attribute) and shape.attr == "shape" and shape.value is name
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.value is name and node.func.attr in ("numel", "nelement", "size")
    return last_name(node) == "len" and name in node.args


def _missing(test: ast.expr) -> str:
    """The name that is None if a test holds: "x" of `x is None`; "" for other tests."""
    if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name) or len(test.ops) != 1:
        return ""
    return test.left.id if isinstance(test.ops[0], ast.Is) and is_none(test.comparators[0]) else ""


def _carries_numbers(site: CallSite) -> bool:
    """True if the tensor that a call makes of numbers only carries them to a collective: `all_reduce(totals)`.

    Not if a branch decides about the collective: without other processes the numbers need not leave the CPU.
    """
    outer = site.model.parent(site.node)
    if isinstance(outer, ast.Call):
        return site.node in outer.args[:1] and last_name(outer) in _COLLECTIVES
    target = _target(site)
    if not isinstance(outer, ast.Assign) or not isinstance(target, ast.Name):
        return False
    block = block_in(site.model.parent(outer), outer)
    after = block[(place_in(block, outer) or 0) + 1 :][:_MOST_STATEMENTS]
    return any(target.id in _carried(statement) for statement in after if isinstance(statement, _SIMPLE))


_COLLECTIVES = frozenset("all_reduce broadcast reduce all_gather gather all_gather_into_tensor".split())
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)
_MOST_STATEMENTS = 12
"""Statements after a tensor is made that are searched for collectives."""


def _carried(statement: ast.stmt) -> set[str]:
    """The names that a statement passes to collectives."""
    calls = (node for node in walk(statement) if isinstance(node, ast.Call) and last_name(node) in _COLLECTIVES)
    given = (each for call in calls for each in (*call.args[:2], *(keyword.value for keyword in call.keywords)))
    return {each.id for each in given if isinstance(each, ast.Name)}


def _copies_array(site: CallSite) -> bool:
    """True if a call moves an array of NumPy to the GPU that its expression makes a tensor.

    Not if an object keeps the tensor, nor if the array is the same in each iteration of a loop.
    """
    if not _comes_from_array(site) or isinstance(_target(site), ast.Attribute):
        return False
    loop = next(loops_around(site.model, site.node), None)
    return loop is None or not names_in(site.node).isdisjoint(_bound_in(site.model, loop))


def _comes_from_array(site: CallSite) -> bool:
    """True for `torch.from_numpy(x)[None].cuda()`."""
    inner: ast.expr = site.node
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        if site.model.target(inner) == "torch.from_numpy":
            return True
        inner = inner.func.value
        while isinstance(inner, ast.Subscript):
            inner = inner.value
    return False


def _target(site: CallSite) -> ast.expr | None:
    """The target of the assignment whose value a call is part of."""
    statement = statement_of(site.model, site.node)
    return statement.targets[0] if isinstance(statement, ast.Assign) else None


@once_per_node
def _bound_in(model: Model, loop: ast.AST) -> frozenset[str]:
    """The names that a loop binds in each iteration."""
    return frozenset(node.id for node in walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def _is_round_trip(site: CallSite) -> bool:
    """True if numbers are computed from a tensor that was copied to the CPU: they are not data, and the copy waited.

    `torch.tensor(align(scores.cpu().numpy()), device=scores.device)`.
    """
    if not site.node.args:
        return False
    origins, made = site.model.origins, site.node.args[0]
    computed = origins.of(made)
    is_computed = computed.source is Source.CALL and isinstance(computed.node, ast.Call)
    operands = computed.node.args if is_computed and isinstance(computed.node, ast.Call) else [made]
    return any(_is_copy(origins.of(_without_index(each))) for each in operands)


def _is_copy(origin: Origin) -> bool:
    return origin.source is Source.MOVED and last_name(origin.node) == "cpu"


def _without_index(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _is_carried_back(site: ExpressionSite) -> bool:
    """True if an expression copies a tensor to the CPU and back: `x.cpu()[order].cuda()`."""
    copied = [node for node in walk(site.node) if isinstance(node, ast.Call) and last_name(node) in ("cpu", "numpy")]
    outer = (each for each in inside(site.model, site.node) if isinstance(each, ast.Call))
    moved = [each for each in (site.node, *outer) if isinstance(each, ast.Call) and last_name(each) in ("cuda", "to")]
    return bool(copied and moved)


def _is_of_read(site: CallSite) -> bool:
    """True if a name in a call is bound to a number that is read from a tensor: `token = int(logits.argmax())`."""
    model = site.model
    names = (node for given in site.node.args for node in walk(given) if isinstance(node, ast.Name))
    return any(_is_read(model, model.origins.of(name).node) for name in names)


def _is_read(model: Model, node: ast.AST) -> bool:
    """True for `int(x)` and `x.item()` of a tensor."""
    if not isinstance(node, ast.Call) or last_name(node) not in ("int", "float", "bool", "item", "tolist"):
        return False
    given = node.func.value if isinstance(node.func, ast.Attribute) else node.args[0] if node.args else None
    return given is not None and model.value(given).tensor is not None


def _follows_loop_that_calls(site: CallSite) -> bool:
    """True if a loop that always runs before a call calls the same function."""
    model = site.model
    for outer in (site.node, *inside(model, site.node)):
        if not isinstance(outer, ast.stmt):
            continue
        block = block_in(model.parent(outer), outer)
        before = block[: place_in(block, outer) or 0]
        if any(isinstance(each, LOOPS) and site.target in _called_in(model, each) for each in before):
            return True
    return False


@once_per_node
def _called_in(model: Model, loop: ast.AST) -> frozenset[str]:
    """The functions that a loop calls."""
    return frozenset(model.target(node) for node in walk(loop) if isinstance(node, ast.Call))


def _asks_tensor(site: ExpressionSite, test: ast.expr) -> bool:
    """True if a test, or a part of it, is a tensor that may be on the GPU."""
    return any(device_confidence(site.value(part)) is not None for part in tested(test))
