"""The names that single nodes bind: targets, parameters, imports, definitions, patterns.

`symbols` collects them for a whole file; the modules of `dataflow` follow them in program order.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from enum import Enum

from perflint.frozen import dataclass
from perflint.semantics.structure import FunctionNode, children

Import = ast.Import | ast.ImportFrom
Loop = ast.For | ast.AsyncFor | ast.While
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SCOPES = (*DEFINITIONS, ast.Lambda)


class How(Enum):
    """The construct that binds a name."""

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
    DELETED = "deleted"
    TYPE_PARAMETER = "type parameter"
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
class Imported:
    """One name that an import statement binds, and the full name that it stands for."""

    statement: Import
    alias: ast.alias
    local: str
    """The name in the file; "*" for all names of a module."""
    full: str
    """With a dot in front for each level of a relative import."""


def imported(statement: Import) -> Iterator[Imported]:
    """The names that an import statement binds."""
    for alias in statement.names:
        if isinstance(statement, ast.ImportFrom):
            path = f"{statement.module}.{alias.name}" if statement.module else alias.name
            yield Imported(statement, alias, alias.asname or alias.name, "." * statement.level + path)
        elif alias.asname:
            yield Imported(statement, alias, alias.asname, alias.name)
        else:
            root = alias.name.partition(".")[0]
            yield Imported(statement, alias, root, root)


def local_name(alias: ast.alias) -> str:
    """The name that one part of an import binds; "*" for all names of a module."""
    return alias.asname or alias.name.partition(".")[0]


def bound_names(node: ast.AST) -> Iterator[str]:
    """The names that a node itself binds or deletes, in the scope that it stands in."""
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            yield node.id
    elif isinstance(node, DEFINITIONS):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (name for name in map(local_name, node.names) if name != "*")
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest


def targets(node: ast.expr) -> Iterator[ast.expr]:
    """The single targets of a target: the parts of tuples and lists, without their stars."""
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, (ast.Tuple, ast.List)):
            stack += reversed(part.elts)
        elif isinstance(part, ast.Starred):
            stack.append(part.value)
        else:
            yield part


def parameters(function: FunctionNode) -> dict[str, ast.arg]:
    """The parameters of a function by name."""
    args = function.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return {arg.arg: arg for arg in every if arg is not None}


def defaults(function: FunctionNode) -> dict[str, ast.expr]:
    """The defaults of the parameters of a function, by the names of those that have one."""
    given = function.args
    positional = [arg.arg for arg in (*given.posonlyargs, *given.args)]
    found = dict(zip(positional[len(positional) - len(given.defaults) :], given.defaults, strict=True))
    by_keyword = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return found | {arg.arg: default for arg, default in by_keyword if default is not None}


def on_cpu_by_default(function: FunctionNode) -> set[str]:
    """The parameters whose default is the text "cpu": calls on a GPU pass another device."""
    given = defaults(function).items()
    return {name for name, default in given if isinstance(default, ast.Constant) and default.value == "cpu"}


def own_nodes(scope: FunctionNode | ast.ClassDef | ast.Module) -> Iterator[ast.AST]:
    """The nodes in the body of a scope in source order, without those inside the functions and classes in it."""
    stack: list[ast.AST] = [scope.body] if isinstance(scope, ast.Lambda) else list(reversed(scope.body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _SCOPES):
            stack += reversed(children(node))


def names_of_loops(
    body: list[ast.stmt], names: Callable[[ast.AST], Iterable[str]] = bound_names
) -> dict[ast.AST, dict[str, None]]:
    """The names that each loop of a block binds, each once, outside of functions and classes in it.

    `names` are those that a node binds.
    """
    found: dict[ast.AST, dict[str, None]] = {}
    open_loops: list[ast.AST] = []
    stack: list[ast.AST | None] = list(reversed(body))
    while stack:
        node = stack.pop()
        if node is None:
            inner = found[open_loops.pop()]
            if open_loops:
                found[open_loops[-1]].update(inner)
            continue
        if open_loops:
            found[open_loops[-1]].update(dict.fromkeys(names(node)))
        if isinstance(node, (*DEFINITIONS, ast.Lambda)):
            continue
        if isinstance(node, LOOPS):
            found[node] = {}
            open_loops.append(node)
            stack.append(None)
        if isinstance(node, ast.comprehension):
            # Its targets are names of its own.
            stack += [*node.ifs, node.iter]
        else:
            stack += reversed(children(node))
    return found


def binding_of(target: ast.expr, around: Iterable[ast.AST]) -> Binding | None:
    """How a target is bound where it stands; the nodes around it come innermost first."""
    line, whole, inner = target.lineno, True, target
    for outer in around:
        if isinstance(outer, (ast.Tuple, ast.List, ast.Starred)):
            whole, inner = False, outer
        elif isinstance(outer, (ast.Assign, ast.AnnAssign)):
            if outer.value is None:
                return Binding(How.DECLARED, target, line)
            return Binding(How.ASSIGNED, target, line, *_part(target, inner, outer.value))
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
        elif isinstance(outer, ast.Delete):
            return Binding(How.DELETED, target, line)
        else:
            return None
    return None


def _part(target: ast.expr, targets: ast.expr, value: ast.expr) -> tuple[ast.expr, bool]:
    """The expression that one of several targets gets, and True for all of it: `y` for `b` in `a, b = x, y`."""
    while targets is not target:
        if not isinstance(targets, (ast.Tuple, ast.List)) or not isinstance(value, (ast.Tuple, ast.List)):
            return value, False
        pairs = list(zip(targets.elts, value.elts, strict=False))
        has_star = any(isinstance(each, ast.Starred) for pair in pairs for each in pair)
        if has_star or len(targets.elts) != len(value.elts):
            return value, False
        targets, value = next(pair for pair in pairs if any(node is target for node in ast.walk(pair[0])))
    return value, True
