"""Finds the code that may run between two steps of a training, by the names that its loops mention."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from perflint.semantics.structure import path_of, root_of
from perflint.tune.graphs.purity import Imports, stored_names

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_OPEN = frozenset("eval exec getattr globals".split())
"""Functions that may name any other function."""


class Repeated:
    """The code of some files that may run between two steps, which `steps` names by their lines, by file.

    Calls by other code are unknown, so functions that are given away or that no code names count, and so do methods
    that Python or torch calls, unless they hold the steps themselves. If no loop of the files holds the steps, a
    library repeats them, and all code may run between them.
    """

    def __init__(self, trees: Mapping[str, ast.Module], steps: Mapping[str, Collection[int]]) -> None:
        self._functions: dict[str, list[_Function]] = defaultdict(list)
        self._mentions: dict[ast.AST, set[str]] = {}
        """The names in a function or loop that may stand for functions."""
        given: set[str] = set()
        own = {part for path in trees for part in path.removesuffix(".py").split("/")}
        for tree in trees.values():
            imports = Imports(tree)
            self._read(tree, {name for name in imports if imports.top(name) not in own}, given)
        functions = [each for named in self._functions.values() for each in named]
        holders = {each for path, tree in trees.items() for each in _holders(tree, steps.get(path, ()))}
        above = {each for each in self._mentions if each in holders or not holders.isdisjoint(self._reached([each]))}
        self._loops = {each for each in above if isinstance(each, _LOOPS)}
        """The loops that may hold steps."""
        given |= {each.name for each in functions}.difference(*self._mentions.values(), ["__init__"])
        unseen = [each for each in functions if _is_protocol(each) or each.name in given]
        self._between = self._reached([*self._loops, *(each for each in unseen if each not in above)])
        """The functions that may run between steps."""

    def runs(self, function: ast.AST) -> bool:
        """True if a function may run between steps."""
        return not self._loops or function in self._between

    def repeats(self, loop: ast.AST) -> bool:
        """True if a loop may hold steps."""
        return not self._loops or loop in self._loops

    def _read(self, tree: ast.AST, foreign: Collection[str], given: set[str], local: Collection[str] = ()) -> None:
        """Note the functions in code, and add the names of those given away.

        The names `foreign` stand for modules that are none of the files, `local` for values.
        """
        called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
        waiting = [*ast.iter_child_nodes(tree)]
        own: list[tuple[ast.AST, str]] = []
        while waiting:
            node = waiting.pop()
            if isinstance(node, _Function):
                self._functions[node.name].append(node)
                names = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)} | {*stored_names(node)}
                self._read(node, foreign, given, names)
                continue
            if isinstance(node, ast.ClassDef):
                self._functions[node.name] += [each for each in node.body if isinstance(each, _Function)]
            waiting += ast.iter_child_nodes(node)
            if name := _mentioned(node, foreign, local):
                own.append((node, name))
                given |= set() if node in called or isinstance(node, ast.Call) else {name}
        for each in (tree, *(node for node in ast.walk(tree) if isinstance(node, _LOOPS))):
            inside = {*ast.walk(each)}
            self._mentions.setdefault(each, set()).update(name for node, name in own if node in inside)

    def _reached(self, code: Collection[ast.AST]) -> set[ast.AST]:
        """Code, and the functions that it may call, also through others."""
        found = set(code)
        waiting = [*code]
        while waiting:
            names = self._mentions.get(waiting.pop(), set())
            for name in self._functions if names & _OPEN else names:
                new = [each for each in self._functions.get(name, ()) if each not in found]
                found.update(new)
                waiting += new
        return found


def _holders(tree: ast.Module, lines: Collection[int]) -> Iterator[ast.AST]:
    """The functions and loops around lines."""
    for node in ast.walk(tree):
        if isinstance(node, (*_LOOPS, _Function)) and any(
            node.lineno <= line <= (node.end_lineno or node.lineno) for line in lines
        ):
            yield node


def _mentioned(node: ast.AST, foreign: Collection[str], local: Collection[str]) -> str:
    """The name by which a node may stand for a function; `getattr` where the name is not written there."""
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    if name:
        is_value = isinstance(node, ast.Name) and name in local
        return "" if is_value or name in _OPEN else name
    called = path_of(node.func) if isinstance(node, ast.Call) else ""
    if called not in _OPEN:
        return ""
    match node:
        case ast.Call(args=[_, ast.Constant(value=str(wanted)), *_]) if called == "getattr":
            return wanted
        case ast.Call(args=[holder, _, *_]) if called == "getattr" and root_of(holder) in foreign:
            return ""
    return called


def _is_protocol(function: _Function) -> bool:
    """True for a method that Python or torch calls, and for a function with a decorator, which may call it."""
    is_special = function.name.startswith("__") and function.name != "__init__"
    return is_special or function.name == "forward" or bool(function.decorator_list)
