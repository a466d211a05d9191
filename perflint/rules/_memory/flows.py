"""The flow of names in the functions of a file, each read once."""

from __future__ import annotations

import ast

from perflint.rules._places import loops_around
from perflint.rules._statements import lets_pass
from perflint.semantics.dataflow.scope_flow import Flow, flow_of
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import FunctionNode, Model

Body = FunctionNode | ast.Module


def body_around(model: Model, node: ast.AST) -> Body:
    """The function around a node, or the whole file."""
    return model.function(node) or model.source.tree


def flow_around(model: Model, node: ast.AST) -> Flow:
    """The flow of the function around a node, or of the top level of the file."""
    return _flow_of(model, body_around(model, node))


def bound(model: Model, use: ast.Name) -> ast.expr | None:
    """The value of a name at a use, if only one assignment can have set it."""
    found = flow_around(model, use).used.get(use)
    if found is None or not isinstance(found.node, ast.Name) or not found.whole:
        return None
    return found.value if isinstance(model.parent(found.node), (ast.Assign, ast.AnnAssign, ast.Tuple)) else None


def behind(model: Model, node: ast.expr) -> ast.expr:
    """The expression that computes a value, which the code might have written in its place.

    It leads through names that one assignment sets in the same turn of the same loops, and that nothing else reads, and
    to the elements of tuples that are written out.
    """
    while True:
        if isinstance(node, ast.Name):
            value = bound(model, node) if _is_only_use(model, node) else None
            if value is None or next(loops_around(model, value), None) is not next(loops_around(model, node), None):
                return node
            node = value
        elif isinstance(node, ast.Subscript) and isinstance(whole := behind(model, node.value), ast.Tuple):
            at = node.slice.value if isinstance(node.slice, ast.Constant) else None
            is_plain = not any(isinstance(each, ast.Starred) for each in whole.elts)
            if not is_plain or not isinstance(at, int) or not at < len(whole.elts):
                return node
            node = whole.elts[at]
        else:
            return node


def ahead(model: Model, node: ast.expr) -> ast.expr:
    """The place of a value after the names that lead to it alone: the opposite of `behind`."""
    while True:
        statement = model.parent(node)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        found = flow_around(model, node).stored.get(target) if isinstance(target, ast.Name) else None
        reach = None if found is None else flow_around(model, node).reach(found, most=4)
        if reach is None or len(reach.uses) != 1 or behind(model, reach.uses[0]) is not behind(model, node):
            return node
        node = reach.uses[0]


def _is_only_use(model: Model, use: ast.Name) -> bool:
    flow = flow_around(model, use)
    found = flow.used.get(use)
    reach = None if found is None else flow.reach(found, most=4)
    return reach is not None and reach.uses == (use,) and not model.symbols.variable(use).is_captured


@once_per_node
def _flow_of(model: Model, body: Body) -> Flow:
    return flow_of(body, lambda item: lets_pass(model, item))
