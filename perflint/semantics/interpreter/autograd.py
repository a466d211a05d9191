"""Functions of autograd: `backward` reads from its context the values that `forward` has stored there."""

from __future__ import annotations

from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.interpreter.lineage import facts_of, lineage
from perflint.semantics.lattice import completed, union
from perflint.semantics.structure import FunctionInfo
from perflint.semantics.values import (
    BOOL,
    NONE,
    UNKNOWN,
    Class,
    Device,
    Evidence,
    Function,
    Instance,
    Sequence,
    Tensor,
    Value,
)

CONTEXT = "torch.autograd.function.FunctionCtx"
"""The class of the first argument of `forward`, `setup_context` and `backward`."""

_FUNCTION = "torch.autograd.Function"
_FILLS = ("forward", "setup_context")
_SAVED = "saved_tensors"
_TENSOR = Tensor(Device.CALLER, evidence=Evidence.CONVENTION)


def is_function(frame: Frame, name: str) -> bool:
    """True if a class is a function of autograd."""
    return _FUNCTION in lineage(frame, name)


def parameter(frame: Frame, info: FunctionInfo, position: int, value: Value) -> Value:
    """A parameter of a method of a function of autograd, if nothing else is known of it."""
    if not value.is_unknown or info.name not in (*_FILLS, "backward") or not is_function(frame, frame.owner):
        return value
    if position == 0:
        return Instance(CONTEXT, (("function", Class(frame.owner)),))
    # The gradients of the results.
    return _TENSOR if info.name == "backward" else value


def note(frame: Frame, context: Instance, name: str, value: Value) -> None:
    """Remember a value that a method sets on the context."""
    owner = context.argument("function")
    facts = facts_of(frame, owner.name) if isinstance(owner, Class) else None
    if facts is not None:
        frame.view.memory.store(facts, _key(name), value, False)


def _key(name: str) -> str:
    return f"ctx.{name}"


def save(frame: Frame, context: Instance, arguments: Arguments) -> Value:
    """`ctx.save_for_backward(x, y)`, which takes tensors alone."""
    saved = tuple([completed(value, _TENSOR) for value in arguments.positional])
    items = None if arguments.unpacked else saved
    note(frame, context, _SAVED, Sequence("tuple", union([*saved, _TENSOR] if items is None else saved), items))
    return NONE


def attribute(frame: Frame, context: Instance, name: str) -> Value | None:
    """An attribute of the context; None if nothing sets it."""
    if name == "needs_input_grad":
        return Sequence("tuple", BOOL)
    owner = context.argument("function")
    if not isinstance(owner, Class):
        return UNKNOWN
    for cls in lineage(frame, owner.name):
        facts = facts_of(frame, cls)
        if facts is None:
            continue
        if CONTEXT not in facts.methods_run:
            facts.methods_run.add(CONTEXT)
            with frame.view.memory.run(("context", cls)):
                _fill(frame, cls)
        held = frame.view.memory.read(facts, _key(_SAVED if name == "saved_variables" else name))
        if held is not None:
            return held
    return None


def _fill(frame: Frame, cls: str) -> None:
    """Run the methods of a class that fill the context."""
    facts = facts_of(frame, cls)
    module = frame.view.loaded(facts.module) if facts is not None else None
    info = module.klass(facts.qualname) if module is not None and facts is not None else None
    for method in () if info is None else map(info.methods.get, _FILLS):
        if module is not None and method is not None:
            node = method.node
            asker = Frame(frame.view, module, frame.budget, names={})
            function = Function(module.name, method.qualname, node.lineno, node.col_offset, cls)
            asker.activate(function, Arguments(unpacked=True))
