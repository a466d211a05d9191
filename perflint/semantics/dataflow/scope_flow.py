"""Which uses of a plain name see which of its bindings: all names of one scope, in one pass.

`definitions` answers for one name at one place. This reads a scope once, in time that grows with its
length, and then answers for every binding where its value may be used.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable
from typing import Any, ClassVar

from perflint.frozen import dataclass, field
from perflint.semantics.binders import COMPREHENSIONS, Loop, bound_names, local_name, names_of_loops, parameters
from perflint.semantics.dataflow.flow import Bound, Flow, Use, part_of
from perflint.semantics.structure import FunctionNode, children, walk

_DEEPEST = 80
"""Blocks and comprehensions in one another; Python's own limit for blocks is lower."""
_MOST_JUMPS = 64
"""The number of jumps out of one loop that are kept apart."""


def flow_of(
    scope: FunctionNode | ast.Module,
    lets_pass: Callable[[ast.withitem], bool] = lambda item: False,
    records: Collection[str] = (),
) -> Flow:
    """The flow of a function, a lambda or the top level of a file.

    `lets_pass` says that a context of a `with` lets errors pass; any other may swallow them. `records` are the names of
    objects that nothing uses as a whole.
    """
    reader = Reader(lets_pass, records)
    reader.enter(scope)
    return reader.flow


_Ways = list[tuple[str, Bound]]
"""The names that a way through the code binds, with their last bindings."""


@dataclass(slots=True)
class _Turn:
    """A loop that is being read: the names that it binds, and their bindings at its jumps."""

    names: tuple[str, ...]
    again: list[_Ways] = field(default_factory=list)
    out: list[_Ways] = field(default_factory=list)
    jumps: int = 0


class Reader:
    """Reads a scope in the order in which it runs. `run` returns True if the end of a block can be reached."""

    _binds_declared: ClassVar = False
    """True if an annotation without a value binds a name."""

    def __init__(self, lets_pass: Callable[[ast.withitem], bool], records: Collection[str] = ()) -> None:
        self.flow = Flow()
        self._lets_pass = lets_pass
        self._records = records
        self._names_of_loops: dict[ast.AST, dict[str, None]] = {}
        self._now: dict[str, Bound] = {}
        self._log: list[tuple[str, Bound | None]] = []
        """Earlier bindings, latest last, so that a branch can be undone."""
        self._made: list[Bound] = []
        """All that was bound so far, but for the names of comprehensions."""
        self._turns: list[_Turn] = []
        self._depth = 0

    def enter(self, scope: FunctionNode | ast.ClassDef | ast.Module) -> None:
        """Read all of a scope."""
        if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            for name, argument in parameters(scope).items():
                self.bind(name, argument)
        if isinstance(scope, ast.Lambda):
            self.read(scope.body)
        else:
            self._names_of_loops = names_of_loops(scope.body, self._bound_names)
            self.run(scope.body)
        self.flow.settle()

    # Names

    def bind(self, name: str, node: ast.AST | None, value: ast.expr | None = None, whole: bool = True) -> Bound:
        """Give a name a new value."""
        bound = Bound(name, node, value, whole)
        self.flow.bounds.append(bound)
        self._made.append(bound)
        if node is not None:
            self.flow.stored[node] = bound
        self._become(bound)
        return bound

    def _become(self, bound: Bound) -> None:
        self._log.append((bound.name, self._now.get(bound.name)))
        self._now[bound.name] = bound

    def _meet(self, name: str, ways: Iterable[Bound | None]) -> None:
        """Join the bindings of a name on several ways through the code."""
        found = list(dict.fromkeys(way for way in ways if way is not None))
        if len(found) == 1:
            if self._now.get(name) is not found[0]:
                self._become(found[0])
        elif found:
            met = self.bind(name, None)
            for way in found:
                way.into.append(met)

    def _branch(self, run: Callable[[], bool]) -> _Ways | None:
        """Run code, and go back to before it: the names that it binds; None if its end cannot be reached."""
        mark = len(self._log)
        falls = run()
        names = dict.fromkeys(name for name, _ in self._log[mark:])
        ways = [(name, self._now[name]) for name in names]
        while len(self._log) > mark:
            name, before = self._log.pop()
            if before is None:
                del self._now[name]
            else:
                self._now[name] = before
        return ways if falls else None

    def _join(self, ways: list[_Ways | None]) -> bool:
        """Go on where several branches end; False if none does."""
        reached = [way for way in ways if way is not None]
        if not reached:
            return False
        by_name: dict[str, list[Bound]] = {}
        for way in reached:
            for name, bound in way:
                by_name.setdefault(name, []).append(bound)
        for name, bounds in by_name.items():
            self._meet(name, [*bounds, *([self._now.get(name)] if len(bounds) < len(reached) else [])])
        return True

    def _name(self, node: ast.AST) -> str:
        """The name of a plain name, or of a part of an object; empty for other nodes."""
        if isinstance(node, ast.Name):
            return node.id
        found = part_of(node) if self._records else None
        return found[0] + found[1] if found is not None and found[0] in self._records else ""

    def _bound_names(self, node: ast.AST) -> Iterable[str]:
        if self._records and isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            return filter(None, [self._name(node)])
        return bound_names(node)

    def _inside(self, function: ast.Lambda) -> list[ast.AST]:
        """The parts of a lambda that are read where it stands."""
        return [function.args]

    # Expressions

    def read(self, *nodes: ast.AST | None) -> None:
        """Evaluate expressions."""
        for node in nodes:
            if node is not None:
                self._evaluate(node, {})

    def _evaluate(self, node: ast.AST, inner: dict[str, Bound]) -> None:
        """Note the uses of names; `inner` are those that comprehensions around bind."""
        stack = [node]
        while stack:
            node = stack.pop()
            if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and self._name(node):
                self._use(node, inner)
            elif isinstance(node, ast.NamedExpr):
                stack.append(node.value)
                before = self._now.get(node.target.id)
                bound = self.bind(node.target.id, node.target, node.value)
                self._meet(bound.name, [before, bound])
            elif isinstance(node, ast.Lambda):
                stack += self._inside(node)
            elif isinstance(node, COMPREHENSIONS):
                self._comprehension(node, inner)
            else:
                stack += reversed(children(node))

    def _use(self, node: Use, inner: dict[str, Bound]) -> None:
        name = self._name(node)
        bound = inner.get(name) or self._now.get(name)
        if bound is not None:
            bound.uses.append(node)
            self.flow.used[node] = bound

    def _comprehension(self, node: ast.expr, around: dict[str, Bound]) -> None:
        if self._depth >= _DEEPEST:
            return
        self._depth += 1
        inner = dict(around)
        generators: list[ast.comprehension] = getattr(node, "generators", [])
        for generator in generators:
            self._evaluate(generator.iter, inner)
            for part in walk(generator.target):
                if isinstance(part, ast.Name):
                    bound = Bound(part.id, part, generator.iter, False)
                    self.flow.bounds.append(bound)
                    self.flow.stored[part] = inner[part.id] = bound
            for condition in generator.ifs:
                self._evaluate(condition, inner)
        for part in children(node):
            if not isinstance(part, ast.comprehension):
                self._evaluate(part, inner)
        self._depth -= 1

    def _target(self, target: ast.expr, value: ast.expr | None, whole: bool = True) -> None:
        """Bind a target; a tuple takes the parts of a tuple."""
        if name := self._name(target):
            self.bind(name, target, value, whole)
        elif isinstance(target, ast.Starred):
            self._target(target.value, value, False)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = value.elts if whole and isinstance(value, (ast.Tuple, ast.List)) else []
            plain = len(parts) == len(target.elts) and not any(
                isinstance(each, ast.Starred) for each in (*parts, *target.elts)
            )
            for index, each in enumerate(target.elts):
                if plain:
                    self._target(each, parts[index])
                else:
                    self._target(each, value, False)
        else:
            self.read(target)

    # Statements

    def run(self, body: list[ast.stmt]) -> bool:
        """Run a block. Unreachable code is read, too."""
        falls = True
        if self._depth >= _DEEPEST:
            return falls
        self._depth += 1
        for statement in body:
            handler = _STATEMENTS.get(type(statement))
            if handler is None:
                self.read(statement)
            else:
                falls = handler(self, statement) is not False and falls
        self._depth -= 1
        return falls

    def _assign(self, node: ast.Assign) -> None:
        self.read(node.value)
        for target in node.targets:
            self._target(target, node.value)

    def _ann_assign(self, node: ast.AnnAssign) -> None:
        self.read(node.value)
        if node.value is not None or self._binds_declared:
            self._target(node.target, node.value)

    def _aug_assign(self, node: ast.AugAssign) -> None:
        self.read(node.value)
        name = self._name(node.target)
        if not name:
            self.read(node.target)
            return
        before = self._now.get(name)
        self._use(node.target, {})
        after = self.bind(name, node.target)
        if before is not None:
            # A tensor is still the same one.
            before.into.append(after)

    def _if(self, node: ast.If) -> bool:
        ways: list[_Ways | None] = []
        while True:
            self.read(node.test)
            body = node.body
            ways.append(self._branch(lambda body=body: self.run(body)))  # type: ignore[misc]
            if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
                break
            # Chains of `elif` may be longer than the stack is deep.
            node = node.orelse[0]
        ways.append(self._branch(lambda: self.run(node.orelse)))
        return self._join(ways)

    def _for(self, node: ast.For | ast.AsyncFor) -> bool:
        self.read(node.iter)
        return self._loop(node, lambda: self._target(node.target, node.iter, False))

    def _while(self, node: ast.While) -> bool:
        return self._loop(node, lambda: self.read(node.test))

    def _loop(self, node: Loop, start: Callable[[], None]) -> bool:
        turn = _Turn(tuple(self._names_of_loops[node]))
        heads = []
        for name in turn.names:
            before = self._now.get(name)
            head = self.bind(name, None)
            head.loop = node
            if before is not None:
                before.into.append(head)
            heads.append(head)
        self._turns.append(turn)

        def body() -> bool:
            start()
            return self.run(node.body)

        made = len(self._made)
        end = self._branch(body)
        self._turns.pop()
        if turn.jumps > _MOST_JUMPS:
            turn.again.append([(bound.name, bound) for bound in self._made[made:]])
        by_name = {head.name: head for head in heads}
        for way in (end, *turn.again):
            for name, bound in way or ():
                start_of = by_name.get(name)
                if start_of is not None and bound is not start_of and start_of not in bound.into:
                    bound.into.append(start_of)
        self.run(node.orelse)
        is_endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and bool(node.test.value)
        # Only a `break` leads to the code after an endless loop.
        past: list[_Ways | None] = [] if is_endless and turn.jumps <= _MOST_JUMPS else [[]]
        return self._join([*past, *turn.out])

    def _jump(self, node: ast.Break | ast.Continue) -> bool:
        if self._turns:
            turn = self._turns[-1]
            turn.jumps += 1
            if turn.jumps <= _MOST_JUMPS:
                ways = [(name, self._now[name]) for name in turn.names if name in self._now]
                (turn.out if isinstance(node, ast.Break) else turn.again).append(ways)
        return False

    def _with(self, node: ast.With | ast.AsyncWith) -> bool:
        for item in node.items:
            self.read(item.context_expr)
            if item.optional_vars is not None:
                self._target(item.optional_vars, item.context_expr, False)
        if all(self._lets_pass(item) for item in node.items):
            return self.run(node.body)
        start = len(self._made)
        way = self._branch(lambda: self.run(node.body))
        # The context may swallow an error, anywhere in the body.
        return self._join([way, self._halfway(start)])

    def _halfway(self, start: int) -> _Ways:
        """The possible definitions of names if the code since some time stops with an error."""
        by_name: dict[str, list[Bound]] = {}
        for bound in self._made[start:]:
            by_name.setdefault(bound.name, []).append(bound)

        def stop() -> bool:
            for name, bounds in by_name.items():
                self._meet(name, [self._now.get(name), *bounds])
            return True

        return self._branch(stop) or []

    def _try(self, node: ast.Try) -> bool:
        start = len(self._made)
        way = self._branch(lambda: self.run(node.body) and self.run(node.orelse))
        failed = self._halfway(start)
        ways = [way]

        def handle(handler: ast.ExceptHandler) -> bool:
            self._join([failed])
            self.read(handler.type)
            if handler.name:
                self.bind(handler.name, handler)
            return self.run(handler.body)

        ways += [self._branch(lambda handler=handler: handle(handler)) for handler in node.handlers]  # type: ignore[misc]
        if not node.finalbody:
            return self._join(ways)
        falls = any(each is not None for each in ways)
        # It also runs on the way out: after an error, a jump or a `return`.
        self._join([*ways, self._halfway(start)])
        made = len(self._made)
        falls = self.run(node.finalbody) and falls
        if self._turns:
            way = [(bound.name, bound) for bound in self._made[made:]]
            self._turns[-1].again.append(way)
            self._turns[-1].out.append(way)
        return falls

    def _match(self, node: ast.Match) -> bool:
        self.read(node.subject)
        ways: list[_Ways | None] = [[]]
        for case in node.cases:
            parts = [part for part in walk(case.pattern) if isinstance(part, ast.pattern)]
            before = {name: self._now.get(name) for part in parts for name in bound_names(part)}
            for part in parts:
                for name in bound_names(part):
                    self.bind(name, part, node.subject, False)
            self.read(case.guard)
            ways.append(self._branch(lambda case=case: self.run(case.body)))  # type: ignore[misc]
            # Names stay bound where the guard fails.
            for name, earlier in before.items():
                self._meet(name, [earlier, self._now.get(name)])
        return self._join(ways)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.read(*node.decorator_list)
        if isinstance(node, ast.ClassDef):
            self.read(*node.bases, *node.keywords)
        else:
            self.read(node.args, node.returns)
        self.bind(node.name, node)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.bind(local_name(alias), alias)

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if name := self._name(target):
                self.bind(name, target)
            else:
                self.read(target)

    def _leave(self, node: ast.Return | ast.Raise) -> bool:
        self.read(*children(node))
        return False


_STATEMENTS: dict[type[ast.stmt], Callable[[Reader, Any], bool | None]] = {
    ast.Assign: Reader._assign,
    ast.AnnAssign: Reader._ann_assign,
    ast.AugAssign: Reader._aug_assign,
    ast.If: Reader._if,
    ast.For: Reader._for,
    ast.AsyncFor: Reader._for,
    ast.While: Reader._while,
    ast.Break: Reader._jump,
    ast.Continue: Reader._jump,
    ast.With: Reader._with,
    ast.AsyncWith: Reader._with,
    ast.Try: Reader._try,
    ast.TryStar: Reader._try,
    ast.Match: Reader._match,
    ast.FunctionDef: Reader._definition,
    ast.AsyncFunctionDef: Reader._definition,
    ast.ClassDef: Reader._definition,
    ast.Import: Reader._import,
    ast.ImportFrom: Reader._import,
    ast.Delete: Reader._delete,
    ast.Return: Reader._leave,
    ast.Raise: Reader._leave,
}
