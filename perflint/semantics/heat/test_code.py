"""Tests, benchmarks and reference code among the functions of a file: they are not there to be fast."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from perflint.findings import Heat
from perflint.semantics.facts import conventions
from perflint.semantics.facts.concepts import Entry
from perflint.semantics.heat.retired import is_retired
from perflint.semantics.heat.steps import by_name, checks
from perflint.semantics.structure import last_name, root_of, walk
from perflint.semantics.test_files import folders

if TYPE_CHECKING:
    from perflint.semantics.heat.call_graph import CallGraph
    from perflint.semantics.heat.steps import WorkMap
    from perflint.semantics.inferred import Inferred
    from perflint.semantics.structure import FunctionInfo

_INPUTS = ("torch.rand", "torch.ones", "torch.zeros")
"""Beginnings of the names of functions that tests make their inputs with."""


class TestCode:
    """The functions and blocks of one file that only tests, benchmarks and demonstrations run."""

    __test__ = False  # pytest is not to collect it

    def __init__(self, model: Inferred, calls: CallGraph, work: WorkMap) -> None:
        # The model owns this: no circle, so that both go when the file is done.
        self._model: Inferred = weakref.proxy(model)
        self._calls = calls
        self._work = work

    @cached_property
    def is_retired(self) -> bool:
        """True if the file is kept, but no longer runs."""
        return is_retired(self._model)

    @cached_property
    def are_all(self) -> bool:
        """True if all of a file is test code, retired, or a program that is run by hand to find a mistake."""
        module = self._model.module
        if module.is_of_tests or self.is_retired:
            return True
        if not module.is_program:
            return False
        return any(map(conventions.looks_for_mistakes, (module.path.stem, *folders(module.path, module.root))))

    def holds(self, node: ast.AST) -> bool:
        """True if a function or block is test code."""
        return node in self._found

    def named(self, node: ast.AST) -> Entry | None:
        """Why a function is a test, a benchmark or reference code by its name; None if something else shows it."""
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        return (
            conventions.measures_time(node.name)
            or conventions.is_reference(node.name)
            or conventions.is_test(node.name)
        )

    @cached_property
    def _found(self) -> frozenset[ast.AST]:
        functions = list(self._model.module.structure.functions.values())
        roots: set[ast.AST] = {info.node for info in functions if self._is_root(info)}
        roots.update(statement for statement in self._model.module.tree.body if self._is_self_test(statement))
        if not roots:
            return frozenset()
        helpers = [info for info in functions if info.node not in roots and self._is_helper(info)]
        around: dict[ast.AST, list[list[ast.AST]]] = {}
        for info in helpers:
            calls = [*self._calls.calls(info), *self._calls.given(info)]
            if calls:
                around[info.node] = [list(self._around(call)) for call in calls]
        closure = _Closure(roots, around)
        closure.drop({info.node for info in helpers if info.node in closure.reached() and self._is_imported(info)})
        return frozenset(roots | closure.reached())

    def _around(self, call: ast.AST) -> Iterator[ast.AST]:
        """The functions around a call, or the statement of the file."""
        function = self._model.function(call)
        if function is None:
            yield from self._model.ancestors(call)
        while function is not None:
            yield function
            function = self._model.function(function)

    @cached_property
    def _asserting(self) -> frozenset[ast.AST | None]:
        """The functions that call an assertion of a library of tests: `torch.testing.assert_close(a, b)`."""
        calls = self._model.nodes(ast.Call)
        return frozenset(self._model.function(call) for call in calls if conventions.asserts(last_name(call)))

    def _is_root(self, info: FunctionInfo) -> bool:
        """True if a function is a test, a benchmark, or reference code that nothing in the file calls."""
        node, name = info.node, info.name
        if isinstance(node, ast.Lambda) or self._is_of_test_case(info):
            return not isinstance(node, ast.Lambda)
        if conventions.measures_time(name) or any(map(_is_test_decorator, node.decorator_list)):
            return True
        if info.owner:
            return False
        if info.outer is None and conventions.is_reference(name):
            return not self._calls.calls(info) and not self._is_imported(info)
        return node in self._asserting or (bool(conventions.is_test(name)) and self._has_shape_of_test(node))

    def _has_shape_of_test(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """True if a function checks results, or needs no arguments and makes its own inputs: `def test():`.

        `test(model, loader)` evaluates a model, and so does one that loops over the batches of a loader.
        """
        if checks(self._model, node):
            return True
        given = node.args
        needed = len(given.posonlyargs) + len(given.args) - len(given.defaults) + given.kw_defaults.count(None)
        return not needed and self._makes_inputs(node.body)

    def _makes_inputs(self, body: list[ast.stmt]) -> bool:
        """True if code makes the tensors that it runs on, and neither trains nor reads data."""
        work = self._work.of(body)
        if work.steps or work.calls_loop or any(map(self._work.trains_or_loads, body)):
            return False
        calls = [node for statement in body for node in walk(statement) if isinstance(node, ast.Call)]
        if any(conventions.starts_program(last_name(call)) for call in calls):
            return False
        return any(self._model.target(call).startswith(_INPUTS) for call in calls)

    def _is_self_test(self, statement: ast.stmt) -> bool:
        """True if a statement is `if __name__ == "__main__":` with a test of the file in it, not a program."""
        if not isinstance(statement, ast.If) or not isinstance(statement.test, ast.Compare):
            return False
        compared = (statement.test.left, statement.test.comparators[0])
        is_main = any(last_name(node) == "__name__" for node in compared)
        return is_main and self._makes_inputs(statement.body)

    def _is_of_test_case(self, info: FunctionInfo) -> bool:
        if not info.owner:
            return False
        lineage = self._model.lineage(f"{self._model.module.name}.{info.owner}")
        return any(cls.rpartition(".")[2].endswith("TestCase") for cls in lineage)

    def _is_helper(self, info: FunctionInfo) -> bool:
        """True if a function may exist only for tests: not a public method of a class, which other files may call."""
        if isinstance(info.node, ast.Lambda) or (info.owner and not info.name.startswith("_")):
            return False
        named = by_name(self._model, info)
        if named is not None and named.heat is Heat.HOT:
            return False
        # A training loop is the work of a program, even if the program is a demonstration.
        return not self._work.trains_or_loads(info.node)

    def _is_imported(self, info: FunctionInfo) -> bool:
        """True if another file of the project, which is not a test file, imports a function."""
        if info.name.startswith("_") or info.outer is not None:
            return False
        importers = self._model.view.importers(self._model.module.name, info.name)
        return any(not self._model.view.is_of_tests(file.path) for file in importers)


def _is_test_decorator(node: ast.expr) -> bool:
    return last_name(node) == "perf_report" or root_of(node) == "pytest"


class _Closure:
    """The functions that are only called from some code, directly or from each other.

    `around` has the nodes around each call of a function.
    """

    def __init__(self, roots: set[ast.AST], around: dict[ast.AST, list[list[ast.AST]]]) -> None:
        self._roots = roots
        self._around = around
        self._called_in: dict[ast.AST, list[ast.AST]] = {}
        for node, calls in around.items():
            for outer in {outer for call in calls for outer in call if outer in around or outer in roots}:
                self._called_in.setdefault(outer, []).append(node)
        self._kept = set(around)
        self.drop({node for node in around if not self._stays(node)})

    def drop(self, nodes: set[ast.AST]) -> None:
        """Leave out functions, and those that they call."""
        wrong = list(nodes)
        while wrong:
            node = wrong.pop()
            if node in self._kept:
                self._kept.remove(node)
                wrong += [called for called in self._called_in.get(node, ()) if not self._stays(called)]

    def _stays(self, node: ast.AST) -> bool:
        return all(any(outer in self._roots or outer in self._kept for outer in call) for call in self._around[node])

    def reached(self) -> set[ast.AST]:
        """The functions that the roots call, directly or not: functions that only call each other never run."""
        found: set[ast.AST] = set()
        wanted = list(self._roots)
        while wanted:
            more = [node for node in self._called_in.get(wanted.pop(), ()) if node in self._kept and node not in found]
            found.update(more)
            wanted += more
        return found
