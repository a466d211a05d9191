"""The members of classes of the project and of their objects: methods, attributes, class bodies, enumerations."""

from __future__ import annotations

import ast
from functools import partial

from perflint.frozen import replace
from perflint.semantics.facts import libraries
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.interpreter import constructions, functions
from perflint.semantics.interpreter.annotations import annotated
from perflint.semantics.interpreter.frame import Frame, Names, parts
from perflint.semantics.interpreter.lineage import (
    decorator_names,
    derived,
    facts_of,
    info_of,
    is_closed,
    is_enumeration,
    is_property,
    lineage,
)
from perflint.semantics.interpreter.memory import AttributeRun, ClassFacts
from perflint.semantics.interpreter.moves import anywhere, moves
from perflint.semantics.interpreter.resolve import class_at, resolve
from perflint.semantics.interpreter.settled import by_code
from perflint.semantics.lattice import join, union
from perflint.semantics.module import Module
from perflint.semantics.structure import CONSTRUCTORS, ClassInfo, FunctionInfo
from perflint.semantics.values import (
    NEVER,
    NONE,
    UNKNOWN,
    Class,
    Const,
    Evidence,
    Function,
    Instance,
    Scalar,
    Tensor,
    Union,
    Unknown,
    Value,
    scalar_type,
)


def member(
    frame: Frame, value: Instance, name: str, *, order: tuple[str, ...] | None = None, bind: bool = True
) -> Value | None:
    """The value of a name in an object's class or its nearest base; None if none has it."""
    given = value.argument(name) is not None
    for cls in order if order is not None else lineage(frame, value.cls):
        facts = facts_of(frame, cls)
        if facts is not None and name in facts.lacks and not given:
            continue
        found = (
            libraries.attribute(cls, value, name) if facts is None else _own_attribute(frame, facts, value, name, bind)
        )
        if found is not None:
            return found
    return None


def binds(frame: Frame, value: Instance, name: str) -> bool:
    """True if the class of an object, or a base, has an attribute by its own code: other code only replaces it."""
    for cls in lineage(frame, value.cls):
        info = info_of(frame, cls)
        if info is None:
            if libraries.attribute(cls, value, name) is not None:
                return True
        elif name in info.methods or name in info.assigned_in or info.patterns or name in body_of(frame, cls):
            return True
    return False


def _own_attribute(frame: Frame, facts: ClassFacts, value: Instance, name: str, bind: bool) -> Value | None:
    module = frame.view.loaded(facts.module)
    info = module.klass(facts.qualname) if module is not None else None
    if module is None or info is None:
        return None
    method = info.methods.get(name)
    if method is not None:
        return _method(frame, module, facts, method, value if bind else None)
    given = value.argument(name)
    if given is not None and not info.methods.get("__init__"):
        return given
    known = name
    if info.patterns and name not in info.assigned_in:
        known = next((pattern for pattern in info.patterns if name.startswith(pattern[:-1])), name)
    if known in info.assigned_in:
        _run_methods(frame, facts, info, known)
    # Code outside of the class may set it, too.
    held = frame.view.memory.read(facts, known)
    if held is not None and not held.is_unknown:
        return anywhere(held) if moves(frame, value.cls, known) else held
    inner = module.klass(f"{facts.qualname}.{name}")
    if inner is not None:
        return class_at(frame.view, module, inner.node)
    # The assigned value may be unknown although the body declares its type.
    found = body_of(frame, facts.name).get(name, held)
    if found is None and known not in info.assigned_in and facts.name in frame.view.memory.bodies:
        facts.lacks.add(name)
    return found


def _method(frame: Frame, module: Module, facts: ClassFacts, method: FunctionInfo, receiver: Value | None) -> Value:
    node = method.node
    function = Function(module.name, method.qualname, node.lineno, node.col_offset, facts.name)
    decorators = decorator_names(node)
    if decorators & {"property", "cached_property"} and receiver is not None:
        return functions.invoke(frame, bound(function, receiver), Arguments())
    if "staticmethod" in decorators:
        return function
    if "classmethod" in decorators:
        return bound(function, Class(facts.name) if not isinstance(receiver, Instance) else Class(receiver.cls))
    return function if receiver is None else bound(function, receiver)


def bound(function: Function, receiver: Value) -> Function:
    """A method bound to its object; which call made the object does not matter to its methods."""
    if isinstance(receiver, Instance):
        receiver = Instance(receiver.cls)
    return replace(function, receiver=receiver)


def _field(frame: Frame, value: Value, annotation: ast.expr) -> Value:
    """A dataclass's field: its default is one value of several."""
    if value == NONE:
        declared = annotated(frame, annotation)
        return UNKNOWN if isinstance(declared, Unknown) else union([declared, NONE])
    if isinstance(value, Const) and scalar_type(value) in ("int", "float", "bool", "str"):
        return Scalar(scalar_type(value), value)
    return value


def _run_methods(frame: Frame, facts: ClassFacts, info: ClassInfo, name: str) -> None:
    if name in facts.asked:
        return
    facts.asked.add(name)
    methods: list[FunctionInfo] = []
    for method in info.assigned_in[name]:
        literal = info.assigned[name, method][0]
        if literal is not None and len(info.assigned[name, method]) == 1:
            # A flag: the method may be long and call much code of other files.
            facts.note("literals", name, Const(literal.value), method.name in CONSTRUCTORS)
        elif method.name not in facts.methods_run:
            methods.append(method)
    # The others read what constructors set.
    for method in sorted(methods, key=lambda each: each.name not in CONSTRUCTORS):
        if method.name not in facts.methods_run:
            facts.methods_run.add(method.name)
            run_for_attributes(frame, facts.name, method)


def run_for_attributes(frame: Frame, cls: str, method: FunctionInfo) -> None:
    """Run a method of a class that sets attributes, unless it has been run and would do the same again."""
    memory, module = frame.view.memory, _home(frame, cls)
    if module is None:
        return
    given = _arguments(frame, cls, method)
    known = memory.attribute_runs.get((cls, method))
    if known is not None and known.given == given and memory.holds(known.effects):
        return
    node = method.node
    function = Function(module.name, method.qualname, node.lineno, node.col_offset, cls)
    with memory.run(("attributes", cls, method)) as effects:
        # The attributes of an object must not depend on the call that asks first, nor on its depth.
        asker = Frame(frame.view, module, frame.budget, names={})
        functions.activate(asker, bound(function, Instance(cls)), given)
        memory.settle(effects)
    memory.attribute_runs[cls, method] = AttributeRun(given, effects)


def _home(frame: Frame, cls: str) -> Module | None:
    """The module of a class of the project."""
    facts = facts_of(frame, cls)
    return None if facts is None else frame.view.loaded(facts.module)


def _arguments(frame: Frame, cls: str, method: FunctionInfo) -> Arguments:
    """The arguments that known calls pass to a method; there may be others, so a default is one value of several."""
    facts, module = frame.view.memory.classes[cls], _home(frame, cls)
    assert module is not None
    return constructions.passed(Frame(frame.view, module, frame.budget, names={}), module, facts.qualname, method)


def run_changed_again(frame: Frame) -> None:
    """Run methods that set attributes again if calls pass them other arguments now, with all that have read these.

    What they set before is forgotten first: a list that once held anything would keep it.
    """
    memory = frame.view.memory
    runs = dict(memory.attribute_runs)
    changed = {key for key, run in runs.items() if _arguments(frame, *key) != run.given}
    while True:
        gone = {attribute for key in changed for attribute, _ in runs[key].effects.stores}
        readers = {key for key, run in runs.items() if not gone.isdisjoint(run.effects.reads)}
        if readers <= changed:
            break
        changed |= readers
    for key in changed:
        memory.forget(("attributes", *key))
        del memory.attribute_runs[key]
    for key in runs:
        if key in changed:
            run_for_attributes(frame, *key)


def below(frame: Frame, value: Instance, name: str) -> Value | None:
    """An attribute that a class of the project lacks and its subclasses in the same file have; None if they lack it.

    Methods are left out: it is unknown which one runs.
    """
    found: list[Value] = []
    for cls in derived(frame, value.cls):
        info = info_of(frame, cls)
        method = None if info is None else info.methods.get(name)
        if info is None or not (name in info.assigned_in if method is None else is_property(frame, cls, name)):
            continue
        held = member(frame, Instance(cls), name)
        if held is not None:
            found.append(held)
    return union(map(_by_convention, found)) if found else None


def lacks(frame: Frame, value: Value, name: str) -> bool:
    """True for an object of a class of the project if neither this nor a base has an attribute that was asked for."""
    if not isinstance(value, Instance) or facts_of(frame, value.cls) is None or not is_closed(frame, value.cls):
        return False
    every = (facts_of(frame, cls) for cls in lineage(frame, value.cls))
    return all(facts is None or name in facts.lacks for facts in every)


def _by_convention(value: Value) -> Value:
    if isinstance(value, Tensor):
        return value.with_(evidence=min(value.evidence, Evidence.CONVENTION))
    return union(map(_by_convention, value.members)) if isinstance(value, Union) else value


def is_member(frame: Frame, cls: str, name: str) -> bool:
    """True if a name is a member of an enumeration: the body of its class assigns it."""
    return is_enumeration(frame, cls) and name in _members(frame, cls)


def values_of(frame: Frame, cls: str) -> Value:
    """The value of the members of an enumeration: any of their values."""
    found: Value = NEVER
    for value in _members(frame, cls).values():
        found = join(found, Scalar(scalar_type(value)) if isinstance(value, Const) and value != NONE else value)
    return found


def _members(frame: Frame, cls: str) -> Names:
    # Functions in its body are its methods, lambdas too.
    held = body_of(frame, cls).items()
    return {name: value for name, value in held if name[:1] != "_" and not isinstance(value, Function)}


def body_of(frame: Frame, cls: str) -> Names:
    """The names that the body of a class of the project assigns or declares."""
    bodies = frame.view.memory.bodies
    known = bodies.get(cls)
    return known if known is not None else frame.view.memory.remembered(bodies, cls, partial(_body, frame, cls), {})


def _body(frame: Frame, cls: str) -> Names:
    facts, info = facts_of(frame, cls), info_of(frame, cls)
    module = frame.view.loaded(facts.module) if facts is not None else None
    if module is None or info is None:
        return {}
    # As deep as any other, whatever asks first.
    inner = Frame(frame.view, module, frame.budget, names={})
    inner.run([s for s in info.node.body if isinstance(s, (ast.Assign, ast.AnnAssign))])
    values = {name: resolve(inner, module, value) for name, value in (inner.names or {}).items()}
    found = {name: by_code(frame, info.node.name, name, value) for name, value in values.items()}
    for statement in info.node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            value = found.get(statement.target.id, UNKNOWN)
            found[statement.target.id] = _field(inner, value, statement.annotation)
    return found


parts.body = body_of
