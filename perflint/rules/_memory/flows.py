"""The flow of names in the functions of a file, each read once."""

from __future__ import annotations

import ast
from weakref import WeakKeyDictionary

from perflint.rules._statements import lets_pass
from perflint.semantics.dataflow.scope_flow import Flow, flow_of
from perflint.semantics.model import FunctionNode, Model

Body = FunctionNode | ast.Module
_KNOWN: WeakKeyDictionary[Model, dict[Body, Flow]] = WeakKeyDictionary()


def body_around(model: Model, node: ast.AST) -> Body:
    """The function around a node, or the whole file."""
    return model.function(node) or model.source.tree


def flow_around(model: Model, node: ast.AST) -> Flow:
    """The flow of the function around a node, or of the top level of the file."""
    known = _KNOWN.setdefault(model, {})
    body = body_around(model, node)
    if body not in known:
        known[body] = flow_of(body, lambda item: lets_pass(model, item))
    return known[body]
