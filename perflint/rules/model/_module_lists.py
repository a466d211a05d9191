"""Lists of modules of which each one's output goes straight, and only, into the one at the same place of another list.

`for i, conv in enumerate(self.convs): x = self.norms[i](conv(x))`, and the same with `zip` or `range`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.frozen import dataclass, field
from perflint.rules._methods import called_on, is_self
from perflint.rules.model._flow import source_of
from perflint.semantics.model import Model
from perflint.semantics.structure import calls_in, last_name, walk
from perflint.semantics.symbols import Symbols

_LIST = "torch.nn.ModuleList"
Loop = ast.For | ast.AsyncFor
Place = tuple[str, str | Loop]
"""An attribute of `self`, and the index: a name, or a loop over the list."""


@dataclass(slots=True)
class _List:
    """An attribute of `self` that is a list of modules, and the uses of it."""

    elements: list[ast.expr] = field(default_factory=list)
    """The expressions that make its elements."""
    calls: list[ast.Call] = field(default_factory=list)
    """The calls of an element."""
    escapes: bool = False
    """True if there are uses of another kind."""


def side_by_side(model: Model, names: Symbols, definition: ast.ClassDef) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Pairs of constructor expressions: all that the first one's objects put out goes into the second one's."""
    lists = _lists(model, names, definition)
    if len(lists) < 2:
        return
    for taker in (call for each in lists.values() if not each.escapes for call in each.calls):
        giver = source_of(model, taker, taker.args[0]) if len(taker.args) == 1 and not taker.keywords else None
        first, second = None if giver is None else _place(model, giver.func), _place(model, taker.func)
        if first is None or second is None or first[1] != second[1]:
            continue
        givers, takers = lists.get(first[0]), lists[second[0]]
        if givers is None or givers is takers or givers.escapes or givers.calls != [giver]:
            continue
        if len(givers.elements) == len(takers.elements):
            yield from zip(givers.elements, takers.elements, strict=True)


def _lists(model: Model, names: Symbols, definition: ast.ClassDef) -> dict[str, _List]:
    """The lists of modules of a class, by the names of their attributes."""
    found: dict[str, _List] = {}
    uses = [node for node in walk(definition) if isinstance(node, ast.Attribute) and is_self(node.value)]
    for node in uses:
        made = _made(model, names, node)
        if made is not None:
            found[node.attr] = _List(made, escapes=node.attr in found)
    for node in uses:
        if node.attr in found:
            _note(model, found[node.attr], node)
    for call in calls_in(definition) if found else ():
        place = _place(model, call.func)
        if place is not None and place[0] in found:
            found[place[0]].calls.append(call)
    return found


def _made(model: Model, names: Symbols, node: ast.Attribute) -> list[ast.expr] | None:
    """The elements that `self.x = nn.ModuleList(…)` makes; None for any other use of an attribute."""
    statement = model.parent(node)
    if (
        not isinstance(statement, ast.Assign)
        or statement.targets != [node]
        or not isinstance(statement.value, ast.Call)
    ):
        return None
    call = statement.value
    if names.full_name(call.func) != _LIST or len(call.args) > 1 or call.keywords:
        return None
    given = call.args[0] if call.args else ast.List([])
    if isinstance(given, (ast.ListComp, ast.GeneratorExp)):
        return [given.elt]
    return list(given.elts) if isinstance(given, (ast.List, ast.Tuple)) else None


def _note(model: Model, held: _List, node: ast.Attribute) -> None:
    """Note one use of a list of modules."""
    parent, call = model.parent(node), called_on(model, node)
    if call is not None and last_name(call) == "append" and len(call.args) == 1:
        held.elements.append(call.args[0])
    elif isinstance(parent, ast.Subscript) and parent.value is node:
        around = model.parent(parent)
        called = isinstance(around, ast.Call) and around.func is parent
        held.escapes |= not (called or isinstance(around, ast.Assign)) or not isinstance(parent.slice, ast.Name)
    elif isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
        held.escapes |= parent.func.id not in ("len", "enumerate", "zip")
    elif not isinstance(node.ctx, ast.Store):
        held.escapes |= not (isinstance(parent, (ast.For, ast.AsyncFor)) and parent.iter is node)


# Elements


def _place(model: Model, function: ast.expr) -> Place | None:
    """The list and the index of the element that a call calls."""
    if isinstance(function, ast.Subscript):
        return _indexed(function)
    if not isinstance(function, ast.Name):
        return None
    binding = _only_binding(model, function)
    if binding is None:
        return None
    statement = model.parent(binding)
    if isinstance(statement, ast.Assign) and statement.targets == [binding]:
        return _indexed(statement.value)
    loop = next((each for each in model.ancestors(binding) if isinstance(each, (ast.For, ast.AsyncFor))), None)
    return None if loop is None else _of_loop(loop, loop.target, loop.iter, binding, loop)


def _indexed(node: ast.expr) -> Place | None:
    """The place `self.x[i]`."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Name):
        return None
    attribute = _attribute(node.value)
    return None if attribute is None else (attribute, node.slice.id)


def _attribute(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) and is_self(node.value) else None


def _only_binding(model: Model, use: ast.Name) -> ast.Name | None:
    """The one place that binds a name of a function."""
    function = model.function(use)
    if function is None:
        return None
    stores = [each for each in model.names(function, use.id) if isinstance(each.ctx, ast.Store)]
    return stores[0] if len(stores) == 1 else None


def _of_loop(loop: Loop, target: ast.expr, over: ast.expr, name: ast.Name, index: str | Loop) -> Place | None:
    """The place of a loop's variable: in `self.x`, `zip(self.x, …)`, or `enumerate` of one of them."""
    if target is name:
        attribute = _attribute(over)
        return None if attribute is None else (attribute, index)
    if not isinstance(target, ast.Tuple) or not isinstance(over, ast.Call) or not isinstance(over.func, ast.Name):
        return None
    if over.func.id == "enumerate" and len(target.elts) == 2 and len(over.args) == 1:
        counter = target.elts[0]
        return _of_loop(loop, target.elts[1], over.args[0], name, counter.id) if isinstance(counter, ast.Name) else None
    if over.func.id == "zip" and len(over.args) == len(target.elts):
        found = (_of_loop(loop, *pair, name, index) for pair in zip(target.elts, over.args, strict=True))
        return next((place for place in found if place is not None), None)
    return None
