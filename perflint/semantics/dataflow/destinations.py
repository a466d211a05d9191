"""The destination of the value of an expression: a log, a test, a size, an index, a sum."""

from __future__ import annotations

import ast
import weakref
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from perflint.semantics.binders import LOOPS
from perflint.semantics.facts import conventions
from perflint.semantics.memo import remembered
from perflint.semantics.structure import last_name, path_of, walk
from perflint.semantics.values import Mapping, Sequence

if TYPE_CHECKING:
    from perflint.semantics.dataflow.origins import Origins
    from perflint.semantics.heated import Heated

_LONGEST_WAY = 3
"""Names that a value is bound to, one after the other."""
_MOST_LOADS = 12
"""Loads of one name that are looked at."""


class Use(Enum):
    """The use of a value; of several uses, the first of these counts."""

    ACTION = "action"
    """The environment of an agent takes it."""
    BYTES = "bytes"
    """It is pickled, sent to another process as an object, or written to a file."""
    SETTING = "setting"
    """It sets a hyperparameter of an optimizer."""
    TEST = "test"
    """It decides which code runs next."""
    SIZE = "size"
    """It is a size of a tensor, the bound of a slice or the number of iterations of a loop."""
    INDEX = "index"
    """It selects an element of a tensor, or of something unknown."""
    KEY = "key"
    """It is a key of a dict, or selects an element of a list."""
    SUM = "sum"
    """It is added to a running sum."""
    LOG = "log"
    """It is printed, logged, or put into a running statistic."""
    LIST = "list"
    """It is put into a list."""
    KEPT = "kept"
    """It is kept in an object."""
    RETURNED = "returned"
    """The function returns it."""
    OTHER = "other"
    """Anything else, or unknown."""


class End(NamedTuple):
    """One use of a value, and the code that uses it: the call, the `if`, the assignment."""

    use: Use
    node: ast.AST


_ORDER = list(Use)
_OF_TEXTS = frozenset({Use.KEY, Use.KEPT})
"""The uses of a text that holds a number, as a name of a file does; any other text is taken for one that is shown."""
_PASSES = frozenset(
    """float int bool abs round min max str repr list tuple sum len asarray array Decimal format sorted reversed zip
    enumerate exp log sqrt log10 log2 isnan isinf isfinite numpy tolist item""".split()
)
"""Functions whose result is used in place of their argument."""
_SIZES = frozenset(
    """range zeros ones full empty arange linspace eye rand randn randint randperm new_zeros new_ones new_full new_empty
    view reshape expand repeat narrow split chunk unflatten pad unfold resize tile broadcast_to topk one_hot""".split()
)
_LISTS = frozenset({"append", "extend", "appendleft", "insert", "add", "put"})


def _is_key(outer: ast.Dict | ast.DictComp, inner: ast.AST) -> bool:
    return inner in outer.keys if isinstance(outer, ast.Dict) else inner is outer.key


class Destinations:
    """The uses of the values of one file."""

    def __init__(self, model: Heated, origins: Origins) -> None:
        self._model: Heated = weakref.proxy(model)
        self._origins = origins

    def of(self, node: ast.expr) -> Use:
        """The use of the value of an expression."""
        return self._of(node, _LONGEST_WAY)

    def ends(self, node: ast.expr) -> tuple[End, ...]:
        """All uses of the value of an expression."""
        return self._ends_of(node, _LONGEST_WAY)

    def near(self, node: ast.expr) -> set[Use]:
        """All uses of the value of an expression, followed through one name at most."""
        statement = self._model.parent(node)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(target, ast.Name) and not conventions.is_action(target.id):
            return {self._of(load, 0) for load in self._loads_of(target)}
        return {self._of(node, 0)}

    def later(self, name: ast.Name) -> list[ast.Name]:
        """The first uses of a name in its function that stand behind a place."""
        return self._loads_of(name)

    def _of(self, node: ast.AST, left: int) -> Use:
        return min((end.use for end in self._ends_of(node, left)), key=_ORDER.index, default=Use.OTHER)

    # Many values go into the same names: without the memory, each would be followed along all ways again.
    @remembered
    def _ends_of(self, node: ast.AST, left: int) -> tuple[End, ...]:
        inner, is_text = node, False
        for outer in self._model.ancestors(node):
            found: Use | tuple[End, ...] | None
            if isinstance(outer, ast.JoinedStr):
                found, is_text = None, True
            elif isinstance(outer, ast.Call) and inner is not outer.func:
                found = self._argument(outer)
            else:
                found = self._part(outer, inner, left)
            if found is not None:
                ends = (End(found, outer),) if isinstance(found, Use) else found
                return tuple(End(Use.LOG, end.node) if is_text and end.use not in _OF_TEXTS else end for end in ends)
            inner = outer
        return (End(Use.OTHER, node),)

    def _part(self, outer: ast.AST, inner: ast.AST, left: int) -> Use | tuple[End, ...] | None:
        """The use of a part of an expression or statement there; None if the whole is passed on."""
        if isinstance(outer, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            if inner is outer.test:
                return Use.TEST
            return None if isinstance(outer, ast.IfExp) else Use.OTHER
        if isinstance(outer, ast.comprehension):
            return Use.TEST if inner in outer.ifs else None
        if isinstance(outer, ast.Subscript) and inner is outer.slice:
            return Use.KEY if self._is_python(outer.value) else Use.INDEX
        if isinstance(outer, (ast.Dict, ast.DictComp)) and _is_key(outer, inner):
            return Use.KEY
        if isinstance(outer, ast.Slice):
            return Use.SIZE
        if isinstance(outer, ast.Attribute) and conventions.makes_bytes(outer.attr):
            return Use.BYTES
        if isinstance(outer, ast.stmt):
            return self._statement(outer, inner, left)
        if isinstance(outer, ast.NamedExpr):
            return self._bound([outer.target], left)
        return Use.OTHER if isinstance(outer, (ast.Lambda, ast.Yield, ast.YieldFrom)) else None

    def _is_python(self, holder: ast.expr) -> bool:
        """True if an expression is a dict, a list or a tuple, whose elements a tensor cannot select on the GPU."""
        return all(isinstance(member, (Mapping, Sequence)) for member in self._model.value(holder).members)

    def _argument(self, call: ast.Call) -> Use | None:
        name = last_name(call)
        receiver = path_of(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        holder = receiver.rpartition(".")[2]
        is_function_of_number = name in _PASSES or self._model.target(call).startswith("math.")
        if is_function_of_number and not conventions.logs(holder):
            return None
        if name == "step" and conventions.is_environment(holder):
            return Use.ACTION
        if conventions.makes_bytes(name):
            return Use.BYTES
        if name in _LISTS:
            return Use.LOG if conventions.holds_log(holder) else Use.LIST
        if conventions.writes_log(name) or (name == "update" and conventions.holds_log(holder)):
            return Use.LOG
        return Use.SIZE if name in _SIZES else Use.OTHER

    def _statement(self, statement: ast.stmt, inner: ast.AST, left: int) -> Use | tuple[End, ...]:
        if isinstance(statement, ast.AugAssign) and inner is statement.value:
            holder = path_of(statement.target)
            if isinstance(statement.op, ast.Add) and isinstance(inner, (ast.List, ast.ListComp)):
                return Use.LIST
            return Use.SUM if isinstance(statement.op, (ast.Add, ast.Sub)) or not holder else Use.OTHER
        if isinstance(statement, ast.Assign):
            return self._bound(statement.targets, left)
        if isinstance(statement, ast.AnnAssign):
            return self._bound([statement.target], left)
        if isinstance(statement, ast.Return):
            function = self._model.function(statement)
            chooses = isinstance(function, ast.FunctionDef) and conventions.chooses_action(function.name)
            return Use.ACTION if chooses else Use.RETURNED
        if isinstance(statement, (ast.For, ast.AsyncFor)) and inner is statement.iter:
            return self._bound([statement.target], left)
        return Use.OTHER

    def _bound(self, targets: list[ast.expr], left: int) -> tuple[End, ...]:
        """The uses of a value that is assigned to targets."""
        return tuple(dict.fromkeys(end for target in targets for end in self._target(target, left)))

    def _target(self, target: ast.expr, left: int) -> list[End]:
        if isinstance(target, (ast.Tuple, ast.List)):
            return [end for element in target.elts for end in self._target(element, left)]
        if isinstance(target, ast.Starred):
            return self._target(target.value, left)
        if isinstance(target, (ast.Attribute, ast.Subscript)):
            return [End(self._kept(target), target)]
        if not isinstance(target, ast.Name):
            return []
        if conventions.is_action(target.id):
            return [End(Use.ACTION, target)]
        loads = self._loads_of(target) if left else []
        return [end for load in loads for end in self._used_at(load, target, left - 1)]

    def _kept(self, target: ast.Attribute | ast.Subscript) -> Use:
        """The use of a value that is put into an object or a container."""
        holder = target.value if isinstance(target, ast.Subscript) else target
        if conventions.holds_log(path_of(holder).rpartition(".")[2]):
            return Use.LOG
        if isinstance(target, ast.Subscript):
            parts = (*walk(holder), *walk(self._origins.of(holder).node))
            if any(isinstance(part, ast.Attribute) and part.attr == "param_groups" for part in parts):
                return Use.SETTING
        return Use.KEPT

    def _used_at(self, load: ast.Name, target: ast.Name, left: int) -> tuple[End, ...]:
        """The uses of one load of a name. Bytes that are made after a loop need the value of its last turn only."""
        ends = self._ends_of(load, left)
        loop = next((outer for outer in self._model.ancestors(target) if isinstance(outer, LOOPS)), None)
        if loop is not None and loop not in self._model.ancestors(load):
            return tuple(End(Use.KEPT, end.node) if end.use is Use.BYTES else end for end in ends)
        return ends

    def _loads_of(self, target: ast.Name) -> list[ast.Name]:
        """The loads of a name in its function, those behind a binding of it first."""
        uses = self._model.names(self._model.function(target) or self._model.module.tree, target.id)
        reads = [name for name in uses if isinstance(name.ctx, ast.Load)][:200]
        here = (target.lineno, target.col_offset)
        loads = [load for load in reads if (load.lineno, load.col_offset) > here]
        return loads[:_MOST_LOADS]
