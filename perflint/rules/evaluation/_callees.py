"""How a call treats the values that it gets: whether it reads them, returns them, or may keep them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from enum import Enum

from perflint.frozen import dataclass
from perflint.rules._memory.operators import GROWS
from perflint.rules._methods import is_false
from perflint.rules._operators import operators
from perflint.rules._parts import made_of
from perflint.rules.evaluation._followed import followed
from perflint.rules.evaluation._modules import modules
from perflint.rules.evaluation._runs import Surety, runs
from perflint.rules.evaluation._scopes import OfFile, Scope, Survey
from perflint.semantics.facts import conventions, rule_conventions, torch_api
from perflint.semantics.heat.training import is_optimizer
from perflint.semantics.memo import once, once_per_key
from perflint.semantics.structure import arguments, calls_in, keyword, last_name, path_of, walk
from perflint.semantics.values import Array, Const, DeviceValue, Dtype, Instance, Scalar, Value

MODULE_CALL = "torch.nn.Module.__call__"
NEED_GRADIENT = operators("gradient", "need_gradient")
"""Attributes and calls that only a value with a gradient needs."""
_FAIL_WITHOUT = frozenset({"backward", "enable_grad", "grad", "register_hook", "requires_grad_", "retain_grad"})
"""Calls in a part of a module that fail where autograd is off, or show that the part needs it."""
WITHOUT_GRADIENT = torch_api.with_integers() | {"allclose", "bernoulli", "bincount", "equal", "histc", "unique"}
"""Methods and functions of torch through which no gradient comes back."""
DETACHES = frozenset({"data", "detach", "detach_"})
_VARIABLE = "torch.autograd.Variable"
"""It returns its tensor without the graph."""
READS = frozenset({"item", "tolist", "__float__", "__int__"})
_ABOUT_CALLS = frozenset({"callable", "hasattr", "id", "isinstance", "len", "type"})
_HOST = frozenset({"bool", "complex", "float", "format", "int", "print", "range", "repr", "round", "str"})
_SHOWS = operators("gradient", "shows")
_READERS = (
    "PIL.", "cv2.", "logging.", "math.", "matplotlib.", "scipy.", "sklearn.", "torchmetrics.", "wandb."
)  # fmt: skip
"""Libraries that read the values of tensors, and need no graph."""
_RETURNING = ("collections.", "copy.", "functools.", "itertools.", "tqdm.")
"""Libraries whose functions return their arguments, or objects that hold them."""
_RETURNS = operators("gradient", "returns")
_OF_CONTAINERS = frozenset({"copy", "get", "items", "keys", "pop", "popitem", "popleft", "to_tuple", "values"})
_OF_DISTRIBUTIONS = frozenset({"entropy", "log_prob", "rsample", "sample", "logits", "probs"})
OF_MODULES = operators("gradient", "of_modules")
"""Methods that switch, move or list a module, and run nothing."""


NO_RESULTS = OF_MODULES | {"config", "device", "dtype", "generation_config", "module", "name", "training"}
"""Attributes of a module that hold nothing that it has computed."""
_HOOKS = operators("gradient", "hooks")


class Takes(Enum):
    """How a call treats its arguments."""

    NOTHING = "nothing"
    """It asks about the objects: their type, their length."""
    VALUES = "values"
    """It reads values, or computes something that has no gradient."""
    ARRAYS = "arrays"
    """It is an error where there is a graph."""
    RETURNS = "returns"
    """The result may hold them; nothing else keeps them."""
    NAMED = "named"
    """The same, but only the callee's name says so: it is named as a loss or a model is."""
    GROWS = "grows"
    """It puts them into the object that it is called on."""
    FOLLOWED = "followed"
    """It is a function of the file, which says it."""
    GRADIENT = "gradient"
    """It computes gradients of them."""
    UNKNOWN = "unknown"
    """It may keep them, or compute gradients of them."""


@dataclass(frozen=True, slots=True)
class Forward:
    """The facts about the `forward` of a module's class; empty for an unknown class."""

    stores: bool
    """It stores something in the module, which others may read later."""
    asks: bool
    """It asks for gradients itself, or a part of it does: forces from energies."""
    suspends: bool
    """It switches autograd itself."""


class Callees(OfFile):
    """The callees of a file."""

    def takes(self, call: ast.Call) -> Takes:
        """How a call treats its arguments."""
        name, target, text = last_name(call), self._model.target(call), path_of(call.func)
        plain = isinstance(call.func, ast.Name)
        if target.startswith("numpy.") or text.startswith(("np.", "numpy.")):
            return Takes.ARRAYS
        if target == _VARIABLE and not asks_for_gradient(call):
            return Takes.VALUES
        if name in NEED_GRADIENT or "autograd" in target.split(".") or target.startswith("torch.optim."):
            return Takes.GRADIENT
        if plain and name in _ABOUT_CALLS:
            return Takes.NOTHING
        of_torch = target.startswith("torch.") or text.startswith(("torch.", "F.", "nn.functional."))
        if target == MODULE_CALL:
            return self._by_module(call.func)
        if _reads_values(name, target, text, of_torch, plain):
            return Takes.VALUES
        if of_torch:
            return self._by_torch(call, name, target)
        if target.startswith(_RETURNING) or (plain and name in _RETURNS and name not in self._survey.by_name):
            return Takes.RETURNS
        return self._by_others(call, name)

    def _by_module(self, callee: ast.expr) -> Takes:
        """The result of a module has all its values, unless its `forward` stores some for other code to read."""
        return Takes.UNKNOWN if any(made.stores for made in self.classes(callee)) else Takes.RETURNS

    def classes(self, callee: ast.expr) -> list[Forward]:
        """The facts about the `forward` of a module."""
        return [
            self._forward(member.cls) for member in self._model.value(callee).members if isinstance(member, Instance)
        ]

    @once_per_key
    def _forward(self, cls: str) -> Forward:
        stores = asks = suspends = False
        for name in self._model.lineage(cls):
            found = self._model.view.klass(name)
            if found is None:
                continue
            info = found[1]
            stored = (method for methods in info.assigned_in.values() for method in methods)
            stores = stores or any(method.name == "forward" for method in stored)
            forward = info.methods.get("forward")
            if forward is not None:
                names = [*map(last_name, walk(forward.node))]
                asks = any(name in NEED_GRADIENT or name == "enable_grad" for name in names)
                asks = asks or any(map(_hooks_gradient, made_of(self._model, cls).classes))
                suspends = any(rule_conventions.suspends_autograd(name) for name in names)
                break
        return Forward(stores, asks, suspends)

    def _by_torch(self, call: ast.Call, name: str, target: str) -> Takes:
        if target.startswith("torch.distributed.") and not target.startswith("torch.distributed.nn."):
            return Takes.VALUES
        if target.startswith(("torch.func.", "torch.jit.", "torch.onnx.")):
            return Takes.UNKNOWN
        if name in ("Parameter", "tensor"):
            return Takes.VALUES
        writes = keyword(call, "out") is not None
        is_method = target.startswith("torch.Tensor.")
        if writes or (not is_method and name.endswith("_") and self._is_dropped(call)):
            # It writes into an argument.
            return Takes.UNKNOWN
        return Takes.RETURNS

    def _by_others(self, call: ast.Call, name: str) -> Takes:
        if followed(self._survey, call) is not None:
            return Takes.FOLLOWED
        value = self._model.value(call.func)
        if isinstance(value, Instance) and self._model.is_module(value):
            return self._by_module(call.func)
        if isinstance(call.func, ast.Attribute):
            found = self._by_method(call, call.func)
            if found is not None:
                return found
        if self._gets_optimizer(call):
            return Takes.UNKNOWN
        surety = self.surety_of(call)
        if surety is not None and surety is not Surety.PASSED:
            return Takes.RETURNS if surety is Surety.PROVEN else Takes.NAMED
        if modules(self._survey).shows(call.func):
            return Takes.RETURNS
        if rule_conventions.computes_loss(name) and not self._is_dropped(call):
            return Takes.NAMED
        return Takes.NAMED if self._is_detached(call) and not conventions.computes_gradients(name) else Takes.UNKNOWN

    def _is_detached(self, call: ast.Call) -> bool:
        """True if the result of a call, or a part of it, is detached right away: `scores(logits, ids)[:, 1:].detach()`.

        A function that trains through its arguments has no result with a graph.
        """
        outer = self._model.parent(call)
        while isinstance(outer, ast.Subscript):
            outer = self._model.parent(outer)
        return isinstance(outer, ast.Attribute) and outer.attr in ("detach", "detach_")

    def _by_method(self, call: ast.Call, method: ast.Attribute) -> Takes | None:
        """How a method treats its arguments that many objects may have; None if its name does not show it."""
        name = method.attr
        if name in WITHOUT_GRADIENT or name in READS or name in DETACHES:
            return Takes.VALUES
        if name in GROWS and self._model.value(method.value).tensor is None:
            return Takes.GROWS
        if name in torch_api.tensor_only_methods() or name in _OF_DISTRIBUTIONS:
            return Takes.RETURNS
        if name in OF_MODULES:
            return Takes.NOTHING
        gets_nothing = all(is_host(self._model.value(given)) for given in arguments(call))
        return Takes.RETURNS if gets_nothing and is_known_method(name) else None

    def surety_of(self, call: ast.Call) -> Surety | None:
        """How sure it is that a call runs a model; None if nothing says so."""
        return self._runs_of(self._survey.scope_around(call)).get(call)

    @once_per_key
    def _runs_of(self, scope: Scope) -> Mapping[ast.Call, Surety]:
        """The runs of models in a function."""
        return {run.call: run.surety for run in runs(self._survey, scope)}

    def _gets_optimizer(self, call: ast.Call) -> bool:
        """True if a call gets an optimizer or a gradient scaler, or the parameters to train."""
        for name in (each.arg for each in call.keywords if each.arg):
            if name == "parameters" or conventions.is_optimizer_or_scaler(name):
                return True
        return any(is_optimizer(self._model, given) for given in arguments(call))

    def _is_dropped(self, call: ast.Call) -> bool:
        return isinstance(self._model.parent(call), ast.Expr)


def is_known_method(name: str) -> bool:
    """True if an object that a model returns may have a method of this name that keeps nothing of it."""
    known = name in _OF_CONTAINERS or name in _OF_DISTRIBUTIONS or name in OF_MODULES or name in GROWS
    return known or name in torch_api.tensor_methods()


def is_host(value: Value) -> bool:
    """True if a value is a number, a text or an array: it has no graph."""
    return all(isinstance(member, (Const, Scalar, Array, DeviceValue, Dtype)) for member in value.members)


def asks_for_gradient(call: ast.Call) -> bool:
    """True if an argument asks for a gradient of the result: `requires_grad=True`."""
    asked = keyword(call, "requires_grad")
    return asked is not None and not is_false(asked)


def _reads_values(name: str, target: str, text: str, of_torch: bool, plain: bool) -> bool:
    if of_torch and (name in WITHOUT_GRADIENT or name == "save" or name.endswith("_like")):
        return True
    return name in _SHOWS or target.startswith(_READERS) or text.startswith("math.") or (plain and name in _HOST)


def _hooks_gradient(part: ast.ClassDef) -> bool:
    """True if the `forward` of a part of a module fails where autograd is off: `x.register_hook(self.save)`."""
    forward = (each for each in part.body if isinstance(each, ast.FunctionDef) and each.name == "forward")
    return any(last_name(call) in _FAIL_WITHOUT for call in calls_in(*forward))


@once
def has_hooks(survey: Survey) -> bool:
    """True if a file registers hooks, which get the outputs of layers and may keep them."""
    return any(last_name(call) in _HOOKS for call in survey.model.nodes(ast.Call))
