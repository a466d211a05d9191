"""The reasons for the heat of a line, found afterwards.

`heat` decides; here the place is looked for where its decision changes: a loop, a guard, a function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from perflint.findings import Heat
from perflint.semantics.binders import LOOPS
from perflint.semantics.callers.summary import Call
from perflint.semantics.explain.phrases import quote
from perflint.semantics.explain.reasons import Reasons, Step
from perflint.semantics.facts.concepts import Entry
from perflint.semantics.heat import guards
from perflint.semantics.heat.switches import is_switched_off
from perflint.semantics.structure import FunctionInfo, stands_in, walk

if TYPE_CHECKING:
    from perflint.semantics.heated import Heated

_MOST_STEPS = 4
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

_OFTEN_CALLED = {
    Heat.HOT: "other files call in each step",
    Heat.WARM: "other files call, not known how often",
    Heat.COLD: "other files call, all of them from code that rarely runs",
}


def _call(call: Call) -> Step:
    around = "the top level of the file" if call.caller is None else f"`{call.caller.qualname}`"
    name = call.callee.qualname
    return Step(f"`{name}` is {'called' if call.arguments else 'given away'} in {around}", call.line, call.path)


OFTEN = {Heat.HOT: "runs each step", Heat.WARM: "may run each step", Heat.COLD: "rarely runs"}
"""The words for each heat of a line."""


class HeatReasons:
    """The reasons behind the heat of the lines of one file."""

    def __init__(self, model: Heated) -> None:
        self._model = model
        self._heat = model.heat_map
        self._reasons = Reasons(model)
        self._beyond: dict[Step, list[Step]] = {}
        """The calls in other files that follow a step."""

    def of(self, node: ast.AST) -> list[Step]:
        """Why a node runs as often as it does, nearest step first."""
        steps: list[Step] = []
        seen: set[ast.AST] = set()
        current: ast.AST | None = node
        while current is not None and current not in seen and len(steps) < _MOST_STEPS:
            seen.add(current)
            step, current = self._step(current)
            if step not in steps:
                steps.append(step)
                steps += self._beyond.pop(step, ())
        return steps

    def _step(self, node: ast.AST) -> tuple[Step, ast.AST | None]:
        heat = self._heat.of(node)
        inner = node
        for outer in self._model.ancestors(node):
            test = self._heat.guard(outer, inner) if heat is Heat.COLD else None
            if test is not None:
                return self._guarded(outer, test), None
            if self._heat.tests.holds(outer):
                return self._test_code(outer), None
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)) and stands_in(outer.body, inner):
                return self._function(outer, heat)
            if self._heat.of(outer) is not heat:
                return self._construct(outer, inner, heat), None
            inner = outer
        return Step("top level of the module: it runs once, on import"), None

    # The code around

    def _construct(self, outer: ast.AST, inner: ast.AST, heat: Heat) -> Step:
        line = getattr(outer, "lineno", None)
        if isinstance(inner, ast.Raise):
            return Step("it only raises an exception", inner.lineno)
        if isinstance(inner, ast.ExceptHandler):
            return Step("in an `except` block", inner.lineno)
        if isinstance(outer, ast.Assert):
            return Step("it is needed only where the assertion fails", line)
        if not isinstance(outer, ast.stmt):
            return Step("by what stands around it", line)
        code = quote(self._model, outer)
        if isinstance(outer, LOOPS):
            work, entries = self._work(outer) if heat is Heat.HOT else ("", ())
            return Step(f"in the loop {code}{work}", line, entries=entries)
        return Step(f"inside {code}", line)

    def _test_code(self, outer: ast.AST) -> Step:
        name = f"in `{outer.name}`, which" if isinstance(outer, _DEFINITIONS) else "in a block that"
        entry = self._heat.tests.named(outer)
        reason, entries = ("", ()) if entry is None else (f": by its name, it {entry.why}", (entry,))
        line = getattr(outer, "lineno", None)
        return Step(f"{name} only tests, benchmarks or demonstrations run{reason}", line, entries=entries)

    def _guarded(self, outer: ast.AST, test: ast.expr) -> Step:
        branch = self._model.parent(test)
        reason, entries = "", tuple[Entry, ...]()
        named = guards.named(test, self._model.value)
        if named is not None:
            name, entry = named
            reason, entries = f": by its name, `{name}` {entry.why}", (entry,)
        if isinstance(branch, ast.If) and branch is not outer:
            text = f"after {quote(self._model, branch)}, which mostly leaves{reason}"
            return Step(text, branch.lineno, entries=entries)
        shown = quote(self._model, branch if branch is outer else test)
        if any(is_switched_off(self._model, test, outcome) for outcome in (True, False)):
            return Step(f"behind {shown}, which all calls of the project give one value", test.lineno)
        return Step(f"behind {shown}, which lets it run only now and then{reason}", test.lineno, entries=entries)

    def _work(self, loop: ast.For | ast.AsyncFor | ast.While) -> tuple[str, tuple[Entry, ...]]:
        """The reason why a loop is one over steps, and the conventions that it rests on."""
        work = self._heat.work
        if not isinstance(loop, ast.While) and work.is_over_batches(loop.iter):
            entries = (entry for step in self._reasons.of(loop.iter) for entry in step.entries)
            return ", which iterates over the batches of a loader", tuple(dict.fromkeys(entries))
        for call in self._calls_in(loop):
            if work.is_work(call):
                entry = work.convention(call)
                text = f", which steps: {quote(self._model, call)} on line {call.lineno}"
                return text, () if entry is None else (entry,)
        acts = work.acts(loop)
        return ("", ()) if acts is None else (f", which acts: {quote(self._model, acts)} on line {acts.lineno}", ())

    def _calls_in(self, loop: ast.stmt) -> Iterator[ast.Call]:
        for node in walk(loop):
            if isinstance(node, ast.Call):
                between = next(a for a in self._model.ancestors(node) if isinstance(a, (*LOOPS, *_DEFINITIONS)))
                if between is loop:
                    yield node

    # The function

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, heat: Heat) -> tuple[Step, ast.AST | None]:
        info = self._model.module.defined_by(node)
        if info is None:
            return Step(f"in `{node.name}`", node.lineno), None
        named = self._heat.named(info)
        if named is not None and named.heat is heat:
            if named.entry is None:
                return Step(f"in `{info.qualname}`, which {named.why}", node.lineno), None
            return Step(f"in `{info.qualname}`: by its name, it {named.why}", node.lineno, entries=(named.entry,)), None
        return self._called(info, heat)

    def _called(self, info: FunctionInfo, heat: Heat) -> tuple[Step, ast.AST | None]:
        name, line = f"`{info.qualname}`", info.node.lineno
        callers = self._heat.callers(info)
        alike = [call for call in callers if self._heat.of(self._heat.place(call, info)) is heat]
        chain = self._model.chain(info) if not alike else None
        if chain is not None and chain.heat is heat:
            called = Step(f"in {name}, which {_OFTEN_CALLED[heat]}", line)
            self._beyond[called] = [_call(call) for call in chain.calls]
            return called, None
        step = self._heat.training_step(info) if heat is Heat.HOT and not alike else None
        if step is not None:
            text = f"in {name}, which takes a step of training: {quote(self._model, step)} on line {step.lineno}"
            return Step(text, line), None
        if heat is Heat.WARM and not callers:
            return Step(f"in {name}, which nothing in this file calls", line), None
        if not callers:
            return Step(f"in {name}", line), None
        if not alike:
            rare = f"{quote(self._model, callers[0])} on line {callers[0].lineno} rarely runs"
            return Step(f"in {name}: {rare}, but other files may call it", line), None
        call = alike[0]
        if heat is Heat.COLD:
            text = f"in {name}, which is only called from code that rarely runs"
        else:
            verb = "may be" if isinstance(call, ast.Call) and not self._model.target(call) else "is"
            text = f"in {name}, which {verb} called: {quote(self._model, call)} on line {call.lineno}"
        return Step(text, line), self._heat.place(call, info)
