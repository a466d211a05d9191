"""Reaching definitions of all names of a function, found in one pass over it.

`definitions` answers for one name at one place and runs through the scope for each question. Here each load of a name
gets its definition, or a join of several, in time linear in the size of the function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from perflint.frozen import dataclass, field
from perflint.semantics.binders import COMPREHENSIONS, Loop, bound_names, names_of_loops, parameters, targets
from perflint.semantics.structure import children, walk

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_MOST_SNAPSHOTS = 8
"""The number of `break` and `continue` of a loop that are kept apart; with more, all of its definitions count."""


@dataclass(slots=True, eq=False)
class Definition:
    """A point that gives a name its value, or a join of several such points (`node` is None)."""

    name: str
    node: ast.AST | None
    """The target, parameter, import or definition that binds the name."""
    sources: list[Definition] = field(default_factory=list, repr=False)
    """The definitions whose value this one may have as well: those joined, the one before `+=`."""


@dataclass(slots=True)
class Reaching:
    """The definitions of a scope and its loads."""

    loads: dict[ast.Name, Definition] = field(default_factory=dict)
    """The definition that a load of a local name may have its value from; other names have none."""
    stores: dict[ast.AST, Definition] = field(default_factory=dict)
    """The definition that a target, a parameter or a statement makes."""
    before: dict[ast.Name, Definition] = field(default_factory=dict)
    """The definition that the target of `+=` had before."""
    definitions: list[Definition] = field(default_factory=list)
    """All of them, joins too."""
    shared: set[str] = field(default_factory=set)
    """The names that are `global` or `nonlocal`."""
    steps: int = 0
    """The work that it took: nodes read and names joined."""


def reaching(scope: ast.Module | _Function) -> Reaching:
    """The definitions that reach each load of a scope, without those in functions and classes inside it."""
    reader = _Reader(names_of_loops(scope.body))
    if not isinstance(scope, ast.Module):
        for name, argument in parameters(scope).items():
            reader.bind(name, argument)
    reader.run(scope.body)
    return reader.found


_Names = dict[str, Definition | None]


@dataclass(slots=True)
class _Outcome:
    """The bindings that a branch changed, and True if it continues with the code after it."""

    names: _Names
    goes_on: bool


@dataclass(slots=True)
class _Jumps:
    """The bindings at the `break`s and `continue`s of a loop."""

    breaks: list[_Names] = field(default_factory=list)
    continues: list[_Names] = field(default_factory=list)
    are_many: bool = False


class _Reader:
    """Runs through a scope in program order with the present definition of each name."""

    def __init__(self, names_of_loops: Mapping[ast.AST, Collection[str]]) -> None:
        self.found = Reaching()
        self._names_of_loops = names_of_loops
        self._now: _Names = {}
        self._changed: _Names = {}
        """The definitions of names before the present branch first bound them."""
        self._made: list[Definition] = []
        """The names that the present loop or `try` has bound so far."""
        self._loops: list[tuple[Collection[str], _Jumps]] = []
        self._goes_on = True

    # Names

    def bind(self, name: str, node: ast.AST, *also: Definition | None) -> None:
        """Let a node bind a name, to a value of its own and to those of other definitions."""
        made = self._define(name, node, also)
        self.found.stores[node] = made
        self._set(name, made)

    def _define(self, name: str, node: ast.AST | None, sources: Iterable[Definition | None]) -> Definition:
        made = Definition(name, node, [each for each in dict.fromkeys(sources) if each is not None])
        self.found.steps += 1 + len(made.sources)
        self.found.definitions.append(made)
        self._made.append(made)
        return made

    def _set(self, name: str, definition: Definition | None) -> None:
        if name not in self._changed:
            self._changed[name] = self._now.get(name)
        self._now[name] = definition

    def _set_all(self, names: _Names) -> None:
        for name, definition in names.items():
            self._set(name, definition)

    def _join(self, outcomes: list[_Outcome]) -> None:
        """Continue with the bindings at the ends of branches."""
        alive = [outcome for outcome in outcomes if outcome.goes_on]
        self._goes_on = self._goes_on and bool(alive)
        by_name: dict[str, list[Definition | None]] = {}
        for outcome in alive:
            for name, definition in outcome.names.items():
                by_name.setdefault(name, []).append(definition)
        for name, given in by_name.items():
            # A branch that does not bind the name leaves it as it was.
            ways = dict.fromkeys(given if len(given) == len(alive) else [self._now.get(name), *given])
            self._set(name, self._define(name, None, ways) if len(ways) > 1 else next(iter(ways)))

    def _branch(self, run: Callable[[], None]) -> _Outcome:
        """Run a part of the code, undo its bindings, and return them."""
        outer, self._changed, before = self._changed, {}, self._goes_on
        run()
        outcome = _Outcome({name: self._now[name] for name in self._changed}, self._goes_on)
        self._now.update(self._changed)
        self._changed, self._goes_on = outer, before
        return outcome

    # Expressions

    def read(self, *roots: ast.AST | None) -> None:
        """Run through expressions: note the loads, and bind the names of `:=` and comprehensions."""
        stack: list[Any] = [root for root in reversed(roots) if root is not None]
        while stack:
            node = stack.pop()
            self.found.steps += 1
            if callable(node):
                node()
            elif isinstance(node, ast.Name):
                definition = self._now.get(node.id)
                if definition is not None and isinstance(node.ctx, ast.Load):
                    self.found.loads[node] = definition
            elif isinstance(node, ast.NamedExpr):
                target = node.target
                # It may stand where it is not always evaluated: the name may keep its value.
                stack += [lambda t=target: self.bind(t.id, t, self._now.get(t.id)), node.value]
            elif isinstance(node, COMPREHENSIONS):
                self._comprehension(node, stack)
            elif isinstance(node, ast.Lambda):
                stack.append(node.args)
            else:
                stack += reversed(children(node))

    def _comprehension(self, node: ast.AST, stack: list[Any]) -> None:
        generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
        hidden = {
            name.id: self._now.get(name.id)
            for each in generators
            for name in targets(each.target)
            if isinstance(name, ast.Name)
        }
        stack.append(lambda: self._set_all(hidden))
        stack += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]  # type: ignore[attr-defined]
        for each in reversed(generators):
            stack += [*reversed(each.ifs), lambda t=each.target: self._assign(t), each.iter]

    def _assign(self, target: ast.expr) -> None:
        for part in targets(target):
            if isinstance(part, ast.Name):
                self.bind(part.id, part)
            else:
                self.read(part)

    # Statements

    def run(self, body: list[ast.stmt]) -> None:
        """Run through statements."""
        for statement in body:
            self.found.steps += 1
            handler = _STATEMENTS.get(type(statement))
            if handler is None:
                self.read(statement)
            else:
                handler(self, statement)

    def _assignment(self, node: ast.Assign) -> None:
        self.read(node.value)
        for target in node.targets:
            self._assign(target)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.read(node.value)
            self._assign(node.target)

    def _augmented(self, node: ast.AugAssign) -> None:
        self.read(node.value)
        target = node.target
        if not isinstance(target, ast.Name):
            self.read(target)
            return
        before = self._now.get(target.id)
        if before is not None:
            self.found.before[target] = before
        self.bind(target.id, target, before)

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self.read(node.iter)
        self._loop(node, lambda: self._assign(node.target))

    def _while(self, node: ast.While) -> None:
        self._loop(node, lambda: self.read(node.test))

    def _loop(self, node: Loop, start: Callable[[], None]) -> None:
        names, jumps = self._names_of_loops[node], _Jumps()
        heads: _Names = {name: self._define(name, None, [self._now.get(name)]) for name in sorted(names)}
        self._set_all(heads)
        outer, self._made = self._made, []
        self._loops.append((names, jumps))
        start()
        endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and bool(node.test.value)
        tested: _Names = {name: self._now[name] for name in names} if isinstance(node, ast.While) else heads
        before, self._goes_on = self._goes_on, True
        self.run(node.body)
        self._loops.pop()
        self._close(heads, jumps)
        made, self._made = self._made, outer
        self._made += made
        self._goes_on = before and not endless
        self._set_all(tested)
        orelse = self._branch(lambda: self.run(node.orelse))
        left = [_Outcome(snapshot, True) for snapshot in jumps.breaks]
        if jumps.are_many:
            left.append(_Outcome(self._joined(made), True))
        self._goes_on = before
        self._join([_Outcome(orelse.names, orelse.goes_on and not endless), *left])

    def _close(self, heads: _Names, jumps: _Jumps) -> None:
        """Join the bindings at the end of a pass into those at the start of the loop."""
        passes = [*([self._now] if self._goes_on else []), *jumps.continues]
        if jumps.are_many:
            passes.append(self._joined(self._made))
        for name, head in heads.items():
            assert head is not None
            ways = dict.fromkeys((*head.sources, *(names.get(name) for names in passes)))
            head.sources = [each for each in ways if each is not None and each is not head]
            self.found.steps += 1 + len(passes)

    def _jump(self, node: ast.Break | ast.Continue) -> None:
        if self._loops:
            names, jumps = self._loops[-1]
            snapshots = jumps.breaks if isinstance(node, ast.Break) else jumps.continues
            if len(snapshots) < _MOST_SNAPSHOTS:
                snapshots.append({name: self._now.get(name) for name in names})
                self.found.steps += len(names)
            else:
                jumps.are_many = True
        self._goes_on = False

    def _if(self, node: ast.If) -> None:
        outcomes = []
        while True:
            self.read(node.test)
            outcomes.append(self._branch(lambda body=node.body: self.run(body)))  # type: ignore[misc]
            if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
                break
            node = node.orelse[0]
        outcomes.append(self._branch(lambda: self.run(node.orelse)))
        self._join(outcomes)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.read(item.context_expr)
            if item.optional_vars is not None:
                self._assign(item.optional_vars)
        self.run(node.body)

    def _try(self, node: ast.Try) -> None:
        outer, self._made = self._made, []
        before, failing = self._goes_on, 0

        def body() -> None:
            nonlocal failing
            self.run(node.body)
            failing = len(self._made)
            self.run(node.orelse)

        outcomes = [self._branch(body)]
        halfway = self._joined(self._made[:failing]) if node.handlers else {}

        def handle(handler: ast.ExceptHandler) -> None:
            self.read(handler.type)
            self._set_all(halfway)
            if handler.name:
                self.bind(handler.name, handler)
            self.run(handler.body)

        outcomes += [self._branch(lambda each=each: handle(each)) for each in node.handlers]  # type: ignore[misc]
        anywhere = self._joined(self._made) if node.finalbody else {}
        self._join(outcomes)
        outer += self._made
        self._made = outer
        if node.finalbody:
            self._finally(node.finalbody, anywhere, before)

    def _joined(self, made: list[Definition]) -> _Names:
        """The possible definitions of names after some, or none, of a number of definitions."""
        by_name: dict[str, list[Definition | None]] = {}
        for definition in made:
            by_name.setdefault(definition.name, [self._now.get(definition.name)]).append(definition)
        return {name: self._define(name, None, ways) for name, ways in by_name.items()}

    def _finally(self, body: list[ast.stmt], anywhere: _Names, before: bool) -> None:
        """Run a `finally` block, which also runs after a failure; the code after it only follows if nothing failed."""
        goes_on, self._goes_on = self._goes_on, before
        usual = {name: self._now.get(name) for name in anywhere}
        seen: _Names = {name: self._define(name, None, [anywhere[name], usual[name]]) for name in anywhere}
        self._set_all(seen)
        self.run(body)
        for name, definition in seen.items():
            if self._now.get(name) is definition:
                self._set(name, usual[name])
        self._goes_on = self._goes_on and goes_on

    def _match(self, node: ast.Match) -> None:
        self.read(node.subject)

        def case(each: ast.match_case) -> None:
            self.read(each.pattern)
            for part in walk(each.pattern):
                for name in bound_names(part) if isinstance(part, ast.pattern) else ():
                    self.bind(name, part)
            self.read(each.guard)
            self.run(each.body)

        outcomes = [self._branch(lambda each=each: case(each)) for each in node.cases]  # type: ignore[misc]
        self._join([*outcomes, _Outcome({}, True)])

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.read(*node.decorator_list)
        if isinstance(node, ast.ClassDef):
            self.read(*node.bases, *node.keywords)
        else:
            self.read(node.args)
        self.bind(node.name, node)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for name in bound_names(node):
            self.bind(name, node)

    def _leave(self, node: ast.Return | ast.Raise) -> None:
        self.read(node)
        self._goes_on = False

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            for part in targets(target):
                if isinstance(part, ast.Name):
                    self._set(part.id, None)
                else:
                    self.read(part)

    def _share(self, node: ast.Global | ast.Nonlocal) -> None:
        self.found.shared.update(node.names)


_STATEMENTS: dict[type[ast.stmt], Callable[[_Reader, Any], None]] = {
    ast.Assign: _Reader._assignment,
    ast.AnnAssign: _Reader._annotated,
    ast.AugAssign: _Reader._augmented,
    ast.For: _Reader._for,
    ast.AsyncFor: _Reader._for,
    ast.While: _Reader._while,
    ast.If: _Reader._if,
    ast.With: _Reader._with,
    ast.AsyncWith: _Reader._with,
    ast.Try: _Reader._try,
    ast.TryStar: _Reader._try,
    ast.Match: _Reader._match,
    ast.FunctionDef: _Reader._definition,
    ast.AsyncFunctionDef: _Reader._definition,
    ast.ClassDef: _Reader._definition,
    ast.Import: _Reader._import,
    ast.ImportFrom: _Reader._import,
    ast.Return: _Reader._leave,
    ast.Raise: _Reader._leave,
    ast.Break: _Reader._jump,
    ast.Continue: _Reader._jump,
    ast.Delete: _Reader._delete,
    ast.Global: _Reader._share,
    ast.Nonlocal: _Reader._share,
}
