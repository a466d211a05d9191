"""The arguments of the methods that set the attributes of a class: `Trainer(model, callbacks)`.

The calls are those that the top level of the class's own file makes, or functions that it calls. If the class is of the
file that is checked, those of all functions of that file and of other files count as well. So the result does not
depend on which files are checked together, nor on their order.
"""

from __future__ import annotations

import ast

from perflint.semantics.binders import on_cpu_by_default
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.interpreter.annotations import annotated
from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.interpreter.functions import any_such
from perflint.semantics.interpreter.lineage import decorator_names, facts_of, lineage
from perflint.semantics.interpreter.resolve import run_top_level
from perflint.semantics.lattice import union, widen
from perflint.semantics.module import Module
from perflint.semantics.structure import FunctionInfo
from perflint.semantics.values import NONE, Value


def note(frame: Frame, name: str, given: tuple[tuple[str, Value], ...], arguments: Arguments) -> None:
    """Remember the arguments of a constructor, by the names of its parameters and as they are passed."""
    init = _constructor(frame, name)
    if init is None:
        return
    state = frame.view.state(frame.module)
    if not state.is_run:
        kept = tuple([(key, widen(value)) for key, value in given])
        state.constructed.setdefault(init.owner, []).append(kept)
    if frame.recorder is not None and frame.recorder.module == frame.module.name:
        frame.recorder.note(init.node.lineno, init.node.col_offset, arguments)


def _constructor(frame: Frame, name: str) -> FunctionInfo | None:
    """The `__init__` of a class, if this file defines it."""
    for cls in lineage(frame, name):
        facts = facts_of(frame, cls)
        if facts is None or facts.module != frame.module.name:
            return None
        info = frame.module.klass(facts.qualname)
        if info is not None and "__init__" in info.methods:
            return info.methods["__init__"]
    return None


def passed(frame: Frame, module: Module, qualname: str, method: FunctionInfo) -> Arguments:
    """The arguments of a method that sets attributes, as far as calls are known; there may be others."""
    made = _in_file(frame, module, qualname) if method.name == "__init__" else []
    others = _by_calls(frame, module, method)
    args = method.node.args
    optional = {arg.arg for arg in args.args[len(args.args) - len(args.defaults) :]} | {a.arg for a in args.kwonlyargs}
    found: list[tuple[str, Value]] = []
    on_cpu = on_cpu_by_default(method.node)
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs) if made or others else ():
        # An annotation says more of all callers than the known calls.
        known_made = made if arg.annotation is not None and arg.arg not in on_cpu else [*made, *others]
        found += _argument(frame, module, arg, known_made, arg.arg in optional)
    if args.kwarg is not None:
        named = {arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
        for name in {name: None for given in others for name in given if name not in named}:
            found += _argument(frame, module, ast.arg(name), others, is_optional=True)
    return Arguments(keywords=tuple(found), unpacked=True)


def _in_file(frame: Frame, module: Module, qualname: str) -> list[dict[str, Value]]:
    """The arguments of the objects of a class that its file makes, by name."""
    state = frame.view.state(module)
    if state.names is None and qualname in module.called:
        run_top_level(frame.view, module, frame.budget)
    return [dict(given) for given in state.constructed.get(qualname, ())]


def _by_calls(frame: Frame, module: Module, method: FunctionInfo) -> list[dict[str, Value]]:
    """The arguments that functions of any file pass to a method of the file that is checked, by name."""
    args = method.node.args
    ordered = [*args.posonlyargs, *args.args]
    if "staticmethod" not in decorator_names(method.node):
        ordered = ordered[1:]
    every = [*ordered, *args.kwonlyargs, *([args.kwarg] if args.kwarg is not None else [])]
    if all(arg.annotation is not None for arg in every) and not on_cpu_by_default(method.node):
        # The calls would tell no more.
        return []
    names = [arg.arg for arg in ordered]
    return [
        dict([*zip(names, arguments.positional, strict=False), *arguments.keywords])
        for arguments in frame.view.passed_to(module, method)
        if not arguments.unpacked
    ]


def _argument(
    frame: Frame, module: Module, arg: ast.arg, made: list[dict[str, Value]], is_optional: bool
) -> list[tuple[str, Value]]:
    """A parameter with the values that calls pass for it; empty if one of them is unknown."""
    values = [given[arg.arg] for given in made if arg.arg in given]
    known = [any_such(value) for value in values if not value.is_unknown]
    if len(known) < len(values) or not known or known == [NONE] * len(known):
        return []
    if _declares_tensor(frame, module, arg.annotation):
        # It says more of all callers than the tensor that one of them passes.
        return []
    if len(values) < len(made) and is_optional:
        known.append(NONE)
    return [(arg.arg, union(known))]


def _declares_tensor(frame: Frame, module: Module, annotation: ast.expr | None) -> bool:
    inner = Frame(frame.view, module, frame.budget, names={})
    return annotated(inner, annotation).tensor is not None
