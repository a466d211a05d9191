"""The uses of the values of a function: one pass over it, and one back from the ends."""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.rules._memory.operators import ALIASES, ASKS, ASKS_IDENTITY, ASKS_LAYOUT, FACTS, LAYS_OUT, MOVES, VIEWS
from perflint.rules._operators import operators
from perflint.rules._visible import is_local
from perflint.rules.evaluation._callees import (
    DETACHES,
    NEED_GRADIENT,
    READS,
    WITHOUT_GRADIENT,
    Callees,
    Takes,
    is_host,
    is_known_method,
)
from perflint.rules.evaluation._followed import followed, passed
from perflint.rules.evaluation._graph import Content, Fate, Flow, Place
from perflint.rules.evaluation._scopes import Scope, Survey
from perflint.semantics.dataflow.flow import USES, Bound
from perflint.semantics.facts import torch_api
from perflint.semantics.facts.concepts import words
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.structure import arguments, keyword, last_name, path_of, walk
from perflint.semantics.values import Instance

_ABOUT = (FACTS | ASKS | ASKS_LAYOUT | ASKS_IDENTITY | {"storage"}) - {"_base"}
"""Attributes of a tensor that have nothing of its graph."""
_PAIRS = frozenset({"cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "sort", "topk"})
_DIMENSIONS = frozenset({"axis", "dim", "dimension"})
_FRESH = operators("gradient", "fresh")
"""Callees that make a new container or a new tensor."""
_MAY_SHARE = VIEWS | LAYS_OUT | MOVES | ALIASES
"""Operators whose result may be their operand, or share its memory."""


class Flows:
    """The flows of the functions of a file, made when they are asked for."""

    _DEEPEST = 20
    """Functions that call each other are followed so deep."""

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.callees = Callees(survey)
        self._known: dict[Scope, Flow] = {}
        self._open: list[Scope] = []

    def of(self, scope: Scope) -> Flow:
        """The flow of a function."""
        found = self._known.get(scope)
        if found is None:
            self._open.append(scope)
            found = self._known[scope] = _Builder(self, scope).build()
            self._open.pop()
        return found

    def fate(self, node: ast.expr) -> Fate:
        """The uses of the value of an expression in its function."""
        return self.of(self.survey.scope_around(node)).fate(node)

    def inside(self, scope: Scope) -> Flow | None:
        """The flow of a function that is called; None for one that calls itself, and beyond the greatest depth."""
        if scope in self._known:
            return self._known[scope]
        return None if scope in self._open or len(self._open) > self._DEEPEST else self.of(scope)


@once
def flows(survey: Survey) -> Flows:
    """The flows of a file."""
    return Flows(survey)


class _Builder:
    """Builds the flow of one function, node by node."""

    def __init__(self, flows: Flows, scope: Scope) -> None:
        self.flows, self.survey, self.model, self.scope = flows, flows.survey, flows.survey.model, scope
        self.names = self.survey.names(scope)
        self.flow = Flow()
        self._given: dict[Bound, list[ast.expr]] = {}
        """The values that each binding gets."""
        self._grown: list[tuple[Bound, ast.expr]] = []
        """The values that are put into the objects of names."""

    def build(self) -> Flow:
        """The flow."""
        for bound in self.names.bounds:
            for further in (*bound.into, *bound.uses):
                self._edge(bound, further)
            if isinstance(bound.node, (ast.Name, ast.arg)) and not is_local(self.model, bound.node):
                self._end(bound, Fate.STORED)
            if isinstance(bound.node, ast.arg):
                self.flow.parameters[bound.node] = bound
        for node in self.scope.nodes:
            self._visit(node)
        for place in self.names.stored:
            if isinstance(place, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self._nested(place)
        self._grow_all()
        return self.flow

    # Edges and ends

    def _edge(self, start: Place, to: Place) -> None:
        self.flow.edges.setdefault(start, []).append(to)

    def _value(self, start: Place, to: Place) -> None:
        self.flow.values.setdefault(start, []).append(to)

    def _end(self, place: Place, fate: Fate) -> None:
        self.flow.ends[place] = self.flow.ends.get(place, Fate.NONE) | fate

    def _read(self, node: ast.expr, to: ast.AST | None = None, fate: Fate = Fate.READ) -> None:
        self._end(node, fate)
        if to is not None:
            self._value(node, to)

    def _visit(self, node: ast.AST) -> None:
        """Note the ways that lead from the values of the direct parts of a node."""
        match node:
            case ast.Attribute():
                self._attribute(node)
            case ast.Call():
                self._call(node)
            case ast.UnaryOp(op=ast.Not(), operand=part) | ast.FormattedValue(value=part):
                self._read(part)
            case ast.BinOp() | ast.BoolOp() | ast.UnaryOp() | ast.Dict() | ast.List() | ast.Set() | ast.Tuple():
                self._hold(node)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp() | ast.Await() | ast.Starred():
                self._hold(node)
            case ast.Compare():
                if not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
                    for operand in (node.left, *node.comparators):
                        self._read(operand, node)
            case ast.IfExp():
                self._read(node.test)
                self._edge(node.body, node)
                self._edge(node.orelse, node)
            case ast.If(test=part) | ast.While(test=part) | ast.Assert(test=part):
                self._read(part)
            case ast.Subscript():
                self._item(node)
            case ast.Slice():
                for bound in filter(None, (node.lower, node.upper, node.step)):
                    self._read(bound)
            case ast.comprehension():
                self._bind(node.target, node.iter)
                for test in node.ifs:
                    self._read(test)
            case ast.NamedExpr():
                self._edge(node.value, node)
                self._bind(node.target, node.value)
            case ast.Assign():
                for target in node.targets:
                    self._bind(target, node.value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind(target, value)
            case ast.AugAssign():
                self._augmented(node)
            case ast.For() | ast.AsyncFor():
                self._bind(node.target, node.iter)
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                self._bind(target, value)
            case ast.Return() | ast.Yield() | ast.YieldFrom():
                if node.value is not None:
                    self._end(node.value, Fate.RETURNED)
            case ast.Lambda(body=part) | ast.Match(subject=part):
                self._end(part, Fate.STORED)
            case ast.Raise():
                for part in filter(None, (node.exc, node.cause)):
                    self._end(part, Fate.STORED)
            case ast.arguments():
                for default in filter(None, (*node.defaults, *node.kw_defaults)):
                    self._end(default, Fate.STORED)

    def _hold(self, node: ast.AST) -> None:
        """A node that holds the values of its direct parts."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._edge(child, node)

    def _item(self, node: ast.Subscript) -> None:
        self._read(node.slice)
        if isinstance(node.ctx, ast.Load) and node not in self.names.used:
            is_second = isinstance(node.slice, ast.Constant) and node.slice.value == 1
            if is_second and _is_pair(node.value):
                self._read(node.value, node)
            else:
                self._edge(node.value, node)

    def _attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load) or node in self.names.used:
            return
        name, value = node.attr, node.value
        call = self.model.parent(node)
        called = isinstance(call, ast.Call) and call.func is node
        result = call if called and call is not None else node
        if name in NEED_GRADIENT or (called and "backward" in words(name)):
            self._end(value, Fate.GRADIENT)
        elif name in DETACHES:
            self._read(value, result, Fate.READ | Fate.DETACHED)
        elif called and name in READS:
            self._read(value)
        elif (called and (name in WITHOUT_GRADIENT or self._draws(node))) or (name == "indices" and _is_pair(value)):
            self._read(value, result)
        elif name == "numpy":
            self._end(value, Fate.ARRAY)
        elif name not in _ABOUT:
            self._edge(value, result)
            if called and not self.model.target(call).startswith("torch.") and not is_known_method(name):  # type: ignore[arg-type]
                self._end(value, Fate.PASSED)

    def _draws(self, method: ast.Attribute) -> bool:
        """True if a method draws from a distribution of torch, without a gradient."""
        drawn = self.model.value(method.value).members
        return method.attr == "sample" and any(
            isinstance(member, Instance) and member.cls.startswith("torch.distributions.") for member in drawn
        )

    def _call(self, call: ast.Call) -> None:
        if not isinstance(call.func, ast.Attribute):
            self._edge(call.func, call)
            self._end(call.func, Fate.CALLED)
        elif call.func.attr.endswith("_") and not call.func.attr.startswith("_"):
            if not _is_computed(self.model, call.func.value):
                # It writes into the tensor that it is called on.
                for given in arguments(call):
                    self._grow(call.func.value, given)
        takes = self.flows.callees.takes(call)
        if takes is Takes.UNKNOWN:
            self.flow.unseen.add(call)
        if takes is Takes.FOLLOWED:
            self._follow(call)
            return
        for given in arguments(call):
            self._argument(given, call, takes)

    def _argument(self, given: ast.expr, call: ast.Call, takes: Takes) -> None:
        if takes is Takes.VALUES:
            self._read(given, call)
        elif takes is Takes.ARRAYS:
            self._end(given, Fate.ARRAY)
        elif takes is Takes.GROWS:
            assert isinstance(call.func, ast.Attribute)
            self._edge(given, call)
            self._grow(call.func.value, given)
        elif takes is not Takes.NOTHING:
            self._edge(given, call)
            if takes in _ENDS:
                self._end(given, _ENDS[takes])

    def _follow(self, call: ast.Call) -> None:
        """Lead arguments through a function of the file."""
        function = followed(self.survey, call)
        flow = self.flows.inside(function) if function is not None else None
        if function is None or flow is None:
            self.flow.unseen.add(call)
            for given in arguments(call):
                self._argument(given, call, Takes.UNKNOWN)
            return
        for given, parameter in passed(call, function):
            definition = flow.parameters.get(parameter) if parameter is not None else None
            fate = flow.fate(definition) if definition is not None else Fate.PASSED | Fate.RETURNED
            self._end(given, fate & ~Fate.RETURNED)
            if Fate.RETURNED in fate:
                self._edge(given, call)
            else:
                self._value(given, call)

    def _nested(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        """The values in decorators, defaults and bases of a definition may be used at any time."""
        outside: list[ast.AST] = [*node.decorator_list]
        outside += [*node.bases, *node.keywords] if isinstance(node, ast.ClassDef) else [node.args]
        for part in outside:
            for inner in walk(part):
                if isinstance(inner, ast.Name) and inner in self.names.used:
                    self._end(inner, Fate.STORED)

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if not isinstance(target, ast.Name):
            self._bind(target, node.value)
            return
        bound = self.names.stored.get(target)
        if bound is None:
            self._end(node.value, Fate.STORED)
            return
        self._edge(node.value, bound)
        before = self.names.used.get(target)
        if before is not None:
            self._grown.append((before, node.value))

    # Targets and containers

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        stack = [(target, value)]
        while stack:
            part, value = stack.pop()
            if isinstance(part, (ast.Tuple, ast.List)):
                if _is_pair(value) and len(part.elts) == 2:
                    self._read(value)
                    self._value(value, self.names.stored.get(part.elts[1], part.elts[1]))
                    stack.append((part.elts[0], value))
                else:
                    stack += zip(part.elts, _parts(value, part), strict=True)
            elif isinstance(part, ast.Starred):
                stack.append((part.value, value))
            elif part in self.names.stored:
                bound = self.names.stored[part]
                self._edge(value, bound)
                self._given.setdefault(bound, []).append(value)
            elif isinstance(part, ast.Subscript):
                self._grow(part.value, value)
            else:
                self._end(value, Fate.STORED)

    def _grow(self, container: ast.expr, value: ast.expr) -> None:
        """Put a value into a container, a tensor or an item of one."""
        while isinstance(container, (ast.Subscript, ast.Starred)):
            container = container.value
        bound = self.names.used.get(container) if isinstance(container, USES) else None
        if bound is None:
            self._end(value, Fate.STORED)
        else:
            self._grown.append((bound, value))

    def _grow_all(self) -> None:
        """Add edges from the contents of objects to all names that these may have; objects made elsewhere keep them."""
        contents: dict[Bound, Content] = {}
        waiting: list[Bound] = []

        def content(bound: Bound) -> Content:
            if bound not in contents:
                contents[bound] = Content(bound)
                waiting.append(bound)
            return contents[bound]

        for bound, value in self._grown:
            if not self._is_host(value):
                self._edge(value, content(bound))
        while waiting:
            bound = waiting.pop()
            own = contents[bound]
            self._edge(own, bound)
            for before in bound.of:
                self._edge(own, content(before))
            if bound.node is not None and bound not in self._given and not bound.of:
                self._end(own, Fate.STORED)
            for value in self._given.get(bound, ()):
                self._alias(own, value, content)

    def _alias(self, own: Content, value: ast.expr, content: Callable[[Bound], Content]) -> None:
        """Lead the content of a name to the object that was assigned to it."""
        stack = [value]
        while stack:
            value = stack.pop()
            if isinstance(value, ast.IfExp):
                stack += [value.body, value.orelse]
            elif isinstance(value, ast.BoolOp):
                stack += value.values
            elif isinstance(value, USES) and value in self.names.used:
                self._edge(own, content(self.names.used[value]))
            elif _is_new(value) or self._is_host(value):
                self._edge(own, value)
            else:
                self._end(own, Fate.STORED)

    def _is_host(self, node: ast.expr) -> bool:
        return is_host(self.model.value(node))


_ENDS = {Takes.NAMED: Fate.NAMED, Takes.GRADIENT: Fate.GRADIENT, Takes.UNKNOWN: Fate.PASSED}


def _parts(value: ast.expr, target: ast.Tuple | ast.List) -> list[ast.expr]:
    """The expression that each part of a target gets its value from: the parts of a tuple, or all of the value."""
    parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
    is_plain = len(parts) == len(target.elts) and not any(
        isinstance(each, ast.Starred) for each in (*parts, *target.elts)
    )
    return parts if is_plain else [value] * len(target.elts)


def _is_pair(node: ast.AST) -> bool:
    """True if a call gives values and their indices: `x.max(1)`, `torch.max(x, 1)`, but not `torch.max(x, y)`."""
    if not isinstance(node, ast.Call) or last_name(node) not in _PAIRS:
        return False
    of_torch, name = path_of(node.func).startswith("torch."), last_name(node)
    if name in ("max", "min"):
        given = node.args[of_torch] if len(node.args) > of_torch else keyword(node, "dim")
        return given is not None and _is_dimension(given)
    return len(node.args) + len(node.keywords) > of_torch or name in ("sort", "topk", "mode")


def _is_dimension(node: ast.expr) -> bool:
    """True for a number, and for a variable that is named as a dimension."""
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(node, ast.Constant):
        return True
    return not _DIMENSIONS.isdisjoint(words(last_name(node)))


def _is_new(node: ast.expr) -> bool:
    """True if an expression makes a container or a tensor that has no other name yet."""
    if isinstance(node, ast.Call):
        return last_name(node) in _FRESH
    return isinstance(
        node,
        (ast.List, ast.Dict, ast.Set, ast.Tuple, ast.ListComp, ast.DictComp, ast.SetComp, ast.BinOp, ast.Constant),
    )


def _is_computed(model: Model, node: ast.expr) -> bool:
    """True if an operator of torch makes a tensor that has no other name: `x.pow(2)`, and `x.pow(2).mul_(y)`."""
    while isinstance(node, ast.Call):
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        head, _, leaf = torch_api.canonical(model.target(node) or f"torch.Tensor.{method}").rpartition(".")
        if head == "torch.Tensor" and leaf.endswith("_") and isinstance(node.func, ast.Attribute):
            node = node.func.value
            continue
        is_method = head == "torch.Tensor" and leaf in torch_api.tensor_methods()
        is_operator = is_method or head in ("torch", "torch.nn.functional")
        return is_operator and (leaf == "clone" or leaf not in _MAY_SHARE) and not leaf.endswith("_")
    return False
