"""TPF308: parameters that were meant to be frozen, and still get gradients."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.rules._methods import is_false, is_self_or_cls
from perflint.rules.base import Files, FileSite, Rule, Site
from perflint.rules.optimizer._parameters import goes_over_parameters
from perflint.semantics.heat.training import is_optimizer
from perflint.semantics.model import Model
from perflint.semantics.structure import names_in
from perflint.semantics.values import Evidence, Instance
from perflint.source.quoting import quoted

_TYPOS = frozenset("require_grad requires_grads require_grads required_grad requires_gradient require_gradient".split())
_DEFINES = re.compile(r"self\.requires_grad\b|def requires_grad\b|def __setattr__")
_FREEZES = re.compile(r"requires?_grad|no_grad|inference_mode|detach|set_grad_enabled|freeze|add_param_group|peft|lora")


class FrozenParamsWithGrad(Rule):
    """Parameters that do not learn, or were not meant to, still get gradients.

    ## What it does
    Finds `p.require_grad = False` and other misspellings; `model.requires_grad = False` on a whole
    module, which sets an attribute without effect; and an optimizer that gets the parameters of one
    new layer (`model.fc = nn.Linear(…)`, `SGD(model.fc.parameters())`) in a file that freezes
    nothing.

    ## Why is this bad
    None of these raises an error, and the backward pass continues through the whole model. It keeps
    all activations and computes a gradient for each weight, although no optimizer reads most of
    them. The gradients are not even reset if the optimizer resets them. Training the last layer of
    a ResNet-50 took 2.6 × as long on an H200 with the rest not frozen, and 5.5 times the memory. A
    misspelt `= True` creates no gradient at all.

    ## When it is fine
    - An attribute of your own class (`self.require_grad`), or of an object that is not a tensor.
    - A body that another optimizer trains, or that runs under `no_grad`.
    - Gradients of the inputs, as in adversarial attacks, need the backward pass through the body,
      but not the gradients of its weights.

    ## Bad
    ```python
    from torch import nn

    def freeze(model: nn.Module):
        for p in model.parameters():
            p.require_grad = False
    ```

    ## Good
    ```python
    from torch import nn

    def freeze(model: nn.Module):
        for p in model.parameters():
            p.requires_grad = False
    ```

    ## Fix safety
    Risky: the fix writes the probable intention, and the parameters are then really frozen (or
    really learn). No fix is offered for an optimizer that gets one layer.

    ## How a GPU shows it
    A timeline shows the backward kernels of the frozen layers. `benchmarks/rules/models.py frozen-body` times a
    ResNet-50 whose last layer is trained, with the body frozen and without. When an optimizer steps, a trace looks at
    the parameters of the models that were called. Gradients that no optimizer reads confirm the finding, and so does
    a gradient of a parameter with a misspelt attribute.

    ## References
    - [Locally disabling gradient computation](https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disable-grad-doc)
    - [torch.nn.Module.requires_grad_](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.requires_grad_)
    - [TorchFix TOR002](https://github.com/pytorch-labs/torchfix)
    """

    code, name = "TPF308", "frozen-params-with-grad"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = ("frozen-body-with-gradients-step",)
    costs = "gradients for a frozen ResNet-50 make training of its last layer {0} slower"
    listens = (Files("grad", "optim"),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        if model.says("requires_grad", *_TYPOS):
            yield from self._spellings(model)
        if model.says("optim") and model.says("backward(") and not model.matches(_FREEZES):
            yield from self._heads(model)

    def _spellings(self, model: Model) -> Iterator[Finding]:
        for attribute in model.nodes(ast.Attribute):
            if not isinstance(attribute.ctx, ast.Store) or is_self_or_cls(attribute.value):
                continue
            assigned = model.parent(attribute)
            if not isinstance(assigned, ast.Assign):
                continue
            if attribute.attr in _TYPOS:
                confidence, what = _holds_gradients(model, attribute), "torch has no such attribute"
                fix = Edit(model.source.span(attribute), f"{model.source.written(attribute.value)}.requires_grad")
            elif attribute.attr == "requires_grad":
                confidence, what = _is_module(model, attribute), "only parameters have this attribute, not modules"
                call = f"{model.source.written(attribute.value)}.requires_grad_({model.source.written(assigned.value)})"
                fix = Edit(model.source.span(assigned), call)
            else:
                continue
            if confidence is None:
                continue
            freezes = is_false(assigned.value)
            effect = "the backward pass still computes its gradients" if freezes else "nothing changes"
            alone = len(assigned.targets) == 1
            yield self.finding(
                Site(model, attribute),
                f"{quoted(model.source.written(assigned))}: {what}, so that {effect}",
                # How much of the model it is stands elsewhere.
                severity=Severity.WARNING,
                confidence=confidence,
                effect=self.effect if freezes else Effect.CORRECTNESS,
                # It is said once, and holds for every step.
                heat=Heat.HOT,
                help="Write `requires_grad` for a tensor and `requires_grad_(…)` for a module.",
                fix=Fix("Set the right attribute", Safety.RISKY, (fix,)) if alone else None,
            )

    def _heads(self, model: Model) -> Iterator[Finding]:
        made = [call for call in model.nodes(ast.Call) if is_optimizer(model, call)]
        if len(made) != 1 or not made[0].args:
            return
        given = made[0].args[0]
        trained = _parameters_of(given)
        if trained is None or not _is_new_layer(model, trained):
            return
        assert isinstance(trained.value, ast.Name)
        body = trained.value.id
        if not any(isinstance(call.func, ast.Name) and call.func.id == body for call in model.nodes(ast.Call)):
            return
        written = model.source.written(trained)
        yield self.finding(
            Site(model, given),
            f"the backward pass computes gradients for all of `{body}`, but only {quoted(written)} is trained",
            confidence=Confidence.MEDIUM,
            heat=Heat.HOT,
            help=f"Freeze the rest before: `{body}.requires_grad_(False)`, then `{written}.requires_grad_(True)`.",
        )


def _holds_gradients(model: Model, attribute: ast.Attribute) -> Confidence | None:
    """How sure it is that a misspelt attribute is one of a tensor, or of a module."""
    if model.matches(re.compile(rf"self\.{attribute.attr}\b")):
        return None
    owner = attribute.value
    value = model.value(owner)
    if value.tensor is not None and value.tensor.evidence > Evidence.USE:
        return Confidence.HIGH
    if isinstance(value, Instance):
        return Confidence.HIGH if model.is_module(value) else None
    for outer in model.ancestors(attribute):
        if isinstance(outer, ast.For) and isinstance(owner, ast.Name) and owner.id in names_in(outer.target):
            return Confidence.HIGH if goes_over_parameters(model, outer.iter) else Confidence.MEDIUM
    return Confidence.MEDIUM


def _is_module(model: Model, attribute: ast.Attribute) -> Confidence | None:
    """How sure it is that `.requires_grad` is assigned to a module that makes nothing of it."""
    value = model.value(attribute.value)
    if not isinstance(value, Instance) or not model.is_module(value):
        return None
    if model.matches(_DEFINES):
        return None
    own = all(name.startswith(("torch.", "builtins.")) for name in (value.cls, *model.lineage(value.cls)))
    return Confidence.HIGH if own and value.cls != "torch.nn.Module" else Confidence.MEDIUM


def _parameters_of(node: ast.expr) -> ast.Attribute | None:
    """`model.fc` of `model.fc.parameters()`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "parameters":
        return None
    owner = node.func.value
    if isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Name) and not is_self_or_cls(owner.value):
        return owner
    return None


def _is_new_layer(model: Model, trained: ast.Attribute) -> bool:
    """True if the file puts a new layer of torch's own into a model that came from elsewhere."""
    written = ast.unparse(trained)
    for statement in model.nodes(ast.Assign):
        if any(ast.unparse(target) == written for target in statement.targets):
            made = model.value(statement.value)
            if isinstance(made, Instance) and made.cls.startswith("torch.nn."):
                return True
    return False
