"""Which assignments a name may have its value from: reaching definitions, found when someone asks.

The interpreter keeps values, not where they came from. This looks for the bindings of one name
in one scope, in the order in which statements run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from perflint.semantics.structure import walk

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_GROWS = frozenset({"append", "add", "appendleft", "insert", "extend", "update"})


class How(Enum):
    """What binds a name."""

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
    """Whether the name gets all of the value, not a part of it."""


def path_of(node: ast.AST) -> str:
    """ "x", or "self.a.b" for an attribute of names; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def reaching(scope: Scope, path: str, use: ast.AST | None) -> tuple[frozenset[Binding], bool]:
    """The bindings of a path that reach a node of a scope; its end, where `use` is None.

    The second is whether the node can also be reached with no binding.
    """
    flow = _Flow(path, use)
    flow.enter(scope)
    state = flow.found if use is not None else flow.state
    if state is None:
        return frozenset(), True
    return state - {_UNBOUND}, _UNBOUND in state


def binds(scope: Scope, name: str) -> bool:
    """Whether a plain name is local to a function."""
    found = False
    for node in own_nodes(scope):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return False
        found = found or any(binding == name for binding in _bound_names(node))
    return found or (not isinstance(scope, (ast.Module, ast.ClassDef)) and name in parameters(scope))


def parameters(scope: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> dict[str, ast.arg]:
    """The parameters of a function by name."""
    args = scope.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return {arg.arg: arg for arg in every if arg is not None}


def own_nodes(scope: Scope) -> Iterator[ast.AST]:
    """The nodes of a scope, without those inside the functions and classes in it."""
    stack: list[ast.AST] = [scope.body] if isinstance(scope, ast.Lambda) else list(reversed(scope.body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*_DEFINITIONS, ast.Lambda)):
            stack += reversed(list(ast.iter_child_nodes(node)))


def comprehension_binding(model_parents: Iterable[ast.AST], node: ast.AST, name: str) -> Binding | None:
    """The `for` of a comprehension around a node that binds a name; `model_parents` are innermost first."""
    below = node
    for around in model_parents:
        if isinstance(around, _COMPREHENSIONS):
            for generator in around.generators:
                # What the first `for` goes over is outside.
                outside = generator is around.generators[0] and any(n is node for n in walk(generator.iter))
                for target in _targets(generator.target):
                    if path_of(target) == name and not outside:
                        whole = target is generator.target
                        return Binding(How.COMPREHENSION, target, target.lineno, generator.iter, whole)
        elif isinstance(around, (*_DEFINITIONS, ast.Lambda)) and below is not around:
            return None
        below = around
    return None


def _bound_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, _DEFINITIONS):
        yield node.name
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).split(".", 1)[0]
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
            handler = getattr(self, f"_{type(statement).__name__.lower()}", None)
            if handler is not None:
                handler(statement)
            else:
                self.read(statement)

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
                self.state = frozenset({Binding(how, part, part.lineno, value, part is target)})
            elif path and self.path.startswith(f"{path}."):
                self.state = frozenset({_UNBOUND})
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
            self.state = frozenset({Binding(how, node, line, value, value is None)})

    def add(self, binding: Binding) -> None:
        """Bind besides what is bound."""
        if self.state is not None:
            self.state = self.state | {binding}

    # Statements

    def _assign(self, node: ast.Assign) -> None:
        self.read(node.value)
        for target in node.targets:
            self.bind(target, How.ASSIGNED, node.value)

    def _annassign(self, node: ast.AnnAssign) -> None:
        self.read(node.value)
        self.bind(node.target, How.DECLARED if node.value is None else How.ASSIGNED, node.value)

    def _augassign(self, node: ast.AugAssign) -> None:
        self.read(node.target, node.value)
        if path_of(node.target) == self.path:
            before = self.state
            self.bind(node.target, How.AUGMENTED, node.value)
            # What it was before is part of what it is.
            self.state = _join(self.state, before)

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self.read(node.iter)
        self._loop(node, lambda: self.bind(node.target, How.LOOP, node.iter))

    _asyncfor = _for

    def _while(self, node: ast.While) -> None:
        self._loop(node, lambda: self.read(node.test))

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, start: object) -> None:
        outer = self.breaks, self.continues
        breaks: _State = None
        for _ in range(2):
            self.breaks = self.continues = None
            before = self.state
            start()  # type: ignore[operator]
            self.run(node.body)
            self.state = _join(before, _join(self.state, self.continues))
            breaks = _join(breaks, self.breaks)
        self.breaks, self.continues = outer
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

    _asyncwith = _with

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

    _trystar = _try

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

    def _functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.read(*node.decorator_list)
        if isinstance(node, ast.ClassDef):
            self.read(*node.bases, *node.keywords)
        else:
            self.read(*node.args.defaults, *node.args.kw_defaults)
        self.bind_name(node.name, How.DEFINITION, node, node.lineno)

    _asyncfunctiondef = _classdef = _functiondef

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.bind_name((alias.asname or alias.name).split(".", 1)[0], How.IMPORT, node, node.lineno)

    _importfrom = _import

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
            self.state = frozenset({_UNBOUND})
