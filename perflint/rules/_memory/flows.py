"""The flow of names in the functions of a file, each read once."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from perflint.rules._statements import lets_pass
from perflint.semantics.around import loops_around
from perflint.semantics.dataflow.flow import USES, Flow, Use, part_of
from perflint.semantics.dataflow.scope_flow import flow_of
from perflint.semantics.memo import once, once_per_node
from perflint.semantics.model import FunctionNode, Model
from perflint.semantics.values import Instance

Body = FunctionNode | ast.Module


def body_around(model: Model, node: ast.AST) -> Body:
    """The function around a node, or the whole file."""
    return model.function(node) or model.source.tree


def flow_around(model: Model, node: ast.AST) -> Flow:
    """The flow of the function around a node, or of the top level of the file."""
    return _flow_of(model, body_around(model, node))


def bound(model: Model, use: ast.expr) -> ast.expr | None:
    """The value of a name, or of a part of a record, at a use, if only one assignment can have set it."""
    found = flow_around(model, use).used.get(use) if isinstance(use, USES) else None
    if found is None or not isinstance(found.node, USES) or not found.whole:
        return None
    return found.value if isinstance(model.parent(found.node), (ast.Assign, ast.AnnAssign, ast.Tuple)) else None


def behind(model: Model, node: ast.expr) -> ast.expr:
    """The expression that computes a value, which the code might have written in its place.

    It leads through names that one assignment sets in the same turn of the same loops, and that nothing else reads, to
    the elements of tuples that are written out, and to the fields of data classes.
    """
    return _followed(model, node, alone=True)


def made(model: Model, node: ast.expr) -> ast.expr:
    """The expression that made a value: as `behind`, but other code may use it as well, and in other loops."""
    return _followed(model, node, alone=False)


def _followed(model: Model, node: ast.expr, *, alone: bool) -> ast.expr:
    while True:
        value = bound(model, node)
        if value is not None:
            before = value if not alone or _is_in_place(model, node, value) else None
        elif isinstance(node, ast.Subscript):
            before = _element(_followed(model, node.value, alone=alone), node)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            before = _field(model, node.value, node.attr)
        else:
            before = None
        if before is None:
            return node
        node = before


def _is_in_place(model: Model, use: ast.expr, value: ast.expr) -> bool:
    """True if a use is the only one of a value, and in the same loops."""
    return _is_only_use(model, use) and next(loops_around(model, value), None) is next(loops_around(model, use), None)


def _element(whole: ast.expr, node: ast.Subscript) -> ast.expr | None:
    """The element of a tuple that is written out."""
    at = node.slice.value if isinstance(node.slice, ast.Constant) else None
    if not isinstance(whole, ast.Tuple) or type(at) is not int or not at < len(whole.elts):
        return None
    return None if any(isinstance(each, ast.Starred) for each in whole.elts) else whole.elts[at]


def _field(model: Model, holder: ast.Name, name: str) -> ast.expr | None:
    """The value that a field of an object of a data class got when it was made, if nothing can have changed it."""
    call = bound(model, holder)
    return model.field_given(call, name) if isinstance(call, ast.Call) and _is_only_use(model, holder) else None


def ahead(model: Model, node: ast.expr) -> ast.expr:
    """The place of a value after the names and objects that lead to it alone: the opposite of `behind`."""
    *_, last = _places(model, node)
    return last


def _places(model: Model, node: ast.expr) -> Iterator[ast.expr]:
    """A value, and the places to which names and objects alone lead it, one after the other."""
    start = behind(model, node)
    place: ast.expr | None = node
    seen: set[ast.expr] = set()
    # A loop leads back: `x, size = layer(x, size)`.
    while place is not None and place not in seen:
        yield place
        seen.add(place)
        place = next((each for each in _onward(model, place) if behind(model, each) is start), None)


def _onward(model: Model, node: ast.expr) -> Iterator[ast.expr]:
    """The only uses of the names that an assignment of a value binds, and of their parts."""
    statement = model.parent(node)
    while isinstance(statement, (ast.Tuple, ast.Call, ast.keyword)):
        statement = model.parent(statement)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    flow = flow_around(model, node)
    for each in target.elts if isinstance(target, ast.Tuple) else [target]:
        found = None if each is None else flow.stored.get(each)
        reach = None if found is None else flow.reach(found, most=4)
        if reach is not None and len(reach.uses) == 1:
            yield reach.uses[0]
            outer = model.parent(reach.uses[0])
            if isinstance(outer, (ast.Attribute, ast.Subscript)):
                yield outer


def target_of(model: Model, node: ast.expr) -> ast.expr | None:
    """The target to which an assignment gives a value: the last one, if names and objects alone lead to it."""
    targets = (_target_at(model, place) for place in _places(model, node))
    found = [target for target in targets if target is not None]
    return found[-1] if found else None


def _target_at(model: Model, place: ast.expr) -> ast.expr | None:
    """The target to which the statement around a value gives it."""
    outer = model.parent(place)
    statement = model.parent(outer) if isinstance(outer, ast.Tuple) else outer
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    (target,) = statement.targets
    if statement.value is place:
        return target
    parts = target.elts if isinstance(target, ast.Tuple) else []
    flow = flow_around(model, place)
    return next((part for part in parts if part in flow.stored and flow.stored[part].value is place), None)


def uses_of_target(model: Model, statement: ast.AST | None) -> tuple[Use, ...]:
    """The uses of the name that an assignment gives a value; none for other statements, and if there are too many."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    return uses_of(model, target) or () if isinstance(target, ast.Name) else ()


def uses_of(model: Model, store: ast.Name) -> tuple[Use, ...] | None:
    """The uses of the value that a store gives a name, which is not only read.

    None if there are too many, or if functions inside of that around the store use the name, too.
    """
    flow = flow_around(model, store)
    found = None if model.symbols.variable(store).is_captured else flow.stored.get(store)
    reach = None if found is None else flow.reach(found, most=12)
    return None if reach is None else reach.uses


def value_of(model: Model, target: ast.expr) -> ast.expr | None:
    """The expression that made the value that an assignment gives to a target; None for a part of a value."""
    found = flow_around(model, target).stored.get(target)
    if found is not None:
        return made(model, found.value) if found.value is not None and found.whole else None
    statement = model.parent(target)
    return made(model, statement.value) if isinstance(statement, ast.Assign) else None


def _is_only_use(model: Model, use: ast.expr) -> bool:
    flow = flow_around(model, use)
    found = flow.used.get(use) if isinstance(use, USES) else None
    reach = None if found is None else flow.reach(found, most=4)
    if reach is None or reach.uses != (use,):
        return False
    return not isinstance(use, ast.Name) or not model.symbols.variable(use).is_captured


@once_per_node
def _flow_of(model: Model, body: Body) -> Flow:
    flow = flow_of(body, lambda item: lets_pass(model, item), _records(model).get(body, ()))
    declared = {name for each in model.module.structure.every(ast.Global, ast.Nonlocal) for name in each.names}
    for use in [use for use in flow.used if isinstance(use, ast.Name) and use.id in declared]:
        if any(use.id in scope.declared and scope.node is not body for scope in model.symbols.variable(use).seen_in):
            # Another function may have set it since.
            del flow.used[use]
    return flow


@once
def _records(model: Model) -> Mapping[Body, set[str]]:
    """The local names, by function, of new and empty objects of which only the parts are used."""
    found: dict[Body, set[str]] = {}
    for assignment in model.nodes(ast.Assign):
        target = assignment.targets[0]
        if isinstance(target, ast.Name) and (kind := _kind_of_record(model, assignment.value)) is not None:
            variable = model.symbols.variable(target)
            uses = [model.parent(use) for use in variable.uses]
            if len(variable.bindings) == 1 and variable.is_private:
                if all(isinstance(use, kind) and part_of(use) is not None for use in uses):
                    found.setdefault(body_around(model, target), set()).add(target.id)
    return found


def _kind_of_record(model: Model, value: ast.expr) -> type[ast.expr] | None:
    """The kind of the parts of a new dict, or of an object of a class that has no code; None for other values."""
    if isinstance(value, ast.Dict):
        return None if value.keys else ast.Subscript
    if not isinstance(value, ast.Call) or value.args or value.keywords:
        return None
    if model.target(value) == "types.SimpleNamespace":
        return ast.Attribute
    made = model.value(value)
    return ast.Attribute if isinstance(made, Instance) and _is_empty(model, made.cls) else None


def _is_empty(model: Model, cls: str) -> bool:
    """True if the body of a class is `pass` or a docstring, and it has no bases."""
    found = model.view.klass(cls)
    return (
        found is not None
        and not found[1].node.bases
        and all(
            isinstance(each, ast.Pass) or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
            for each in found[1].node.body
        )
    )
