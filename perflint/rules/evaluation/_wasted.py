"""Runs of models in any code, training too, whose graph no gradient ever uses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from enum import Enum

from perflint.findings import Confidence
from perflint.frozen import dataclass
from perflint.rules._methods import in_tests, is_self_or_cls, is_true
from perflint.rules._parts import made_of
from perflint.rules.evaluation._callees import MODULE_CALL, NO_RESULTS, has_hooks
from perflint.rules.evaluation._carried import Carry, carriers
from perflint.rules.evaluation._contexts import contexts, speaks_of_autograd
from perflint.rules.evaluation._flow import flows
from perflint.rules.evaluation._graph import ESCAPES, Fate
from perflint.rules.evaluation._modules import Holder, modules
from perflint.rules.evaluation._proof import proofs
from perflint.rules.evaluation._regions import is_called_in_training, is_foreign, is_of_another_library, is_other_code
from perflint.rules.evaluation._runs import Surety, is_model, runs
from perflint.rules.evaluation._scopes import OfFile, Scope, Survey
from perflint.semantics.facts.concepts import words
from perflint.semantics.heat.training import differentiates
from perflint.semantics.memo import once, once_per_key
from perflint.semantics.model import Model
from perflint.semantics.structure import arguments, grouped, keyword, last_name, path_of
from perflint.semantics.values import Instance, Value

_WITHOUT = re.compile(
    r"Loss|Pool|Pad|Dropout|LU$|Soft|Hard|Sigmoid|Tanh|Flatten|Identity|Upsampl|Shuffl|Similarity|Distance|Fold|"
    r"ChannelShuffle|Threshold|Mish|Module$|Sequential|ModuleList|ModuleDict|ParameterList|ParameterDict|InstanceNorm"
)
"""Names in torch.nn of modules without parameters of their own."""


class _Beside(OfFile):
    """The ways of a file beside the results of its models."""

    def __init__(self, survey: Survey) -> None:
        super().__init__(survey)
        self._flows, self._carriers, self._modules = flows(survey), carriers(survey), modules(survey)

    def reads_loss(self, scope: Scope, holder: Holder) -> bool:
        """True if a function trains through an attribute of a model, or through a method that gets no input."""
        flow = self._flows.of(scope)
        return any(Fate.GRADIENT in flow.fate(node) for node in self._attributes(holder).get(scope, ()))

    def reads_attribute(self, scope: Scope, holder: Holder) -> bool:
        """True if a function reads an attribute of a model, or calls a method that gets no input."""
        return bool(self._attributes(holder).get(scope))

    @once_per_key
    def _attributes(self, holder: Holder) -> Mapping[Scope, list[ast.expr]]:
        """The reads of attributes of a model, and the calls of its methods without arguments, by function."""
        uses = ((use, self._attribute_of(use)) for use in self._modules.uses(holder))
        return grouped((self._survey.scope_around(use), node) for use, node in uses if node is not None)

    def _attribute_of(self, use: ast.expr) -> ast.expr | None:
        around = self._survey.model.parent(use)
        if not isinstance(around, ast.Attribute) or around.attr in NO_RESULTS:
            return None
        call = self._survey.model.parent(around)
        if not isinstance(call, ast.Call) or call.func is not around:
            return around
        return None if arguments(call) else call

    @once_per_key
    def explains_training(self, scope: Scope) -> bool:
        """True if each loss that a function backpropagates is seen to come from a run of a model."""
        carried, stored = self._carriers.inside(scope), self._stored(scope)
        losses = [loss for call in scope.calls if (loss := list(_backpropagated(call)))]
        return all(
            any(Carry.TRAINED in carried.get(each, Carry.NONE) or path_of(each) in stored for each in loss)
            for loss in losses
        )

    def _stored(self, scope: Scope) -> set[str]:
        """The names and attributes that get a value with a seen gradient in a function: `self.loss = …`."""
        carried = self._carriers.inside(scope)
        stores = (node for node in scope.nodes if isinstance(node, ast.Assign))
        trained = (node for node in stores if Carry.TRAINED in carried.get(node.value, Carry.NONE))
        return {path for node in trained for path in map(path_of, node.targets) if path}


class Why(Enum):
    """Why the graph of a run is not needed."""

    READ = "read"
    """The CPU reads the result, or it is detached, and it has no other use."""
    DROPPED = "dropped"
    """The result has no use at all: the run only updates statistics or fills a cache."""
    UNTRAINED = "untrained"
    """The model copies one that is trained, or stays as it was loaded, and no gradient comes through its arguments."""


@dataclass(frozen=True, slots=True)
class Wasted:
    """A run that autograd records for nothing."""

    scope: Scope
    call: ast.Call
    why: Why
    sure: Confidence
    is_proven: bool
    """True if all that the code around the run trains through is seen."""
    is_alone: bool
    """True if the function around it runs models for nothing only: it does not train."""


def wasted(survey: Survey) -> list[Wasted]:
    """The runs of a file that autograd records for nothing, in source order of each function."""
    if in_tests(survey.model) or is_of_another_library(survey):
        return []
    finder = _Finder(survey)
    return [each for scope in survey.scopes if not is_other_code(survey, scope) for each in finder.of(scope)]


class _Finder:
    def __init__(self, survey: Survey) -> None:
        self.survey, self.model = survey, survey.model
        self.modules, self.flows, self.carriers = modules(survey), flows(survey), carriers(survey)
        self.beside, self.proofs = _beside(survey), proofs(survey)

    def of(self, scope: Scope) -> Iterator[Wasted]:
        named = {run.call: run.receiver for run in runs(self.survey, scope) if run.surety is not Surety.PASSED}
        for call in scope.calls:
            holder = self._ran(call, named.get(call, ""))
            if holder is None:
                continue
            found = self._judge(scope, call, holder)
            if found is not None and not contexts(self.survey).suspended(scope, call):
                yield found

    def _judge(self, scope: Scope, call: ast.Call, holder: Holder) -> Wasted | None:
        if self.modules.is_frozen(holder) or not _may_have_parameters(self.model, self.model.value(call.func)):
            return None
        if any(forward.stores or forward.suspends or forward.asks for forward in self.flows.callees.classes(call.func)):
            return None
        trains = differentiates(self.model, scope.node)
        if (self.modules.follows(holder) or self.modules.stays(holder)) and not self._feeds(call):
            return Wasted(scope, call, Why.UNTRAINED, Confidence.MEDIUM, True, not trains)
        if trains and self.modules.stays_by_name(holder) and not self._feeds(call):
            # Code that is not seen may have taken its gradients away.
            return Wasted(scope, call, Why.UNTRAINED, Confidence.LOW, False, False)
        found = self.flows.fate(call)
        if not trains and self._is_dropped(scope, call, holder):
            return Wasted(scope, call, Why.DROPPED, self._confidence(scope, trains, found), False, True)
        if Fate.READ not in found or found & (ESCAPES | Fate.ARRAY) or self.beside.reads_loss(scope, holder):
            return None
        if trains and has_hooks(self.survey):
            return None
        seen = not trains or self.beside.explains_training(scope)
        sure = self._confidence(scope, trains, found) if seen else Confidence.LOW
        return Wasted(scope, call, Why.READ, sure, seen, not trains)

    def _is_dropped(self, scope: Scope, call: ast.Call, holder: Holder) -> bool:
        """True if a run is a statement of its own, and no gradient is computed of anything that the model keeps."""
        if not isinstance(self.model.parent(call), ast.Expr) or self.model.says("backward", "grad(", "_hook("):
            return False
        is_part = holder.path.startswith("self.") and self.survey.is_module_class(scope.klass)
        return not is_part and not self.beside.reads_attribute(scope, holder)

    def _feeds(self, call: ast.Call) -> bool:
        """True if a gradient is seen to come through an argument of a run."""
        return any(Carry.TRAINED in self.carriers.of(given) for given in arguments(call))

    def _confidence(self, scope: Scope, trains: bool, found: Fate) -> Confidence:
        """How sure it is that autograd records: it does in code that trains, and where the result is detached.

        Methods of classes of a framework are called by code that may turn it off.
        """
        survey = self.survey
        if trains or is_called_in_training(survey, scope):
            return Confidence.MEDIUM
        if scope in survey.callers and not is_foreign(survey, scope):
            return Confidence.MEDIUM
        is_detached = Fate.DETACHED in found and not is_foreign(survey, scope)
        return Confidence.MEDIUM if is_detached else Confidence.LOW

    def _ran(self, call: ast.Call, named: str) -> Holder | None:
        """The model that a call runs, which its name may show; None if it is not seen to run one."""
        path, target = path_of(call.func), self.model.target(call)
        if not path:
            return None
        holder = self.modules.holder(call, path)
        if target == MODULE_CALL:
            return holder if is_model(self.survey, self.model.value(call.func)) else None
        if holder in self.modules.held and (not target or target.endswith(".__call__")):
            return holder
        if isinstance(call.func, ast.Attribute) and path_of(call.func.value) and named != path:
            return self._ran_by_method(call, call.func)
        return holder if named else None

    def _ran_by_method(self, call: ast.Call, method: ast.Attribute) -> Holder | None:
        # `model.module` is the model in a parallel wrapper.
        owner = self.modules.holder(call, path_of(method.value).removesuffix(".module"))
        if not self.modules.shows(method.value) and owner not in self.modules.held:
            return None
        if method.attr == "forward":
            return owner
        if owner.path in ("self", "cls") and differentiates(self.model, self.survey.scope_around(call).node):
            # A part of a step that trains: a similarity, a loss.
            return None
        called = [each for each in self.survey.called(call) if self.survey.is_module_class(each.klass)]
        return owner if called and all(self._runs_recorded(each) for each in called) else None

    def _runs_recorded(self, scope: Scope, depth: int = 3) -> bool:
        """True if a method of a module runs parts of it, keeps no graph, and neither suspends autograd nor needs it."""
        if speaks_of_autograd(scope.node) or differentiates(self.model, scope.node) or self.proofs.keeps_graph(scope):
            return False
        for call in scope.calls:
            if self.model.target(call) == MODULE_CALL or path_of(call.func) in ("self", "self.forward"):
                return True
            if depth and path_of(call.func).startswith("self."):
                if any(self._runs_recorded(each, depth - 1) for each in self.survey.called(call) if each is not scope):
                    return True
        return False


@once
def _beside(survey: Survey) -> _Beside:
    """The ways of a file beside the results of its models."""
    return _Beside(survey)


def _backpropagated(call: ast.Call) -> Iterator[ast.expr]:
    """The expressions of which one is the loss: `loss.backward()`, `accelerator.backward(loss)`."""
    if "backward" in words(last_name(call)):
        yield from call.args
        if isinstance(call.func, ast.Attribute) and not is_self_or_cls(call.func.value):
            yield call.func.value


def _may_have_parameters(model: Model, value: Value) -> bool:
    """True if a module may have parameters with gradients: not if the known code of its class has none."""
    made = [member.cls for member in value.members if isinstance(member, Instance)]
    return not made or any(_may_have(model, name) for name in made)


def _may_have(model: Model, name: str) -> bool:
    if name.startswith("torch.nn."):
        plain = name.rpartition(".")[2]
        return plain in ("Module", "Sequential", "ModuleList") or _has_own(plain)
    made = made_of(model, name)
    has_base = any(base != "torch.nn.Module" and "." in base for base in made.bases)
    return not made.classes or has_base or any(_makes_parameter(called, call) for called, call in made.calls)


def _has_own(layer: str) -> bool:
    """True if a layer of torch has parameters of its own."""
    return layer == "PReLU" or _WITHOUT.search(layer) is None


def _makes_parameter(name: str, call: ast.Call) -> bool:
    """True if a call makes a parameter, a layer that has some, or a part that is not seen."""
    last = last_name(call)
    if last == "Parameter":
        asked = keyword(call, "requires_grad")
        return asked is None or is_true(asked)
    if not last[:1].isupper() or last.endswith(("Error", "Warning")):
        return False
    if name.startswith("torch.nn."):
        return _has_own(last)
    return not name.startswith(("torch.", "numpy."))
