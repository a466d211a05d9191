"""The flow of names in the functions of a file, each read once."""

from __future__ import annotations

import ast

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


@once_per_node
def _flow_of(model: Model, body: Body) -> Flow:
    return flow_of(body, lambda item: lets_pass(model, item))
