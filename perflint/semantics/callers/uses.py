"""The uses of a function other than calls: code that gets the function may call it."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping

from perflint.semantics.module import Module
from perflint.semantics.structure import last_name
from perflint.semantics.view import View

_KEEP = frozenset(
    """staticmethod classmethod no_grad inference_mode enable_grad cache lru_cache contextmanager abstractmethod
    overload wraps autocast""".split()
)
"""Decorators that give a function to no other code."""
_BY_NAME = frozenset({"globals", "locals", "vars", "getattr", "getmembers", "eval"})
"""Functions that read a function by a name that only a run knows."""


def other_code_may_call(view: View, module: Module, qualname: str) -> bool:
    """True if code that does not name a function may call it: users of a package, a registry, code that reads it by a
    name that only a run knows, or a file that is not listed.
    """
    if not view.project.is_whole or _is_exported(view, module, qualname):
        return True
    return other_code_may_find(view, module, qualname)


def other_code_may_find(view: View, module: Module, qualname: str) -> bool:
    """True if a registry may call a function that it does not name, or code that reads it by a name that only a run
    knows.
    """
    if not view.project.is_whole or _is_given_away(module, qualname):
        return True
    return _reads_itself_by_name(module) or _is_read_by_name(view, module)


def _is_given_away(module: Module, qualname: str) -> bool:
    """True if a decorator of a function may give it to other code: `@register`."""
    info = module.named_function(qualname)
    decorators = [] if info is None or isinstance(info.node, ast.Lambda) else info.node.decorator_list
    return any(last_name(node) not in _KEEP for node in decorators)


def only_calls(module: Module, name: str, lines: Collection[int]) -> bool:
    """True if all that a file does with functions of a name is to call them, on some lines."""
    calls = calls_of(module, name)
    return calls is not None and all(call.lineno in lines for call in calls)


def calls_of(module: Module, name: str) -> list[ast.Call] | None:
    """The calls of functions of a name in a file; None if the file does anything else with such a function."""
    every, parents = module.structure.every, module.structure.parents
    names = {name, *_other_names(module, name)}
    for text in every(ast.Constant):
        said = text.value
        if isinstance(said, str) and (said == name or said.endswith("." + name)) and not _annotates(text, parents):
            return None
    found = []
    for node in every(ast.Name, ast.Attribute):
        if last_name(node) in names and isinstance(node.ctx, ast.Load):
            around = parents.get(node)
            if isinstance(around, ast.Call) and isinstance(around.func, ast.Name) and around.func.id == "super":
                continue
            if isinstance(around, ast.Call) and around.func is node:
                found.append(around)
            elif not _annotates(node, parents):
                return None
    return found


def _annotates(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """True if an expression is a part of an annotation, which calls nothing."""
    inner, outer = node, parents.get(node)
    while isinstance(outer, ast.expr) and not isinstance(outer, (ast.Call, ast.Lambda)):
        inner, outer = outer, parents.get(outer)
    if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return inner is outer.returns
    return isinstance(outer, ast.arg) or (isinstance(outer, ast.AnnAssign) and inner is outer.annotation)


def _other_names(module: Module, name: str) -> set[str]:
    """The names under which a file imports something: `from ops import read as r`."""
    imports = module.structure.every(ast.ImportFrom)
    return {alias.asname for node in imports for alias in node.names if alias.name == name and alias.asname}


def may_read_method(module: Module, name: str) -> bool:
    """True if a file reads methods by names that only a run knows, maybe this one: `getattr(self, f"do_{kind}")`."""
    for call in module.structure.every(ast.Call):
        if last_name(call) == "getattr" and len(call.args) > 1 and not isinstance(call.args[1], ast.Constant):
            asked = call.args[1]
            start = asked.values[0] if isinstance(asked, ast.JoinedStr) and asked.values else asked
            if not isinstance(start, ast.Constant) or name.startswith(str(start.value)):
                return True
    return False


def _reads_itself_by_name(module: Module) -> bool:
    """True if a file reads its own functions by names that only a run knows: `globals()[name]`."""
    calls = module.structure.every(ast.Call)
    return any(not call.args and last_name(call) in _BY_NAME for call in calls)


def _is_read_by_name(view: View, module: Module) -> bool:
    """True if a file reads functions of a module by names that only a run knows: `getattr(ops, name)`,
    `ops.__dict__`.
    """
    last = module.name.rpartition(".")[2]
    path = rf"(?:\w+\.)*{re.escape(last)}"
    pattern = re.compile(rf"\b(?:{'|'.join(sorted(_BY_NAME))})\(\s*{path}\b|\b{path}\.__dict__")
    around = (file for file in view.around(module.name) if not view.is_of_tests(file.path))
    return any(view.mentions(file.path, last) and view.finds(file.path, pattern) for file in around)


def _is_exported(view: View, module: Module, qualname: str) -> bool:
    """True if a package takes a definition over for its users."""
    top = qualname.partition(".")[0]
    return any(file.path.name == "__init__.py" for file in view.importers(module.name, top))
