"""The uses of a tensor: reads, changes of layout, possible writes, and tensors that autograd may keep.

All names are followed that may stand for it in its function (`semantics.flow`), and the functions of the
file that it is passed to.
"""

from __future__ import annotations

import ast
from enum import Enum

from perflint.frozen import dataclass
from perflint.rules._memory import operators
from perflint.rules._memory.flows import ahead, flow_around
from perflint.rules._methods import is_false
from perflint.rules._visible import is_local
from perflint.semantics.binders import Loop
from perflint.semantics.dataflow.flow import Bound, Flow
from perflint.semantics.facts import torch_api
from perflint.semantics.model import Model
from perflint.semantics.structure import names_in, walk
from perflint.semantics.values import Array, Function, Tensor, scalar_type


class Fate(Enum):
    """The effect of one use on a tensor."""

    READ = "read"
    """Element by element: the result is the same, bit for bit, for any strides, and has memory of its own."""
    COMPUTED = "computed"
    """By a product or a sum, whose order of additions may depend on strides."""
    COPIED = "copied"
    """It is laid out one element after the other: a tensor that is not so is copied there."""
    PASSED = "passed"
    """It is an argument of a function that this file does not show."""
    LAYER = "layer"
    """It is an argument of a module, which by custom leaves it as it is."""
    KEPT = "kept"
    """It is returned, stored or captured: other code decides its fate."""
    WRITTEN = "written"


HARMLESS = frozenset((Fate.READ, Fate.COMPUTED, Fate.COPIED))
"""The fates that leave a tensor as it is, and where nothing else may keep it."""
_BUILTINS = frozenset("len print isinstance float int bool type id str repr range hasattr abs round".split())
_DEPTH = 3
"""How many functions deep arguments are followed."""
_NUMBERS = ("int", "float", "bool")
_SUMS = (ast.Add, ast.Sub)
"""Operators of which autograd keeps no operand."""
_STEPS = 80
"""Uses of the tensor, and uses of tensors made of it, to look at before all further ones count as kept."""
Position = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _As:
    """How the value of a node is related to the tensor that is followed.

    `depth`: functions that may still be entered. `derived`: it is another tensor, made of this one element by
    element, whose strides come from it. `ordered`: its elements are in the order of the tensor.
    """

    depth: int = _DEPTH
    derived: bool = False
    ordered: bool = True


class Uses:
    """The fates of a tensor and of all that shares its memory.

    With `layout`, the results of element-wise operations are followed too, because they may inherit its strides.
    With `copies` a move to another device is a copy, and not followed.
    """

    def __init__(self, model: Model, *, layout: bool = False, copies: bool = False) -> None:
        self.model = model
        self.fates: set[Fate] = set()
        self.last: Position = (0, 0)
        """The end of the last expression or statement that uses its memory."""
        self.loops: set[Loop] = set()
        """The loops that carry it from one iteration to the next."""
        self.saved = False
        """True if autograd may keep it for the backward pass."""
        self.laid_bare = False
        """True if a result may depend on its strides, or on those of tensors that are computed from it."""
        self._layout = layout
        self._copies = copies
        self._seen: tuple[set[ast.AST], set[ast.AST]] = (set(), set())
        """The uses of the tensor, and those of tensors made of it."""

    def follow(self, node: ast.expr, how: _As = _As()) -> None:  # noqa: B008
        """Note the use of an expression's value by the node around it."""
        seen = self._seen[how.derived]
        if node in seen:
            return
        seen.add(node)
        if how.depth == _DEPTH and not how.derived:
            self.last = max(self.last, _end_of_evaluation(self.model, node))
        if len(seen) > _STEPS:
            self._keep(node, how)
            return
        parent = self.model.parent(node)
        if isinstance(parent, (ast.Tuple, ast.Call, ast.keyword)) and (place := ahead(self.model, node)) is not node:
            self.follow(place, how)
        elif isinstance(parent, ast.Call) and node is parent.func:
            self._keep(node, how)
        elif isinstance(parent, ast.Call):
            self._argument(parent, node, "", how)
        elif isinstance(parent, ast.keyword):
            call = self.model.parent(parent)
            if isinstance(call, ast.Call) and parent.arg is not None:
                self._argument(call, node, parent.arg, how)
            else:
                self._keep(node, how)
        elif isinstance(parent, ast.Attribute):
            self._attribute(parent, node, how)
        elif isinstance(parent, ast.Subscript):
            self._subscript(parent, node, how)
        elif isinstance(parent, ast.stmt):
            self._statement(parent, node, how)
        elif isinstance(parent, (ast.List, ast.Tuple)):
            self._member(parent, node, how)
        else:
            self._expression(parent, node, how)

    def name(self, store: ast.Name, how: _As = _As()) -> None:  # noqa: B008
        """Follow the uses of a name from the statement that binds it here."""
        flow = flow_around(self.model, store)
        bound = flow.stored.get(store)
        if bound is None or not is_local(self.model, store):
            self._keep(store, how)
        else:
            self._bound_to(flow, bound, how)

    # The effects of uses

    def _keep(self, node: ast.AST, how: _As) -> None:
        self._note(Fate.KEPT, how, node)

    def _note(self, fate: Fate, how: _As, saved: ast.AST | None = None) -> None:
        """Note one use, and the operation that may save the tensor. For derived tensors, only the strides matter."""
        if how.derived:
            self.laid_bare = self.laid_bare or fate not in (Fate.READ, Fate.WRITTEN)
            return
        self.fates.add(fate)
        self.saved = self.saved or (saved is not None and operators.records(self.model, saved))
        self.laid_bare = self.laid_bare or fate is not Fate.READ

    def _read(self, how: _As, result: ast.expr | None, saved: ast.AST | None = None) -> None:
        """Note that it is read element by element, into a result whose strides may come from it."""
        self._note(Fate.READ, how, saved)
        if result is not None and self._layout:
            self.follow(result, _As(how.depth, True, how.ordered))

    def _bound_to(self, flow: Flow, bound: Bound, how: _As) -> None:
        reach = flow.reach(bound, _STEPS)
        if reach is None:
            self._note(Fate.KEPT, how, bound.node)
            return
        if how.depth == _DEPTH and not how.derived:
            self.loops.update(reach.loops)
        for use in reach.uses:
            if isinstance(use.ctx, ast.Store):
                self._note(Fate.WRITTEN, how)
            else:
                self.follow(use, how)

    # By the node around it

    def _expression(self, parent: ast.AST | None, node: ast.expr, how: _As) -> None:
        if isinstance(parent, ast.BinOp):
            if isinstance(parent.op, ast.MatMult):
                self._note(Fate.COMPUTED, how, node)
            else:
                self._read(how, parent, node if self._is_kept(parent, node) else None)
        elif isinstance(parent, (ast.IfExp, ast.BoolOp)) and node is not getattr(parent, "test", None):
            self.follow(parent, how)
        elif isinstance(parent, (ast.Compare, ast.UnaryOp)):
            self._read(how, parent)
        elif isinstance(parent, (ast.Slice, ast.FormattedValue, ast.IfExp)):
            self._note(Fate.READ, how)
        elif isinstance(parent, ast.comprehension) and node is parent.iter:
            self._elements(parent, parent.target, how)
        elif isinstance(parent, ast.NamedExpr):
            self.name(parent.target, how)
            self.follow(parent, how)
        else:
            self._keep(node, how)

    def _is_kept(self, parent: ast.BinOp, node: ast.expr) -> bool:
        """True if autograd keeps an operand: sums keep none, and a product with a number only keeps the number."""
        if isinstance(parent.op, ast.Mult) or (isinstance(parent.op, ast.Div) and node is parent.left):
            other = parent.left if node is parent.right else parent.right
            return scalar_type(self.model.value(other)) not in _NUMBERS
        return not isinstance(parent.op, _SUMS)

    def _elements(self, loop: ast.comprehension, target: ast.expr, how: _As) -> None:
        """Follow the names that a comprehension binds to elements."""
        around, names = self.model.parent(loop), names_in(target)
        for use in () if around is None else walk(around):
            if isinstance(use, ast.Name) and use.id in names and isinstance(use.ctx, ast.Load):
                self.follow(use, _As(how.depth, how.derived, False))

    def _statement(self, parent: ast.stmt, node: ast.expr, how: _As) -> None:
        if isinstance(parent, (ast.Assign, ast.AnnAssign)):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            for target in targets:
                self._assigned(target, how)
        elif isinstance(parent, ast.AugAssign):
            if node is parent.value:
                self._note(Fate.READ, how, None if isinstance(parent.op, _SUMS) else node)
            else:
                self._note(Fate.WRITTEN, how)
        elif isinstance(parent, (ast.Assert, ast.If, ast.While)):
            self._note(Fate.READ, how)
        elif not isinstance(parent, (ast.Expr, ast.Delete)):
            self._keep(node, how)

    def _assigned(self, target: ast.expr, how: _As) -> None:
        flow = flow_around(self.model, target)
        if isinstance(target, ast.Name):
            self.name(target, how)
        elif target in flow.stored:
            self._bound_to(flow, flow.stored[target], how)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                self._assigned(each, how)
        elif isinstance(target, ast.Subscript) and isinstance(self.model.value(target.value), (Tensor, Array)):
            self._note(Fate.READ, how)
        else:
            self._keep(target, how)

    def _attribute(self, parent: ast.Attribute, node: ast.expr, how: _As) -> None:
        call = self.model.parent(parent)
        name = parent.attr
        if name in operators.ASKS_IDENTITY:
            self._keep(node, how)
        elif not isinstance(call, ast.Call) or call.func is not parent:
            if name in operators.ALIASES:
                self.follow(parent, _As(how.depth, how.derived, how.ordered and name == "data"))
            elif name in operators.FACTS:
                self._note(Fate.READ, how)
            else:
                self._note(Fate.PASSED, how, node)
        elif name in ("items", "values") and isinstance(loop := self.model.parent(call), ast.comprehension):
            values = loop.target.elts[1:] if isinstance(loop.target, ast.Tuple) and name == "items" else [loop.target]
            for target in values:
                self._elements(loop, target, how)
        elif any(keyword.arg == "out" for keyword in call.keywords) or name in operators.BINDS:
            self._keep(node, how)
        elif name in operators.ASKS_LAYOUT:
            self.laid_bare = True
        elif name not in operators.ASKS:
            self._operation(call, name, True, how)

    def _operation(self, call: ast.Call, name: str, first: bool, how: _As) -> None:
        """Note the use of the first operand of an operator of torch, or of another one."""
        if self._copies and name in operators.MOVES and first:
            self._note(Fate.READ, how)
        elif name in operators.LAYS_OUT or name in operators.VIEWS:
            self._view(call, name, first, how)
        elif first and name.endswith("_") and not name.endswith("__"):
            self._note(Fate.WRITTEN, how)
            if how.derived:
                self.follow(call, how)
        elif name in operators.MULTIPLIES:
            self._note(Fate.COPIED, how, call)
        elif name in operators.ELEMENTWISE:
            saved = name not in operators.SAVES_NOTHING and not (first and name in operators.SAVES_OTHERS)
            self._read(how, call if self._shapes(name, first, how) else None, call if saved else None)
        elif name.rstrip("_") in torch_api.tensor_methods() or torch_api.result(self.model.target(call)) is not None:
            self._note(Fate.COMPUTED, how, None if name in operators.SAVES_NOTHING else call)
        else:
            self._note(Fate.PASSED, how, call)

    def _view(self, call: ast.Call, name: str, first: bool, how: _As) -> None:
        if not first:
            return
        if name in operators.LAYS_OUT:
            self._note(Fate.COPIED, how)
        if name != "clone":
            self.follow(call, _As(how.depth, how.derived, how.ordered and operators.keeps_order(name)))

    def _shapes(self, name: str, first: bool, how: _As) -> bool:
        """True if the strides of a result may come from this operand."""
        if name in operators.LAYOUT_OF_NONE or (name in operators.LAYOUT_OF_FIRST and not first):
            return False
        return not (name in operators.JOINS and how.ordered and not how.derived)

    def _argument(self, call: ast.Call, node: ast.expr, keyword: str, how: _As) -> None:
        target = torch_api.canonical(self.model.target(call))
        head, _, leaf = target.rpartition(".")
        if keyword == "out":
            self._note(Fate.WRITTEN, how)
        elif head == "builtins" and leaf in _BUILTINS:
            self._note(Fate.READ, how)
        elif head == "torch.Tensor":
            self._operation(call, leaf, False, how)
        elif target.startswith("torch.") and not target.startswith(operators.KEEPS):
            first = (bool(call.args) and node is call.args[0]) or keyword in ("input", "self", "data", "tensors")
            if first and any(each.arg == "inplace" and not is_false(each.value) for each in call.keywords):
                self._keep(node, how)
            else:
                self._operation(call, leaf, first, how)
        elif target.startswith("torch.") and not operators.is_layer(self.model, call):
            self._keep(node, how)
        else:
            self._project(call, node, keyword, how)

    def _project(self, call: ast.Call, node: ast.expr, keyword: str, how: _As) -> None:
        """Follow an argument into a function of the file."""
        found = parameter_of(self.model, call, node, keyword) if how.depth else None
        if found is None:
            layer = operators.is_layer(self.model, call)
            self._note(Fate.LAYER if layer else Fate.PASSED, how, node)
            return
        function, argument = found
        if not is_local(self.model, argument):
            self._keep(node, how)
            return
        flow = flow_around(self.model, function.body[0])
        bound = flow.stored.get(argument)
        if bound is None:
            self._keep(node, how)
        else:
            self._bound_to(flow, bound, _As(how.depth - 1, how.derived, how.ordered))

    def _member(self, parent: ast.List | ast.Tuple, node: ast.expr, how: _As) -> None:
        """Note the use of a tensor that is a member of a list or tuple."""
        place = ahead(self.model, parent)
        around = self.model.parent(place)
        if isinstance(around, ast.keyword) and around.arg == "tensors":
            place, around = around.value, self.model.parent(around)
        if isinstance(around, ast.Call) and (place in around.args or self.model.parent(place) is not around):
            head, _, leaf = torch_api.canonical(self.model.target(around)).rpartition(".")
            if head == "torch" and leaf in operators.JOINS:
                if leaf in operators.ELEMENTWISE:
                    self._read(how, around if self._shapes(leaf, True, how) else None)
                else:
                    self._note(Fate.COMPUTED, how, node)
                return
        elif isinstance(around, ast.Subscript) and parent is around.slice:
            self._read(how, around if isinstance(around.ctx, ast.Load) else None, node)
            return
        elif isinstance(around, ast.Assign) and len(around.targets) == 1:
            (target,) = around.targets
            if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == len(parent.elts):
                self._assigned(target.elts[parent.elts.index(node)], how)
                return
        self._keep(node, how)

    def _subscript(self, parent: ast.Subscript, node: ast.expr, how: _As) -> None:
        if node is parent.slice:
            self._read(how, parent if isinstance(parent.ctx, ast.Load) else None, node)
        elif not isinstance(parent.ctx, ast.Load):
            self._note(Fate.WRITTEN, how)
        else:
            self.follow(parent, _As(how.depth, how.derived, False))


def fates(model: Model, node: ast.expr) -> set[Fate]:
    """The uses of the value of an expression; empty if it is not used."""
    uses = Uses(model)
    uses.follow(node)
    return uses.fates


def fates_of_name(model: Model, use: ast.Name, *, copies: bool = False) -> set[Fate] | None:
    """The uses of the value that a name has at a use, as `Uses` follows them; None if its origin is not seen."""
    bound = flow_around(model, use).used.get(use)
    if bound is None or not isinstance(bound.node, ast.Name):
        return None
    uses = Uses(model, copies=copies)
    uses.name(bound.node)
    return uses.fates


def handed(model: Model, call: ast.Call, node: ast.expr, keyword: str) -> set[Fate]:
    """The effect of a call on one of its arguments."""
    uses = Uses(model)
    uses._argument(call, node, keyword, _As())
    return uses.fates


def parameter_of(model: Model, call: ast.Call, node: ast.expr, keyword: str) -> tuple[ast.FunctionDef, ast.arg] | None:
    """The function of the file that is called, and the parameter that takes an argument."""
    value = model.value(call.func)
    info = model.function_of(value)
    if not isinstance(value, Function) or value.plain or info is None:
        return None
    if not isinstance(info.node, ast.FunctionDef) or info.node.decorator_list:
        return None
    given = info.node.args
    positional = [*given.posonlyargs, *given.args]
    if keyword:
        named = [each for each in (*given.args, *given.kwonlyargs) if each.arg == keyword]
        return (info.node, named[0]) if named else None
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None
    index = call.args.index(node) + (value.receiver is not None)
    return (info.node, positional[index]) if index < len(positional) else None


def _end_of_evaluation(model: Model, node: ast.expr) -> Position:
    """The end of the outermost expression around a node: all of it may run before the value is read."""
    outer: ast.AST = node
    for each in model.ancestors(node):
        if isinstance(each, (ast.stmt, ast.Lambda)):
            if not hasattr(each, "body") and isinstance(each, ast.stmt):
                outer = each
            break
        if hasattr(each, "end_lineno"):
            outer = each
    return getattr(outer, "end_lineno", 0) or 0, getattr(outer, "end_col_offset", 0) or 0
