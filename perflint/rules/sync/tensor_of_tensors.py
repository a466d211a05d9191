"""TPF104: a tensor built from a Python list of tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Safety, Severity, surest
from perflint.fixes.edits import replace
from perflint.fixes.imports import spell
from perflint.rules.base import Calls, CallSite, Group, Rule, device_confidence, often, shown
from perflint.rules.sync._scalars import confidence_at
from perflint.semantics.values import Device, Evidence, Sequence, Tensor, Value
from perflint.source.concrete import cst

_DEEPEST = 3


class TensorOfTensors(Rule):
    """
    ## What it does
    Finds `torch.tensor([a, b])` and `torch.as_tensor([a, b])` with GPU tensors `a` and `b`.

    ## Why is this bad
    The constructor reads each element as a Python number, one round trip to the GPU per element,
    and then copies the list back. The gradients of the elements are lost. `torch.stack` does the
    same in one kernel.

    ## When it is fine
    Lists of Python numbers (TPF117 reports them if they go to the GPU each step), and CPU tensors.

    ## Bad
    ```python
    import torch

    def losses(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a, b = a.cuda(), b.cuda()
        return torch.tensor([a.mean(), b.mean()])
    ```

    ## Good
    ```python
    import torch

    def losses(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a, b = a.cuda(), b.cuda()
        return torch.stack([a.mean(), b.mean()]).detach()
    ```

    ## Fix safety
    Unsafe: the result stays on the device of its elements, while the constructor created a CPU
    tensor, and elements on different devices raise.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns once per element at the line; a profile shows as many
    `aten::item` below `aten::tensor`.

    ## References
    - [torch.stack](https://docs.pytorch.org/docs/stable/generated/torch.stack.html)
    - [torch.tensor](https://docs.pytorch.org/docs/stable/generated/torch.tensor.html)
    """

    code, name = "TPF104", "tensor-of-tensors"
    group = Group.MANY
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("tensor-of-tensors-gpt", "tensor-of-tensors-gpt-host-work", "tensor-of-tensors-policy")
    listens = (Calls("torch.tensor", "torch.as_tensor", "torch.asarray", "torch.FloatTensor", "torch.LongTensor"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        confidence = _confidence(site)
        data = site.argument("data", 0)
        if confidence is None or data is None:
            return
        yield self.finding(
            site,
            f"{shown(site)} reads each tensor in {shown(site, data)} by itself: the CPU waits each time{often(site)}",
            confidence=confidence,
            help="Use `torch.stack`, with `.detach()` if no gradient should flow.",
            fix=_fix(site, data),
        )


def _confidence(site: CallSite) -> Confidence | None:
    data = site.argument("data", 0)
    return None if data is None else elements_confidence(site, site.value(data), _DEEPEST)


def elements_confidence(site: CallSite, value: Value, depth: int) -> Confidence | None:
    """How sure it is that a list or tuple holds tensors of the device; None if it does not."""
    if value.tensor is not None:
        # If the value may also be a tensor, torch takes that as it is.
        return None
    found = []
    for member in value.members:
        if not isinstance(member, Sequence) or depth == 0:
            continue
        for element in (member.element,) if member.items is None else member.items:
            inner = elements_confidence(site, element, depth - 1)
            if inner is None:
                inner = _among(element) if member.items is None else None
            confidence = _element(site, element) if inner is None else inner
            if confidence is not None:
                found.append(confidence)
    return surest(*found) if found else None


def _among(value: Value) -> Confidence | None:
    """How sure it is that a list of tensors and unknown values holds tensors of the device; None for other lists.

    Code that tests the values before it puts them into a list gets tensors. An annotation of all values proves little.
    """
    tensor = value.tensor
    if tensor is None or tensor.evidence < Evidence.ANNOTATION or not value.is_open:
        return None
    return device_confidence(tensor)


def _element(site: CallSite, value: Value) -> Confidence | None:
    """Sizes and limits are annotated as tensors that callers have as numbers: an annotation alone proves little.

    A tensor of known rank is the result of a function of torch, which takes no number in place of a tensor.
    """
    tensor = value.tensor
    annotated = tensor is not None and tensor.evidence is Evidence.ANNOTATION and tensor.rank is None
    if tensor is not None and annotated and tensor.off_host and tensor.device is not Device.CUDA:
        return Confidence.LOW
    return confidence_at(site, value)


def _fix(site: CallSite, data: ast.expr) -> Fix | None:
    """`torch.stack([…]).detach()`, moved and cast to the arguments of the constructor."""
    keywords = {keyword.arg for keyword in site.node.keywords}
    if site.target != "torch.tensor" or not keywords <= {"dtype", "device"} or len(site.node.args) != 1:
        return None
    if not isinstance(data, (ast.List, ast.Tuple)) or not all(_is_scalar(site.value(part)) for part in data.elts):
        return None
    model = site.model
    stack = spell(model.symbols, "torch.stack", site.node)
    if stack is None:
        return None
    first, *others = site.concrete.args
    stacked = cst.Call(cst.parse_expression(stack.text), [first.with_changes(comma=cst.MaybeSentinel.DEFAULT)])
    new = cst.Call(cst.Attribute(stacked, cst.Name("detach")))
    if others:
        new = cst.Call(cst.Attribute(new, cst.Name("to")), others)
    edit = replace(model.source, site.span, new)
    return Fix("Stack on the GPU", Safety.UNSAFE, (edit,), stack.imports)


def _is_scalar(value: Value) -> bool:
    return isinstance(value, Tensor) and value.rank == 0
