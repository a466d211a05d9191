"""The names of a region: what a function that is made of it gets, returns and finds around it."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator, Sequence
from keyword import iskeyword

from perflint.frozen import dataclass, replace
from perflint.semantics.structure import path_of, root_of
from perflint.tune.graphs.parts import Function, Region
from perflint.tune.graphs.purity import (
    CHANGING,
    DEFINITIONS,
    Imports,
    Purity,
    argument_names,
    definitions,
    loaded_names,
    local_names,
    short,
    stored_names,
)
from perflint.tune.graphs.reached import Reached
from perflint.tune.graphs.statements import counters_of
from perflint.tune.refused import Refused


@dataclass(frozen=True, slots=True)
class Given:
    """An input of the function: an expression that the caller evaluates, and the name that it has inside."""

    name: str
    places: tuple[ast.expr, ...]
    """The expressions in the region that it stands for; empty for a name that stays the same."""
    text: str
    """The expression as the caller writes it."""
    moves: bool = False
    """True if it is another number in each step."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a region."""

    given: tuple[Given, ...]
    returned: tuple[str, ...]
    anchor: ast.stmt | None
    """The loop or function in front of which the new one is defined; None in a method, which becomes two."""


class Sorter:
    """Sorts the names of one region."""

    def __init__(
        self,
        tree: ast.Module,
        region: Region,
        purity: Purity,
        reached: Reached,
        optimizers: Sequence[ast.expr],
        switches_modes: bool,
        takes_holders: bool,
        lasts: bool,
        moving: Collection[str] = (),
    ) -> None:
        """`takes_holders` is true if the helper finds models, in place of `optimizers`, among the inputs, `lasts` if
        the graph outlives a call of the function with the step, in spite of its loops. `moving` are names of the
        function that are another number in each step.
        """
        self._moving = moving
        self._tree = tree
        self._region = region
        self._purity = purity
        self._imports = purity.imports
        self._reached = reached
        self._changed = reached.changed
        self._numbers = reached.numbers
        self._optimizers = optimizers
        self._switches_modes = switches_modes
        self._takes_holders = takes_holders
        self._lasts = lasts
        self._loops = () if lasts else region.loops
        self._bound = {name for each in region.kept for name in stored_names(each)}
        self._scope = region.owner

    def sort(self) -> Names:
        """The names. Raises Refused."""
        anchor = self._anchor()
        self._require_same_guards(anchor)
        needed, sure = _needed(self._region.kept)
        order = dict.fromkeys(name.id for each in self._region.kept for name in loaded_names(each))
        varying = [name for name in order if name in needed and self._varies(name, anchor)]
        if self._lasts:
            self._require_kept(varying)
        given = [
            each
            for name in varying
            for each in self._elements(name) or self._attributes(name) or [Given(name, (), name)]
        ]
        given += self._tests(anchor)
        given += self._paths(anchor, {place for each in given for place in each.places})
        given = list(self._renamed(given))
        returned = self._returned(needed)
        unsure = [name for name in returned if name not in sure and name not in needed]
        if unsure:
            raise Refused(f"`{unsure[0]}` is bound in only one branch of the step", self._region.kept[0])
        self._require_no_counter(given)
        moving = [each for each in given if each.moves]
        if moving and self._may_return_number(moving, returned):
            given = [replace(each, moves=False) for each in given]
        return Names(tuple(given), tuple(returned), anchor)

    def _may_return_number(self, moving: Sequence[Given], returned: Collection[str]) -> bool:
        """True if a result may be computed of numbers alone, or hold them: other code may need these as they are."""
        places = {place for each in moving for place in each.places}
        names = {each.name for each in moving if not each.places}
        bindings = [
            (set(stored_names(node)), node.value)
            for each in self._region.kept
            for node in ast.walk(each)
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None
        ]
        before = -1
        while len(names) > before:
            before = len(names)
            for stored, value in bindings:
                if _may_hold(value, names, places, self._imports):
                    names |= stored
        read = {
            path_of(node.value)
            for node in ast.walk(self._scope)
            if isinstance(node, ast.Attribute) and node.attr in _OF_TENSORS
        }
        return not names.isdisjoint(set(returned) - read)

    def _renamed(self, given: Sequence[Given]) -> Iterator[Given]:
        """Inputs with names of their own."""
        known = {each.name for each in given if not each.places}
        for each in given:
            name = free(each.name, known) if each.places else each.name
            known.add(name)
            yield replace(each, name=name, moves=each.text in self._moving and each.text not in self._bound)

    def _require_kept(self, names: Sequence[str]) -> None:
        """Raise Refused if each call of the function makes an object that the step calls, so that each had a graph."""
        made = {*stored_names(self._scope), *definitions(self._scope)} & self._called()
        if name := next((name for name in names if name in made), ""):
            raise Refused(f"each call of the function makes `{name}`", self._region.kept[0])

    def _require_same_guards(self, anchor: ast.stmt | None) -> None:
        """Raise Refused if a step may be eager and the next one not."""
        for guard in self._region.guards:
            names = {name.id for name in loaded_names(guard.test)}
            calls = any(isinstance(node, ast.Call) for node in ast.walk(guard.test))
            varies = any(self._varies(name, anchor) for name in names) or any(self._varying_paths(guard.test))
            if calls or varies or names & self._bound:
                raise guard.reason

    def _elements(self, name: str) -> list[Given]:
        """The elements of a batch that the step reads by their keys; empty if it uses the batch in another way."""
        nodes = [node for each in self._region.kept for node in ast.walk(each)]
        found: dict[str, list[ast.expr]] = {}
        for node in nodes:
            if isinstance(node, ast.Subscript) and path_of(node.value) == name and isinstance(node.slice, ast.Constant):
                if isinstance(node.slice.value, str):
                    found.setdefault(node.slice.value, []).append(node)
        uses = sum(isinstance(node, ast.Name) and node.id == name for node in nodes)
        if uses != sum(map(len, found.values())):
            return []
        return [
            Given(self._free(key if key.isidentifier() else name), tuple(places), ast.unparse(places[0]))
            for key, places in found.items()
        ]

    def _attributes(self, name: str) -> list[Given]:
        """The attributes that the step reads of an object, such as options; empty if it uses it in another way."""
        nodes = [node for each in self._region.kept for node in ast.walk(each)]
        called = {node.func for node in nodes if isinstance(node, ast.Call)}
        found: dict[str, list[ast.expr]] = {}
        for node in nodes:
            if isinstance(node, ast.Attribute) and path_of(node.value) == name and node not in called:
                if isinstance(node.ctx, ast.Load):
                    found.setdefault(node.attr, []).append(node)
        uses = sum(isinstance(node, ast.Name) and node.id == name for node in nodes)
        if uses != sum(map(len, found.values())):
            return []
        return [Given(self._free(key), tuple(places), ast.unparse(places[0])) for key, places in found.items()]

    def _anchor(self) -> ast.stmt | None:
        """The outermost loop of the owner in which no optimizer is bound, or a function that is called in a loop.

        Raises Refused.
        """
        roots = {root_of(each) for each in self._optimizers}
        paths = {path_of(each) for each in self._optimizers}
        for loop in self._loops:
            stores = {path_of(node) for node in ast.walk(loop) if _is_stored(node)}
            if not stores & (roots | paths):
                return loop
        if self._loops:
            raise Refused("the optimizer is made in the loop of the step", self._loops[-1])
        if isinstance(self._scope, ast.Module):
            raise Refused("the step is not in a loop", self._region.whole[0])
        if self._scope not in self._tree.body:
            return None
        assert isinstance(self._scope, Function)
        rest = roots - argument_names(self._scope) if self._takes_holders else roots
        return self._scope if self._made_before(rest) else None

    def _made_before(self, roots: Collection[str]) -> bool:
        """True if the module binds names once, before the function that is the owner of the step."""
        assert isinstance(self._scope, Function)
        before = self._tree.body[: self._tree.body.index(self._scope)]
        bound = [name for each in before for name in stored_names(each)]
        is_made = all(name in bound and list(stored_names(self._tree)).count(name) == 1 for name in roots)
        return is_made and argument_names(self._scope).isdisjoint(roots)

    def _varies(self, name: str, anchor: ast.stmt | None) -> bool:
        """True if a name may stand for something else in another step."""
        made = set(definitions(self._scope)) if isinstance(self._scope, Function) else set()
        if (name in self._imports or name in dir(builtins)) and not self._stored_in(self._tree, name):
            if name not in made:
                return False
        if self._switches_modes and name in self._called() and not self._is_function(name):
            return True
        if isinstance(self._scope, Function) and self._is_local(name):
            return not self._is_self(name) if anchor in (None, self._scope) else self._stored_in(anchor, name)
        shared = {each for node in ast.walk(self._tree) if isinstance(node, ast.Global) for each in node.names}
        return name in shared or any(self._stored_in(loop, name) for loop in _own_loops(self._tree.body))

    def _stored_in(self, node: ast.AST, name: str) -> bool:
        """True if code inside a node binds a name, an element of it, or changes it as a container."""
        if node is not self._tree and name in definitions(node):
            return True
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store):
                return True
            if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store) and path_of(each.value) == name:
                return True
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in CHANGING:
                # A dictionary is updated with something, unlike a scaler.
                is_empty = each.func.attr == "update" and not each.args and not each.keywords
                if path_of(each.func.value) == name and not is_empty:
                    return True
        return False

    def _is_local(self, name: str) -> bool:
        assert isinstance(self._scope, Function)
        return name in local_names(self._scope)

    def _is_self(self, name: str) -> bool:
        """True for the first argument of a method."""
        assert isinstance(self._scope, Function)
        return bool(self._scope.args.args) and self._scope.args.args[0].arg == name and name == "self"

    def _is_function(self, name: str) -> bool:
        kinds = (*DEFINITIONS, ast.ClassDef)
        return any(isinstance(node, kinds) and node.name == name for node in ast.walk(self._tree))

    def _called(self) -> set[str]:
        calls = (node for each in self._region.kept for node in ast.walk(each) if isinstance(node, ast.Call))
        return {path_of(call.func) for call in calls}

    def _tests(self, anchor: ast.stmt | None) -> Iterator[Given]:
        """The conditions that may be another in another step: there is a graph for each of their values."""
        for node in (node for each in self._region.kept for node in ast.walk(each)):
            if not isinstance(node, (ast.If, ast.IfExp)) or isinstance(node.test, ast.Constant):
                continue
            names = {name.id for name in loaded_names(node.test)}
            if names & self._bound:
                continue
            if any(self._varies(name, anchor) for name in names) or any(self._varying_paths(node.test)):
                if node in self._region.conditions:
                    raise Refused("the optimizer steps only if a condition holds, so gradients may add up", node)
                text = short(node.test, limit=10_000)
                is_bool = isinstance(node.test, ast.Compare) or text.startswith("not ")
                yield Given(self._free("is_due"), (node.test,), text if is_bool else f"bool({text})")

    def _paths(self, anchor: ast.stmt | None, done: Collection[ast.expr]) -> Iterator[Given]:
        """The attributes of what stays that may be another in another step."""
        inside = {node for each in done for node in ast.walk(each)}
        found: dict[str, list[ast.expr]] = {}
        for statement in self._region.kept:
            for node in _outermost(statement, set(self._varying_paths(statement))):
                if node not in inside and root_of(node) not in self._bound:
                    found.setdefault(ast.unparse(node), []).append(node)
        for text, places in found.items():
            yield Given(self._free(_named(places[0])), tuple(places), text)

    def _varying_paths(self, node: ast.AST) -> Iterator[ast.expr]:
        called = {each.func for each in ast.walk(node) if isinstance(each, ast.Call)}
        for each in ast.walk(node):
            if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load) and path_of(each.value):
                if root_of(each) not in self._bound and self._reached.changes_element(each):
                    yield each
            if not isinstance(each, ast.Attribute) or not isinstance(each.ctx, ast.Load) or not path_of(each):
                continue
            if root_of(each) in self._bound or root_of(each) in self._imports:
                continue
            is_own = each in called and root_of(each) == "self" and "." not in _rest(each)
            is_module = self._switches_modes and is_own and not self._is_function(each.attr)
            is_changed = each.attr in self._changed and not (each in called and each.attr in self._numbers)
            if is_changed or is_module:
                yield each

    def _returned(self, needed: Collection[str]) -> list[str]:
        """The names that code outside of the region reads, or the next step."""
        inside = {node for each in self._region.kept for node in ast.walk(each)}
        moved = {node for each in self._region.behind for node in ast.walk(each.statement)}
        lifted = {node for each in self._region.behind for part in each.lifted for node in ast.walk(part)}
        deleted = {name.id for each in self._region.kept for name in _deleted(each)}
        found = []
        for node in ast.walk(self._scope):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in self._bound - deleted:
                if node.id in needed or ((node not in inside or node in moved) and node not in lifted):
                    found.append(node.id)
            if isinstance(node, (ast.Global, ast.Nonlocal)) and self._bound & set(node.names):
                raise Refused("the step binds a name that is not its own", node)
        return list(dict.fromkeys(found))

    def _require_no_counter(self, given: Sequence[Given]) -> None:
        """Raise Refused if an input is a number that is another one in each step, so that each had its own graph."""
        for loop in self._region.loops:
            for name in counters_of(loop):
                if any(each.text == name for each in given):
                    raise Refused(f"the step uses `{name}`, a number that changes each time", self._region.kept[0])

    def _free(self, name: str) -> str:
        known = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        known |= {node.arg for node in ast.walk(self._tree) if isinstance(node, ast.arg)} | set(dir(builtins))
        return free(name, known)


_OF_TENSORS = ("backward", "item", "detach", "cpu")
"""Attributes that numbers do not have, or that give the same of a number and of a tensor."""


def _may_hold(node: ast.AST, names: Collection[str], places: Collection[ast.AST], imports: Imports) -> bool:
    """True if a value may be a number that is computed of names and places alone, or hold one."""
    if node in places or isinstance(node, ast.Name):
        return node in places or getattr(node, "id", "") in names
    if isinstance(node, ast.Call) and imports.full_name(node.func).startswith("torch."):
        return False
    parts = list(ast.iter_child_nodes(node))
    found = [_may_hold(part, names, places, imports) for part in parts]
    if isinstance(node, ast.BinOp):
        # What is computed of a number and a tensor is a tensor.
        sides = ((node.left, found[0]), (node.right, found[-1]))
        return any(found) and all(known or isinstance(side, ast.Constant) for side, known in sides)
    return any(found)


def _own_loops(block: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The loops of a module that are in no function."""
    for node in block:
        if isinstance(node, (ast.For, ast.While)):
            yield node
        elif not isinstance(node, (*DEFINITIONS, ast.ClassDef)):
            yield from _own_loops(list(ast.iter_child_nodes(node)))


def free(name: str, known: Collection[str]) -> str:
    """A name like another that is not known yet."""
    candidate, number = name, 1
    while candidate in known:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def _needed(statements: Sequence[ast.stmt]) -> tuple[set[str], set[str]]:
    """The names that statements read before they surely bind them, and those that they surely bind."""
    needed: set[str] = set()
    sure: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.If):
            needed |= _reads(statement.test) - sure
            parts = [_needed(part) for part in (statement.body, statement.orelse)]
            needed |= (parts[0][0] | parts[1][0]) - sure
            ends = [bool(part) and isinstance(part[-1], ast.Raise) for part in (statement.body, statement.orelse)]
            reached = [part for part, end in zip(parts, ends, strict=True) if not end] or parts
            sure |= set.intersection(*(bound for _, bound in reached))
        elif isinstance(statement, ast.With):
            inner, bound = _needed(statement.body)
            given = {name for item in statement.items for name in stored_names(item.optional_vars or ast.Pass())}
            needed |= ({name for item in statement.items for name in _reads(item.context_expr)} | inner - given) - sure
            sure |= bound | given
        elif isinstance(statement, ast.Try):
            needed |= _try(statement)[0] - sure
            sure |= _try(statement)[1]
        elif isinstance(statement, ast.For):
            needed |= _reads(statement.iter) - sure
            needed |= _needed(statement.body)[0] - sure - set(stored_names(statement.target))
        else:
            needed |= _reads(statement) - sure
            if isinstance(statement, ast.AugAssign):
                needed |= set(stored_names(statement.target)) - sure
            sure |= set(stored_names(statement))
    return needed, sure


def _try(statement: ast.Try) -> tuple[set[str], set[str]]:
    """The names of a `try` as `_needed` has them: what one of its blocks binds may be missing in another."""
    body, otherwise, finally_ = (_needed(part) for part in (statement.body, statement.orelse, statement.finalbody))
    needed = body[0] | (otherwise[0] - body[1]) | finally_[0]
    ends = [] if isinstance(statement.body[-1], ast.Raise) else [body[1] | otherwise[1]]
    for handler in statement.handlers:
        names, bound = _needed(handler.body)
        needed |= names - {handler.name or ""}
        ends += [] if isinstance(handler.body[-1], ast.Raise) else [bound]
    return needed, finally_[1].union(set.intersection(*ends) if ends else ())


def _deleted(statement: ast.stmt) -> Iterator[ast.Name]:
    if isinstance(statement, ast.Delete):
        yield from (each for each in statement.targets if isinstance(each, ast.Name))


def _reads(node: ast.AST) -> set[str]:
    return {name.id for name in loaded_names(node)}


def _named(node: ast.expr) -> str:
    """A name for an attribute or an element."""
    key = node.slice.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) else None
    if isinstance(key, str) and key.isidentifier() and not iskeyword(key):
        return key
    return path_of(node.value if isinstance(node, ast.Subscript) else node).rpartition(".")[2]


def _outermost(node: ast.AST, wanted: Collection[ast.AST]) -> Iterator[ast.expr]:
    if node in wanted and isinstance(node, ast.expr):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _outermost(child, wanted)


def _rest(node: ast.AST) -> str:
    return path_of(node).partition(".")[2]


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store)
