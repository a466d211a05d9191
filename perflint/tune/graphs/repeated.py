"""Finds the code that may run between two steps of a training, by the names that its loops mention."""

from __future__ import annotations

import ast
import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from perflint.semantics.structure import path_of, root_of
from perflint.tune.graphs.purity import Imports, argument_names, stored_names

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_OPEN = frozenset("eval exec getattr globals".split())
"""Functions that may name any other function."""


class Repeated:
    """The code of some files that may run between two steps, which `steps` names by their lines, by file.

    Calls by other code are unknown, so functions that are given away or that no code names count, and so do methods
    that Python or torch calls, unless they hold the steps themselves. If no loop of the files holds the steps, a
    library repeats them, and all code may run between them. A function that reaches the steps may do so several times,
    so what it does behind the first place counts, too.
    """

    def __init__(
        self,
        trees: Mapping[str, ast.Module],
        steps: Mapping[str, Collection[int]],
        again: Collection[ast.AST] = (),
    ) -> None:
        """`again` are functions that a run called several times."""
        self._functions: dict[str, list[_Function]] = defaultdict(list)
        self._mentions: dict[ast.AST, set[str]] = {}
        """The names in a function or loop that may stand for functions."""
        self._ordered: dict[ast.AST, list[tuple[tuple[int, int], str]]] = {}
        """The same names of a function or module, in their order, with their places."""
        given: set[str] = set()
        own = {part for path in trees for part in path.removesuffix(".py").split("/")}
        for tree in trees.values():
            imports = Imports(tree)
            self._read(tree, {name for name in imports if imports.top(name) not in own}, given)
        functions = [each for named in self._functions.values() for each in named]
        held = {each: line for path, tree in trees.items() for each, line in _holders(tree, steps.get(path, ()))}
        holders = held.keys()
        above = {each for each in self._mentions if each in holders or not holders.isdisjoint(self._reached([each]))}
        self._loops = {each for each in above if isinstance(each, _LOOPS)}
        """The loops that may hold steps."""
        given |= {each.name for each in functions}.difference(*self._mentions.values(), ["__init__"])
        unseen = [each for each in functions if _is_protocol(each) or each.name in given]
        self._began: dict[ast.AST, int] = {}
        """The functions and modules that reach steps, by the line at which they first do."""
        ways = {each for each in functions if not holders.isdisjoint(self._reached([each], is_sure=True))}
        later: set[str] = set()
        for code, named in self._ordered.items():
            places = [place for place, name in named if not ways.isdisjoint(self._named(name, is_sure=True))]
            if code in held:
                places.append((held[code], 0))
            if places:
                self._began[code] = min(places)[0]
                later |= {name for place, name in named if place > min(places)}
        turns = [*self._loops, *above.intersection(again), *(each for each in unseen if each not in above)]
        self._between = self._reached(turns, later)
        """The functions that may run between steps."""

    def runs(self, function: ast.AST) -> bool:
        """True if a function may run between steps."""
        return not self._loops or function in self._between

    def repeats(self, loop: ast.AST) -> bool:
        """True if a loop may hold steps."""
        return not self._loops or loop in self._loops

    def began(self, code: ast.AST) -> float:
        """The line at which a function or module first reaches steps; infinity if it reaches none."""
        return self._began.get(code, math.inf)

    def _read(self, tree: ast.AST, foreign: Collection[str], given: set[str], local: Collection[str] = ()) -> None:
        """Note the functions in code, and add the names of those given away.

        The names `foreign` stand for modules that are none of the files, `local` for values.
        """
        called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
        waiting = [*ast.iter_child_nodes(tree)]
        own: list[tuple[ast.expr, str]] = []
        while waiting:
            node = waiting.pop()
            if isinstance(node, _Function):
                self._functions[node.name].append(node)
                names = argument_names(node) | {*stored_names(node)}
                self._read(node, foreign, given, names)
                continue
            if isinstance(node, ast.ClassDef):
                self._functions[node.name] += [each for each in node.body if isinstance(each, _Function)]
            waiting += ast.iter_child_nodes(node)
            if isinstance(node, ast.expr) and (name := _mentioned(node, foreign, local)):
                own.append((node, name))
                given |= set() if node in called or isinstance(node, ast.Call) else {name}
        self._ordered[tree] = sorted(((node.lineno, node.col_offset), name) for node, name in own)
        for each in (tree, *(node for node in ast.walk(tree) if isinstance(node, _LOOPS))):
            inside = {*ast.walk(each)}
            self._mentions.setdefault(each, set()).update(name for node, name in own if node in inside)

    def _reached(self, code: Collection[ast.AST], named: Collection[str] = (), is_sure: bool = False) -> set[ast.AST]:
        """Code, and the functions that it and some names may call, also through others; or that their calls name."""
        found = set(code)
        names = {*named}.union(*(self._mentions.get(each, ()) for each in code))
        while names:
            if names & _OPEN and not is_sure:
                names = {*self._functions}
            new = {each for name in names for each in self._named(name, is_sure)} - found
            found |= new
            names = set().union(*(self._mentions.get(each, ()) for each in new))
        return found

    def _named(self, name: str, is_sure: bool) -> list[_Function]:
        """The functions for which a name may stand; or those that a call of it runs."""
        named = self._functions.get(name, [])
        return [each for each in named if each.name in (name, "__init__")] if is_sure else named


def _holders(tree: ast.Module, lines: Collection[int]) -> Iterator[tuple[ast.AST, int]]:
    """The functions and loops around lines, each with the first of them."""
    for node in ast.walk(tree):
        if isinstance(node, (*_LOOPS, _Function)):
            inside = [line for line in lines if node.lineno <= line <= (node.end_lineno or node.lineno)]
            if inside:
                yield node, min(inside)


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
