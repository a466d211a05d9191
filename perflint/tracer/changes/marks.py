"""The mark of a step, `torch.compiler.cudagraph_mark_step_begin()`, for several models or several calls of one.

Without marks, the replay of one CUDA graph may overwrite the outputs of any earlier one. From the first mark on,
outputs are kept until the next mark. So one mark must begin each step, all calls must lie between two marks, and
nothing that a graph wrote may be used after the next mark: no output, and no gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from perflint.findings import Edit, Span
from perflint.fixes.edits import indentation, insert
from perflint.frozen import dataclass
from perflint.semantics.structure import path_of
from perflint.tracer.changes.base import Refused, spelled
from perflint.tracer.changes.made import Made, has_own_lines

MARK = "torch.compiler.cudagraph_mark_step_begin"
MOST_CALLS = 16
"""Calls of a model in a step. For each of them a graph of its own is recorded and kept."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_HARMLESS = frozenset("print repr str len id type isinstance".split())
"""Functions that do not call a model."""
_OF_MODULES = frozenset(
    "apply bfloat16 buffers children compile cpu cuda double eval float half load_state_dict modules named_buffers "
    "named_children named_modules named_parameters parameters requires_grad_ state_dict to train zero_grad".split()
)
"""Methods of modules that do not call them."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The block that runs once in a step: the body of a loop, or of a function."""

    owner: ast.For | ast.While | ast.FunctionDef
    block: Sequence[ast.stmt]

    def index(self, holding: Sequence[ast.AST]) -> int | None:
        """The number of the first statement that holds one of some nodes, or None."""
        return next((at for at, each in enumerate(self.block) if any(_is_in(node, each) for node in holding)), None)


def turn_of(made: Made, called: Span, per_step: float = 0.0) -> Turn:
    """The block that runs once in a step and has all calls of a model, which a step calls `per_step` times on average.

    Raises Refused if a call may lie elsewhere.
    """
    calls = _calls(made)
    first = next((call for call in calls if made.source.span(call) == called), None)
    if first is None:
        raise Refused(f"the call that the trace saw is not a call of `{made.name}`")
    turn = _around(made, first, [*_method_calls(made, "step", optimizers(made)), *_method_calls(made, "backward")])
    around = list(_ancestors(made, turn.owner))
    number, repeats = 0, False
    for call in calls:
        outer = list(_ancestors(made, call))
        if turn.owner not in outer:
            if any(isinstance(each, (*_FUNCTIONS, *_COMPREHENSIONS, *_LOOPS)) and each not in around for each in outer):
                raise Refused(f"line {call.lineno} calls it in a loop or function outside of the step")
            continue
        number += 1
        for each in outer[: outer.index(turn.owner)]:
            if isinstance(each, (*_FUNCTIONS, *_COMPREHENSIONS)):
                raise Refused(f"line {call.lineno} calls it in a function or comprehension inside the step")
            if isinstance(each, _LOOPS):
                repeats = True
                if not any(_is_in(back, each) for back in _method_calls(made, "backward")):
                    raise Refused(f"line {call.lineno} calls it in a loop without a backward pass")
    if per_step > MOST_CALLS:
        raise Refused(f"a step calls it {per_step:g} times, and each call would have a graph of its own")
    if per_step > number and not repeats:
        raise Refused(f"a step calls it {per_step:g} times, and the file shows {number}")
    return turn


def marked(made: Made, turn: Turn) -> tuple[Edit, ...]:
    """The statements at the beginning of an iteration: the mark, and gradients that must not live over it.

    Raises Refused if an earlier mark or a gradient stands against it.
    """
    name = spelled(made.symbols, MARK, turn.block[0])
    if name.imports:
        raise Refused("the name `torch` is not imported there")
    if any(not has_own_lines(made.source, each) or _is_text(each) for each in turn.block[:1]):
        raise Refused("the first statement of the step shares its line, or is a text")
    known = [made.structure.parents[call] for call in made.calls if path_of(call.func).endswith("mark_step_begin")]
    if any(each is not turn.block[0] for each in known):
        raise Refused("the file marks its steps at another place")
    statements = [] if known else [f"{name.text}()"]
    statements += [f"{each}.zero_grad()" for each in _living_gradients(made, turn)]
    if not statements:
        return ()
    line = turn.block[0].lineno
    margin = indentation(made.source, line)
    if known:
        line = (turn.block[0].end_lineno or line) + 1
    while not known and line > turn.owner.lineno + 1 and made.source.lines[line - 2].startswith(f"{margin}#"):
        line -= 1
    return (insert(line, 1, "".join(f"{margin}{each}\n" for each in statements)),)


def optimizers(made: Made) -> list[str]:
    """The paths of the optimizers that have parameters of the model. Raises Refused if they are not all known."""
    found = []
    for call in made.calls:
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("parameters", "named_parameters"):
            continue
        if not f"{path_of(call.func.value)}.".startswith(f"{made.name}."):
            continue
        outer = next((each for each in _ancestors(made, call) if _is_optimizer(made, each)), None)
        if outer is None:
            continue
        statement = made.structure.parents[outer]
        path = (
            path_of(statement.targets[0]) if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else ""
        )
        if not path:
            raise Refused("its optimizer has no name of its own")
        found.append(path)
    if not found:
        raise Refused("the file does not show its optimizer")
    return list(dict.fromkeys(found))


def _is_optimizer(made: Made, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and made.symbols.full_name(node.func).startswith("torch.optim.")


def _calls(made: Made) -> list[ast.Call]:
    """All calls of the model by its name. Raises Refused if it may be called by another one."""
    statement = made.statement
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    target = targets[0]
    if not isinstance(target, ast.Name):
        raise Refused("the model is not bound to a plain name")
    variable = made.symbols.variable(target)
    if variable.is_shared:
        raise Refused(f"other functions bind `{made.name}`")
    found = []
    for use in variable.uses:
        outer = made.structure.parents[use]
        if isinstance(outer, ast.Call) and outer.func is use:
            found.append(outer)
        elif isinstance(outer, ast.Call) and path_of(outer.func) in _HARMLESS:
            continue
        elif isinstance(outer, ast.Attribute):
            method = made.structure.parents[outer]
            if isinstance(method, ast.Call) and method.func is outer and outer.attr not in _OF_MODULES:
                raise Refused(f"line {use.lineno} calls a method of it, which may call the model")
        else:
            raise Refused(f"line {use.lineno} hands the model on, and other code may call it")
    return found


def _around(made: Made, call: ast.Call, needed: Sequence[ast.Call]) -> Turn:
    """The innermost loop or function around a call that holds a step of its optimizer and all backward passes."""
    if not any(path_of(each.func).endswith(".step") for each in needed):
        raise Refused("the file does not show a step of its optimizer")
    for each in _ancestors(made, call):
        if isinstance(each, (*_LOOPS, ast.FunctionDef)) and all(_is_in(one, each) for one in needed):
            if any(_is_in(call, one) for one in each.body):
                return Turn(each, each.body)
            break
        if isinstance(each, (*_FUNCTIONS, *_COMPREHENSIONS)):
            break
    raise Refused("no loop or function holds the calls, the backward pass and the step of the optimizer")


def _living_gradients(made: Made, turn: Turn) -> list[str]:
    """The optimizers whose gradients must be set to None at the mark. Raises Refused if they are needed later."""
    if any(isinstance(node, ast.Attribute) and node.attr in ("grad", "no_sync") for node in _all(made, ast.Attribute)):
        raise Refused("the file uses gradients itself")
    for text in ("create_graph", "autograd.grad(", "retain_graph"):
        if text in made.source.text:
            raise Refused(f"the file uses `{text.rstrip('(')}`")
    backward = _method_calls(made, "backward")
    first = turn.index(backward)
    if first is None:
        raise Refused("the step has no backward pass")
    living = []
    for path in optimizers(made):
        zeroed = [at for at, each in enumerate(turn.block) if _zeroes(each, (path, made.name))]
        if any(at < first for at in zeroed):
            continue
        stepped = turn.index(_method_calls(made, "step", [path]))
        if not zeroed or stepped is None or stepped <= zeroed[0]:
            raise Refused(f"the gradients of `{path}` live from one step to the next")
        if any(text in made.source.text for text in ("clip_grad", "unscale_")):
            raise Refused(f"the file may use gradients of `{path}` before it sets them to None")
        living.append(path)
    return living


def _zeroes(statement: ast.stmt, paths: Sequence[str]) -> bool:
    """True for `optimizer.zero_grad()` that sets gradients to None."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "zero_grad":
        return False
    given = [*call.args, *(each.value for each in call.keywords)]
    sets_none = all(isinstance(each, ast.Constant) and each.value is True for each in given)
    return sets_none and path_of(call.func.value) in paths


def _method_calls(made: Made, method: str, paths: Sequence[str] | None = None) -> list[ast.Call]:
    """The calls of a method by its name, of some objects or of any; `scaler.step(optimizer)` is one of `optimizer`."""
    return [
        call
        for call in made.calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == method
        and (paths is None or any(path_of(each) in paths for each in (call.func.value, *call.args[:1])))
    ]


def _ancestors(made: Made, node: ast.AST) -> Iterator[ast.AST]:
    outer = made.structure.parents.get(node)
    while outer is not None:
        yield outer
        outer = made.structure.parents.get(outer)


def _all(made: Made, kind: type[ast.AST]) -> Sequence[ast.AST]:
    return made.structure.nodes.get(kind, ())


def _is_in(node: ast.AST, outer: ast.AST) -> bool:
    """True if a node lies in another one, by their positions."""
    inner, around = (
        (each.lineno, each.col_offset, each.end_lineno, each.end_col_offset)  # type: ignore[attr-defined]
        for each in (node, outer)
    )
    return around[:2] <= inner[:2] and inner[2:] <= around[2:]


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
