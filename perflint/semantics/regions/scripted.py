"""The functions of a file that TorchScript may compile.

TorchScript supports a part of Python and of torch. Code that it cannot compile is an error when a program starts,
so fixes do not change code that it may compile.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from perflint.semantics.structure import ClassInfo, FunctionInfo, last_name, path_of
from perflint.semantics.values import Class, Function, Instance, Unknown

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred

_WORDS = re.compile(r"jit|script", re.IGNORECASE)
_MARKS = frozenset(
    """is_scripting unused ignore export Final annotate interface Attribute isinstance _overload _overload_method
    _drop""".split()
)
"""Names of `torch.jit` by which code is written for TorchScript: all functions of such a file may be compiled."""
# Patterns that begin with letters are searched thirty times as fast as those that begin with `\b`.
_BY_JIT, _BY_SCRIPT = re.compile(r"jit\b(?<=\bjit)"), re.compile(r"script\b(?<=\bscript)")
"""A file with both words may compile code of others."""
_JIT = "torch.jit."
_COMPILES = frozenset(("script", "script_if_tracing"))
_DECORATES = _COMPILES | {"jit", "script_method"}
"""Words of decorators that compile: `@torch.jit.script`, and those that projects make of it, as `@jit_fuser`."""


def scripted_lines(model: Inferred) -> tuple[range, ...]:
    """The lines of the functions that TorchScript may compile."""
    by_jit, by_script = ({file.path for file in model.view.matching(each)} for each in (_BY_JIT, _BY_SCRIPT))
    others = frozenset(by_jit & by_script) - {model.module.path}
    if not others and not model.matches(_WORDS):
        return ()
    return tuple(
        range(info.node.lineno, (info.node.end_lineno or info.node.lineno) + 1)
        for info in _Reader(model, others).read()
    )


class _Reader:
    """Reads one file."""

    def __init__(self, model: Inferred, others: frozenset[Path]) -> None:
        self._model = model
        self._others = others
        """The other files that mention `torch.jit.script`."""
        self._structure = model.module.structure
        self._by_name: dict[str, list[FunctionInfo]] = {}
        for info in self._structure.functions.values():
            self._by_name.setdefault(info.name, []).append(info)
        self._classes: dict[str, list[ClassInfo]] = {}
        for klass in self._structure.classes.values():
            self._classes.setdefault(klass.qualname.rpartition(".")[2], []).append(klass)
        self._found: set[FunctionInfo] = set()
        self._waiting: list[FunctionInfo] = []

    def read(self) -> set[FunctionInfo]:
        """The functions that are compiled, and those that they call."""
        if self._is_marked() or self._compiles_unknown():
            return set(self._structure.functions.values())
        self._decorated()
        self._imported()
        while self._waiting:
            info = self._waiting.pop()
            for name in info.calls | info.asks:
                self._add(*self._by_name.get(name, ()))
            self._add_named(info.names)
        return self._found

    def _is_marked(self) -> bool:
        """True if the file says that it is written for TorchScript."""
        names = self._model.module.imports.values()
        imported = (name.removeprefix(_JIT) for name in names if name.startswith(_JIT))
        used = (self._of_jit(node) for node in self._model.nodes(ast.Attribute))
        return not _MARKS.isdisjoint((*imported, *used))

    def _of_jit(self, node: ast.expr) -> str:
        """The name in `torch.jit` that an expression stands for; empty for anything else."""
        root, dot, rest = path_of(node).partition(".")
        full = self._model.module.imports.get(root, root) + dot + rest
        return full.removeprefix(_JIT) if full.startswith(_JIT) else ""

    def _compiles_unknown(self) -> bool:
        """Note the functions that calls of `torch.jit.script` compile; True if they are unknown for any call."""
        for node in (*self._model.nodes(ast.Attribute), *self._model.nodes(ast.Name)):
            if self._of_jit(node) not in _COMPILES:
                continue
            around = self._model.parent(node)
            if isinstance(around, ast.Call) and around.func is node:
                if not around.args or not self._compiled(around.args[0]):
                    return True
            elif not isinstance(around, (ast.FunctionDef, ast.ClassDef)):
                return True
        return False

    def _compiled(self, given: ast.expr) -> bool:
        """Note the functions that a call compiles; False if they are unknown."""
        members = self._model.value(given).members
        for member in members:
            if isinstance(member, Function) and member.module == self._model.module.name:
                info = self._model.module.function(member.line, member.column)
                self._add(*([] if info is None else [info]))
            elif isinstance(member, (Instance, Class)):
                name = member.cls if isinstance(member, Instance) else member.name
                self._add_named({name.rpartition(".")[2]})
            elif isinstance(member, Unknown):
                return False
        return bool(members)

    def _decorated(self) -> None:
        for info in self._structure.functions.values():
            if any(_is_compiler(each) for each in getattr(info.node, "decorator_list", ())):
                self._add(info)
        for name, classes in self._classes.items():
            for klass in classes:
                bases = {last_name(base) for base in klass.node.bases}
                if "ScriptModule" in bases or any(map(_is_compiler, klass.node.decorator_list)):
                    self._add_named({name})

    def _imported(self) -> None:
        """Add the functions that other files import from here, if these files compile something."""
        view, module = self._model.view, self._model.module.name
        for name in {*self._by_name, *self._classes} if self._others else ():
            if any(file.path in self._others for file in view.importers(module, name)):
                self._add(*(info for info in self._by_name.get(name, ()) if not info.owner and info.outer is None))
                self._add_named({name})

    def _add_named(self, names: set[str]) -> None:
        """Add the methods of the classes with these names, and of their bases."""
        for klass in self._named(names):
            bases = self._named({last_name(base) for base in klass.node.bases})
            self._add(*(info for each in (klass, *bases) for info in each.methods.values()))

    def _named(self, names: set[str]) -> Iterator[ClassInfo]:
        for name in names & self._classes.keys():
            yield from self._classes[name]

    def _add(self, *functions: FunctionInfo) -> None:
        for info in functions:
            if info not in self._found:
                self._found.add(info)
                self._waiting.append(info)


def _is_compiler(decorator: ast.expr) -> bool:
    name = last_name(decorator)
    return name in _DECORATES or not _DECORATES.isdisjoint(name.split("_"))
