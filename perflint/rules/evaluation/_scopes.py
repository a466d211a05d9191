"""The functions of a file for the evaluation rules: their calls, and the switches of models to evaluation and back."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property

from perflint.frozen import dataclass, replace
from perflint.rules._memory.flows import flow_around
from perflint.rules._results import assignments
from perflint.semantics import binders, symbols
from perflint.semantics.binders import How
from perflint.semantics.dataflow.flow import Flow
from perflint.semantics.facts.modules import WRAP_MODULE, module_in
from perflint.semantics.memo import Memo, once, once_per_key
from perflint.semantics.model import Model
from perflint.semantics.structure import ClassInfo, arguments, children, grouped, is_of_super, last_name, path_of
from perflint.semantics.values import Function, Instance

LOOPS = (*binders.LOOPS, *binders.COMPREHENSIONS)
PARAMETERS = frozenset({"parameters", "named_parameters"})
"""The methods of a module that give its parameters."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef
_MOST_OF_A_NAME = 8
"""A method that so many classes of a file define may be any of them; a call of more is not followed."""
_LONGEST_LINEAGE = 16
"""The bases of a class are followed this far; a deeper class may derive from any other."""


@dataclass(frozen=True, slots=True)
class Mode:
    """A switch of a module between training and evaluation; `evaluating` is None if a variable decides."""

    line: int
    receiver: str
    evaluating: bool | None


@dataclass(frozen=True, slots=True)
class Switched:
    """The modules that some code switches, by their text."""

    at_all: frozenset[str]
    to_evaluation: frozenset[str]
    perhaps_to_evaluation: frozenset[str]
    """To evaluation, or to a mode that a variable decides."""

    @staticmethod
    def by(modes: Iterable[Mode]) -> Switched:
        """Those of some switches."""
        all_modes = list(modes)
        return Switched(
            frozenset(mode.receiver for mode in all_modes),
            frozenset(mode.receiver for mode in all_modes if mode.evaluating),
            frozenset(mode.receiver for mode in all_modes if mode.evaluating is not False),
        )


@dataclass(frozen=True, eq=False)
class Scope:
    """A function, or the top level of a file, without the functions that are nested in it."""

    node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
    outer: Scope | None
    owner: ast.ClassDef | None
    calls: Sequence[ast.Call]
    modes: Sequence[Mode]

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Its own nodes, outer ones first."""
        found: list[ast.AST] = []
        stack: list[ast.AST] = list(reversed(self.node.body))
        while stack:
            node = stack.pop()
            if isinstance(node, ast.ClassDef):
                stack.extend(reversed(node.body))
            elif not isinstance(node, _DEFINITIONS):
                found.append(node)
                stack.extend(reversed(children(node)))
        return found

    def modes_of(self, receiver: str) -> list[Mode]:
        """The switches of one module, by line."""
        return self._modes_by_receiver.get(receiver, [])

    @cached_property
    def _modes_by_receiver(self) -> Mapping[str, list[Mode]]:
        return grouped((mode.receiver, mode) for mode in sorted(self.modes, key=lambda mode: mode.line))

    @cached_property
    def switched(self) -> Switched:
        """The modules that it switches."""
        return Switched.by(self.modes)

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
        self.scopes: list[Scope] = []
        self._by_node: dict[ast.AST, Scope] = {}
        self.classes = {node.name: node for node in self.model.nodes(ast.ClassDef)}
        for names in model.symbols.scopes:
            if isinstance(names.node, (ast.Module, *_DEFINITIONS)):
                self._add(names, names.node)
        self.by_name = grouped((scope.name, scope) for scope in self.scopes[1:])
        calls = ((scope, call) for scope in self.scopes for call in scope.calls)
        self.callers = grouped((called, each) for each in calls for called in self.called(each[1]))

    @property
    def memo(self) -> Memo:
        """The memo of the file: it has one survey."""
        return self.model.memo

    def _add(self, names: symbols.Scope, node: ast.Module | _Definition) -> None:
        around = names.outer
        outer = self._by_node[around.function.node] if around is not None else None
        owner = around.node if around is not None and isinstance(around.node, ast.ClassDef) else None
        calls = self.model.symbols.calls.get(names, ())
        modes = [mode for call in calls for mode in self._switches(call)]
        self._by_node[node] = scope = Scope(node, outer, owner, calls, modes)
        self.scopes.append(scope)

    def scope_around(self, node: ast.AST) -> Scope:
        """The function, or the top level, whose code a node is part of."""
        return self._by_node[self.model.symbols.scope_around(node).function.node]

    def called(self, call: ast.Call) -> list[Scope]:
        """The functions of the file that a call may run: by its value, else by name.

        A method of an unknown object may be any of that name.
        """
        if _switch(call) is not None:
            return []
        functions = [each for each in self.model.value(call.func).members if isinstance(each, Function)]
        if functions:
            return [scope for each in functions for scope in self._may_run(each, not is_of_super(call))]
        named = self.by_name.get(last_name(call), []) if not self.model.target(call) else []
        if isinstance(call.func, ast.Attribute):
            methods = [scope for scope in named if scope.owner is not None]
            return methods if len(methods) <= _MOST_OF_A_NAME else []
        bindings = self.model.symbols.variable(call.func).bindings if named else []
        return [scope for scope in named if any(scope.node is each.node for each in bindings)]

    def _may_run(self, function: Function, or_others: bool) -> Iterator[Scope]:
        """The function of the file that a value is, `or_others` that objects may have in its place."""
        scope = self.function(function)
        if scope is not None:
            yield scope
            for cls in self.providers(function.owner, scope.name) if or_others and scope.owner is not None else ():
                info = self.klass(cls)
                method = None if info is None else info.methods.get(scope.name)
                if method is not None and method.node in self._by_node:
                    yield self._by_node[method.node]

    def function(self, value: Function) -> Scope | None:
        """The function of the file that a value is."""
        info = self.model.function_of(value)
        return None if info is None else self._by_node.get(info.node)

    def klass(self, name: str) -> ClassInfo | None:
        """A class of the file by its full name."""
        found = self.model.view.klass(name)
        return None if found is None or found[0] is not self.model.module else found[1]

    def name_of(self, node: ast.ClassDef) -> str:
        """The full name of a class of the file."""
        info = self.model.module.structure.classes_at[node.lineno, node.col_offset]
        return f"{self.model.module.name}.{info.qualname}"

    def providers(self, cls: str, name: str) -> Set[str]:
        """The classes that an attribute of an object may come from, by full names.

        The object is of a class, or of one of the file that derives from it. A class of another file may have any name.
        """
        symbols, found = self.model.symbols, set()
        for lineage in self._lineages.get(cls, ()):
            for each in lineage:
                info = self.klass(each)
                if info is None or symbols.binds(symbols.scope(info.node), name):
                    found.add(each)
                    break
        return found

    @cached_property
    def _lineages(self) -> Mapping[str, Sequence[Sequence[str]]]:
        """The lineages of the file that each class is in; one that is not known to its end begins with ""."""
        found: dict[str, list[Sequence[str]]] = {}
        for node in self.model.nodes(ast.ClassDef):
            lineage = self.model.lineage(self.name_of(node))
            is_open = len(lineage) > _LONGEST_LINEAGE or any(isinstance(base, ast.Call) for base in node.bases)
            for name in lineage:
                found.setdefault(name, []).append(("", *lineage) if is_open else lineage)
        return found

    @cached_property
    def callees(self) -> Mapping[Scope, Sequence[Scope]]:
        """The functions of the file that each function calls, or may."""
        return grouped((caller, scope) for scope, calls in self.callers.items() for caller, _ in calls)

    def is_code(self, name: ast.Name) -> bool:
        """True if a name is bound by an import, or by the definition of a function or class."""
        bindings = self.model.symbols.variable(name).bindings
        return any(binding.how in (How.IMPORT, How.DEFINITION) for binding in bindings)

    def nested(self, scope: Scope) -> list[Scope]:
        """The functions directly inside a function."""
        return self._nested.get(scope, [])

    @cached_property
    def _nested(self) -> Mapping[Scope, list[Scope]]:
        return grouped((scope.outer, scope) for scope in self.scopes if scope.outer is not None)

    def _switches(self, call: ast.Call) -> Iterator[Mode]:
        """The models whose mode a call sets: its receiver, or the targets that `Net().eval()` is assigned to."""
        mode = _switch(call)
        if mode is None or not isinstance(call.func, ast.Attribute):
            return
        receiver = self.module(call.func.value)
        if receiver:
            yield replace(mode, receiver=receiver)
        elif mode.evaluating:
            for target in assigned_to(self.model, call):
                yield Mode(call.lineno, target, True)

    def module(self, node: ast.expr) -> str:
        """The path of the module that an expression means: "m" for `torch.compile(m).eval()`, and for a name of that.

        Empty if the module has no name.
        """
        passed: set[ast.expr] = set()
        inner: ast.expr | None = node
        while inner is not None and inner not in passed:
            node = self._wrapped(inner)
            passed.add(inner)
            inner = self._renamed(node)
        return path_of(node)

    def _wrapped(self, node: ast.expr) -> ast.expr:
        """The module that calls return or wrap."""
        node = module_in(node)
        while isinstance(node, ast.Call) and node.args and self.model.target(node) in WRAP_MODULE:
            node = module_in(node.args[0])
        return node

    def _renamed(self, node: ast.expr) -> ast.expr | None:
        """The result of such calls that alone gives a name, or an attribute of `self`, its value; None for others."""
        if isinstance(node, ast.Name):
            variable = self.model.symbols.variable(node)
            made = list(variable.assigned) if len(variable.bindings) == 1 else []
        else:
            variable, made = None, self.assigned(path_of(node))
        value = made[0] if len(made) == 1 else None
        if not isinstance(value, ast.Call):
            return None
        inner = self._wrapped(value)
        if isinstance(inner, ast.Name):
            return (
                value if variable is not None and self.model.symbols.variable(inner).scope is variable.scope else None
            )
        return value if path_of(inner).startswith("self.") else None

    def is_module_class(self, node: ast.ClassDef | None) -> bool:
        """True if a class is a torch.nn.Module."""
        return node is not None and self.model.is_module(Instance(self.name_of(node)))

    def siblings(self, scope: Scope) -> Iterator[Scope]:
        """The methods of the class that a method belongs to, itself included."""
        if scope.owner is not None:
            yield from self._by_class[scope.owner]

    def assigned(self, path: str) -> list[ast.expr]:
        """The values that the file assigns to a name or an attribute."""
        return [assignment.value for assignment in assignments(self.model).get(path, ())]

    def names(self, scope: Scope) -> Flow:
        """The bindings of the names of a function, and the uses that see them."""
        return flow_around(self.model, scope.node.body[0])

    def is_from_outside(self, scope: Scope, name: ast.Name) -> bool:
        """True if a name is read in a function, or in a lambda inside, that gets its value outside."""
        used = self.names(scope).used
        return isinstance(name.ctx, ast.Load) and name not in used and self.model.parent(name) not in used

    def switched(self, scope: Scope) -> list[Switched]:
        """The switches that may concern the models of a function: its own, those around it, those of its class."""
        found = [around.switched for around in scope.chain]
        return found if scope.owner is None else [*found, self._switched_in(scope.owner)]

    @once_per_key
    def _switched_in(self, owner: ast.ClassDef) -> Switched:
        """The parts of its object that the methods of a class switch."""
        of_class = (mode for scope in self._by_class[owner] for mode in scope.modes)
        return Switched.by(mode for mode in of_class if mode.receiver.startswith("self."))

    @cached_property
    def _by_class(self) -> Mapping[ast.ClassDef, list[Scope]]:
        return grouped((scope.owner, scope) for scope in self.scopes if scope.owner is not None)


class OfFile:
    """Answers about a file, which are remembered in its memo: it has one object of each class."""

    def __init__(self, survey: Survey) -> None:
        self._survey, self._model = survey, survey.model

    @property
    def memo(self) -> Memo:
        """The memo of the file."""
        return self._survey.memo


def reached(start: Iterable[Scope], ways: Callable[[Scope], Iterable[Scope]]) -> set[Scope]:
    """Some functions, and all that ways lead to from these."""
    found = set(start)
    waiting = list(found)
    while waiting:
        new = [scope for scope in ways(waiting.pop()) if scope not in found]
        found.update(new)
        waiting += new
    return found


@once
def survey(model: Model) -> Survey:
    """The survey of a file; the rules of the family ask for it one after the other."""
    return Survey(model)


def _switch(call: ast.Call) -> Mode | None:
    """The mode that `.eval()`, `.train()` or `.train(mode)` switches to; None for other calls."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("eval", "train"):
        return None
    receiver = path_of(call.func.value)
    match call.func.attr, arguments(call):
        case name, []:
            return Mode(call.lineno, receiver, name == "eval")
        case "train", [ast.Constant(value=bool(trains))]:
            return Mode(call.lineno, receiver, not trains)
        case "train", [_]:
            return Mode(call.lineno, receiver, None)
    return None


def assigned_to(model: Model, call: ast.Call) -> Iterable[str]:
    """The names that a chain of calls, of which `call` is a link, is assigned to."""
    inner: ast.AST = call
    around = model.parent(inner)
    while (isinstance(around, ast.Attribute) and around.value is inner) or (
        isinstance(around, ast.Call) and around.func is inner
    ):
        inner, around = around, model.parent(around)
    if isinstance(around, ast.Assign):
        return map(path_of, around.targets)
    return [path_of(around.target)] if isinstance(around, (ast.AnnAssign, ast.NamedExpr)) else []
