"""The iterations of loops, with the functions of the file that they call.

A loop often calls a function for the work of one iteration. A function that one call alone runs stands for its body.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from perflint.findings import Heat
from perflint.frozen import dataclass
from perflint.rules._memory.flows import made, target_of
from perflint.semantics.around import Loop, loops_around, targets
from perflint.semantics.binders import LOOPS
from perflint.semantics.memo import once, once_per_node
from perflint.semantics.model import FunctionNode, Model
from perflint.semantics.purpose.given import calls_by_callee, named_arguments
from perflint.semantics.structure import FunctionInfo, names_in, walk

Turn = Loop | FunctionNode
"""A loop, or a function that a loop of another file calls in each iteration."""


def places(model: Model, node: ast.AST) -> Iterator[ast.AST]:
    """A node, the only call of the function around it, the only call of the function around that, and so on."""
    seen: set[ast.AST] = set()
    place: ast.AST | None = node
    while place is not None and place not in seen:
        seen.add(place)
        yield place
        function = model.function(place)
        place = None if function is None else _only_calls(model).get(function)


def turn_around(model: Model, node: ast.AST) -> Turn | None:
    """The innermost loop that runs a node, also through calls; a function, if a loop of another file runs that."""
    last = node
    for place in places(model, node):
        loop = next(loops_around(model, place), None)
        if loop is not None:
            return loop
        last = place
    function = model.function(last)
    info = model.module.defined_by(function)
    chain = None if info is None or calls_by_callee(model).get(info) else model.chain(info)
    return function if chain is not None and chain.heat is Heat.HOT else None


@dataclass(frozen=True, slots=True)
class Call:
    """The only call of a function, and the loop that makes it in each iteration."""

    node: ast.Call
    loop: ast.For | ast.AsyncFor | ast.While
    given: Mapping[str, ast.expr]
    """The arguments by parameter."""

    def outer(self, model: Model, name: ast.Name, *, is_rebound: bool) -> str:
        """The name of a variable of the function in the code around the loop, which keeps it from call to call.

        Empty if there is none. A parameter that the function binds anew must come back as a result.
        """
        given = self.given.get(name.id)
        if given is None:
            home = model.symbols.variable(name).scope.node
            return name.id if home is (model.function(self.loop) or model.source.tree) else ""
        target = target_of(model, self.node) if is_rebound else given
        return given.id if isinstance(given, ast.Name) and given.id in names_in(target or self.node.func) else ""


def call_in_loop(model: Model, function: ast.AST | None) -> Call | None:
    """The call of a function that a loop of the file makes in each iteration; None if it has other calls."""
    info = model.module.defined_by(function)
    call = None if info is None else _only_calls(model).get(info.node)
    loop = None if call is None else next(loops_around(model, call), None)
    if info is None or call is None or not isinstance(loop, LOOPS):
        return None
    if any(isinstance(each, ast.Starred) for each in call.args) or isinstance(info.node, ast.Lambda):
        return None
    return Call(call, loop, named_arguments(call, info))


def iteration_around(model: Model, node: ast.AST) -> ast.For | ast.AsyncFor | ast.While | FunctionNode | None:
    """The code of the function around a node that a loop runs in each iteration: a loop, or the function itself."""
    loop = next((each for each in loops_around(model, node) if isinstance(each, LOOPS)), None)
    function = model.function(node)
    return loop or (function if call_in_loop(model, function) is not None else None)


def heads(model: Model, loop: Loop) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets and iterables of a loop, in pairs, also those of `while` with `x = next(iterator)`."""
    return iter(_nexts(model).get(loop, ())) if isinstance(loop, ast.While) else targets(loop)


@once
def _nexts(model: Model) -> Mapping[ast.AST, list[tuple[ast.expr, ast.expr]]]:
    """The targets and iterables of loops that take the elements of an iterator from before the loop by `next`."""
    found: dict[ast.AST, list[tuple[ast.expr, ast.expr]]] = {}
    for call in model.nodes(ast.Call):
        if model.target(call) != "builtins.next" or not call.args:
            continue
        statement, source = model.parent(call), made(model, call.args[0])
        loop = next(loops_around(model, call), None)
        is_new = isinstance(source, ast.Call) and model.target(source) == "builtins.iter" and len(source.args) == 1
        if loop is None or not is_new or next(loops_around(model, source), None) is loop:
            continue
        if isinstance(statement, (ast.Assign, ast.NamedExpr)):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            found.setdefault(loop, []).append((target, source.args[0]))  # type: ignore[attr-defined]
    return found


@once_per_node
def nodes_of(model: Model, turn: Turn) -> tuple[ast.AST, ...]:
    """The nodes of an iteration, with those of the functions that only it calls."""
    found, waiting, seen = [], [turn], {turn}
    for code in waiting:
        for node in walk(code):
            found.append(node)
            function = called_here(model, node) if isinstance(node, ast.Call) else None
            if function is not None and function not in seen:
                seen.add(function)
                waiting.append(function)
    return tuple(found)


def called_here(model: Model, call: ast.Call) -> FunctionNode | None:
    """The function of the file that a call runs, if no other call does."""
    return _functions(model).get(call)


def calls_of(model: Model, function: ast.AST | None) -> list[ast.Call]:
    """The calls of a function in its file."""
    info = model.module.defined_by(function)
    return [] if info is None else calls_by_callee(model).get(info, [])


@once
def _only_calls(model: Model) -> Mapping[FunctionNode, ast.Call]:
    """The functions of a file that one call runs, with that call."""
    calls = calls_by_callee(model).items()
    return {info.node: made[0] for info, made in calls if isinstance(info, FunctionInfo) and len(made) == 1}


@once
def _functions(model: Model) -> Mapping[ast.Call, FunctionNode]:
    """The only calls of functions, with the functions."""
    return {call: function for function, call in _only_calls(model).items()}
