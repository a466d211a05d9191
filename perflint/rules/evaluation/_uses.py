"""Where the result of a call goes: whether a gradient can ever come back to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.frozen import dataclass
from perflint.rules.evaluation._loops import wants_gradient
from perflint.rules.evaluation._scopes import LOOPS, Survey, dotted, words
from perflint.semantics.bindings import definitions
from perflint.semantics.structure import last_name, walk
from perflint.semantics.values import Instance

_DETACHES = frozenset({"data", "detach", "detach_"})
_READS = frozenset({"item", "tolist", "__float__", "__int__"})
_WITHOUT_GRADIENT = frozenset(
    {"allclose", "argmax", "argmin", "argsort", "bernoulli", "bincount", "bool", "byte", "count_nonzero", "eq", "equal",
     "ge", "gt", "histc", "int", "isclose", "isfinite", "isinf", "isnan", "le", "long", "lt", "multinomial", "ne",
     "nonzero", "searchsorted", "short", "unique"}
)  # fmt: skip
"""Methods and functions of torch through which no gradient comes back."""
_ABOUT = frozenset(
    {"data_ptr", "device", "dim", "dtype", "element_size", "get_device", "grad_fn", "is_cuda", "is_contiguous", "ndim",
     "ndimension", "numel", "requires_grad", "shape", "size", "stride", "storage"}
)  # fmt: skip
_NEED_GRADIENT = frozenset(
    {"backward", "grad", "manual_backward", "register_hook", "requires_grad_", "retain_grad", "retains_grad"}
)
_PAIRS = frozenset({"cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "sort", "topk"})
_HOST = frozenset({"bool", "complex", "float", "format", "int", "print", "range", "repr", "round", "str"})
_ABOUT_CALLS = frozenset({"callable", "hasattr", "id", "isinstance", "len", "type"})
_HANDS_ON = frozenset(
    {"abs", "dict", "enumerate", "iter", "list", "max", "min", "next", "pow", "reversed", "sorted", "sum", "tuple",
     "zip"}
)  # fmt: skip
_SHOWS = frozenset(
    {"add_figure", "add_histogram", "add_image", "add_images", "add_scalar", "imsave", "make_grid", "save_image"}
)
_LOSSES = frozenset({"bce", "ce", "criterion", "loss", "mse"})
_GROWS = frozenset({"append", "appendleft", "extend", "insert"})
_LIKE = "_like"
_HOLDS = (ast.Starred, ast.BinOp, ast.BoolOp, ast.Await, ast.List, ast.Set, ast.Dict)
_MOST_LOADS = 60
_MOST_STEPS = 400


@dataclass(slots=True)
class Fate:
    """What becomes of a result, in all of its uses that are seen."""

    kept: bool = False
    """Some use may want a gradient, or is not seen."""
    ended: bool = False
    """Some use takes the value and leaves the graph."""
    detached: bool = False
    """Some use detaches, which asks for a graph to detach from."""
    graphless: bool = False
    """Some use is an error where there is a graph: `.numpy()`."""

    @property
    def is_wasted(self) -> bool:
        """Whether a graph that was recorded is used nowhere."""
        return self.ended and not self.kept and not self.graphless


def fate(survey: Survey, call: ast.expr) -> Fate:
    """What becomes of the result of a call."""
    follower = _Follower(survey)
    follower.follow(call)
    return follower.fate


class _Follower:
    """Follows a value from use to use, within its function."""

    def __init__(self, survey: Survey) -> None:
        self.survey, self.model = survey, survey.model
        self.fate = Fate()
        self.seen: set[ast.AST] = set()

    def follow(self, node: ast.AST) -> None:
        """Look at what is around an expression that holds the value."""
        if node in self.seen or self.fate.kept:
            return
        self.seen.add(node)
        around = self.model.parent(node)
        if len(self.seen) > _MOST_STEPS or around is None:
            self.fate.kept = True
            return
        if isinstance(around, ast.Attribute):
            self._attribute(node, around)
        elif isinstance(around, ast.Call):
            self._argument(node, around)
        elif isinstance(around, ast.keyword):
            self._argument(around, self.model.parent(around))
        elif isinstance(around, _HOLDS):
            self.follow(around)
        elif isinstance(around, ast.Tuple):
            self._tuple(node, around)
        elif isinstance(around, ast.Subscript):
            self._subscript(node, around)
        elif isinstance(around, ast.UnaryOp):
            if isinstance(around.op, ast.Not):
                self._end()
            else:
                self.follow(around)
        elif isinstance(around, ast.Compare):
            if not isinstance(around.ops[0], (ast.Is, ast.IsNot)):
                self._end()
        elif isinstance(around, (ast.FormattedValue, ast.If, ast.While, ast.Assert, ast.IfExp)):
            if isinstance(around, ast.IfExp) and node is not around.test:
                self.follow(around)
            else:
                self._end()
        else:
            self._statement(node, around)

    def _end(self, detached: bool = False) -> None:
        self.fate.ended = True
        self.fate.detached = self.fate.detached or detached

    def _statement(self, node: ast.AST, around: ast.AST) -> None:
        if isinstance(around, ast.Assign) and node is around.value:
            for target in around.targets:
                self._bind(target, node)
        elif isinstance(around, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node is around.value:
            self._bind(around.target, node)
            if isinstance(around, ast.NamedExpr):
                self.follow(around)
        elif isinstance(around, (ast.For, ast.AsyncFor, ast.comprehension)) and node is around.iter:
            self._bind(around.target, node)
        elif isinstance(around, LOOPS) and not isinstance(around, (ast.For, ast.AsyncFor, ast.While)):
            self.follow(around)
        elif not isinstance(around, (ast.Expr, ast.Delete)):
            self.fate.kept = True

    def _attribute(self, node: ast.AST, around: ast.Attribute) -> None:
        name = around.attr
        call = self.model.parent(around)
        called = isinstance(call, ast.Call) and call.func is around
        if not isinstance(around.ctx, ast.Load) or name in _NEED_GRADIENT:
            self.fate.kept = True
        elif name in _DETACHES:
            self._end(detached=True)
        elif called and (name in _READS or name in _WITHOUT_GRADIENT or self._draws(around)):
            self._end()
        elif name == "numpy":
            self.fate.graphless = True
        elif name not in _ABOUT:
            if name == "indices" and _is_pair(node):
                self._end()
            else:
                self.follow(call if called and call is not None else around)

    def _draws(self, method: ast.Attribute) -> bool:
        """Whether a method draws from a distribution of torch, without a gradient."""
        drawn = self.model.value(method.value).members
        return method.attr == "sample" and any(
            isinstance(member, Instance) and member.cls.startswith("torch.distributions.") for member in drawn
        )

    def _argument(self, node: ast.AST, call: ast.AST | None) -> None:
        if not isinstance(call, ast.Call) or node is call.func:
            self.fate.kept = self.fate.kept or not isinstance(call, ast.Call)
            return
        name, target, text = last_name(call), self.model.target(call), dotted(call.func)
        plain = isinstance(call.func, ast.Name)
        of_torch = target.startswith("torch.") or text.startswith(("torch.", "F.", "nn.functional."))
        if target.startswith("numpy.") or text.startswith(("np.", "numpy.")):
            self.fate.graphless = True
        elif name in _NEED_GRADIENT or "autograd" in target.split("."):
            self.fate.kept = True
        elif _takes_values(name, text, of_torch, plain):
            self._end()
        elif plain and name in _ABOUT_CALLS:
            return
        elif name in _GROWS and isinstance(call.func, ast.Attribute):
            self._grow(call.func.value, call)
        elif of_torch or (plain and name in _HANDS_ON) or self._is_transparent(call, name):
            self.follow(call)
        else:
            self.fate.kept = True

    def _is_transparent(self, call: ast.Call, name: str) -> bool:
        """Whether a callee hands its argument on and keeps nothing: a module, a loss, a plain function of the file."""
        value = self.model.value(call.func)
        if isinstance(value, Instance):
            return self.model.is_module(value)
        called = self.survey.called(call)
        if self.model.target(call) == "torch.nn.Module.__call__" or _LOSSES.intersection(words(name)):
            return not _is_step(name) and not any(wants_gradient(self.survey, each.node) for each in called)
        return len(called) == 1 and isinstance(call.func, ast.Name) and _keeps_nothing(self.survey, called[0].node)

    def _grow(self, owner: ast.expr, call: ast.Call) -> None:
        if isinstance(owner, ast.Name):
            self._loads(owner, owner.id, call)
        else:
            self.fate.kept = True

    def _tuple(self, node: ast.AST, around: ast.Tuple) -> None:
        """One of several values: only the target at its place gets it."""
        statement = self.model.parent(around)
        if isinstance(statement, ast.Assign) and statement.value is around and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == len(around.elts):
                place = next(index for index, each in enumerate(around.elts) if each is node)
                self._bind(target.elts[place], node)
                return
        self.follow(around)

    def _subscript(self, node: ast.AST, around: ast.Subscript) -> None:
        is_second = isinstance(around.slice, ast.Constant) and around.slice.value == 1
        if node is not around.value or (is_second and _is_pair(node)):
            self._end()
        elif isinstance(around.ctx, ast.Load):
            self.follow(around)

    def _bind(self, target: ast.expr, value: ast.AST) -> None:
        """Follow what is bound to a target, or to the parts of it."""
        if isinstance(target, ast.Starred):
            target = target.value
        if isinstance(target, (ast.Tuple, ast.List)):
            elements = target.elts[:1] if _is_pair(value) and len(target.elts) == 2 else target.elts
            if elements != target.elts:
                self._end()
            for element in elements:
                self._bind(element, value)
        elif isinstance(target, ast.Name):
            self._loads(target, target.id, target)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            self._loads(target.value, target.value.id, target)
        else:
            self.fate.kept = True

    def _loads(self, place: ast.AST, name: str, binding: ast.AST) -> None:
        """Follow all reads of a name that a binding may reach."""
        function = self.model.function(place)
        loads = list(self._reads(function, name))
        if len(loads) > _MOST_LOADS or _is_shared(function, name):
            self.fate.kept = True
            return
        for load in loads:
            if load in self.seen:
                continue
            found = definitions(load, self.model.ancestors(load), name)
            if self.model.function(load) is not function:
                # A function inside, which may run at any time.
                self.fate.kept = self.fate.kept or found.scope is (function or self.model.source.tree)
            elif any(each.node is binding for each in found.bindings):
                self.follow(load)

    def _reads(self, function: ast.AST | None, name: str) -> Iterator[ast.Name]:
        for node in walk(function or self.model.source.tree):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                yield node


def _is_shared(function: ast.AST | None, name: str) -> bool:
    if function is None:
        return False
    return any(isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names for node in walk(function))


def _is_pair(node: ast.AST) -> bool:
    """Whether a call gives values and their indices: `x.max(1)`, `torch.max(x, 1)`."""
    if not isinstance(node, ast.Call) or last_name(node) not in _PAIRS:
        return False
    of_torch = dotted(node.func).startswith("torch.")
    return len(node.args) + len(node.keywords) > of_torch or last_name(node) in ("sort", "topk", "mode")


def _takes_values(name: str, text: str, of_torch: bool, plain: bool) -> bool:
    """Whether a function only takes values of tensors: it prints, saves or shows them, or has no gradient."""
    if of_torch and (name in _WITHOUT_GRADIENT or name in ("save", "tensor") or name.endswith(_LIKE)):
        return True
    return name in _SHOWS or text.startswith("math.") or (plain and name in _HOST)


def _is_step(name: str) -> bool:
    return bool({"backward", "step", "train", "update"}.intersection(words(name)))


def _keeps_nothing(survey: Survey, function: ast.AST) -> bool:
    """Whether a function stores nothing outside of itself and asks for no gradient."""
    if wants_gradient(survey, function):
        return False
    for node in walk(function):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            return False
        if isinstance(node, (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom)):
            return False
        if isinstance(node, ast.Call) and last_name(node) in _GROWS and not _grows_local(node, function):
            return False
    return True


def _grows_local(call: ast.Call, function: ast.AST) -> bool:
    """Whether a list that a function has made itself grows."""
    name = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return any(
        isinstance(node, ast.Assign) and any(dotted(target) == name for target in node.targets)
        for node in walk(function)
    )
