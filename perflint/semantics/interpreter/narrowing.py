"""Facts about the names in a test, if it is true and if it is false."""

from __future__ import annotations

import ast
from typing import TypeGuard

from perflint.semantics.interpreter import device_tests
from perflint.semantics.interpreter.annotations import annotated
from perflint.semantics.interpreter.frame import Frame, Names
from perflint.semantics.interpreter.lineage import facts_of, lineage
from perflint.semantics.interpreter.narrowed import current, refine
from perflint.semantics.lattice import union, without
from perflint.semantics.values import (
    NONE,
    UNKNOWN,
    Class,
    Const,
    Device,
    Evidence,
    Function,
    Instance,
    Kind,
    Mapping,
    Name,
    Sequence,
    Tensor,
    Union,
    Unknown,
    Value,
    scalar_type,
)


def narrow(frame: Frame, test: ast.expr, names: Names | None, truth: bool) -> Names | None:
    """A copy of `names` in which `test` is known to be `truth`."""
    if names is None:
        return None
    narrowed = dict(names)
    _narrow(frame, test, narrowed, truth)
    return narrowed


def _narrow(frame: Frame, test: ast.expr, names: Names, truth: bool) -> None:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        _narrow(frame, test.operand, names, not truth)
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) is truth:
            for operand in test.values:
                _narrow(frame, operand, names, truth)
    elif isinstance(test, ast.NamedExpr):
        _narrow(frame, test.target, names, truth)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        _compare(frame, test, names, truth)
    elif isinstance(test, ast.Call):
        _call(frame, test, names, truth)
    elif isinstance(test, (ast.Name, ast.Attribute)):
        if isinstance(test, ast.Attribute) and test.attr in ("is_cuda", "is_cpu"):
            device = Device.CUDA if (test.attr == "is_cuda") is truth else Device.CPU
            device_tests.put(frame, test.value, names, device)
        if truth:
            refine(frame, test, names, lambda value: without(value, NONE))


def _compare(frame: Frame, test: ast.Compare, names: Names, truth: bool) -> None:
    operator, right = test.ops[0], test.comparators[0]
    if isinstance(right, ast.Constant) and right.value is None:
        is_none = isinstance(operator, (ast.Is, ast.Eq)) is truth
        if isinstance(operator, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
            if is_none:
                refine(frame, test.left, names, lambda value: NONE)
            else:
                refine(frame, test.left, names, lambda value: without(value, NONE))
    elif device_tests.narrow(frame, test, names, truth):
        return
    elif isinstance(operator, _SAME_TYPE if truth else _OTHER_TYPE) and _asks_type(test.left, frame, names):
        # `type(x) is torch.Tensor`; if it is not, it may be a subclass.
        _isinstance(frame, test.left.args[0], right, names, True)
    elif isinstance(right, ast.Constant) and isinstance(test.left, ast.Attribute) and isinstance(operator, _EQUALITY):
        # `activation.__name__ == "relu"`: where it may be one of several functions, it is the one of that name.
        attribute, is_same = test.left, isinstance(operator, ast.Eq) is truth
        refine(
            frame, attribute.value, names, lambda value: _with_attribute(frame, value, attribute.attr, right, is_same)
        )
    elif isinstance(right, ast.Constant) and isinstance(right.value, str) and isinstance(operator, ast.Eq) and truth:
        # `mode == "auto"`: there, it is that text and no tensor.
        refine(frame, test.left, names, lambda value: Const(right.value) if value.tensor is not None else value)


def _with_attribute(frame: Frame, value: Value, name: str, wanted: ast.Constant, is_same: bool) -> Value:
    """The members of a value without the functions whose attribute is not equal to a constant, or is equal to it."""
    found = [frame.attribute(member, name) if isinstance(member, Function) else None for member in value.members]
    kept = [
        member
        for member, known in zip(value.members, found, strict=True)
        if not isinstance(known, Const) or (known.value == wanted.value) is is_same
    ]
    if len(kept) == len(found):
        return value
    return union(kept) if kept else UNKNOWN


_EQUALITY = (ast.Eq, ast.NotEq)
_SAME_TYPE = (ast.Eq, ast.Is, ast.In)
_OTHER_TYPE = (ast.NotEq, ast.IsNot, ast.NotIn)


def _asks_type(node: ast.expr, frame: Frame, names: Names) -> TypeGuard[ast.Call]:
    """True for `type(x)`."""
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return False
    return current(frame, node.func, names) in (Name("builtins.type"), Class("builtins.type"))


def _call(frame: Frame, test: ast.Call, names: Names, truth: bool) -> None:
    if not test.args:
        return
    callee = current(frame, test.func, names)
    name = callee.name if isinstance(callee, Name) else ""
    if name in ("torch.is_tensor", "torch.overrides.is_tensor_like"):
        refine(frame, test.args[0], names, lambda value: _is_tensor(value, truth))
    elif name == "builtins.isinstance" and len(test.args) == 2:
        _isinstance(frame, test.args[0], test.args[1], names, truth)
    elif name in ("builtins.callable", "numpy.isscalar") and truth:
        refine(frame, test.args[0], names, _no_tensor)


def _no_tensor(value: Value) -> Value:
    kept = [member for member in value.members if not isinstance(member, Tensor)]
    return union(kept) if kept else UNKNOWN


def _is_tensor(value: Value, truth: bool) -> Value:
    if not truth:
        return _no_tensor(_opened(value))
    value = union(_as_wanted(member, [_ANY_TENSOR]) for member in value.members)
    tensor = value.tensor
    if tensor is not None:
        return tensor if tensor.evidence >= Evidence.ANNOTATION else tensor.with_(evidence=Evidence.ANNOTATION)
    return Tensor(Device.CALLER, evidence=Evidence.ANNOTATION) if value.is_open else value


def _isinstance(frame: Frame, node: ast.expr, types: ast.expr, names: Names, truth: bool) -> None:
    parts = types.elts if isinstance(types, ast.Tuple) else [types]
    wanted = [annotated(frame, part) for part in parts]
    if any(isinstance(member, Unknown) for member in wanted):
        if truth and not any(w.tensor for w in wanted):
            # A type that is not known, but no tensor.
            refine(frame, node, names, _no_tensor)
        return

    if not truth and any(current(frame, part, names) == Name("torch.Tensor") for part in parts):
        refine(frame, node, names, lambda value: _no_tensor(of_types(frame, _opened(value), wanted, False)))
    else:
        refine(frame, node, names, lambda value: of_types(frame, value, wanted, truth))


_ANY_TENSOR = Tensor()


def _opened(value: Value) -> Value:
    """A value in which a batch is a list, a tuple or a dict, and no tensor."""
    return union(
        union([Sequence("list", member.element), Mapping(member.element)])
        if isinstance(member, Sequence) and member.type == "batch"
        else member
        for member in value.members
    )


def _as_wanted(value: Value, wanted: list[Value]) -> Value:
    """A value in which a batch has the type that a test asks for: a tensor, a list or a dict of tensors."""
    element = value.element if isinstance(value, Sequence) and value.type == "batch" else None
    if element is None:
        return value
    made: list[Value] = []
    for new in wanted:
        if isinstance(new, Sequence):
            made.append(Sequence(new.type, element))
        elif isinstance(new, (Mapping, Tensor)):
            made.append(Mapping(element) if isinstance(new, Mapping) else element)
    return union(made) if len(made) == len(wanted) else value


def of_types(frame: Frame, value: Value, wanted: list[Value], truth: bool) -> Value:
    """The value of an object that has one of some types, or, if `truth` is False, none of them."""
    if truth:
        value = union(_as_wanted(member, wanted) for member in value.members)
    kept = [member for member in value.members if any(_matches(frame, member, w) for w in wanted) is truth]
    if truth:
        # An object of a base class may be one of the wanted class.
        kept += [w for w in wanted if w not in kept and any(_is_base(frame, member, w) for member in value.members)]
    if truth and value.is_open:
        kept = [member for member in kept if not isinstance(member, Unknown)]
        kept += [_filled(w, value) for w in wanted if not any(_matches(frame, member, w) for member in kept)]
    if not truth and isinstance(value, Unknown):
        return value
    if not truth and not kept and all(isinstance(each, Instance) and each.arguments is None for each in value.members):
        # No call made it: it has its type by how it is used elsewhere, or by an annotation.
        return UNKNOWN
    if truth and not kept and value.tensor is not None:
        # It is not a tensor after all: its annotation or its use was incomplete.
        is_part = value.tensor.evidence is Evidence.CONVENTION
        kept = [_filled(each, value.tensor) for each in wanted] if is_part else list(wanted)
    narrowed = union(kept)
    if truth and isinstance(narrowed, Tensor) and len(wanted) == 1 and isinstance(wanted[0], Tensor):
        narrowed = _as_declared(narrowed, wanted[0])
    if not isinstance(narrowed, Tensor):
        return narrowed
    is_option = any(not isinstance(member, Tensor) and member != NONE for member in value.members)
    if is_option and narrowed.device is Device.CALLER:
        # A function that also takes numbers, lists or arrays rarely gets a GPU tensor.
        return narrowed.with_(evidence=Evidence.USE)
    return _is_tensor(narrowed, True) if truth else narrowed


def _filled(wanted: Value, value: Value) -> Value:
    """A container that a test asks for; its elements are as the tested value: unknown, or parts of a batch."""
    element = value.members[-1]
    if isinstance(wanted, Mapping) and wanted == Mapping():
        return Mapping(element)
    return Sequence(wanted.type, element) if isinstance(wanted, Sequence) and wanted.element == UNKNOWN else wanted


def _as_declared(tensor: Tensor, wanted: Tensor) -> Tensor:
    """A tensor of a class of tensors: a parameter, a tensor of one kind."""
    kind = tensor.kind if wanted.kind is Kind.UNKNOWN else wanted.kind
    return tensor.with_(kind=kind, leaf=wanted.leaf or tensor.leaf)


def _matches(frame: Frame, member: Value, wanted: Value) -> bool:
    if isinstance(wanted, Union):
        return any(_matches(frame, member, w) for w in wanted.members)
    if isinstance(member, Instance) and isinstance(wanted, Instance):
        if wanted.cls in lineage(frame, member.cls):
            return True
        # The bases of classes of other libraries are not all known.
        return facts_of(frame, member.cls) is None or facts_of(frame, wanted.cls) is None
    if isinstance(member, Instance) and isinstance(wanted, Class):
        return True
    if isinstance(member, Sequence) and isinstance(wanted, Sequence):
        return member.type == wanted.type or wanted.type == "list" or member.type == "size"
    if scalar_type(wanted):
        return scalar_type(member) == scalar_type(wanted) or (
            scalar_type(wanted) == "int" and scalar_type(member) == "bool"
        )
    return type(member) is type(wanted)


def _is_base(frame: Frame, member: Value, wanted: Value) -> bool:
    """True for an object of a base class of the wanted one."""
    if not isinstance(member, Instance) or not isinstance(wanted, Instance) or member.cls == wanted.cls:
        return False
    return member.cls in lineage(frame, wanted.cls)
