"""How often a line runs, as a unit: per token, step, batch of an evaluation, epoch or run.

The heat map tells whether a line runs each step. The unit is that of the innermost loop that repeats the line, in its
function or around the calls of it.
"""

from __future__ import annotations

import ast

from perflint.findings import Frequency, Heat
from perflint.semantics.around import loops_around
from perflint.semantics.binders import LOOPS
from perflint.semantics.heat.decoding import decoding_calls
from perflint.semantics.heat.generators import yields
from perflint.semantics.heat.training import goes_backward, is_in_training
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.purpose.bases import is_called_in_loops
from perflint.semantics.purpose.beside import holds_steps, is_beside_epoch, is_over_layers, is_step
from perflint.semantics.purpose.files import reads_file
from perflint.semantics.purpose.unreached import is_dead, is_unreached
from perflint.semantics.structure import last_name, stands_in

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Loop = ast.For | ast.AsyncFor | ast.While

_OFTEN_FIRST = tuple(Frequency)


@once_per_node
def frequency(model: Model, node: ast.AST) -> Frequency:
    """How often a node runs."""
    if model.heat_map.tests.is_retired or is_dead(model, node):
        return Frequency.NEVER
    heat = model.heat(node)
    if heat is Heat.HOT:
        return Frequency.EPOCH if is_beside_epoch(model, node) else _of_step(model, node)
    if heat is Heat.COLD:
        return _rarely(model, node)
    return _now_and_then(model, node)


def _of_step(model: Model, node: ast.AST) -> Frequency:
    """The unit of code that runs each step."""
    unit = _in_function(model, node)
    return unit if isinstance(unit, Frequency) else _of_calls(model, unit)


@once_per_node
def _in_function(model: Model, node: ast.AST) -> Frequency | ast.AST:
    """The unit of the innermost loop that repeats a node in its function; the function if no loop there has a unit."""
    inner = node
    for outer in model.ancestors(node):
        if isinstance(outer, LOOPS) and (stands_in(outer.body, inner) or inner is getattr(outer, "test", None)):
            unit = _of_loop(model, outer)
            # A generator works as often as its results are taken.
            if unit is not None and not (unit is Frequency.ITEM and yields(outer)):
                return unit
        if isinstance(outer, _FUNCTIONS) and stands_in(outer.body, inner):
            return Frequency.STEP if model.module.defined_by(outer) is None else outer
        inner = outer
    return Frequency.STEP


def _of_loop(model: Model, loop: _Loop) -> Frequency | None:
    """The unit that an iteration of a loop is; None if it has no unit of its own."""
    if decoding_calls(model, loop):
        return Frequency.TOKEN
    work = model.heat_map.work.of(loop.body)
    over_batches = not isinstance(loop, ast.While) and model.is_over_batches(loop.iter)
    if model.heat(loop) is not Heat.HOT or over_batches or work.steps:
        if is_in_training(model, loop.body[0]):
            return Frequency.STEP
        return Frequency.FILE if not over_batches and reads_file(model, loop) else Frequency.BATCH
    if is_over_layers(loop):
        return Frequency.LAYER
    if goes_backward(model, loop):
        return Frequency.MICROBATCH
    return Frequency.ITEM


@once_per_node
def _of_calls(model: Model, function: ast.AST) -> Frequency:
    """The unit of the most frequent call of a function that runs each step, also through other functions."""
    units: set[Frequency] = set()
    known, unread = {function}, [function]
    while unread:
        found, functions = _of_callers(model, unread.pop())
        units |= found
        unread += functions - known
        known |= functions
    return min(units, key=_OFTEN_FIRST.index, default=Frequency.STEP)


@once_per_node
def _of_callers(model: Model, function: ast.AST) -> tuple[frozenset[Frequency], frozenset[ast.AST]]:
    """The units of the calls of a function that runs each step, and the functions around the other calls."""
    info = model.module.defined_by(function)
    if info is None or model.heat_map.training_step(info) is not None:
        return frozenset({Frequency.STEP}), frozenset()
    places = (model.heat_map.place(call, info) for call in model.heat_map.callers(info))
    hot = [place for place in places if model.heat(place) is Heat.HOT]
    if hot:
        around = [_in_function(model, place) for place in hot]
        units = frozenset(each for each in around if isinstance(each, Frequency))
        return units, frozenset(each for each in around if not isinstance(each, Frequency))
    chain = model.chain(info)
    is_evaluated = chain is not None and chain.heat is Heat.HOT and not any(call.trains for call in chain.calls)
    return frozenset({Frequency.BATCH if is_evaluated else Frequency.STEP}), frozenset()


def _rarely(model: Model, node: ast.AST) -> Frequency:
    """The unit of code that runs rarely."""
    inner = node
    for outer in model.ancestors(node):
        if model.heat_map.guard(outer, inner) is not None or isinstance(inner, (ast.ExceptHandler, ast.Raise)):
            return Frequency.INTERVAL
        inner = outer
    return Frequency.EPOCH if any(holds_steps(model, loop) for loop in loops_around(model, node)) else Frequency.RUN


def _now_and_then(model: Model, node: ast.AST) -> Frequency:
    """The unit of code that is not known to run each step, nor rarely."""
    loops = list(loops_around(model, node))
    function = model.function(node)
    around = loops[0] if loops else function
    if around is not None and holds_steps(model, around) and not is_step(model, around):
        return Frequency.EPOCH
    if any(reads_file(model, loop) for loop in loops):
        return Frequency.FILE
    if loops:
        return Frequency.ITERATION
    return Frequency.CALL if _is_of_request(model, node) else Frequency.UNKNOWN


def _is_of_request(model: Model, node: ast.AST) -> bool:
    """True if a node runs once for a request, an image or a report: its code calls no part of a step.

    A program calls its functions so, unless they are known to run each step. A function may be a hook if it is inside
    another, or if the base of its class calls such methods in a loop.
    """
    function = model.function(node)
    if function is not None and _is_of_property(function):
        return False
    if function is None or model.module.is_program:
        return True
    info = model.module.defined_by(function)
    if is_unreached(model, node):
        return True
    if info is None or info.outer is not None or not model.serves_programs:
        return False
    owner = model.module.klass(info.owner) if info.owner else None
    return owner is None or not is_called_in_loops(model, owner.node)


def _is_of_property(function: ast.AST) -> bool:
    """True for a property, which other code reads without a call."""
    return any("property" in last_name(each) for each in getattr(function, "decorator_list", ()))
