"""Which assignments a name may have its value from: reaching definitions, found when someone asks.

The interpreter keeps values, not where they came from. This looks for the bindings of one name
in one scope, in the order in which statements run.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any

from perflint.frozen import dataclass
from perflint.semantics.structure import children, path_of, stands_in, walk

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Scope = ast.Module | ast.ClassDef | _Function
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_GROWS = frozenset({"append", "add", "appendleft", "insert", "extend", "update"})


class How(Enum):
    """The statement that binds a name."""

    ASSIGNED = "assigned"
    AUGMENTED = "augmented"
    DECLARED = "declared"
    """Annotated, with no value."""
    LOOP = "loop"
    COMPREHENSION = "comprehension"
    WITH = "with"
    NAMED = "named"
    """By `:=`."""
    PARAMETER = "parameter"
    IMPORT = "import"
    DEFINITION = "definition"
    EXCEPT = "except"
    PATTERN = "pattern"
    GROWN = "grown"
    """Something is put into it: `x.append(y)`, `x[k] = y`."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A place that gives a name its value. `value` is the expression that it comes from, if any."""

    how: How
    node: ast.AST
    line: int
    value: ast.expr | None = None
    whole: bool = True
    """True if the name gets all of the value, not a part of it."""


@dataclass(frozen=True, slots=True)
class Definitions:
    """The bindings that reach a use of a name, by line."""

    bindings: tuple[Binding, ...] = ()
    is_open: bool = True
    """True if the use can also be reached with none of them."""
    scope: Scope | None = None
    """The function, class or module that the name belongs to."""


def definitions(node: ast.AST, around: Iterable[ast.AST], path: str) -> Definitions:
    """The binding of a path that is used at `node`; the nodes around it come innermost first."""
    root = path.partition(".")[0]
    use = inner = node
    is_later = False
    for outer in around:
        if isinstance(outer, _COMPREHENSIONS):
            bound = _by_comprehension(outer, node, root)
            if bound is not None:
                return Definitions((bound,), False) if path == root else Definitions()
        elif isinstance(outer, ast.Lambda):
            if inner is outer.body and root in parameters(outer):
                return _reaching(outer, path, node)
        elif isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if stands_in(outer.body, inner):
                if _binds(outer, root):
                    return _reaching(outer, path, use, is_later)
                use, is_later = outer, True
        elif isinstance(outer, ast.Module):
            # A function sees what is there when it is called: at the end, as far as one can tell.
            return _reaching(outer, path, None if is_later else use)
        elif isinstance(outer, ast.ClassDef) and stands_in(outer.body, inner):
            found = Definitions() if is_later else _reaching(outer, path, use)
            if found.bindings:
                return found
            use = outer
        inner = outer
    return Definitions()


def binding_of(target: ast.expr, around: Iterable[ast.AST]) -> Binding | None:
    """How a target is bound where it stands; the nodes around it come innermost first."""
    line, whole = target.lineno, True
    for outer in around:
        if isinstance(outer, (ast.Tuple, ast.List, ast.Starred)):
            whole = False
        elif isinstance(outer, (ast.Assign, ast.AnnAssign)):
            how = How.DECLARED if outer.value is None else How.ASSIGNED
            return Binding(how, target, line, outer.value, whole)
        elif isinstance(outer, ast.AugAssign):
            return Binding(How.AUGMENTED, target, line, outer.value, whole)
        elif isinstance(outer, (ast.For, ast.AsyncFor)):
            return Binding(How.LOOP, target, line, outer.iter, whole)
        elif isinstance(outer, ast.comprehension):
            return Binding(How.COMPREHENSION, target, line, outer.iter, whole)
        elif isinstance(outer, ast.withitem):
            return Binding(How.WITH, target, line, outer.context_expr, whole)
        elif isinstance(outer, ast.NamedExpr):
            return Binding(How.NAMED, target, line, outer.value, whole)
        else:
            return None
    return None


def parameters(scope: _Function) -> dict[str, ast.arg]:
    """The parameters of a function by name."""
    args = scope.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return {arg.arg: arg for arg in every if arg is not None}


def own_nodes(scope: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module) -> Iterator[ast.AST]:
    """The nodes of a scope in source order, without those inside the functions and classes in it."""
    stack: list[ast.AST] = list(reversed(scope.body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*_DEFINITIONS, ast.Lambda)):
            stack += reversed(children(node))


def _reaching(scope: Scope, path: str, use: ast.AST | None, is_later: bool = False) -> Definitions:
    """The bindings that reach a node, or the end of a scope; where there are none, any with `is_later`."""
    flow = _Flow(path, use)
    flow.enter(scope)
    state = flow.state if use is None else flow.found
    if is_later and state is not None and state == {_UNBOUND}:
        state = frozenset(flow.ever)
    if state is None:
        return Definitions(scope=scope)
    bindings = sorted(state - {_UNBOUND}, key=lambda binding: binding.line)
    return Definitions(tuple(bindings), _UNBOUND in state, scope)


def _binds(scope: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """True if a plain name is local to a function."""
    found = name in parameters(scope)
    for node in own_nodes(scope):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return False
        found = found or name in _bound_names(node)
    return found


def _by_comprehension(around: ast.AST, node: ast.AST, name: str) -> Binding | None:
    """The `for` of a comprehension that binds a name used at a node."""
    generators: list[ast.comprehension] = getattr(around, "generators", [])
    for index, generator in enumerate(generators):
        # What the first `for` goes over is outside.
        if index == 0 and any(inner is node for inner in walk(generator.iter)):
            return None
        for target in _targets(generator.target):
            if path_of(target) == name:
                whole = target is generator.target
                return Binding(How.COMPREHENSION, target, target.lineno, generator.iter, whole)
    return None


def _bound_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, _DEFINITIONS):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield (alias.asname or alias.name).split(".", 1)[0]
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest


def _targets(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, (ast.Tuple, ast.List)):
        for element in node.elts:
            yield from _targets(element)
    else:
        yield node.value if isinstance(node, ast.Starred) else node


_State = frozenset[Binding] | None
_UNBOUND = Binding(How.DECLARED, ast.Pass(), 0)


def _join(left: _State, right: _State) -> _State:
    if left is None or right is None:
        return right if left is None else left
    return left | right


_DEEPEST_REPEATED_LOOP = 6
"""Loops nested deeper run once a pass: twice each would take time without end."""


class _Flow:
    """Runs through a scope and follows one path. `state` is None where code cannot be reached."""

    def __init__(self, path: str, use: ast.AST | None) -> None:
        self.path = path
        self.root = path.partition(".")[0]
        self.use = use
        self.found: _State = None
        self.state: _State = frozenset({_UNBOUND})
        self.breaks: _State = None
        self.continues: _State = None
        self.loops = 0
        self.ever: set[Binding] = set()
        """All bindings, wherever they reach."""

    def enter(self, scope: Scope) -> None:
        if isinstance(scope, (ast.Module, ast.ClassDef)):
            self.run(scope.body)
            return
        arg = parameters(scope).get(self.path)
        if arg is not None:
            self.state = frozenset({Binding(How.PARAMETER, arg, arg.lineno)})
        if isinstance(scope, ast.Lambda):
            self.read(scope.body)
        else:
            self.run(scope.body)

    def run(self, body: list[ast.stmt]) -> None:
        for statement in body:
            if statement is self.use:
                self.found = _join(self.found, self.state)
            handler = _STATEMENTS.get(type(statement))
            if handler is None:
                self.read(statement)
            else:
                handler(self, statement)

    # Reading and binding

    def read(self, *nodes: ast.AST | None) -> None:
        """Evaluate expressions: the one that is asked for may be among them."""
        for root in nodes:
            for node in () if root is None else walk(root):
                if node is self.use:
                    self.found = _join(self.found, self.state)
                elif isinstance(node, ast.NamedExpr):
                    self.bind(node.target, How.NAMED, node.value)
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    if node.func.attr in _GROWS and path_of(node.func.value) == self.path and node.args:
                        self.add(Binding(How.GROWN, node, node.lineno, node.args[-1], False))

    def bind(self, target: ast.expr, how: How, value: ast.expr | None) -> None:
        """Bind a target, or several."""
        for part in _targets(target):
            path = path_of(part)
            if path == self.path:
                self.become(Binding(how, part, part.lineno, value, part is target))
            elif path and self.path.startswith(f"{path}."):
                self.become(_UNBOUND)
            elif isinstance(part, ast.Subscript):
                self.read(part)
                if path_of(part.value) == self.path:
                    self.add(Binding(How.GROWN, part, part.lineno, value, False))
            elif not path or part is self.use:
                self.read(part)
            elif isinstance(part, ast.Attribute):
                self.read(part.value)

    def bind_name(self, name: str | None, how: How, node: ast.AST, line: int, value: ast.expr | None = None) -> None:
        if name == self.path:
            self.become(Binding(how, node, line, value, value is None))

    def become(self, binding: Binding) -> None:
        """Bind, where this can be reached."""
        if self.state is not None:
            self.state = frozenset({binding})
            self.ever.add(binding)

    def add(self, binding: Binding) -> None:
        """Bind besides what is bound."""
        if self.state is not None:
            self.state = self.state | {binding}

    # Statements

    def _assign(self, node: ast.Assign) -> None:
        self.read(node.value)
        for target in node.targets:
            self.bind(target, How.ASSIGNED, node.value)

    def _ann_assign(self, node: ast.AnnAssign) -> None:
        self.read(node.value)
        self.bind(node.target, How.DECLARED if node.value is None else How.ASSIGNED, node.value)

    def _aug_assign(self, node: ast.AugAssign) -> None:
        self.read(node.target, node.value)
        if path_of(node.target) == self.path:
            before = self.state
            self.bind(node.target, How.AUGMENTED, node.value)
            # What it was before is part of what it is.
            self.state = _join(self.state, before)

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self.read(node.iter)
        self._loop(node, lambda: self.bind(node.target, How.LOOP, node.iter))

    def _while(self, node: ast.While) -> None:
        self._loop(node, lambda: self.read(node.test))

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, start: Callable[[], None]) -> None:
        outer = self.breaks, self.continues
        breaks: _State = None
        self.loops += 1
        for _ in range(2 if self.loops <= _DEEPEST_REPEATED_LOOP else 1):
            self.breaks = self.continues = None
            before = self.state
            start()
            self.run(node.body)
            self.state = _join(before, _join(self.state, self.continues))
            breaks = _join(breaks, self.breaks)
            if self.state == before:
                break
        self.loops -= 1
        self.breaks, self.continues = outer
        if isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value:
            # Endless: what comes after it comes from a `break`.
            self.state = None
        self.run(node.orelse)
        self.state = _join(self.state, breaks)

    def _if(self, node: ast.If) -> None:
        self.read(node.test)
        before = self.state
        self.run(node.body)
        after, self.state = self.state, before
        self.run(node.orelse)
        self.state = _join(after, self.state)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.read(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, How.WITH, item.context_expr)
        self.run(node.body)

    def _try(self, node: ast.Try) -> None:
        before = self.state
        self.run(node.body)
        failed = _join(before, self.state)
        self.run(node.orelse)
        done = self.state
        for handler in node.handlers:
            self.state = failed
            self.read(handler.type)
            self.bind_name(handler.name, How.EXCEPT, handler, handler.lineno)
            self.run(handler.body)
            done = _join(done, self.state)
        self.state = done
        self.run(node.finalbody)

    def _match(self, node: ast.Match) -> None:
        self.read(node.subject)
        before = self.state
        done = before
        for case in node.cases:
            self.state = before
            for part in ast.walk(case.pattern):
                for name in _bound_names(part):
                    self.bind_name(name, How.PATTERN, part, case.pattern.lineno, node.subject)
            self.read(case.guard)
            self.run(case.body)
            done = _join(done, self.state)
        self.state = done

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.read(*node.decorator_list)
        if isinstance(node, ast.ClassDef):
            self.read(*node.bases, *node.keywords)
        else:
            self.read(node.args, node.returns)
        self.bind_name(node.name, How.DEFINITION, node, node.lineno)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for name in _bound_names(node):
            self.bind_name(name, How.IMPORT, node, node.lineno)

    def _return(self, node: ast.Return) -> None:
        self.read(node.value)
        self.state = None

    def _raise(self, node: ast.Raise) -> None:
        self.read(node.exc, node.cause)
        self.state = None

    def _break(self, node: ast.Break) -> None:
        self.breaks, self.state = _join(self.breaks, self.state), None

    def _continue(self, node: ast.Continue) -> None:
        self.continues, self.state = _join(self.continues, self.state), None

    def _delete(self, node: ast.Delete) -> None:
        self.read(*node.targets)
        if any(path_of(target) == self.path for target in node.targets):
            self.become(_UNBOUND)


_STATEMENTS: dict[type[ast.stmt], Callable[[_Flow, Any], None]] = {
    ast.Assign: _Flow._assign,
    ast.AnnAssign: _Flow._ann_assign,
    ast.AugAssign: _Flow._aug_assign,
    ast.For: _Flow._for,
    ast.AsyncFor: _Flow._for,
    ast.While: _Flow._while,
    ast.If: _Flow._if,
    ast.With: _Flow._with,
    ast.AsyncWith: _Flow._with,
    ast.Try: _Flow._try,
    ast.TryStar: _Flow._try,
    ast.Match: _Flow._match,
    ast.FunctionDef: _Flow._definition,
    ast.AsyncFunctionDef: _Flow._definition,
    ast.ClassDef: _Flow._definition,
    ast.Import: _Flow._import,
    ast.ImportFrom: _Flow._import,
    ast.Return: _Flow._return,
    ast.Raise: _Flow._raise,
    ast.Break: _Flow._break,
    ast.Continue: _Flow._continue,
    ast.Delete: _Flow._delete,
}


# Tests on the way


def tests_before(node: ast.AST, around: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, bool]]:
    """The tests passed on the way to a node in its function, nearest first, and how they came out."""
    inner = node
    for outer in around:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(outer, name, None)
            if isinstance(block, list) and stands_in(block, inner):
                yield from _left_before(inner, block)
        if isinstance(outer, (*_DEFINITIONS, ast.Module)):
            return
        if isinstance(outer, (ast.If, ast.While)) and inner is not outer.test:
            yield outer.test, stands_in(outer.body, inner)
        elif isinstance(outer, ast.IfExp) and inner is not outer.test:
            yield outer.test, inner is outer.body
        elif isinstance(outer, ast.BoolOp):
            passed = outer.values[: next(i for i, value in enumerate(outer.values) if value is inner)]
            yield from ((operand, isinstance(outer.op, ast.And)) for operand in reversed(passed))
        elif isinstance(outer, _COMPREHENSIONS) and not isinstance(inner, ast.comprehension):
            for generator in reversed(outer.generators):
                yield from ((condition, True) for condition in reversed(generator.ifs))
        inner = outer


def _left_before(node: ast.AST, block: list[ast.stmt]) -> Iterator[tuple[ast.expr, bool]]:
    """Assertions, and tests whose branch never completes, among the statements before a node."""
    before = block[: next(index for index, statement in enumerate(block) if statement is node)]
    for statement in reversed(before):
        if isinstance(statement, ast.Assert):
            yield statement.test, True
        elif isinstance(statement, ast.If) and not statement.orelse:
            if isinstance(statement.body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break)):
                yield statement.test, False
