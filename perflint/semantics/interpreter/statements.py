"""Statements, in the order in which they run, and definitions of names; branches and loops are in `control_flow`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable
from typing import Any

from perflint.semantics import binders
from perflint.semantics.interpreter import batch_loops, control_flow, narrowed, self_attributes
from perflint.semantics.interpreter.annotations import annotated, spelled
from perflint.semantics.interpreter.assignments import assign
from perflint.semantics.interpreter.expressions import close_over, evaluate
from perflint.semantics.interpreter.frame import Frame, parts
from perflint.semantics.interpreter.operators import binary
from perflint.semantics.interpreter.resolve import class_value, function_value, imported
from perflint.semantics.lattice import completed
from perflint.semantics.structure import path_of
from perflint.semantics.values import UNKNOWN, Mapping, Name, Sequence, Tensor, Value


def run(frame: Frame, body: Iterable[ast.stmt]) -> None:
    """Run statements in order, until one never completes."""
    for statement in body:
        if frame.names is None:
            # Code that cannot be reached is still read: a constant condition may be wrong.
            return
        frame.budget.steps += 1
        handler = _STATEMENTS.get(type(statement))
        if handler is not None:
            handler(frame, statement)


def _assign_statement(frame: Frame, node: ast.Assign) -> None:
    function = None if frame.function is None else frame.function.node
    value = batch_loops.drawn(frame.module.structure, function, node, evaluate(frame, node.value))
    for target in node.targets:
        assign(frame, target, value)


def _ann_assign(frame: Frame, node: ast.AnnAssign) -> None:
    declared = annotated(frame, node.annotation)
    if node.value is None:
        value = self_attributes.assigned(frame, node.target) or declared
    else:
        value = evaluate(frame, node.value)
        if value.is_unknown:
            value = completed(value, declared)
        elif isinstance(declared, Tensor) and value.tensor is not None:
            value = value.tensor
        elif _is_empty(node.value) and _holds_parameters(declared):
            value = declared
    assign(frame, node.target, value)


def _is_empty(node: ast.expr) -> bool:
    return (isinstance(node, ast.Dict) and not node.keys) or (isinstance(node, ast.List) and not node.elts)


def _holds_parameters(declared: Value) -> bool:
    """True for `dict[str, nn.Parameter]` and the like: its elements are on the device of the model."""
    if not isinstance(declared, (Mapping, Sequence)):
        return False
    return isinstance(declared.element, Tensor) and declared.element.leaf == "parameter"


def _aug_assign(frame: Frame, node: ast.AugAssign) -> None:
    left = evaluate(frame, node.target)
    right = evaluate(frame, node.value)
    value = binary(left, node.op, right)
    if value == UNKNOWN and isinstance(left, Tensor):
        # A tensor changes in place.
        value = left
    if frame.recorder is not None:
        frame.recorder.values[node.target] = left
    if not isinstance(node.target, ast.Subscript) or left.tensor is None:
        assign(frame, node.target, value)


# Definitions


def _define_function(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
        evaluate(frame, default)
    for decorator in node.decorator_list:
        evaluate(frame, decorator)
    names = frame.names
    if names is None:
        return
    names[node.name] = function_value(frame.module, node, frame)
    if frame.function is not None:
        close_over(frame, node)


def _define_class(frame: Frame, node: ast.ClassDef) -> None:
    if frame.names is not None:
        frame.names[node.name] = class_value(frame, node)
    for decorator in node.decorator_list:
        evaluate(frame, decorator)
    for base in node.bases:
        evaluate(frame, base)
    inner = Frame(
        frame.view,
        frame.module,
        frame.budget,
        names={},
        outer=(frame.names or {}, *frame.outer) if frame.function is not None else (),
        recorder=frame.recorder,
        depth=frame.depth,
    )
    run(inner, [statement for statement in node.body if not isinstance(statement, ast.ClassDef)])


def _type_alias(frame: Frame, node: Any) -> None:
    """`type Pair = tuple[Tensor, Tensor]`, which Python has since 3.12."""
    _bind(frame, node.name.id, spelled(frame, node.value))


def _import(frame: Frame, node: ast.Import) -> None:
    for each in binders.imported(node):
        _bind(frame, each.local, Name(each.full))


def _import_from(frame: Frame, node: ast.ImportFrom) -> None:
    base = frame.module.absolute(node.module, node.level)
    for alias in node.names:
        # A star is looked through when a name is not found otherwise.
        if alias.name != "*":
            _bind(frame, alias.asname or alias.name, imported(frame, base, alias.name))


def _bind(frame: Frame, name: str, value: Value) -> None:
    if frame.names is not None:
        frame.forget_paths(frame.names, name)
        frame.names[name] = value


def _delete(frame: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            _delete_one(frame, part)


def _delete_one(frame: Frame, target: ast.expr) -> None:
    evaluate(frame, target)
    names = frame.names
    path = path_of(target.value if isinstance(target, ast.Subscript) else target)
    if names is None or not path:
        return
    if isinstance(target, ast.Subscript):
        narrowed.forget(frame, names, path)
        held, key = names.get(path), target.slice
        if isinstance(held, Mapping) and isinstance(key, ast.Constant):
            kept = tuple([item for item in held.items if item[0] != key.value])
            frame.bind_path(names, path, Mapping(held.element, kept))
    else:
        frame.forget_paths(names, path)
        names.pop(path, None)


def _expression(frame: Frame, node: ast.Expr) -> None:
    if not isinstance(node.value, ast.Constant):
        evaluate(frame, node.value)


_STATEMENTS: dict[type[ast.stmt], Callable[[Frame, Any], None]] = {
    **control_flow.STATEMENTS,
    ast.Expr: _expression,
    ast.Assign: _assign_statement,
    ast.AnnAssign: _ann_assign,
    ast.AugAssign: _aug_assign,
    ast.FunctionDef: _define_function,
    ast.AsyncFunctionDef: _define_function,
    ast.ClassDef: _define_class,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Delete: _delete,
}
if sys.version_info >= (3, 12):
    _STATEMENTS[ast.TypeAlias] = _type_alias

parts.run = run
