"""Statements: assignment, branches, loops, and the order in which they run."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable
from typing import Any

from perflint.semantics import classes, containers, records, stores
from perflint.semantics.annotations import annotated, by_name, spelled
from perflint.semantics.expressions import close_over, evaluate, iterate
from perflint.semantics.frame import DEFAULT_DEVICE, Frame, Names, join_names, parts
from perflint.semantics.lattice import join, union, with_key
from perflint.semantics.names import class_value, function_value, imported
from perflint.semantics.narrowing import narrow
from perflint.semantics.operators import binary
from perflint.semantics.patterns import matched, unmatched
from perflint.semantics.structure import path_of
from perflint.semantics.tensors import as_loss
from perflint.semantics.values import (
    NONE,
    UNKNOWN,
    Const,
    Device,
    DeviceValue,
    Instance,
    Mapping,
    Name,
    Sequence,
    Tensor,
    Unknown,
    Value,
)

_DEEPEST_REPEATED_LOOP = 2
"""Loops nested deeper run once a pass: time stays linear in the size of the file."""


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


# Binding


def assign(frame: Frame, target: ast.expr, value: Value) -> None:
    """Bind an assignment's target."""
    names = frame.names
    if names is None:
        return
    if isinstance(target, ast.Name):
        frame.forget_paths(names, target.id)
        if (frame.function, target.id) in frame.module.structure.losses:
            value = as_loss(value)
        elif isinstance(value, Unknown):
            value = by_name(target.id, value)
        if isinstance(value, DeviceValue) and not value.place and value.device in (Device.UNKNOWN, Device.CALLER):
            value = DeviceValue(value.device, f"{target.id}:{target.lineno}")
        names[target.id] = value
        if frame.recorder is not None:
            frame.recorder.values[target] = value
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(frame, target.elts, value)
    elif isinstance(target, ast.Starred):
        assign(frame, target.value, value)
    elif isinstance(target, ast.Attribute):
        _assign_attribute(frame, target, value)
    elif isinstance(target, ast.Subscript):
        _assign_item(frame, target, value)


def _unpack(frame: Frame, targets: list[ast.expr], value: Value) -> None:
    parts = [_parts(frame, member, targets) for member in value.members] or [[UNKNOWN] * len(targets)]
    for index, target in enumerate(targets):
        assign(frame, target, union(part[index] for part in parts))


def _parts(frame: Frame, value: Value, targets: list[ast.expr]) -> list[Value]:
    starred = next((index for index, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
    known = value.items if isinstance(value, Sequence) else None
    if isinstance(value, Instance):
        known = records.items(frame, value)
    if known is not None:
        items = list(known)
        if starred is None and len(items) == len(targets):
            return items
        if starred is not None and len(items) >= len(targets) - 1:
            after = len(targets) - 1 - starred
            middle = tuple(items[starred : len(items) - after])
            rest = items[len(items) - after :] if after else []
            return [*items[:starred], Sequence("list", union(middle), middle), *rest]
    element = iterate(frame, value)
    return [Sequence("list", element) if index == starred else element for index in range(len(targets))]


def _assign_attribute(frame: Frame, target: ast.Attribute, value: Value) -> None:
    receiver = evaluate(frame, target.value)
    if frame.recorder is not None:
        frame.recorder.values[target] = value
    path = path_of(target)
    if path and frame.names is not None:
        frame.forget_paths(frame.names, path)
        if isinstance(receiver, Instance) and classes.is_property(frame, receiver.cls, target.attr):
            # Its setter keeps what it likes.
            return
        frame.bind_path(frame.names, path, value)
    if isinstance(receiver, Instance) and receiver == frame.receiver and frame.owner:
        classes.note_attribute(frame, target.attr, value)


def _assign_item(frame: Frame, target: ast.Subscript, value: Value) -> None:
    receiver = evaluate(frame, target.value)
    index = evaluate(frame, target.slice)
    if frame.recorder is not None:
        frame.recorder.values[target] = value
    anew = stores.stored_in_turn(frame, target, receiver, value)
    if anew is not None:
        frame.filled[path_of(target.value)] = anew
    changed = anew or _with_item(receiver, index, value)
    if changed is not None:
        rebind(frame, target.value, changed)


def _with_item(receiver: Value, index: Value, value: Value) -> Value | None:
    """A container after an item was set in it; None for anything else."""
    if isinstance(receiver, Mapping):
        if isinstance(index, Const) and isinstance(index.value, str):
            return with_key(receiver, index.value, value)
        return Mapping(join(receiver.element, value), receiver.items)
    if isinstance(receiver, Sequence) and receiver.type == "list":
        return Sequence("list", join(receiver.element, value))
    if isinstance(receiver, Sequence) and receiver.type == "batch":
        return stores.batch_with(receiver, index, value)
    if isinstance(receiver, Tensor):
        return receiver.with_(device=Device.UNKNOWN) if stores.is_list(receiver, value) else None
    return containers.with_item(receiver, index, value) if isinstance(receiver, Instance) else None


def rebind(frame: Frame, node: ast.expr, value: Value) -> None:
    """Let a name, an attribute or an item of one stand for what the object has become."""
    if isinstance(node, ast.Subscript):
        if _is_place(node.value):
            known = isinstance(node.slice, ast.Constant) or path_of(node.slice)
            index = evaluate(frame, node.slice) if known else UNKNOWN
            changed = _with_item(evaluate(frame, node.value), index, value)
            if changed is not None:
                rebind(frame, node.value, changed)
        return
    path = path_of(node)
    if not path or frame.names is None:
        return
    frame.bind_path(frame.names, path, value)
    if path.startswith("self.") and path.count(".") == 1 and frame.owner:
        classes.note_attribute(frame, path[5:], value)


_DEEPEST_PLACE = 8
"""Items of items that are bound anew when something is put into them."""


def _is_place(node: ast.expr) -> bool:
    """Whether an expression is an item of an item of a name, with no calls that would run once more."""
    depth = 0
    while isinstance(node, ast.Subscript) and depth < _DEEPEST_PLACE:
        if not (isinstance(node.slice, ast.Constant) or path_of(node.slice)):
            return False
        node, depth = node.value, depth + 1
    return bool(path_of(node))


def _assign_statement(frame: Frame, node: ast.Assign) -> None:
    value = evaluate(frame, node.value)
    for target in node.targets:
        assign(frame, target, value)


def _ann_assign(frame: Frame, node: ast.AnnAssign) -> None:
    declared = annotated(frame, node.annotation)
    if node.value is None:
        value = classes.assigned(frame, node.target) or declared
    else:
        value = evaluate(frame, node.value)
        if isinstance(value, Unknown):
            value = declared
        elif isinstance(declared, Tensor) and value.tensor is not None:
            value = value.tensor
    assign(frame, node.target, value)


def _aug_assign(frame: Frame, node: ast.AugAssign) -> None:
    left = evaluate(frame, node.target)
    right = evaluate(frame, node.value)
    value = binary(left, node.op, right)
    if frame.recorder is not None:
        frame.recorder.values[node.target] = left
    if not isinstance(node.target, ast.Subscript):
        assign(frame, node.target, value)
    elif left.tensor is None:
        _assign_item(frame, node.target, value)


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
        frame.project,
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
    for alias in node.names:
        if alias.asname is None:
            top = alias.name.split(".", 1)[0]
            _bind(frame, top, Name(top))
        else:
            _bind(frame, alias.asname, Name(alias.name))


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


# Control flow


def _if(frame: Frame, node: ast.If) -> None:
    test = evaluate(frame, node.test)
    before = frame.names
    decided = truth(test)
    after: list[Names | None] = []
    told: list[Names] = []
    for branch, body in ((True, node.body), (False, node.orelse)):
        frame.names = narrow(frame, node.test, before, branch)
        told.append(_told(before, frame.names))
        returned, yielded = len(frame.returns), len(frame.yields)
        run(frame, body)
        if decided is (not branch) and frame.recorder is None:
            # A branch that constants rule out is read, and forgotten.
            del frame.returns[returned:], frame.yields[yielded:]
            frame.names = None
        after.append(frame.names)
    frame.names = join_names(after[0], after[1])
    if before is not None and frame.names is not None and None not in after:
        _forget_test(frame.names, before, told, after)


def _told(before: Names | None, narrowed: Names | None) -> Names:
    """What a test says of the names."""
    if before is None or narrowed is None:
        return {}
    return {name: value for name, value in narrowed.items() if before.get(name) is not value}


def _forget_test(names: Names, before: Names, told: list[Names], after: list[Names | None]) -> None:
    """Behind an `if` its test says nothing any more: names that no branch has bound are what they were."""
    for name in told[0].keys() | told[1].keys():
        was = before.get(name)
        # A test may also tell of a type that nothing else told of; that stays.
        if (
            was is not None
            and len(names[name].members) <= len(was.members)
            and all(
                branch is not None and branch.get(name) is known.get(name, was)
                for branch, known in zip(after, told, strict=True)
            )
        ):
            names[name] = was


def truth(value: Value) -> bool | None:
    """Whether a value is true for certain, None when it depends."""
    return bool(value.value) if isinstance(value, Const) else None


def _loop(
    frame: Frame, enter: Callable[[], None], body: list[ast.stmt], orelse: list[ast.stmt], endless: bool = False
) -> None:
    outer_breaks, outer_continues = frame.breaks, frame.continues
    frame.loops += 1
    passes = 2 if frame.loops <= _DEEPEST_REPEATED_LOOP else 1
    before = frame.names
    breaks: list[Names] = []
    for _ in range(passes):
        frame.breaks, frame.continues = [], []
        start = frame.names
        frame.names = dict(start) if start is not None else None
        enter()
        run(frame, body)
        ends: Names | None = frame.names
        for names in frame.continues:
            ends = join_names(ends, names)
        breaks += frame.breaks
        frame.names = join_names(start, ends)
        if frame.names == before:
            break
        before = frame.names
    frame.loops -= 1
    frame.breaks, frame.continues = outer_breaks, outer_continues
    if endless and breaks:
        frame.names = None
    run(frame, orelse)
    for names in breaks:
        frame.names = join_names(frame.names, names)


def _for(frame: Frame, node: ast.For | ast.AsyncFor) -> None:
    iterable = evaluate(frame, node.iter)
    element = iterate(frame, iterable)
    before, frame.filled = frame.filled, {}
    sets_by_name = frame.function is not None and "setattr" in frame.function.calls
    if sets_by_name and frame.recorder is None and isinstance(iterable, Sequence) and iterable.items is not None:
        for item in iterable.items:
            _loop(frame, lambda item=item: assign(frame, node.target, item), node.body, [])  # type: ignore[misc]
    _loop(frame, lambda: assign(frame, node.target, element), node.body, node.orelse)
    if frame.names is not None:
        # What each turn stored anew holds nothing old any more.
        for path, value in frame.filled.items():
            frame.bind_path(frame.names, path, value)
    frame.filled = before


def _while(frame: Frame, node: ast.While) -> None:
    def enter() -> None:
        evaluate(frame, node.test)
        frame.names = narrow(frame, node.test, frame.names, True)

    endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
    _loop(frame, enter, node.body, node.orelse, endless)


def _with(frame: Frame, node: ast.With | ast.AsyncWith) -> None:
    outer = frame.names.get(DEFAULT_DEVICE) if frame.names is not None else None
    for item in node.items:
        manager = evaluate(frame, item.context_expr)
        if item.optional_vars is not None:
            assign(frame, item.optional_vars, classes.entered(frame, manager))
        if isinstance(manager, DeviceValue) and frame.names is not None:
            frame.names[DEFAULT_DEVICE] = manager
    run(frame, node.body)
    if frame.names is not None and frame.names.get(DEFAULT_DEVICE) is not outer:
        frame.names.pop(DEFAULT_DEVICE)
        if outer is not None:
            frame.names[DEFAULT_DEVICE] = outer


def _try(frame: Frame, node: ast.Try) -> None:
    before = frame.names
    frame.names = dict(before) if before is not None else None
    run(frame, node.body)
    failed = join_names(before, frame.names)
    run(frame, node.orelse)
    done = frame.names
    for handler in node.handlers:
        frame.names = dict(failed) if failed is not None else None
        if handler.type is not None:
            evaluate(frame, handler.type)
        if handler.name and frame.names is not None:
            frame.names[handler.name] = UNKNOWN
        run(frame, handler.body)
        done = join_names(done, frame.names)
    frame.names = done
    if node.finalbody and frame.names is None:
        frame.names = dict(failed) if failed is not None else None
        run(frame, node.finalbody)
        frame.names = None
    else:
        run(frame, node.finalbody)


def _match(frame: Frame, node: ast.Match) -> None:
    subject = evaluate(frame, node.subject)
    path = path_of(node.subject)
    before = frame.names
    done: Names | None = None
    left = before
    for case in node.cases:
        frame.names = dict(before) if before is not None else None
        if frame.names is not None:
            value = matched(frame, case.pattern, subject, frame.names)
            if path and value.members:
                frame.bind_path(frame.names, path, value)
        if case.guard is not None:
            evaluate(frame, case.guard)
            frame.names = narrow(frame, case.guard, frame.names, True)
        run(frame, case.body)
        if case.guard is None:
            if isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None:
                # It matches whatever is left.
                left = None
            subject = unmatched(case.pattern, subject)
        done = join_names(done, frame.names)
    frame.names = join_names(left, done)


def _return(frame: Frame, node: ast.Return) -> None:
    frame.returns.append(NONE if node.value is None else evaluate(frame, node.value))
    frame.names = None


def _raise(frame: Frame, node: ast.Raise) -> None:
    for part in (node.exc, node.cause):
        if part is not None:
            evaluate(frame, part)
    frame.names = None


def _break(frame: Frame, node: ast.Break) -> None:
    if frame.names is not None:
        frame.breaks.append(frame.names)
    frame.names = None


def _continue(frame: Frame, node: ast.Continue) -> None:
    if frame.names is not None:
        frame.continues.append(frame.names)
    frame.names = None


def _assert(frame: Frame, node: ast.Assert) -> None:
    evaluate(frame, node.test)
    before = frame.names
    if node.msg is not None:
        frame.names = narrow(frame, node.test, before, False)
        evaluate(frame, node.msg)
    frame.names = narrow(frame, node.test, before, True)


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
    ast.Expr: _expression,
    ast.Assign: _assign_statement,
    ast.AnnAssign: _ann_assign,
    ast.AugAssign: _aug_assign,
    ast.FunctionDef: _define_function,
    ast.AsyncFunctionDef: _define_function,
    ast.ClassDef: _define_class,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.TryStar: _try,
    ast.Match: _match,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Assert: _assert,
    ast.Delete: _delete,
}
if sys.version_info >= (3, 12):
    _STATEMENTS[ast.TypeAlias] = _type_alias

parts.run = run
parts.rebind = rebind
