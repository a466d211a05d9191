"""The symbol table of a file: its scopes, the variables that its names mean, its imports and its calls.

Names belong to scopes by Python's own rules; tests compare the table with the `symtable` of the standard library. The
table says which bindings and uses a variable has, not which of the bindings a use sees: that depends on the order in
which code runs, which the modules of `dataflow` follow.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import takewhile

from perflint.frozen import dataclass, field
from perflint.semantics.binders import (
    COMPREHENSIONS,
    DEFINITIONS,
    Binding,
    How,
    Imported,
    binding_of,
    bound_names,
    imported,
)
from perflint.semantics.structure import FUNCTIONS, FunctionNode, Structure

_SCOPES = (*FUNCTIONS, ast.ClassDef, *COMPREHENSIONS)
ScopeNode = ast.Module | FunctionNode | ast.ClassDef | ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A name of one scope: all places of the file that bind or read it."""

    name: str
    scope: Scope
    """The scope that it belongs to: the module for names that nothing in the file binds."""
    bindings: list[Binding] = field(default_factory=list)
    """In source order."""
    uses: list[ast.Name] = field(default_factory=list)
    """The reads of it, in source order."""
    seen_in: set[Scope] = field(default_factory=set)
    """The scopes with code that binds, reads or declares it."""

    @property
    def assigned(self) -> Iterator[ast.expr]:
        """The values of its assignments, without those of which it gets only a part."""
        for binding in self.bindings:
            if binding.how is How.ASSIGNED and binding.whole and binding.value is not None:
                yield binding.value

    @property
    def is_shared(self) -> bool:
        """True if a function or class declares it `global` or `nonlocal`."""
        return any(self.name in scope.declared for scope in self.seen_in)

    @property
    def is_private(self) -> bool:
        """True if it belongs to a function, and only the code of that function, not of those inside it, mentions it."""
        home = self.scope.frame
        return isinstance(home.node, FUNCTIONS) and all(scope.frame is home for scope in self.seen_in)

    @property
    def is_captured(self) -> bool:
        """True if a function or lambda inside its scope binds, reads or declares it."""
        return any(
            isinstance(inner.node, FUNCTIONS)
            for scope in self.seen_in
            for inner in takewhile(lambda inner: inner is not self.scope, scope.chain)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """A module, class, function, lambda or comprehension."""

    node: ScopeNode
    outer: Scope | None
    """The scope around it; None for the module."""
    declared: dict[str, ast.Global | ast.Nonlocal] = field(default_factory=dict)
    """The names that it declares `global` or `nonlocal`."""

    @property
    def chain(self) -> Iterator[Scope]:
        """The scope and those around it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    @property
    def frame(self) -> Scope:
        """The module, class, function or lambda that the code of a comprehension belongs to; any other scope itself."""
        return next(scope for scope in self.chain if not isinstance(scope.node, COMPREHENSIONS))

    @property
    def function(self) -> Scope:
        """The function or module whose code it is part of: its classes, lambdas and comprehensions are."""
        return next(
            scope for scope in self.chain if isinstance(scope.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module))
        )


class Symbols:
    """The scopes of a file and the variables in them.

    Variables know their scopes, and no scope knows its variables: without circles the tree of a file is freed as soon
    as it is not used any more, also where the garbage collector is off.
    """

    def __init__(self, tree: ast.Module, structure: Structure) -> None:
        self.module: Scope = Scope(tree, None)
        self._structure = structure
        self._scopes: dict[ast.AST, Scope] = {tree: self.module}
        self._around: dict[ast.AST, Scope] = {tree: self.module}
        """The scope in which a node is evaluated, for all nodes that were passed on the way to one."""
        self._bound: dict[Scope, dict[str, Variable]] = {}
        self._variables: dict[ast.AST, Variable] = {}
        self._unbound: dict[str, Variable] = {}
        """The names that nothing in the file binds."""
        self._resolved: dict[tuple[Scope, str], Variable] = {}
        self._note_scopes()
        self._note_bindings()
        for name in self._structure.every(ast.Name):
            if type(name.ctx) is ast.Load:
                self._seen(name, self.scope_around(name), name.id).uses.append(name)

    @cached_property
    def rebound(self) -> dict[str, list[Binding]]:
        """The places at which functions bind names of the top level by `global`, by name."""
        return {
            name: [each for each in variable.bindings if self.scope_around(each.node).frame is not self.module]
            for name in {name for node in self._structure.every(ast.Global) for name in node.names}
            for variable in [self.resolve(self.module, name)]
        }

    @property
    def scopes(self) -> Iterable[Scope]:
        """All scopes, those around others first."""
        return self._scopes.values()

    @property
    def variables(self) -> Iterator[Variable]:
        """All variables, those of each scope in turn; names that nothing in the file binds come last."""
        for scope in self.scopes:
            yield from self.bound(scope).values()
        yield from self._unbound.values()

    def bound(self, scope: Scope) -> Mapping[str, Variable]:
        """The variables that belong to a scope, by name."""
        return self._bound.get(scope, {})

    def binds(self, scope: Scope, name: str) -> bool:
        """True if a name is a variable of a scope."""
        return name in self.bound(scope)

    def scope(self, node: ast.AST) -> Scope:
        """The scope that a module, class, function, lambda or comprehension makes."""
        return self._scopes[node]

    def scope_around(self, node: ast.AST) -> Scope:
        """The scope in which a node is evaluated.

        Decorators, defaults, annotations, bases and the first iterable of a comprehension are evaluated outside of the
        scope that they belong to.
        """
        known, parents = self._around, self._structure.parents
        passed: list[ast.AST] = []
        found = known.get(node)
        while found is None:
            passed.append(node)
            outer = parents.get(node)
            if outer is None:
                found = self.module
            elif _is_inside(node, outer):
                found = self._scope_of(outer)
            else:
                if isinstance(outer, ast.comprehension) and node is outer.iter:
                    made = parents[outer]
                    assert isinstance(made, COMPREHENSIONS)
                    outer = made if made.generators[0] is outer else outer
                node = outer
                found = known.get(node)
        known.update(dict.fromkeys(passed, found))
        return found

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, innermost first."""
        outer = self._structure.parents.get(node)
        while outer is not None:
            yield outer
            outer = self._structure.parents.get(outer)

    def variable(self, node: ast.AST) -> Variable:
        """The variable that a `Name`, a parameter, or another node that binds one name, stands for."""
        return self._variables[node]

    def find(self, node: ast.AST) -> Variable | None:
        """The same, or None for a node that does not stand in the file, as in an annotation in quotes."""
        return self._variables.get(node)

    def resolve(self, scope: Scope, name: str) -> Variable:
        """The variable that a name means in a scope; an unbound one of the module if the file does not bind it."""
        found = self._resolved.get((scope, name))
        if found is None:
            home = self._home(scope, name)
            found = self.bound(home).get(name) or self._unbound.get(name)
            if found is None:
                found = self._unbound[name] = Variable(name, home)
            self._resolved[scope, name] = found
        return found

    @cached_property
    def imports(self) -> Sequence[Imported]:
        """The names that the imports of the file bind, at any depth, in source order."""
        statements = self._structure.every(ast.Import, ast.ImportFrom)
        statements.sort(key=lambda node: (node.lineno, node.col_offset))
        return [each for statement in statements for each in imported(statement)]

    @cached_property
    def sure_imports(self) -> Mapping[Scope, Sequence[Imported]]:
        """The imports that run whenever the module or function does, by scope; the first of equal ones."""
        found: dict[Scope, dict[tuple[str, str], Imported]] = {}
        for each in self.imports:
            scope = self.scope_around(each.statement)
            if self._always_runs(scope, each.statement):
                found.setdefault(scope, {}).setdefault((each.local, each.full), each)
        return {scope: tuple(imports.values()) for scope, imports in found.items()}

    def _always_runs(self, scope: Scope, statement: ast.stmt) -> bool:
        """True if a statement stands in no class and no branch; if the body of a `try` fails, so do its uses."""
        inner: ast.AST = statement
        for outer in self.ancestors(statement):
            if outer is scope.node:
                return not isinstance(outer, ast.ClassDef)
            if not isinstance(outer, (ast.Try, ast.TryStar)) or inner not in outer.body:
                return False
            inner = outer
        return True

    @cached_property
    def imported(self) -> Mapping[str, Sequence[Imported]]:
        """These imports by the name that they bind."""
        found: dict[str, list[Imported]] = {}
        for each in self.imports:
            found.setdefault(each.local, []).append(each)
        return found

    def full_name(self, node: ast.AST) -> str:
        """The full name that an expression spells through the imports of the file, at any depth.

        It is empty if the file leaves a choice: several imports bind the name, or something else does around the node.
        It needs no inference, so it also serves for annotations, for branches that never run and for other files.
        """
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        full = {each.full for each in self.imported.get(node.id, ())} if isinstance(node, ast.Name) else ()
        if len(full) != 1:
            return ""
        assert isinstance(node, ast.Name)
        others = self._others.get(node.id)
        if others and not others.isdisjoint(self.scope_around(node).chain):
            return ""
        return ".".join([*full, *reversed(attributes)])

    def is_rebound(self, local: str) -> bool:
        """True if something other than an import binds an imported name in the module or one of its functions."""
        return local in self._others

    @cached_property
    def _others(self) -> Mapping[str, Set[Scope]]:
        """The scopes in which something other than an import binds an imported name; classes hide it from no code."""
        found: dict[str, set[Scope]] = {}
        for scope in self.scopes:
            if not isinstance(scope.node, ast.ClassDef):
                bound = self.bound(scope)
                for name in bound.keys() & self.imported.keys():
                    if any(binding.how is not How.IMPORT for binding in bound[name].bindings):
                        found.setdefault(name, set()).add(scope)
        return found

    @cached_property
    def calls(self) -> Mapping[Scope, Sequence[ast.Call]]:
        """The calls by the function, or the module, whose code makes them, in source order."""
        found: dict[Scope, list[ast.Call]] = {}
        for call in self._structure.every(ast.Call):
            found.setdefault(self.scope_around(call).function, []).append(call)
        return found

    def declares(self, node: ast.AST | None, name: str) -> bool:
        """True if a function, or a function or class inside it, declares a name `global` or `nonlocal`.

        In the module, None, any may.
        """
        scopes = self._declaring.get(name, ())
        return bool(scopes) and (node is None or any(each.node is node for scope in scopes for each in scope.chain))

    @cached_property
    def _declaring(self) -> Mapping[str, Sequence[Scope]]:
        found: dict[str, list[Scope]] = {}
        for scope in self.scopes:
            for name in scope.declared:
                found.setdefault(name, []).append(scope)
        return found

    # Building the table

    def _note_scopes(self) -> None:
        for node in sorted(self._structure.every(*_SCOPES), key=_place):
            self._scope_of(node)
        for statement in self._structure.every(ast.Global, ast.Nonlocal):
            scope = self.scope_around(statement)
            scope.declared.update(dict.fromkeys(statement.names, statement))

    def _scope_of(self, node: ast.AST) -> Scope:
        found = self._scopes.get(node)
        if found is None:
            assert isinstance(node, _SCOPES)
            found = self._scopes[node] = Scope(node, self.scope_around(node))
        return found

    def _note_bindings(self) -> None:
        elsewhere: list[tuple[Scope, str, Binding]] = []
        for scope, name, binding in self._bindings():
            # In a comprehension, `:=` binds a name of the code around it.
            home = scope.frame if binding.how is How.NAMED else scope
            if name in home.declared:
                elsewhere.append((scope, name, binding))
            else:
                self._bind(home, scope, name, binding)
        for scope, name, binding in elsewhere:
            self._bind(self._home(scope.frame, name), scope, name, binding)
        for scope in self.scopes:
            if scope is not self.module:
                for name in scope.declared:
                    self.resolve(scope, name).seen_in.add(scope)
            for variable in self.bound(scope).values():
                variable.bindings.sort(key=lambda binding: _place(binding.node))

    def _bind(self, home: Scope, scope: Scope, name: str, binding: Binding) -> None:
        bound = self._bound.setdefault(home, {})
        variable = bound.get(name)
        if variable is None:
            variable = bound[name] = Variable(name, home)
        variable.bindings.append(binding)
        variable.seen_in.update((scope, scope.frame) if binding.how is How.NAMED else (scope,))
        self._variables[binding.node] = variable

    def _seen(self, node: ast.AST, scope: Scope, name: str) -> Variable:
        found = self._variables[node] = self.resolve(scope, name)
        found.seen_in.add(scope)
        return found

    def _home(self, scope: Scope, name: str) -> Scope:
        """The scope that a name of some scope belongs to; functions see neither names nor declarations of classes."""
        inner = scope
        while scope.outer is not None:
            if scope is inner or not isinstance(scope.node, ast.ClassDef):
                declaration = scope.declared.get(name)
                if isinstance(declaration, ast.Global):
                    return self.module
                if declaration is None and self.binds(scope, name):
                    return scope
            scope = scope.outer
        return scope

    def _bindings(self) -> Iterator[tuple[Scope, str, Binding]]:
        """All places that bind names, each with the scope in which it stands."""
        parents = self._structure.parents
        for name in self._structure.every(ast.Name):
            if type(name.ctx) is not ast.Load:
                binding = binding_of(name, self.ancestors(name)) or Binding(How.ASSIGNED, name, name.lineno)
                if binding.how is How.DECLARED and not parents[name].simple:  # type: ignore[attr-defined]
                    # `(x): int` binds nothing.
                    continue
                yield self.scope_around(name), name.id, binding
        for arg in self._structure.every(ast.arg):
            yield self._scope_of(parents[parents[arg]]), arg.arg, Binding(How.PARAMETER, arg, arg.lineno)
        for each in self.imports:
            if each.local != "*":
                binding = Binding(How.IMPORT, each.alias, each.alias.lineno)
                yield self.scope_around(each.statement), each.local, binding
        for node in self._structure.every(*DEFINITIONS):
            yield self.scope_around(node), node.name, Binding(How.DEFINITION, node, node.lineno)
            for parameter in getattr(node, "type_params", ()):
                yield self._scope_of(node), parameter.name, Binding(How.TYPE_PARAMETER, parameter, parameter.lineno)
        for node in self._structure.every(ast.ExceptHandler):
            if node.name:
                yield self.scope_around(node), node.name, Binding(How.EXCEPT, node, node.lineno)
        for node in self._structure.every(ast.MatchAs, ast.MatchStar, ast.MatchMapping):
            for bound in bound_names(node):
                yield self.scope_around(node), bound, Binding(How.PATTERN, node, node.lineno)


def _is_inside(node: ast.AST, outer: ast.AST) -> bool:
    """True if a child of a node is evaluated in the scope that the node makes."""
    if isinstance(outer, DEFINITIONS):
        return isinstance(node, ast.stmt)
    return isinstance(outer, COMPREHENSIONS) or (isinstance(outer, ast.Lambda) and node is outer.body)


def _place(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]
