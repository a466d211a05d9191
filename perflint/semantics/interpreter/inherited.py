"""The calls that inherited methods make of the methods of a class: `fit` of a base calls `self._step(batch)`."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.semantics.interpreter import functions
from perflint.semantics.interpreter.frame import Budget, Frame, Recorder
from perflint.semantics.interpreter.lineage import facts_of, info_of, is_static, lineage
from perflint.semantics.interpreter.observed import needs_callers
from perflint.semantics.interpreter.resolve import class_at
from perflint.semantics.module import Module
from perflint.semantics.structure import ClassInfo, FunctionInfo
from perflint.semantics.values import Function, Instance
from perflint.semantics.view import View


def note_inherited(view: View, module: Module, budget: Budget, recorder: Recorder) -> None:
    """Keep the arguments that inherited methods pass to the methods of the classes of a file."""
    collected = Recorder(recorder.module)
    frame = Frame(view, module, budget, names={})
    for info in list(module.structure.classes.values()):
        wanted = {name for name, method in info.methods.items() if needs_callers(method)} if info.node.bases else set()
        if not wanted:
            continue
        cls = class_at(view, module, info.node).name
        for base, method in _inherited(frame, info, cls):
            if not wanted.isdisjoint(method.calls) and budget.allows(method.size):
                view.project.go_on()
                budget.left -= method.size
                _run(frame, base, method, cls, collected)
    recorder.inherited.update({callee: collected.passed_to(callee) for callee in collected.arguments})


def _inherited(frame: Frame, info: ClassInfo, cls: str) -> Iterator[tuple[str, FunctionInfo]]:
    """The methods that the objects of a class inherit from bases of the project, with the base of each."""
    seen = set(info.methods)
    for base in lineage(frame, cls)[1:]:
        methods = klass.methods if (klass := info_of(frame, base)) is not None else {}
        yield from ((base, method) for name, method in methods.items() if name not in seen and not is_static(method))
        seen.update(methods)


def _run(frame: Frame, base: str, method: FunctionInfo, cls: str, collected: Recorder) -> None:
    """Run an inherited method for an object of a class, with unknown arguments."""
    facts = facts_of(frame, base)
    module = frame.view.loaded(facts.module) if facts is not None else None
    if module is None:
        return
    node = method.node
    function = Function(module.name, method.qualname, node.lineno, node.col_offset, base, Instance(cls))
    inner = functions.enter(frame, module, method, function, None)
    inner.recorder = collected
    functions.run_body(inner, method)
