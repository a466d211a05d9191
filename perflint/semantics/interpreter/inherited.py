"""The calls that inherited methods make of the methods of a class: `fit` of a base calls `self._step(batch)`."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.interpreter import functions
from perflint.semantics.interpreter.frame import Frame, Recorder
from perflint.semantics.interpreter.lineage import facts_of, info_of, is_static, lineage
from perflint.semantics.interpreter.memory import InheritedRun
from perflint.semantics.structure import FunctionInfo
from perflint.semantics.values import Function, Instance


def passed_by_bases(frame: Frame, info: FunctionInfo) -> list[Arguments]:
    """The arguments that inherited methods pass to the method of a frame, as they run for the objects of its class."""
    place, memory = (info.node.lineno, info.node.col_offset), frame.view.memory
    found: list[Arguments] = []
    for base, method in _callers(frame, info) if info.owner else ():
        key = frame.owner, base, method
        run = memory.inherited_runs.get(key)
        if run is None or not memory.holds(run.effects):
            if not frame.budget.allows(method.size):
                continue
            run = memory.inherited_runs[key] = _run(frame, base, method)
        memory.rest_on(run.effects)
        found += run.passed.get(place, ())
    return found


def _callers(frame: Frame, info: FunctionInfo) -> Iterator[tuple[str, FunctionInfo]]:
    """The methods that a class inherits from bases of the project and that call a method of it, each with its base."""
    hidden: list[dict[str, FunctionInfo]] = []
    for cls in lineage(frame, frame.owner):
        klass = info_of(frame, cls)
        if klass is None:
            continue
        for method in klass.calling.get(info.name, ()) if hidden else ():
            if not is_static(method) and not any(method.name in nearer for nearer in hidden):
                yield cls, method
        hidden.append(klass.methods)


def _run(frame: Frame, base: str, method: FunctionInfo) -> InheritedRun:
    """Run an inherited method for an object of the class of a frame, with unknown arguments."""
    facts, memory = facts_of(frame, base), frame.view.memory
    module = frame.view.loaded(facts.module) if facts is not None else None
    collected = Recorder(frame.module.name)
    name = "inherited", frame.owner, base, method
    with memory.run(name) as effects:
        if module is not None:
            frame.view.project.go_on()
            frame.budget.left -= method.size
            node = method.node
            function = Function(module.name, method.qualname, node.lineno, node.col_offset, base, Instance(frame.owner))
            asker = Frame(frame.view, module, frame.budget, names={})
            inner = functions.enter(asker, module, method, function, None)
            inner.recorder = collected
            functions.run_body(inner, method)
    # Whether anything asks what it passes may depend on the order of the functions. So it sets no attributes.
    memory.forget(name)
    memory.settle(effects)
    return InheritedRun({callee: collected.passed_to(callee) for callee in collected.arguments}, effects)
