"""Expressions and their values."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from perflint.semantics.facts import arrays
from perflint.semantics.facts.devices import made_of, names_gpu
from perflint.semantics.interpreter import attributes, batch_loops, calls, elsewhere, narrowed
from perflint.semantics.interpreter.annotations import spelled
from perflint.semantics.interpreter.assignments import assign
from perflint.semantics.interpreter.elements import as_indexed, index_into, item, iterate
from perflint.semantics.interpreter.frame import Frame, join_names, parts
from perflint.semantics.interpreter.lineage import is_enumeration
from perflint.semantics.interpreter.narrowing import narrow
from perflint.semantics.interpreter.operators import as_operand, binary, tensor_operation
from perflint.semantics.interpreter.resolve import function_value, global_name, resolve
from perflint.semantics.interpreter.settled import by_setting
from perflint.semantics.lattice import MOST_KEYS, join, union
from perflint.semantics.structure import FunctionNode, last_name, path_of, walk
from perflint.semantics.values import (
    BOOL,
    NEVER,
    NONE,
    STR,
    UNKNOWN,
    Array,
    Class,
    Const,
    Evidence,
    Instance,
    Kind,
    Mapping,
    Name,
    Scalar,
    Sequence,
    Tensor,
    TypeForm,
    Union,
    Unknown,
    Value,
    scalar_type,
)


def evaluate(frame: Frame, node: ast.expr) -> Value:
    """The value of an expression, recorded when the frame records."""
    frame.budget.steps += 1
    handler = _EXPRESSIONS.get(type(node))
    value = UNKNOWN if handler is None else handler(frame, node)
    if frame.recorder is not None:
        frame.recorder.values[node] = value
    return value


# Leaves


def _constant(frame: Frame, node: ast.Constant) -> Value:
    return Const(node.value)


def _name(frame: Frame, node: ast.Name) -> Value:
    if frame.names is not None:
        found = frame.names.get(node.id)
        if found is not None:
            if elsewhere.sets_name(frame, node.id):
                # That function may have run since.
                found = union([found, UNKNOWN])
            found = resolve(frame, frame.module, found) if type(found) is Name or _may_be_name(found) else found
            return elsewhere.as_written(frame, node, found)
    found = lookup(frame, node.id)
    if frame.outer and elsewhere.rebinds(frame, node):
        found = union([found, UNKNOWN])
    return elsewhere.as_written(frame, node, found)


def _may_be_name(value: Value) -> bool:
    return type(value) is Union and any(type(member) is Name for member in value.alternatives)


def lookup(frame: Frame, name: str) -> Value:
    """The value of a plain name here."""
    found = frame.get(name)
    if found is not None:
        return resolve(frame, frame.module, found)
    return global_name(frame, frame.module, name)


def _attribute(frame: Frame, node: ast.Attribute) -> Value:
    receiver = evaluate(frame, node.value)
    if frame.names is not None and frame.rooted:
        path = path_of(node)
        if path and path in frame.names:
            found = frame.names[path]
            if elsewhere.sets_without_call(frame, node.attr):
                found = union([found, UNKNOWN])
            if frame.ran > frame.bound_at.get(path, 0) and elsewhere.sets_attribute(frame, node.attr):
                # It has any of the values that the project gives it by then.
                found = union([found, attributes.attribute(frame, receiver, node.attr)])
            return elsewhere.as_written(frame, node, attributes.as_seen(frame, found))
    found = attributes.attribute(frame, receiver, node.attr)
    found = elsewhere.beside_outside(frame, receiver, node.attr, found)
    return union([found, UNKNOWN]) if elsewhere.sets_captured(frame, node.attr) else found


# Operators


def _binary(frame: Frame, node: ast.BinOp) -> Value:
    left, right = evaluate(frame, node.left), evaluate(frame, node.right)
    if isinstance(node.op, ast.BitOr) and isinstance(left if left != NONE else right, _TYPES):
        return spelled(frame, node)
    return binary(left, node.op, right)


_TYPES = (Name, Class, TypeForm)


def _unary(frame: Frame, node: ast.UnaryOp) -> Value:
    value = evaluate(frame, node.operand)
    if isinstance(node.op, ast.Not):
        return Const(not value.value) if isinstance(value, Const) else BOOL
    tensor = value.tensor
    if tensor is not None:
        return tensor.with_(leaf="")
    if isinstance(value, Const) and isinstance(value.value, (int, float)) and isinstance(node.op, ast.USub):
        return Const(-value.value)
    return value if isinstance(value, (Scalar, Array, Unknown)) else UNKNOWN


def _boolean(frame: Frame, node: ast.BoolOp) -> Value:
    is_and = isinstance(node.op, ast.And)
    before = frame.names
    values: list[Value] = []
    for index, operand in enumerate(node.values):
        value = evaluate(frame, operand)
        if isinstance(value, Const) and bool(value.value) is not is_and and frame.recorder is None:
            values.append(value)
            break
        last = index == len(node.values) - 1
        values.append(value if last else _after_test(value, is_and))
        if not last:
            frame.names = narrow(frame, operand, frame.names, is_and)
    # Narrowing and bindings by an operand hold only if the operand was evaluated.
    binds = ast.NamedExpr in frame.module.structure.nodes
    frame.names = join_names(before, frame.names) if binds and any(map(_binds, node.values)) else before
    return union(values)


def _after_test(value: Value, is_and: bool) -> Value:
    """The values that a non-final operand may have as the result: falsy for `and`, truthy for `or`."""
    if is_and:
        kept = [m for m in value.members if not isinstance(m, (Instance, Sequence, Mapping, Name))]
        return union(kept)
    return union(member for member in value.members if member != NONE and member != Const(False))


def _binds(node: ast.expr) -> bool:
    return any(isinstance(child, ast.NamedExpr) for child in ast.walk(node))


_COMPARES_VALUES = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _compare(frame: Frame, node: ast.Compare) -> Value:
    values = [evaluate(frame, node.left)]
    values += [evaluate(frame, comparator) for comparator in node.comparators]
    if _is_local(frame, node.left) and len(node.ops) == 1:
        decided = _compared_texts(node.ops[0], *values)
        if decided is not None:
            return Const(decided)
    if len(node.ops) == 1 and isinstance(node.ops[0], _COMPARES_VALUES):
        left, right = map(as_operand, values)
        if _compares_identity(left, right, node.ops[0]):
            return BOOL
        if left.tensor is not None or right.tensor is not None:
            result = tensor_operation(left, right, ast.BitAnd)
            return union(
                m.with_(kind=Kind.BOOL, leaf="") if isinstance(m, Tensor) else BOOL if scalar_type(m) else m
                for m in result.members
            )
        if isinstance(left, Array) or isinstance(right, Array):
            return Array(Kind.BOOL, arrays.combined(left, right, ast.BitAnd).rank)
        if left.is_open or right.is_open:
            return made_of(values)
    if len(node.ops) == 1 and values[1] == NONE and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        is_none = _is_none(values[0])
        return BOOL if is_none is None else Const(is_none is isinstance(node.ops[0], ast.Is))
    return BOOL


def _is_local(frame: Frame, node: ast.expr) -> bool:
    """True if a node is a name that a call which is followed binds: its value is that of this call."""
    return frame.recorder is None and isinstance(node, ast.Name) and node.id in (frame.names or ())


def _compared_texts(op: ast.cmpop, left: Value, right: Value) -> bool | None:
    """The outcome of the comparison of a text with another, or with several; None if it is not known."""
    if not isinstance(left, Const) or not isinstance(left.value, str):
        return None
    if isinstance(op, (ast.Eq, ast.NotEq)) and isinstance(right, Const):
        return (left == right) is isinstance(op, ast.Eq)
    if isinstance(op, (ast.In, ast.NotIn)) and isinstance(right, Sequence) and right.items is not None:
        if all(isinstance(item, Const) for item in right.items):
            return (left in right.items) is isinstance(op, ast.In)
    return None


def _is_none(value: Value) -> bool | None:
    """True if a value is None, None if that is unknown."""
    if value == NONE:
        return True
    sure = (
        member.evidence >= Evidence.ANNOTATION if isinstance(member, Tensor) else not isinstance(member, Unknown)
        for member in value.members
    )
    return False if NONE not in value.members and value.members and all(sure) else None


def _compares_identity(left: Value, right: Value, op: ast.cmpop) -> bool:
    """True for a comparison with text or None, such as `x == "auto"`, which is not meant element by element."""
    if not isinstance(op, (ast.Eq, ast.NotEq)):
        return False
    return any(scalar_type(value) in ("str", "None") for value in (left, right))


def _conditional(frame: Frame, node: ast.IfExp) -> Value:
    test = evaluate(frame, node.test)
    before = frame.names
    frame.names = narrow(frame, node.test, before, True)
    yes = evaluate(frame, node.body)
    after, frame.names = frame.names, narrow(frame, node.test, before, False)
    no = evaluate(frame, node.orelse)
    binds = ast.NamedExpr in frame.module.structure.nodes and any(map(_binds, (node.body, node.orelse)))
    frame.names = join_names(after, frame.names) if binds else before
    if isinstance(test, Const) and frame.recorder is None:
        return yes if test.value else no
    if _is_false_in_eager_code(frame, node.test):
        return no
    joined = join(yes, no)
    for branch, moved, stays in ((node.body, yes, no), (node.orelse, no, yes)):
        if isinstance(branch, ast.Call):
            joined = by_setting(moved, stays, joined)
    return joined


def _is_false_in_eager_code(frame: Frame, test: ast.expr) -> bool:
    """True for `torch.jit.is_tracing()`, also with a further condition."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_is_false_in_eager_code(frame, part) for part in test.values)
    if not isinstance(test, ast.Call) or last_name(test) not in _FALSE_IN_EAGER_CODE:
        return False
    callee = evaluate(frame, test.func)
    return isinstance(callee, Name) and callee.name.startswith(("torch.jit.", "torch.onnx."))


_FALSE_IN_EAGER_CODE = frozenset({"is_tracing", "is_scripting", "is_in_onnx_export"})


def _named(frame: Frame, node: ast.NamedExpr) -> Value:
    value = evaluate(frame, node.value)
    assign(frame, node.target, value)
    return value


# Displays and comprehensions


def _elements(frame: Frame, elements: list[ast.expr], kind: str) -> Value:
    values: list[Value] = []
    exact = len(elements) <= MOST_KEYS
    element: Value = NEVER
    for node in elements:
        if isinstance(node, ast.Starred):
            inner = evaluate(frame, node.value)
            if isinstance(inner, Sequence) and inner.items is not None:
                values += inner.items
            else:
                exact = False
            element = join(element, iterate(frame, inner))
            continue
        value = evaluate(frame, node)
        element = join(element, value)
        values.append(value)
    return Sequence(kind, element, tuple(values) if exact else None)


def _list(frame: Frame, node: ast.List) -> Value:
    return _elements(frame, node.elts, "list")


def _tuple(frame: Frame, node: ast.Tuple) -> Value:
    return _elements(frame, node.elts, "tuple")


def _set(frame: Frame, node: ast.Set) -> Value:
    return _elements(frame, node.elts, "set")


def _dict(frame: Frame, node: ast.Dict) -> Value:
    element: Value = NEVER
    items: dict[str, Value] = {}
    for key, value_node in zip(node.keys, node.values, strict=True):
        value = evaluate(frame, value_node)
        if key is None:
            if isinstance(value, Mapping):
                items.update(value.items)
                element = join(element, value.element)
            continue
        evaluate(frame, key)
        element = join(element, value)
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            if len(items) < MOST_KEYS or key.value in items:
                items[key.value] = value
    return Mapping(element, tuple(items.items()))


_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


def _comprehension(frame: Frame, node: _Comprehension, body: Callable[[], Value]) -> Value:
    before = frame.names
    frame.names = dict(before) if before is not None else None
    for generator in node.generators:
        iterable = batch_loops.iterated(node, generator.target, generator.iter, evaluate(frame, generator.iter))
        assign(frame, generator.target, iterate(frame, iterable))
        for condition in generator.ifs:
            evaluate(frame, condition)
            frame.names = narrow(frame, condition, frame.names, True)
    value = body()
    if before is not None and frame.names is not None and ast.NamedExpr in frame.module.structure.nodes:
        # `:=` binds in the function around.
        for inner in walk(node):
            if isinstance(inner, ast.NamedExpr):
                before[inner.target.id] = frame.names.get(inner.target.id, UNKNOWN)
    frame.names = before
    return value


def _list_comprehension(frame: Frame, node: ast.ListComp) -> Value:
    return Sequence("list", _comprehension(frame, node, lambda: evaluate(frame, node.elt)))


def _set_comprehension(frame: Frame, node: ast.SetComp) -> Value:
    return Sequence("set", _comprehension(frame, node, lambda: evaluate(frame, node.elt)))


def _generator(frame: Frame, node: ast.GeneratorExp) -> Value:
    return Sequence("iterator", _comprehension(frame, node, lambda: evaluate(frame, node.elt)))


def _dict_comprehension(frame: Frame, node: ast.DictComp) -> Value:
    def body() -> Value:
        evaluate(frame, node.key)
        return evaluate(frame, node.value)

    return Mapping(_comprehension(frame, node, body))


# Subscripts


def _subscript(frame: Frame, node: ast.Subscript) -> Value:
    receiver = evaluate(frame, node.value)
    index = index_into(frame, receiver, node)
    receiver = as_indexed(frame, node, receiver, index)
    if frame.narrowed and frame.names is not None:
        told = frame.names.get(narrowed.place_of(node))
        if told is not None:
            return told
    if isinstance(receiver, _TYPES):
        return _parametrized(frame, node, receiver)
    return item(frame, receiver, index, node.slice)


def _parametrized(frame: Frame, node: ast.Subscript, base: Name | Class | TypeForm) -> Value:
    """`tuple[int, str]`; a member of an enumeration; anything of a name outside the project."""
    if isinstance(base, Class) and is_enumeration(frame, base.name):
        return Instance(base.name)
    if isinstance(base, Name) and not base.name.startswith(("typing.", "builtins.", "collections.", "typing_ext")):
        return base
    return spelled(frame, node, base.base if isinstance(base, TypeForm) else base)


def _slice(frame: Frame, node: ast.Slice) -> Value:
    for part in (node.lower, node.upper, node.step):
        if part is not None:
            evaluate(frame, part)
    return Name("builtins.slice")


# The rest


def _joined_string(frame: Frame, node: ast.JoinedStr) -> Value:
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            evaluate(frame, part.value)
            if part.format_spec is not None:
                evaluate(frame, part.format_spec)
    first = node.values[0] if node.values else None
    begin = Const(first.value) if isinstance(first, ast.Constant) else UNKNOWN
    return begin if names_gpu(begin) else STR


def _lambda(frame: Frame, node: ast.Lambda) -> Value:
    for default in (*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)):
        evaluate(frame, default)
    close_over(frame, node)
    return function_value(frame.module, node, frame)


def close_over(frame: Frame, node: FunctionNode) -> None:
    """Keep the names that a function sees of those around it, for its methods and for its run without callers."""
    info = frame.module.defined_by(node)
    found = {name: frame.get(name) for name in info.names} if info is not None else {}
    seen = {name: value for name, value in found.items() if value}
    closures = frame.view.state(frame.module).closures
    known = closures.get((node.lineno, node.col_offset), {})
    closures[node.lineno, node.col_offset] = seen if frame.recorder is not None else {**seen, **known}


def _yield(frame: Frame, node: ast.Yield) -> Value:
    frame.yields.append(NONE if node.value is None else evaluate(frame, node.value))
    frame.ran += 1
    return UNKNOWN


def _yield_from(frame: Frame, node: ast.YieldFrom) -> Value:
    frame.yields.append(iterate(frame, evaluate(frame, node.value)))
    frame.ran += 1
    return UNKNOWN


def _await(frame: Frame, node: ast.Await) -> Value:
    frame.ran += 1
    return evaluate(frame, node.value)


def _starred(frame: Frame, node: ast.Starred) -> Value:
    return evaluate(frame, node.value)


_EXPRESSIONS: dict[type[ast.expr], Callable[[Frame, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: calls.call,
    ast.Subscript: _subscript,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.NamedExpr: _named,
    ast.List: _list,
    ast.Tuple: _tuple,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.ListComp: _list_comprehension,
    ast.SetComp: _set_comprehension,
    ast.GeneratorExp: _generator,
    ast.DictComp: _dict_comprehension,
    ast.Slice: _slice,
    ast.JoinedStr: _joined_string,
    ast.Lambda: _lambda,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Await: _await,
    ast.Starred: _starred,
}


parts.evaluate = evaluate
