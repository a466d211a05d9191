"""The functions of a file as the evaluation rules see them: calls, loops and train/eval switches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from perflint.semantics.model import Model

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
Loop = ast.For | ast.AsyncFor | ast.While | ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_MODULE_BASES = ("Module", "Model", "Net", "Network", "Layer", "Block", "Head", "Backbone", "Mixin")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def words(name: str) -> tuple[str, ...]:
    """The words of an identifier or dotted name in lower case: "evalOneEpoch" has three."""
    return tuple(word.lower() for word in _WORD.findall(name))


def dotted(node: ast.AST | None) -> str:
    """The text of a plain name or a chain of attributes of one; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def last_name(node: ast.AST) -> str:
    """The name that a call, an attribute or a name ends in."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


@dataclass(frozen=True, slots=True)
class Mode:
    """A switch of a module between training and evaluation; None where a variable decides."""

    line: int
    receiver: str
    evaluating: bool | None


@dataclass(slots=True, eq=False)
class Scope:
    """A function, or the top level of a file, without the functions that are nested in it."""

    node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
    outer: Scope | None
    owner: ast.ClassDef | None
    nodes: list[ast.AST] = field(default_factory=list)
    calls: list[ast.Call] = field(default_factory=list)
    modes: list[Mode] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The function's name; empty for the top level."""
        return "" if isinstance(self.node, ast.Module) else self.node.name

    @property
    def klass(self) -> ast.ClassDef | None:
        """The class that the function, or a function around it, is a method of."""
        return next((scope.owner for scope in self.chain if scope.owner is not None), None)

    @property
    def chain(self) -> Iterator[Scope]:
        """The scope and those around it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


class Survey:
    """All scopes of a file and who calls whom in it, by name."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.scopes, self.classes = _scopes(model.source.tree)
        self.imported = {name for scope in self.scopes for name in _imported(scope)}
        self.by_node = {scope.node: scope for scope in self.scopes}
        self.by_name: dict[str, list[Scope]] = {}
        for scope in self.scopes[1:]:
            self.by_name.setdefault(scope.name, []).append(scope)
        self.callers: dict[Scope, list[tuple[Scope, ast.Call]]] = {}
        for scope in self.scopes:
            for call in scope.calls:
                for called in self.called(call):
                    self.callers.setdefault(called, []).append((scope, call))

    def called(self, call: ast.Call) -> list[Scope]:
        """The functions of the file that a call may mean: methods by attribute, others by their plain name."""
        if _switch(call) is not None:
            return []
        is_method = isinstance(call.func, ast.Attribute)
        if is_method and dotted(call.func).split(".", 1)[0] in self.imported:
            return []
        return [scope for scope in self.by_name.get(last_name(call), ()) if (scope.owner is not None) is is_method]

    def is_module_class(self, node: ast.ClassDef | None, depth: int = 5) -> bool:
        """Whether a class is a torch.nn.Module, by its bases in the file and by their names."""
        if node is None or depth == 0:
            return False
        names = [last_name(base) for base in node.bases]
        return any(
            self.is_module_class(self.classes[name], depth - 1)
            if name in self.classes
            else name.endswith(_MODULE_BASES)
            for name in names
        )

    def siblings(self, scope: Scope) -> Iterator[Scope]:
        """The methods of the class that a method belongs to, itself included."""
        if scope.owner is not None:
            yield from (other for other in self.scopes if other.owner is scope.owner)


@lru_cache(maxsize=1)
def survey(model: Model) -> Survey:
    """The survey of a file; the rules of the family ask for it one after the other."""
    return Survey(model)


def _imported(scope: Scope) -> Iterator[str]:
    for node in scope.nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name.split(".", 1)[0] for alias in node.names)


def _scopes(tree: ast.Module) -> tuple[list[Scope], dict[str, ast.ClassDef]]:
    top = Scope(tree, None, None)
    found = [top]
    classes: dict[str, ast.ClassDef] = {}
    # What is left to visit: a node, the scope that it runs in, the class whose body it stands in.
    stack: list[tuple[ast.AST, Scope, ast.ClassDef | None]] = [(node, top, None) for node in reversed(tree.body)]
    while stack:
        node, scope, owner = stack.pop()
        if isinstance(node, _DEFINITIONS):
            inner = Scope(node, scope, owner)
            found.append(inner)
            stack.extend((child, inner, None) for child in reversed(node.body))
            stack.extend((child, scope, None) for child in node.decorator_list)
            continue
        if isinstance(node, ast.ClassDef):
            classes[node.name] = node
            stack.extend((child, scope, node) for child in reversed(node.body))
            continue
        _note(node, scope)
        inside = None if isinstance(node, ast.expr) else owner
        stack.extend((child, scope, inside) for child in reversed(list(ast.iter_child_nodes(node))))
    return found, classes


def _note(node: ast.AST, scope: Scope) -> None:
    scope.nodes.append(node)
    if isinstance(node, ast.Call):
        scope.calls.append(node)
        mode = _switch(node)
        if mode is not None and mode.receiver:
            scope.modes.append(mode)
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and _built_for_evaluation(node.value):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        scope.modes.extend(Mode(node.lineno, dotted(target), True) for target in targets)


def _switch(call: ast.Call) -> Mode | None:
    """The mode that `.eval()`, `.train()` or `.train(mode)` switches to; None for other calls."""
    name, arguments = last_name(call), [*call.args, *(keyword.value for keyword in call.keywords)]
    if not isinstance(call.func, ast.Attribute) or len(arguments) > 1 or name not in ("eval", "train"):
        return None
    receiver = dotted(call.func.value)
    if not arguments:
        return Mode(call.lineno, receiver, name == "eval")
    given = arguments[0]
    if name == "eval" or not (isinstance(given, ast.Constant) and isinstance(given.value, bool)):
        return None if name == "eval" else Mode(call.lineno, receiver, None)
    return Mode(call.lineno, receiver, not given.value)


def _built_for_evaluation(value: ast.expr | None) -> bool:
    """Whether a chain of calls such as `Net().to(device).eval()` ends in evaluation mode."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        mode = _switch(value)
        if mode is not None and mode.evaluating:
            return True
        value = value.func.value
    return False
