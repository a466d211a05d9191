"""Makes the summary of a file from its model."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from perflint.findings import Heat
from perflint.frozen import replace
from perflint.semantics.callers.by_name import tells
from perflint.semantics.callers.by_syntax import special_calls
from perflint.semantics.callers.summary import Call, FunctionKey, Summary
from perflint.semantics.facts import processes
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.heat.generators import consumer
from perflint.semantics.heat.training import is_in_training
from perflint.semantics.interpreter.functions import any_such
from perflint.semantics.lattice import widen
from perflint.semantics.regions.compile_calls import Place
from perflint.semantics.regions.compiled import Compiled
from perflint.semantics.values import Class, Function, Instance, Partial, Value

if TYPE_CHECKING:
    from perflint.semantics.heated import Heated
    from perflint.semantics.structure import ClassInfo


def summarised(model: Heated, compiled: Mapping[Place, Compiled], round: int, is_last: bool) -> Summary:
    """The summary of the file of a model, whose arguments are those of a round.

    Only checks ask how often calls run, and they ask the last round.
    """
    maker = _Maker(model, is_last)
    made = [*(call for node in model.nodes(ast.Call) for call in maker.calls(node)), *maker.special()]
    calls = _grouped((call.callee, call) for call in made)
    on_unknown = _grouped(maker.on_unknown())
    overrides, foreign = dict(maker.overrides()), frozenset(maker.foreign())
    # Last, since the questions above may load more modules.
    loaded = dict(model.view.modules)
    return Summary(
        model.module.path,
        round,
        calls,
        overrides,
        on_unknown,
        dict(maker.compiled(compiled)),
        foreign,
        {name: FunctionKey(loaded[each.module], each.qualname) for name, each in model.view.memory.classes.items()},
        loaded,
        model.view.record,
    )


_Key = TypeVar("_Key")
_Item = TypeVar("_Item")


def _grouped(pairs: Iterable[tuple[_Key, _Item]]) -> dict[_Key, tuple[_Item, ...]]:
    """The second parts of pairs by their first, in order."""
    found: dict[_Key, list[_Item]] = {}
    for key, item in pairs:
        found.setdefault(key, []).append(item)
    return {key: tuple(items) for key, items in found.items()}


_KNOWN = {"torch", *sys.stdlib_module_names}
"""Packages whose base classes call no methods of their subclasses but those with names of their own."""


class _Maker:
    def __init__(self, model: Heated, with_heat: bool) -> None:
        self._model = model
        self._with_heat = with_heat

    def calls(self, node: ast.Call) -> Iterator[Call]:
        """The calls of functions of the project that a call may make."""
        passed = self._model.passed(node)
        if passed is None:
            return
        callee, arguments = passed
        for called in ((callee, arguments), processes.started(callee, arguments)):
            for key, given in self._called(*called) if called is not None else ():
                yield self._made(node, key, _kept(given))
        for value in (*arguments.positional, *(value for _, value in arguments.keywords)):
            for member in value.members:
                if isinstance(member, Function):
                    for key in self._key(member):
                        yield self._made(node, key, None)

    def special(self) -> Iterator[Call]:
        """The calls of special methods of the project: `with timer:`, `boxes[keep]`."""
        for place, module, method, given in special_calls(self._model):
            yield self._made(place, FunctionKey(module.path, method.qualname), _kept(given))

    def on_unknown(self) -> Iterator[tuple[str, Call]]:
        """The calls of methods of objects that the file does not know, with the names of the methods."""
        for node in self._model.nodes(ast.Call):
            if isinstance(node.func, ast.Attribute) and tells(node.func.attr):
                if not self._model.target(node) and self._model.value(node.func).is_unknown:
                    passed = self._model.passed(node)
                    given = Arguments(unpacked=True) if passed is None else _kept(passed[1])
                    yield node.func.attr, self._made(node, FunctionKey(self._model.module.path, ""), given)

    def overrides(self) -> Iterator[tuple[FunctionKey, tuple[FunctionKey, ...]]]:
        """Each method of the file that overrides one of a base class of the project, and those that it overrides."""
        module = self._model.module
        for info in module.structure.classes.values():
            bases = self._bases(info)
            for name in info.methods if bases else ():
                found = tuple(key for base in bases for key in self._method(base, name))
                if found:
                    yield FunctionKey(module.path, f"{info.qualname}.{name}"), found

    def compiled(self, functions: Mapping[Place, Compiled]) -> Iterator[tuple[FunctionKey, Compiled]]:
        """The functions of other files that the file compiles, or that its compiled functions call."""
        for (name, line, column), compiled in functions.items():
            module = self._model.view.loaded(name)
            info = None if module is None else module.function(line, column)
            if module is not None and info is not None and module is not self._model.module:
                options = replace(compiled.options, file=compiled.options.file or self._model.module.path.name)
                yield FunctionKey(module.path, info.qualname), replace(compiled, options=options)

    def foreign(self) -> Iterator[str]:
        """The classes of the file that have a base outside of the project and of the libraries that are known."""
        for info in self._model.module.structure.classes.values():
            if any(self._class(base) is None and base.partition(".")[0] not in _KNOWN for base in self._bases(info)):
                yield info.qualname

    def _bases(self, info: ClassInfo) -> tuple[str, ...]:
        """The full names of the bases of a class of the file, also of indirect ones."""
        return self._model.lineage(f"{self._model.module.name}.{info.qualname}")[1:] if info.node.bases else ()

    def _class(self, cls: str) -> FunctionKey | None:
        """The key of a class of the project."""
        facts = self._model.view.memory.classes.get(cls)
        module = None if facts is None else self._model.view.loaded(facts.module)
        return None if module is None or facts is None else FunctionKey(module.path, facts.qualname)

    def _made(self, node: ast.expr | ast.stmt, callee: FunctionKey, arguments: Arguments | None) -> Call:
        function = self._model.function(node)
        while isinstance(function, ast.Lambda):
            function = self._model.function(function)
        module = self._model.module
        info = module.defined_by(function)
        caller = None if info is None else FunctionKey(module.path, info.qualname)
        if not self._with_heat:
            return Call(callee, caller, Heat.WARM, Heat.WARM, module.path, node.lineno, False, arguments)
        place = consumer(self._model, node)
        heat, iterated = self._model.heat(node), self._model.heat(place)
        if arguments is None and heat is Heat.COLD:
            # A function is given away once and called often.
            heat, iterated, caller = Heat.WARM, Heat.WARM, None
        trains = arguments is None or is_in_training(self._model, place)
        return Call(callee, caller, heat, iterated, module.path, node.lineno, trains, arguments)

    def _called(self, callee: Value, arguments: Arguments) -> Iterator[tuple[FunctionKey, Arguments]]:
        for member in callee.members:
            if isinstance(member, Partial):
                merged = Arguments(
                    (*member.positional, *arguments.positional),
                    (*member.keywords, *arguments.keywords),
                    arguments.unpacked,
                    arguments.rest,
                    arguments.spread,
                )
                yield from self._called(member.function, merged)
            elif isinstance(member, Function):
                for key in self._key(member):
                    yield key, arguments
            elif isinstance(member, (Class, Instance)):
                found = self._run_by(member)
                if found is not None:
                    yield found, arguments

    def _run_by(self, called: Class | Instance) -> FunctionKey | None:
        """The method that a call of a class or an object of the project runs."""
        names = ("__init__", "__post_init__") if isinstance(called, Class) else ("forward", "__call__")
        lineage = self._model.lineage(called.name if isinstance(called, Class) else called.cls)
        return next((key for name in names for base in lineage for key in self._method(base, name)), None)

    def _key(self, function: Function) -> Iterator[FunctionKey]:
        module = self._model.view.loaded(function.module)
        if module is not None and "<" not in function.qualname:
            yield FunctionKey(module.path, function.qualname)

    def _method(self, cls: str, name: str) -> Iterator[FunctionKey]:
        """A method that a class of the project defines itself."""
        key = self._class(cls)
        module = None if key is None else self._model.view.peek(key.path)
        info = None if module is None or key is None else module.klass(key.qualname)
        if module is not None and info is not None and name in info.methods:
            yield FunctionKey(module.path, info.methods[name].qualname)


def _kept(arguments: Arguments) -> Arguments:
    """Arguments as other calls may pass them: which number or text it is does not matter."""
    return Arguments(
        tuple([any_such(widen(value)) for value in arguments.positional]),
        tuple([(name, any_such(widen(value))) for name, value in arguments.keywords]),
        arguments.unpacked,
        widen(arguments.rest),
        arguments.spread,
    )
