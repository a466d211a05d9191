"""Control flow: branches, loops, contexts, and the statements that leave them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from perflint.semantics.interpreter import batch_loops, protocols
from perflint.semantics.interpreter.annotations import placed
from perflint.semantics.interpreter.assignments import assign
from perflint.semantics.interpreter.elements import iterate
from perflint.semantics.interpreter.expressions import evaluate
from perflint.semantics.interpreter.frame import DEFAULT_DEVICE, Frame, Names, is_path, join_names, parts
from perflint.semantics.interpreter.narrowed import refine
from perflint.semantics.interpreter.narrowing import narrow
from perflint.semantics.interpreter.patterns import matched, unmatched
from perflint.semantics.interpreter.settled import by_branches
from perflint.semantics.lattice import join, union
from perflint.semantics.structure import path_of
from perflint.semantics.values import NONE, UNKNOWN, Const, Device, DeviceValue, Name, Sequence, Tensor, Unknown, Value


def _if(frame: Frame, node: ast.If) -> None:
    test = evaluate(frame, node.test)
    before = frame.names
    decided = _truth(test)
    after: list[Names | None] = []
    told: list[Names] = []
    for branch, body in ((True, node.body), (False, node.orelse)):
        frame.names = narrow(frame, node.test, before, branch)
        told.append(_told(before, frame.names))
        returned, yielded = len(frame.returns), len(frame.yields)
        parts.run(frame, body)
        if decided is (not branch) and frame.recorder is None:
            # A branch that constants rule out is read, and forgotten.
            del frame.returns[returned:], frame.yields[yielded:]
            frame.names = None
        if before is not None and _is_for_cpu(before, told[-1]):
            frame.returns[returned:] = map(_of_caller, frame.returns[returned:])
            _place_with_caller(frame.names or {}, before, told[-1])
        after.append(frame.names)
    frame.names = join_names(after[0], after[1])
    first, second = after
    if before is not None and frame.names is not None and first is not None and second is not None:
        by_branches(frame.names, before, first, second)
        _forget_test(frame.names, before, told, after)


def _told(before: Names | None, narrowed: Names | None) -> Names:
    """The names whose values a test has narrowed."""
    if before is None or narrowed is None:
        return {}
    return {name: value for name, value in narrowed.items() if before.get(name) is not value}


def _is_for_cpu(before: Names, told: Names) -> bool:
    """True if a test has put tensors of the callers on the CPU: `if x.device.type == "cpu":`."""
    return any(
        isinstance(value, Tensor)
        and value.device is Device.CPU
        and isinstance(was := before.get(name), Tensor)
        and was.device is Device.CALLER
        for name, value in told.items()
    )


def _of_caller(value: Value) -> Value:
    """A value of such a branch for the code behind it: its tensors are on the device of the callers' tensors."""
    return placed(value, Device.CALLER, Device.CPU)


def _place_with_caller(names: Names, before: Names, told: Names) -> None:
    for name, value in names.items():
        if value is not before.get(name) and value is not told.get(name):
            names[name] = _of_caller(value)


def _forget_test(names: Names, before: Names, told: list[Names], after: list[Names | None]) -> None:
    """Forget the test after an `if`: names that no branch has bound get their values from before."""
    for name in told[0].keys() | told[1].keys():
        was = before.get(name)
        # A type that only a test shows stays.
        if (
            was is not None
            and name in names
            and not _tells_type(names[name], was)
            and all(
                branch is not None and branch.get(name) is known.get(name, was)
                for branch, known in zip(after, told, strict=True)
            )
        ):
            names[name] = was


def _tells_type(value: Value, was: Value) -> bool:
    """True if a test has shown a type that a value was not known to have."""
    if was.is_open:
        return was.tensor is None and value.tensor is not None
    return sum(not isinstance(member, Unknown) for member in value.members) > len(was.members)


def _truth(value: Value) -> bool | None:
    """True if a value is true for certain, None when it depends."""
    return bool(value.value) if isinstance(value, Const) else None


def _loop(
    frame: Frame, enter: Callable[[], None], body: list[ast.stmt], orelse: list[ast.stmt], test: ast.expr | None = None
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
        parts.run(frame, body)
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
    if isinstance(test, ast.Constant) and test.value:
        frame.names = None if breaks else frame.names
    elif test is not None:
        frame.names = narrow(frame, test, frame.names, False)
    parts.run(frame, orelse)
    for names in breaks:
        frame.names = join_names(frame.names, names)


_DEEPEST_REPEATED_LOOP = 2
"""Loops nested deeper run once a pass: time stays linear in the size of the file."""


def _for(frame: Frame, node: ast.For | ast.AsyncFor) -> None:
    iterable = batch_loops.iterated(node, node.target, node.iter, evaluate(frame, node.iter))
    element = batch_loops.element(frame.module.structure, node, iterate(frame, iterable))
    before, frame.filled = frame.filled, {}
    sets_by_name = frame.function is not None and "setattr" in frame.function.calls
    if sets_by_name and frame.recorder is None and isinstance(iterable, Sequence) and iterable.items is not None:
        for item in iterable.items:
            _loop(frame, lambda item=item: assign(frame, node.target, item), node.body, [])  # type: ignore[misc]
    _loop(frame, lambda: assign(frame, node.target, element), node.body, node.orelse)
    if frame.names is not None:
        # The iterations have replaced all items of these.
        for path, value in frame.filled.items():
            frame.bind_path(frame.names, path, value)
    frame.filled = before


def _while(frame: Frame, node: ast.While) -> None:
    def enter() -> None:
        evaluate(frame, node.test)
        frame.names = narrow(frame, node.test, frame.names, True)

    _loop(frame, enter, node.body, node.orelse, node.test)


def _with(frame: Frame, node: ast.With | ast.AsyncWith) -> None:
    outer = frame.names.get(DEFAULT_DEVICE) if frame.names is not None else None
    swallows = False
    for item in node.items:
        manager = evaluate(frame, item.context_expr)
        if item.optional_vars is not None:
            assign(frame, item.optional_vars, protocols.entered(frame, manager))
        if isinstance(manager, DeviceValue) and frame.names is not None:
            frame.names[DEFAULT_DEVICE] = manager
        swallows = swallows or _swallows(frame, item.context_expr)
    if swallows:
        frame.names = _left(frame, lambda: parts.run(frame, node.body))
    else:
        parts.run(frame, node.body)
    if frame.names is not None and frame.names.get(DEFAULT_DEVICE) is not outer:
        frame.names.pop(DEFAULT_DEVICE)
        if outer is not None:
            frame.names[DEFAULT_DEVICE] = outer


def _swallows(frame: Frame, manager: ast.expr) -> bool:
    """True for `contextlib.suppress(…)`: code after the block runs, whatever the block raises."""
    called = evaluate(frame, manager.func) if isinstance(manager, ast.Call) else None
    return isinstance(called, Name) and called.name in _SWALLOWING


_SWALLOWING = frozenset({"contextlib.suppress", "pytest.raises"})


def _try(frame: Frame, node: ast.Try) -> None:
    if not node.finalbody:
        _handled(frame, node)
        return
    breaks, continues = len(frame.breaks), len(frame.continues)
    left = _left(frame, lambda: _handled(frame, node))
    done = frame.names
    # It also runs on the way out: after an error, a jump or a `return`.
    frame.names = join_names(left, done)
    outer, frame.bound = frame.bound, {}
    parts.run(frame, node.finalbody)
    after, bound = frame.names, frame.bound
    for names in (done, *frame.breaks[breaks:], *frame.continues[continues:]):
        if names is not None and after is not None:
            for path in bound:
                frame.forget_paths(names, path)
            names.update({path: after[path] for path in bound if path in after})
    frame.names = None if after is None else done
    _note_bound(frame, outer)


def _handled(frame: Frame, node: ast.Try) -> None:
    """Run all of a `try` but its `finally`."""
    failed = _left(frame, lambda: parts.run(frame, node.body))
    parts.run(frame, node.orelse)
    done = frame.names
    for handler in node.handlers:
        frame.names = dict(failed) if failed is not None else None
        if handler.type is not None:
            evaluate(frame, handler.type)
        if frame.names is not None:
            if handler.name:
                frame.names[handler.name] = UNKNOWN
            if (read := _number_read(node.body)) is not None:
                # What may be a tensor or something else is something else.
                refine(frame, read, frame.names, _others_than_tensors)
        parts.run(frame, handler.body)
        done = join_names(done, frame.names)
    frame.names = done


def _left(frame: Frame, run: Callable[[], None]) -> Names | None:
    """Run statements; the names where an error or a jump leaves one of them."""
    before = frame.names
    frame.names = dict(before) if before is not None else None
    outer, frame.bound = frame.bound, {}
    run()
    left = join_names(before, frame.names)
    if left is not None:
        left = dict(left)
        for path, value in frame.bound.items():
            if path in left:
                left[path] = join(left[path], value)
            elif not is_path(path):
                left[path] = value
        for path in frame.bound:
            frame.forget_paths(left, path)
    _note_bound(frame, outer)
    return left


def _note_bound(frame: Frame, outer: Names | None) -> None:
    """Go back to the bindings of the outer `try`, to which those of the inner one belong, too."""
    inner, frame.bound = frame.bound or {}, outer
    for path, value in inner.items():
        frame.note_bound(path, value)


def _number_read(body: list[ast.stmt]) -> ast.Name | None:
    """The name in `float(x)` or `int(x)`, if a block does nothing else."""
    call = getattr(body[0], "value", None) if len(body) == 1 else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in ("float", "int"):
        return None
    return call.args[0] if len(call.args) == 1 and isinstance(call.args[0], ast.Name) else None


def _others_than_tensors(value: Value) -> Value:
    return union(member for member in value.members if member.tensor is None)


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
        parts.run(frame, case.body)
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


STATEMENTS: dict[type[ast.stmt], Callable[[Frame, Any], None]] = {
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
}
"""How each of them is run."""
