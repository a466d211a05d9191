"""The functions of a file as the evaluation rules see them: calls, loops and train/eval switches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from functools import lru_cache
from typing import TypeVar

from perflint.frozen import dataclass
from perflint.semantics.model import Model
from perflint.semantics.structure import children, last_name

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
Loop = ast.For | ast.AsyncFor | ast.While | ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_MODULE_BASES = ("Module", "Model", "Net", "Network", "Layer", "Block", "Head", "Backbone", "Mixin")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef


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


_Node = TypeVar("_Node", bound=ast.AST)


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
    calls: list[ast.Call] = field(default_factory=list)
    modes: list[Mode] = field(default_factory=list)
    _nodes: list[ast.AST] = field(default_factory=list)

    @property
    def nodes(self) -> list[ast.AST]:
        """Its own nodes, outer ones first; gathered when first asked for."""
        if not self._nodes:
            stack: list[ast.AST] = list(reversed(self.node.body))
            while stack:
                node = stack.pop()
                if isinstance(node, ast.ClassDef):
                    stack.extend(reversed(node.body))
                elif not isinstance(node, _DEFINITIONS):
                    self._nodes.append(node)
                    stack.extend(reversed(children(node)))
        return self._nodes

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
        self.scopes = [Scope(model.source.tree, None, None)]
        self._by_node: dict[ast.AST, Scope] = {model.source.tree: self.scopes[0]}
        self.classes = {node.name: node for node in self.all(ast.ClassDef)}
        imports: list[ast.Import | ast.ImportFrom] = [*self.all(ast.Import), *self.all(ast.ImportFrom)]
        self.imported = {name for node in imports for name in _bound(node)}
        definitions: list[_Definition] = [*self.all(ast.FunctionDef), *self.all(ast.AsyncFunctionDef)]
        for definition in sorted(definitions, key=_place):
            self._add(definition)
        for call in self.all(ast.Call):
            scope = self.scope_around(call)
            scope.calls.append(call)
            scope.modes.extend(_switches(model, call))
        self.by_name: dict[str, list[Scope]] = {}
        for scope in self.scopes[1:]:
            self.by_name.setdefault(scope.name, []).append(scope)
        self.callers: dict[Scope, list[tuple[Scope, ast.Call]]] = {}
        for scope in self.scopes:
            for call in scope.calls:
                for called in self.called(call):
                    self.callers.setdefault(called, []).append((scope, call))

    def all(self, kind: type[_Node]) -> list[_Node]:
        """All nodes of a type in the file, in source order."""
        return self.model.module.structure.nodes.get(kind, [])  # type: ignore[return-value]

    def _add(self, definition: _Definition) -> None:
        around = self.model.parent(definition)
        while isinstance(around, ast.stmt) and not isinstance(around, (ast.ClassDef, *_DEFINITIONS)):
            around = self.model.parent(around)
        owner = around if isinstance(around, ast.ClassDef) else None
        scope = Scope(definition, self.scope_around(definition), owner)
        self._by_node[definition] = scope
        self.scopes.append(scope)

    def scope_around(self, node: ast.AST) -> Scope:
        """The scope that a node runs in: decorators, defaults and bases run outside of what they belong to."""
        inner, around = node, self.model.parent(node)
        while around is not None:
            if isinstance(around, _DEFINITIONS) and inner in around.body:
                break
            inner, around = around, self.model.parent(around)
        return self._by_node.get(around or self.model.source.tree, self.scopes[0])

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


def _bound(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The names that an import binds."""
    yield from (alias.asname or alias.name.split(".", 1)[0] for alias in node.names)


def _place(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _switches(model: Model, call: ast.Call) -> Iterator[Mode]:
    """The switches that a call makes: of what it is called on, or of what `Net().eval()` is assigned to."""
    mode = _switch(call)
    if mode is None:
        return
    if mode.receiver:
        yield mode
    elif mode.evaluating:
        for target in assigned_to(model, call):
            yield Mode(call.lineno, target, True)


def _switch(call: ast.Call) -> Mode | None:
    """The mode that `.eval()`, `.train()` or `.train(mode)` switches to; None for other calls."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("eval", "train"):
        return None
    name, arguments = call.func.attr, [*call.args, *(keyword.value for keyword in call.keywords)]
    if len(arguments) > 1:
        return None
    receiver = dotted(call.func.value)
    if not arguments:
        return Mode(call.lineno, receiver, name == "eval")
    given = arguments[0]
    if name == "eval" or not (isinstance(given, ast.Constant) and isinstance(given.value, bool)):
        return None if name == "eval" else Mode(call.lineno, receiver, None)
    return Mode(call.lineno, receiver, not given.value)


def assigned_to(model: Model, call: ast.Call) -> Iterable[str]:
    """The names that a chain of calls, of which `call` is a link, is assigned to."""
    inner: ast.AST = call
    around = model.parent(inner)
    while (isinstance(around, ast.Attribute) and around.value is inner) or (
        isinstance(around, ast.Call) and around.func is inner
    ):
        inner, around = around, model.parent(around)
    if isinstance(around, ast.Assign):
        return map(dotted, around.targets)
    return [dotted(around.target)] if isinstance(around, (ast.AnnAssign, ast.NamedExpr)) else []
