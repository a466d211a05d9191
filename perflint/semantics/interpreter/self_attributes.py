"""Attributes that methods set on `self`: by assignment, by registering, by names that they are given."""

from __future__ import annotations

import ast
from functools import partial

from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.interpreter import functions
from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.interpreter.lineage import facts_of, lineage
from perflint.semantics.interpreter.members import bound
from perflint.semantics.structure import CONSTRUCTORS, Structure, block_in, path_of, place_in, walk
from perflint.semantics.values import Device, Evidence, Function, Instance, Tensor, Value


def note_attribute(frame: Frame, cls: str, name: str, value: Value, is_own: bool = True) -> None:
    """Remember the value that code assigns to an attribute of an object of a class, of `self` if it `is_own`.

    Methods run for the sake of their attributes. A function that runs by itself, which is recorded, adds nothing to
    them: it knows less of the arguments.
    """
    facts = facts_of(frame, cls)
    if facts is not None and (frame.recorder is None or frame.function is None):
        frame.view.memory.store(facts, name, value, is_own and _is_constructor(frame))


def _is_constructor(frame: Frame) -> bool:
    return frame.function is not None and frame.function.name in CONSTRUCTORS


def is_passing(frame: Frame, target: ast.Attribute) -> bool:
    """True if other methods do not see the value of an assignment: its block assigns the attribute again.

    `self.table = make().to(device)`, then `self.table = self.table.cpu()`.
    """
    structure = frame.module.structure
    known = structure.passing.get(target)
    if known is None:
        known = structure.passing[target] = _is_replaced(structure, target)
    return known


def _is_replaced(structure: Structure, target: ast.Attribute) -> bool:
    statement = structure.parents.get(target)
    block = block_in(structure.parents.get(statement), statement) if isinstance(statement, ast.Assign) else []
    at = None if statement is None else place_in(block, statement)
    later = [] if at is None else block[at + 1 : at + 1 + _LONGEST_GAP]
    for index, other in enumerate(later):
        if isinstance(other, ast.Assign) and any(path_of(each) == path_of(target) for each in other.targets):
            return not any(_shows(structure, node, target.attr) for each in later[:index] for node in walk(each))
    return False


_LONGEST_GAP = 64
"""Statements after an assignment among which another one to the same attribute is looked for."""


def _shows(structure: Structure, node: ast.AST, name: str) -> bool:
    """True if a node leaves the function, or calls a method of the file that reads an attribute of `self`."""
    if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)):
        return True
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    methods = structure.methods.get(node.func.attr, ())
    return any(name in method.uses.get("self", ()) for method in methods)


def set_attribute(frame: Frame, receiver: Value, name: str, value: Value) -> None:
    """Set an attribute of `self` by its name; "layer_*" stands for all that begin so."""
    if not frame.owner or receiver != frame.receiver:
        return
    note_attribute(frame, frame.owner, name, value)
    _note_named(frame, name, value)
    if frame.names is not None and not name.endswith("*"):
        frame.bind_path(frame.names, f"self.{name}", value)


def assigned(frame: Frame, target: ast.expr) -> Value | None:
    """The value of an attribute of `self` so far; None for other targets."""
    facts = facts_of(frame, frame.owner)
    if facts is None or not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
        return None
    return frame.view.memory.read(facts, target.attr) if target.value.id == "self" else None


def forget_declared(frame: Frame, receiver: Instance, name: str) -> None:
    """Forget the value that `self.x: Tensor` alone gives an attribute: the registered value is more exact."""
    facts = facts_of(frame, frame.owner)
    if facts is not None and receiver == frame.receiver:
        frame.view.memory.take_back(facts, name, _DECLARED)


_DECLARED = Tensor(Device.CALLER, evidence=Evidence.ANNOTATION)


def _note_named(frame: Frame, name: str, value: Value) -> None:
    """Remember the value of an attribute of `self` whose name is an argument: only for the class of this object."""
    receiver = frame.receiver
    facts = facts_of(frame, receiver.cls) if isinstance(receiver, Instance) else None
    if facts is not None:
        frame.view.memory.store(facts, name, value, _is_constructor(frame))


def set_by_name(frame: Frame, value: Instance, name: str) -> Value | None:
    """An attribute that a method sets by a name that it is given; None if no class does so."""
    facts = facts_of(frame, value.cls)
    constructor = _constructor(frame, value.cls)
    if facts is None or constructor is None:
        return None
    if "__init__" not in facts.methods_run:
        facts.methods_run.add("__init__")
        asker = Frame(frame.view, frame.module, frame.budget, names={})
        with frame.view.memory.run(("names", value.cls)):
            functions.activate(asker, bound(constructor, value), Arguments(unpacked=True))
    return frame.view.memory.read(facts, name)


def _constructor(frame: Frame, cls: str) -> Function | None:
    """The constructor of a class, one of whose bases sets attributes by names that it is given."""
    known = frame.view.memory.constructors
    return frame.view.memory.remembered(known, cls, partial(_find_constructor, frame, cls), None)


def _find_constructor(frame: Frame, cls: str) -> Function | None:
    sets, found = False, None
    for base in lineage(frame, cls):
        facts = facts_of(frame, base)
        module = frame.view.loaded(facts.module) if facts is not None else None
        info = module.klass(facts.qualname) if module is not None and facts is not None else None
        if module is None or info is None:
            continue
        sets = sets or "*" in info.assigned_in
        init = info.methods.get("__init__")
        if init is not None and found is None:
            found = Function(module.name, init.qualname, init.node.lineno, init.node.col_offset, base)
    return found if sets else None
