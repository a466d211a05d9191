"""Methods that move an object to a device: `to` of a class of the project."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from perflint.semantics.facts.conventions import is_device, is_on_cpu
from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.interpreter.lineage import info_of, is_module, lineage
from perflint.semantics.lattice import union
from perflint.semantics.structure import ClassInfo, FunctionInfo, FunctionNode, last_name, path_of, walk
from perflint.semantics.values import Device, Mapping, Sequence, Tensor, Union, Value

_MOVERS = ("to", "cuda", "to_device", "move_to", "move_to_device")
"""Names of methods that move their object."""
_ALL_OF_IT = frozenset({"setattr", "vars", "__dict__", "__slots__"})
"""Names by which a method reaches all attributes of an object."""


def moves(frame: Frame, cls: str, name: str) -> bool:
    """True if `to` of a class that is not a module may make the object anew on another device, with this attribute."""
    movers = frame.view.memory.movers
    kept = frame.view.memory.remembered(movers, cls, partial(_kept_by_move, frame, cls), None)
    return kept is not None and name not in kept


def _kept_by_move(frame: Frame, cls: str) -> frozenset[str] | None:
    """The attributes that the `to` of a class assigns; None if no `to` makes the object anew."""
    for info, method in _movers(frame, cls):
        if _makes_anew(method.node):
            return frozenset(held for held, methods in info.assigned_in.items() if method in methods)
    return None


def _movers(frame: Frame, cls: str) -> Iterator[tuple[ClassInfo, FunctionInfo]]:
    """The methods of a class that move an object to a device, each with the class of it; none for modules."""
    if is_module(frame, cls):
        return
    for base in lineage(frame, cls):
        info = info_of(frame, base)
        if info is not None:
            found = (info.methods.get(name) for name in _MOVERS)
            yield from ((info, method) for method in found if method is not None and _goes_elsewhere(method.node))


def _goes_elsewhere(node: FunctionNode) -> bool:
    """True if a method moves its object: it is given a device at most, and no tensor to move."""
    given = [*node.args.posonlyargs, *node.args.args][1:]
    return not given or bool(is_device(given[0].arg)) or given[0].arg in ("dev", "args")


def _makes_anew(node: FunctionNode) -> bool:
    """True if a method returns another object, or may replace all attributes of its own."""
    for inner in walk(node):
        if isinstance(inner, ast.Return) and inner.value is not None:
            if path_of(inner.value) != "self" and not isinstance(inner.value, ast.Constant):
                return True
        if isinstance(inner, (ast.Name, ast.Attribute)) and path_of(inner).rpartition(".")[2] in _ALL_OF_IT:
            return True
    return False


def anywhere(value: Value) -> Value:
    """A value whose tensors on the CPU may have been moved, or made anew elsewhere."""
    if isinstance(value, Tensor) and value.device is Device.CPU:
        return value.with_(device=Device.UNKNOWN, place="", pinned=False)
    if isinstance(value, Sequence):
        items = None if value.items is None else tuple(map(anywhere, value.items))
        return Sequence(value.type, anywhere(value.element), items)
    if isinstance(value, Mapping):
        return Mapping(anywhere(value.element), tuple([(key, anywhere(held)) for key, held in value.items]))
    return union(map(anywhere, value.members)) if isinstance(value, Union) else value


def leaves(frame: Frame, cls: str, name: str) -> bool:
    """True if the `to` of a class that is not a module leaves an attribute where it was, which is the CPU.

    It passes the attribute as it is, `Batch(self.x.to(device), lengths=self.lengths)`, or lists its name:
    `cpu_fields = {"lengths"}`.
    """
    known = frame.view.memory.left_behind
    return name in frame.view.memory.remembered(known, cls, partial(_left_behind, frame, cls), frozenset())


def _left_behind(frame: Frame, cls: str) -> frozenset[str]:
    """The attributes that the first `to` of a class and its bases leaves where they were."""
    for _, method in _movers(frame, cls):
        return frozenset((*_passed_on(method.node), *_listed(method.node)))
    return frozenset()


def _passed_on(node: FunctionNode) -> Iterator[str]:
    """The attributes that a method passes unmoved to a new object, beside moved ones."""
    for outer in walk(node):
        made = outer.value if isinstance(outer, ast.Return) else None
        if isinstance(made, ast.Call):
            given = [*made.args, *(each.value for each in made.keywords)]
            if any(isinstance(each, ast.Call) and last_name(each) in _MOVERS for each in given):
                paths = (path_of(each) for each in given if isinstance(each, ast.Attribute))
                yield from (path[5:] for path in paths if path.startswith("self.") and "." not in path[5:])


def _listed(node: FunctionNode) -> Iterator[str]:
    """The strings in collections whose names mention the CPU."""
    for inner in walk(node):
        if isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Name) and is_on_cpu(inner.targets[0].id):
            texts = (each.value for each in walk(inner.value) if isinstance(each, ast.Constant))
            yield from (text for text in texts if isinstance(text, str))
