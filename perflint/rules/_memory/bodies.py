"""The names and attributes that share the memory of a function's tensors, and the code that may write to it."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import pairwise

from perflint.rules._memory import operators
from perflint.rules._memory.flows import Body, body_around, flow_around
from perflint.rules._memory.uses import HARMLESS, Fate, Position, Uses, handed
from perflint.rules._visible import is_local
from perflint.semantics.around import statement_of
from perflint.semantics.binders import own_nodes, targets
from perflint.semantics.dataflow.flow import Bound
from perflint.semantics.memo import once, once_per_node
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name
from perflint.semantics.values import Const, DeviceValue, Dtype, Instance, Scalar, Sequence, Tensor, Value

Place = Bound | str
"""Something that holds a tensor: a binding of a local name, or text for a name or attribute that others see."""

_PLAIN: tuple[type[Value], ...] = (Scalar, Const, Dtype, DeviceValue)
"""Values that hold no memory."""
_MOST_OWNERS = 32
"""The number of objects with an attribute of one name that are kept apart."""
_STATE = ".state_dict()"
"""The place of all results of the methods that give a module's state."""
_LETS_OTHERS_RUN = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
LAST = (1 << 30, 0)
"""A position behind all code."""
_LAYERS = HARMLESS | {Fate.LAYER}


class Writers(IntEnum):
    """The most dangerous code that may write to a tensor in some lines."""

    NONE = 0
    STRANGERS = 1
    """Unknown code runs that does not get the tensor as an argument, but may know it from elsewhere."""
    LAYERS = 2
    """Layers are handed the tensor, which by custom leave it as it is."""
    KNOWING = 3
    """Unknown code runs that may reach the tensor by an attribute or a name of others."""
    HANDED = 4
    """Unknown code is handed the tensor."""
    WRITTEN = 5
    """A statement writes to it."""


class Memory:
    """The names, attributes and containers of one function, grouped by the memory that they may share."""

    def __init__(self, model: Model, body: Body) -> None:
        self._model = model
        self._flow = flow_around(model, body if isinstance(body, ast.Module) else _inside(body))
        self._next: dict[Place, Place] = {}
        """From each place to the next, up to the one that represents all places with the same memory."""
        self._members: dict[Place, list[Place]] = {}
        """The places of each group."""
        self._owners: dict[Place, set[Place]] = {}
        """The groups of the objects that an attribute is asked of, by its group."""
        self._nodes = list(own_nodes(body))
        self._open: set[Place] = set()
        """Groups that code outside of the function may know without being handed them."""
        self._given: set[Place] = set()
        """Groups of parameters."""
        self._writes: dict[Place, list[Position]] = {}
        self._loose: set[Place] = set()
        """Groups with a method that writes and that something may call at any time."""
        self._reshaped: set[Place] = set()
        """Groups whose tensors get another shape in place."""
        self._anywhere: list[Position] = []
        """Writes to unknown memory."""
        self._passed: dict[Place, list[Position]] = {}
        """Calls of unknown code that are handed a group."""
        self._layers: dict[Place, list[Position]] = {}
        self._strangers: list[Position] = []
        """All places at which other code may run."""
        self._share()
        self._settle()
        self._note_writes()
        self._note_calls()
        for positions in (*self._writes.values(), *self._passed.values(), *self._layers.values()):
            positions.sort()
        self._strangers.sort()
        self._anywhere.sort()

    def group(self, node: ast.expr) -> set[Place]:
        """The keys of all that may share memory with an expression; empty for memory of its own."""
        return {self._find(place) for place in self._places(node)}

    def writers(self, node: ast.expr, begin: Position, end: Position) -> Writers:
        """The most dangerous code that may write to the memory of an expression between two positions."""
        groups = self.group(node)
        if not groups:
            return Writers.NONE
        with_owners = groups.union(*(self._owners.get(group, ()) for group in groups))
        if any(_any(self._writes.get(each), begin, end) for each in groups):
            return Writers.WRITTEN
        if any(_STATE in self.members(each) for each in groups) and self._writes_of_others(begin, end):
            return Writers.WRITTEN
        if not groups.isdisjoint(self._loose):
            return Writers.HANDED
        if len(with_owners) > _MOST_OWNERS or any(_any(self._passed.get(each), begin, end) for each in with_owners):
            return Writers.HANDED
        strangers = _any(self._strangers, begin, end) or _any(self._anywhere, begin, end)
        if strangers and any(isinstance(each, str) or each in self._open for each in groups):
            return Writers.KNOWING
        if any(_any(self._layers.get(each), begin, end) for each in with_owners):
            return Writers.LAYERS
        return Writers.STRANGERS if strangers else Writers.NONE

    def _writes_of_others(self, begin: Position, end: Position) -> bool:
        """True if a statement between two positions writes to memory that the function did not make."""
        return any(
            _any(positions, begin, end)
            for group, positions in self._writes.items()
            if group in self._open or group in self._given or any(isinstance(each, str) for each in self.members(group))
        )

    def is_written(self, node: ast.expr, begin: Position, end: Position) -> bool:
        """True if a statement between two positions writes to the memory of an expression."""
        return any(_any(self._writes.get(group), begin, end) for group in self.group(node))

    def is_reshaped(self, node: ast.expr) -> bool:
        """True if a tensor that may share memory with an expression gets another shape in place."""
        return not self._reshaped.isdisjoint(self.group(node))

    def is_own(self, node: ast.expr) -> bool:
        """True if only local names of the function, none of them a parameter, may share memory with an expression."""
        groups = self.group(node)
        return not any(isinstance(each, str) or each in self._open or each in self._given for each in groups)

    def members(self, group: Place) -> list[Place]:
        """The local bindings, and the names and attributes that others see, that may share the memory of a group."""
        return self._members.get(group, [])

    def written_attributes(self) -> Iterator[str]:
        """The names of attributes whose memory the function writes to."""
        for group in self._writes:
            yield from (place[1:] for place in self.members(group) if isinstance(place, str) and place[0] == ".")

    # Groups

    def _find(self, place: Place) -> Place:
        root = place
        while (further := self._next.setdefault(root, root)) != root:
            root = further
        while self._next[place] != root:
            self._next[place], place = root, self._next[place]
        return root

    def _unite(self, places: list[Place]) -> None:
        for one, other in pairwise(places):
            self._next[self._find(one)] = self._find(other)

    def _share(self) -> None:
        for bound in self._flow.bounds:
            self._find(bound)
            for further in bound.into:
                if further.live:
                    self._unite([bound, further])
            if bound.value is not None:
                self._unite([bound, *self._places(bound.value)])
        for node in self._nodes:
            self._share_by(node)

    def _settle(self) -> None:
        """List the groups, now that they are whole."""
        for node in self._nodes:
            if isinstance(node, ast.Attribute) and node.attr not in operators.FACTS:
                self._owners.setdefault(self._find(f".{node.attr}"), set()).update(self.group(node.value))
        for place in list(self._next):
            group = self._find(place)
            self._members.setdefault(group, []).append(place)
            if isinstance(place, str) or (isinstance(place.node, (ast.Name, ast.arg)) and not self._is_local(place)):
                self._open.add(group)
            if isinstance(place, Bound) and isinstance(place.node, ast.arg):
                self._given.add(group)

    def _is_local(self, bound: Bound) -> bool:
        assert isinstance(bound.node, (ast.Name, ast.arg))
        return is_local(self._model, bound.node)

    def _share_by(self, node: ast.AST) -> None:
        """Note the values that a node puts into an attribute or a container."""
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            given = self._places(node.value)
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for part in targets(target):
                    if isinstance(part, ast.Attribute):
                        self._unite([*self._places(part), *given])
                    elif isinstance(part, ast.Subscript) and not self._model.value(part.value).tensor:
                        self._unite([*self._places(part.value), *given])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in operators.GROWS:
            if self._model.value(node.func.value).tensor is None:
                self._unite([*self._places(node.func.value), *(p for each in node.args for p in self._places(each))])

    def _places(self, node: ast.expr) -> list[Place]:
        """The holders, certain or possible, of the memory of the value of an expression."""
        found: list[Place] = []
        waiting = [node]
        while waiting:
            each = operators.shared(self._model, waiting.pop())
            if isinstance(self._model.value(each), _PLAIN):
                continue
            if isinstance(each, ast.Name):
                found.append(self._flow.used.get(each) or self._flow.stored.get(each) or each.id)
            elif isinstance(each, ast.Attribute):
                if each.attr not in operators.FACTS:
                    found.append(f".{each.attr}")
            elif isinstance(each, ast.Call):
                if isinstance(each.func, ast.Attribute) and each.func.attr in operators.MODULE_STATE:
                    found.append(_STATE)
                waiting += self._handed_on(each)
            elif isinstance(each, (ast.IfExp, ast.BoolOp, ast.Tuple, ast.List, ast.Set, ast.Dict)):
                waiting += [inner for inner in ast.iter_child_nodes(each) if isinstance(inner, ast.expr)]
            elif isinstance(each, (ast.NamedExpr, ast.Await, ast.Starred)):
                waiting.append(each.value)
            elif isinstance(each, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
                waiting.append(each.elt)
            elif isinstance(each, ast.DictComp):
                waiting.append(each.value)
        return found

    def _is_whole(self, owner: ast.expr) -> bool:
        """True for an object whose attributes are independent of each other: `self`, a module."""
        named = isinstance(owner, ast.Name) and owner.id in ("self", "cls")
        return named or isinstance(self._model.value(owner), Instance)

    def _handed_on(self, call: ast.Call) -> list[ast.expr]:
        """The arguments of a call that its result may share memory with."""
        target = self._model.target(call)
        if operators.is_known(self._model, call) and target not in operators.PASSES_ON:
            return []
        found = [*call.args, *(keyword.value for keyword in call.keywords)]
        if isinstance(call.func, ast.Attribute) and not self._is_whole(call.func.value):
            found.append(call.func.value)
        return found

    # Writes and calls

    def _note_writes(self) -> None:
        for node in self._nodes:
            if operators.is_bound_write(self._model, node):
                assert isinstance(node, ast.Attribute)
                self._loose |= self.group(node.value)
            for each in operators.written(self._model, node):
                if isinstance(node, ast.AugAssign) and isinstance(self._model.value(each), (Scalar, Const)):
                    continue
                groups = self.group(each) | self._holders(each)
                if isinstance(node, ast.Attribute) or last_name(node) in operators.RESHAPES:
                    self._reshaped |= groups
                for group in groups:
                    self._writes.setdefault(group, []).append(position(node))
                if not groups and not self._is_own(each):
                    self._anywhere.append(position(node))

    def _holders(self, node: ast.expr) -> set[Place]:
        """The groups of the objects around an attribute or item that is written to: they may share its memory."""
        base = operators.shared(self._model, node)
        found: set[Place] = set()
        while isinstance(base, (ast.Attribute, ast.Subscript)):
            base = base.value
            found |= set() if self._is_whole(base) else self.group(base)
        return found

    def _is_own(self, node: ast.expr) -> bool:
        """True if an expression has memory that no name holds: the result of arithmetic, or of torch."""
        base = operators.shared(self._model, node)
        return not isinstance(base, ast.Call) or operators.is_known(self._model, base)

    def _note_calls(self) -> None:
        for node in self._nodes:
            if isinstance(node, ast.Call):
                if not operators.is_known(self._model, node):
                    self._strangers.append(position(node))
                    self._note_call(node)
            elif isinstance(node, _LETS_OTHERS_RUN) or (isinstance(node, ast.For) and not self._is_plain(node.iter)):
                self._strangers.append(position(node))
                if isinstance(node, (ast.Yield, ast.YieldFrom)):
                    # The caller continues, with the arguments and the result.
                    given = set() if node.value is None else self.group(node.value)
                    self._note_passed(self._passed, given | self._given, node)

    def _is_plain(self, over: ast.expr) -> bool:
        """True if a loop iterates over existing elements, so that taking the next one runs no unknown code."""
        if isinstance(over, ast.Call):
            target = self._model.target(over)
            return target == "builtins.range" or (
                target in operators.PASSES_ON and all(self._is_plain(each) for each in over.args)
            )
        value = self._model.value(over)
        return isinstance(value, Tensor) or (isinstance(value, Sequence) and value.type not in ("iterator", "batch"))

    def _note_call(self, call: ast.Call) -> None:
        layer = operators.is_layer(self._model, call)
        of_torch = self._model.target(call).startswith("torch.") and not layer
        given: list[tuple[ast.expr, str | None]] = [(each, "") for each in call.args]
        given += [(each.value, each.arg) for each in call.keywords]
        for each, keyword in given:
            groups = self.group(each)
            # `**mapping` may go to any parameter.
            is_passed = of_torch or not groups or keyword is None
            does = {Fate.PASSED} if is_passed or keyword is None else handed(self._model, call, each, keyword)
            if not does <= HARMLESS:
                self._note_passed(self._layers if layer or does <= _LAYERS else self._passed, groups, call)
        target = self._model.target(call)
        if isinstance(call.func, ast.Attribute) and target != "torch.Tensor.backward":
            # An optimizer writes to the parameters that it was made of.
            if not self._is_whole(call.func.value) or target.startswith("torch.optim."):
                self._note_passed(self._passed, self.group(call.func.value), call)

    def _note_passed(self, noted: dict[Place, list[Position]], groups: Iterable[Place], call: ast.expr) -> None:
        for group in groups:
            noted.setdefault(group, []).append(position(call))


def memory_around(model: Model, node: ast.AST) -> Memory:
    """The memory of the function around a node, or of the top level of the file."""
    return _memory_of(model, body_around(model, node))


@once_per_node
def _memory_of(model: Model, body: Body) -> Memory:
    return Memory(model, body)


@once
def attributes_written(model: Model) -> frozenset[str]:
    """The names of attributes whose memory some function of the file writes to, but for constructors."""
    functions = [info.node for info in model.module.structure.functions.values() if not info.constructs]
    bodies = (memory_around(model, _inside(each)) for each in functions)
    return frozenset(name for each in bodies for name in each.written_attributes())


def writers(model: Model, node: ast.expr, begin: Position, end: Position) -> Writers:
    """The most dangerous code that may write to the memory of an expression between two positions of its function.

    Code that runs in between is assumed to write to an attribute if any function of the file does.
    """
    memory = memory_around(model, node)
    found = memory.writers(node, begin, end)
    if found is Writers.KNOWING:
        places = [place for group in memory.group(node) for place in (group, *memory.members(group))]
        names = {place[1:] for place in places if isinstance(place, str) and place.startswith(".")}
        if not names.isdisjoint(attributes_written(model)):
            return Writers.HANDED
    return found


def writers_during(
    model: Model, node: ast.expr, shares: ast.expr, uses: Uses, *, until_backward: bool = True
) -> Writers:
    """The most dangerous code that may write to a tensor while a value that shares its memory is in use.

    `node` makes the value, `shares` is the tensor, and `uses` are those of the value. With `until_backward`, it is in
    use as long as autograd may keep it.
    """
    statement = statement_of(model, node)
    if statement is None:
        return Writers.WRITTEN
    begin, end = position(statement), uses.last
    for loop in uses.loops:
        begin = min(begin, position(loop))
        end = max(end, (loop.end_lineno or 0, loop.end_col_offset or 0))
    if uses.saved and until_backward:
        # Autograd may read it until the backward pass, which comes after all of the function.
        end = LAST
        base = operators.shared(model, shares)
        if isinstance(base, ast.Attribute) and base.attr in attributes_written(model):
            return Writers.WRITTEN
    return writers(model, shares, begin, end)


def _inside(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> ast.AST:
    return function.body if isinstance(function, ast.Lambda) else function.body[0]


def position(node: ast.AST) -> Position:
    """The line and column at which a node begins."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _any(positions: list[Position] | None, begin: Position, end: Position) -> bool:
    """True if one of sorted positions lies between two."""
    if not positions:
        return False
    index = bisect_left(positions, begin)
    return index < len(positions) and positions[index] <= end
