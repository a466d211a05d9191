"""Imports by other names, and arguments by keyword or by position."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterable
from functools import cache
from itertools import takewhile

from tests.forms.names import after_imports, code, free, name, names, plain_parameters
from tests.forms.program import Program, marked_like

_POSITIONAL = frozenset({"from_numpy"})
"""Functions that take no keywords, whatever their documentation says."""
_SHORT = {"torch": "th", "nn": "N", "F": "FF", "np": "numpy_"}


def imports_by_other_names(program: Program) -> None:
    """`import torch as th`, `from torch import nn as N`"""
    tree = program.main
    renamed = {}
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)) and getattr(node, "module", "") != "__future__":
            for alias in node.names:
                local = alias.asname or alias.name
                if "." in local or local == "*" or _rebound(tree, local) or _is_package(tree, local):
                    continue
                renamed[local] = alias.asname = free(tree, _SHORT.get(local, f"{local}_"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = renamed.get(node.id, node.id)


def _rebound(tree: ast.Module, local: str) -> bool:
    """True if other code binds a name, or a text mentions it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == local and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.arg) and node.arg == local:
            return True
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value == local:
            return True
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == local:
            return True
    bindings = [
        alias for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names
    ]
    return sum((alias.asname or alias.name) == local for alias in bindings) > 1


def _is_package(tree: ast.Module, local: str) -> bool:
    """True if another import binds the same name by one of its modules: `import torch.nn`."""
    aliases = [alias for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return any(not each.asname and each.name.startswith(f"{local}.") for each in aliases)


def members_imported(program: Program) -> None:
    """`torch.zeros(3)` as `zeros(3)` after `from torch import zeros`"""
    tree = program.main
    modules = _modules(tree)
    wanted: dict[tuple[str, str], None] = {}
    changing = _Members(modules, wanted, tree)
    tree.body = [changing.visit(each) for each in tree.body]
    start = after_imports(tree)
    lines = [f"from {module} import {member}" for module, member in wanted]
    tree.body[start:start] = code("\n".join(lines))


def _modules(tree: ast.Module) -> dict[str, str]:
    """The modules of torch that names stand for."""
    found = {}
    for node in tree.body:
        for alias in node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else ():
            full = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
            if full in ("torch", "torch.nn", "torch.nn.functional", "torch.utils.data", "torch.optim"):
                if alias.asname or "." not in full or isinstance(node, ast.ImportFrom):
                    found[alias.asname or alias.name] = full
    return {local: full for local, full in found.items() if not _rebound(tree, local)}


class _Members(ast.NodeTransformer):
    def __init__(self, modules: dict[str, str], wanted: dict[tuple[str, str], None], tree: ast.Module) -> None:
        self._modules, self._wanted, self._tree = modules, wanted, tree

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id in self._modules and isinstance(node.ctx, ast.Load):
            module = self._modules[node.value.id]
            if inspect.ismodule(getattr(importlib.import_module(module), node.attr, None)):
                return node
            if _rebound(self._tree, node.attr):
                return node
            self._wanted[module, node.attr] = None
            return marked_like(name(node.attr), node)
        self.generic_visit(node)
        return node


def arguments_by_keyword(program: Program) -> None:
    """`nn.Linear(3, 4)` as `nn.Linear(in_features=3, out_features=4)`"""
    for call, given in _known_calls(program.main):
        if any(isinstance(each, ast.Starred) for each in call.args) or len(call.args) > len(given):
            continue
        named = [ast.keyword(word, value) for word, value in zip(given, call.args, strict=False)]
        if not {each.arg for each in named} & {each.arg for each in call.keywords}:
            call.args, call.keywords = [], [*named, *call.keywords]


def arguments_by_position(program: Program) -> None:
    """`nn.Linear(in_features=3, out_features=4)` as `nn.Linear(3, 4)`"""
    for call, given in _known_calls(program.main):
        if any(isinstance(each, ast.Starred) for each in call.args):
            continue
        words = {each.arg: each for each in call.keywords}
        for word in given[len(call.args) :]:
            if word not in words or call.keywords[0] is not words[word]:
                break
            call.args.append(words[word].value)
            call.keywords.remove(words[word])


def _known_calls(tree: ast.Module) -> Iterable[tuple[ast.Call, list[str]]]:
    """The calls of functions and classes whose parameters are known, with the names of these."""
    local = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef) and not each.decorator_list}
    modules = _modules(tree)
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        if isinstance(call.func, ast.Name) and call.func.id in local and not _rebound_elsewhere(tree, call.func.id):
            given = plain_parameters(local[call.func.id])
            if given is not None:
                yield call, [each.arg for each in given]
        elif isinstance(call.func, ast.Attribute):
            head, *rest = ast.unparse(call.func).split(".")
            if head in modules:
                yield call, _signature(".".join([modules[head], *rest]))


def _rebound_elsewhere(tree: ast.Module, local: str) -> bool:
    return local in names([each for each in tree.body if getattr(each, "name", "") != local]).bound


@cache
def _signature(full: str) -> list[str]:
    """The names of the parameters of a class or function of torch that can be given in both ways."""
    module, _, leaf = full.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), leaf, None)
        given = inspect.signature(found).parameters.values() if callable(found) else ()
    except ImportError:
        return []
    except ValueError:
        return _documented(leaf, found.__doc__ or "")
    both = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [each.name for each in takewhile(lambda each: each.kind is both, given)]


def _documented(leaf: str, text: str) -> list[str]:
    """The parameters in the first line of the documentation of a built-in function."""
    line = re.match(rf"\s*{leaf}\(([^)]*)\)", text)
    parts = [each.strip() for each in line[1].split(",")] if line and leaf not in _POSITIONAL else []
    return [
        each.split("=")[0].split(":")[0] for each in takewhile(lambda each: not each.startswith("*"), parts) if each
    ]
