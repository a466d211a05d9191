"""TPF120: Python's max, min and sorted on GPU tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Safety, Severity
from perflint.fixes.edits import replace
from perflint.fixes.imports import spell
from perflint.rules._advice import use_of
from perflint.rules._order import may_swap
from perflint.rules.base import Calls, CallSite, Group, Rule, device_confidence, often, shown
from perflint.rules.sync._scalars import confidence_at
from perflint.semantics.dataflow.destinations import Use
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.structure import calls_in, keyword, last_name
from perflint.semantics.values import UNKNOWN, Evidence, Sequence, Tensor, Value, scalar_type
from perflint.source.concrete import code

_BOTH = {"builtins.max": "torch.maximum", "builtins.min": "torch.minimum"}
_BOUND = {"builtins.max": "min", "builtins.min": "max"}


class PythonMaxOnTensors(Rule):
    """
    ## What it does
    Finds Python's `max`, `min` and `sorted` on GPU tensors: `max(a, b)`, `max(t, 1)`,
    `min(losses)`, `max(tensor)`, `sorted(tensors)`, `sorted(zip(scores, boxes), key=lambda pair: pair[0])`.

    ## Why is this bad
    Python compares two elements at a time and converts each comparison to a bool, so the CPU reads
    a boolean from the GPU every time. `max(x)` of a vector with n elements waits n - 1 times.

    ## When it is fine
    Numbers, shapes, and tensors on the CPU; `x.max()`, which stays on the GPU.

    ## Bad
    ```python
    import torch

    class Mean(torch.nn.Module):
        def forward(self, losses: torch.Tensor, mask: torch.Tensor):
            return (losses * mask).sum() / max(mask.sum(), 1)
    ```

    ## Good
    ```python
    import torch

    class Mean(torch.nn.Module):
        def forward(self, losses: torch.Tensor, mask: torch.Tensor):
            return (losses * mask).sum() / mask.sum().clamp(min=1)
    ```

    ## Fix safety
    `max(a, b)` of two tensors becomes `torch.maximum(a, b)`, and `max(t, number)`
    `torch.clamp(t, min=number)`. Unsafe: the result is always a tensor, of the promoted dtype, NaN
    wins, and gradients of ties are shared. Code that
    asks if one of them is a tensor gets no fix, because it may be a number too. No fix is offered for
    `max(t, number)` as a size or a key either, because the CPU needs that number in any case.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line, once for each comparison; a trace
    shows `aten::is_nonzero` and `aten::_local_scalar_dense`.

    ## References
    - [torch.maximum](https://docs.pytorch.org/docs/stable/generated/torch.maximum.html)
    - [torch.clamp](https://docs.pytorch.org/docs/stable/generated/torch.clamp.html)
    """

    code, name = "TPF120", "python-max-on-tensors"
    effect, severity = Effect.SYNC, Severity.WARNING
    group = Group.MANY
    measured = ("python-max-on-tensors-gpt", "python-max-on-tensors-gpt-host-work", "python-max-on-tensors-policy")
    listens = (Calls("builtins.max", "builtins.min", "builtins.sorted"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if (confidence := _confidence(site)) is not None:
            yield self.finding(
                site,
                f"{shown(site)} {_what(site)}{often(site)}",
                confidence=confidence,
                help=_cure(site),
                fix=_fix(site),
            )


_NUMBERS = (Use.SIZE, Use.INDEX, Use.KEY, Use.TEST)
_READ_AT_ONCE = (Use.SIZE, Use.KEY)
"""Uses that read the result: a bound kept on the GPU waits there as often as the comparison does."""
_LONGEST = 40
"""Longer operands are not repeated in the help."""


def _what(site: CallSite) -> str:
    tensor = _tensor(site)
    if len(site.node.args) > 1 and tensor is not None:
        return f"uses the GPU tensor {shown(site, tensor)} as a Python number: the CPU waits"
    return "compares in Python: the CPU waits for the GPU at each comparison"


def _cure(site: CallSite) -> str:
    """The advice, by the use of the result."""
    tensor = _tensor(site)
    if tensor is not None and len(site.node.args) > 1 and use_of(site) in _NUMBERS:
        if len(site.node.args) == 2 and all(site.value(arg).tensor is not None for arg in site.node.args):
            on_gpu = _compared_on_gpu(site, tensor)
            return f"Compare on the GPU: `{on_gpu}`. Read the result once, where a Python number is needed."
        if not isinstance(tensor, ast.Name):
            return "Convert it to a number once, before all such uses, or compute it on the CPU."
        below = site.model.destinations.later(tensor)
        times = f" before this and the {len(below)} uses below" if len(below) > 1 else ""
        name = tensor.id
        return f"Convert it once (`{name} = int({name})`){times}, or compute it on the CPU."
    function = site.target.rpartition(".")[2]
    elements = site.value(site.node.args[0])
    if isinstance(elements, Sequence) and _is_tuple(elements):
        by = "sort" if function == "sorted" else f"arg{function}"
        return f"Find the order on the GPU: `torch.{by}` of all keys, and an index of the other tensors with it."
    if function == "sorted":
        return "Sort on the GPU: `torch.sort`, of `torch.stack(…)` for a list."
    if len(site.node.args) == 1:
        values = site.text(site.node.args[0])
        is_tensor = site.value(site.node.args[0]).tensor is not None
        shown = values if isinstance(site.node.args[0], ast.Name) else "…"
        return (
            f"Compare on the GPU: `{shown}.{function}()`."
            if is_tensor
            else f"Compare on the GPU: `torch.stack({shown}).{function}()`."
        )
    if len(site.node.args) == 2 and tensor is not None:
        return f"Compare on the GPU: `{_compared_on_gpu(site, tensor)}`."
    return "Compare on the GPU: `torch.maximum`, `torch.minimum` or `clamp`."


def _compared_on_gpu(site: CallSite, tensor: ast.expr) -> str:
    """The call that compares a tensor and the other argument on the GPU; long operands are left out."""
    other = next(arg for arg in site.node.args if arg is not tensor)
    shown, bound = _short(site, tensor), _short(site, other)
    if site.value(other).tensor is not None:
        first, second = (shown, bound) if tensor is site.node.args[0] else (bound, shown)
        return f"{_BOTH[site.target]}({first}, {second})"
    if isinstance(tensor, ast.Call) and site.model.target(tensor) in _BOUND.keys() - {site.target}:
        # The other bound stands inside: `max(low, min(high, x))`.
        limits = [each for each in tensor.args if device_confidence(site.value(each)) is None]
        inner = [each for each in tensor.args if each not in limits]
        if len(limits) == len(inner) == 1:
            is_lower = site.target == "builtins.max"
            low, high = (bound, _short(site, limits[0])) if is_lower else (_short(site, limits[0]), bound)
            return f"torch.clamp({_short(site, inner[0])}, {low}, {high})"
    if isinstance(tensor, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) and shown != "…":
        return f"{shown}.clamp({_BOUND[site.target]}={bound})"
    return f"torch.clamp({shown}, {_BOUND[site.target]}={bound})"


def _short(site: CallSite, operand: ast.expr) -> str:
    text = site.text(operand)
    return text if len(text) <= _LONGEST and "\n" not in text else "…"


def _tensor(site: CallSite) -> ast.expr | None:
    """The argument that is a tensor on the GPU."""
    return next((arg for arg in site.node.args if device_confidence(site.value(arg)) is not None), None)


def _confidence(site: CallSite) -> Confidence | None:
    # Numbers are so much more common here that a mere possibility of a device tensor says nothing,
    # but where torch itself is asked for one, and it is gone through alone.
    confidence = _best(site)
    return None if confidence is Confidence.LOW and not _goes_through_a_tensor(site) else confidence


def _goes_through_a_tensor(site: CallSite) -> bool:
    return len(site.node.args) == 1 and isinstance(site.value(site.node.args[0]), Tensor)


def _best(site: CallSite) -> Confidence | None:
    if any(item.arg is None for item in site.node.keywords):
        return None
    key = keyword(site.node, "key")
    values = [site.value(node) for node in site.node.args]
    if key is not None:
        return _compared_by(site, key, values[0]) if len(values) == 1 else None
    if len(values) == 1:
        return _compared(site, values[0])
    if site.target not in _BOTH:
        # `sorted` takes one collection: the call fails.
        return None
    found = [confidence for value in values if (confidence := _confidence_of(site, value)) is not None]
    return found[0] if found else None


def _compared(site: CallSite, value: Value) -> Confidence | None:
    """How sure it is that going over a value gives several tensors of the device."""
    if isinstance(value, Sequence):
        if value.type == "size" or (value.items is not None and len(value.items) < 2):
            return None
        return _confidence_of(site, _item(value.element, 0)) if _is_tuple(value) else device_confidence(value.element)
    tensor = value.tensor
    return None if tensor is None or tensor.rank == 0 else device_confidence(value)


def _compared_by(site: CallSite, key: ast.expr, value: Value) -> Confidence | None:
    """How sure it is that the keys of several elements are tensors of the device: `key=lambda pair: pair[0]`."""
    if not isinstance(value, Sequence) or not isinstance(key, ast.Lambda) or len(key.args.args) != 1:
        return None
    part, name = key.body, key.args.args[0].arg
    if not isinstance(part, ast.Subscript) or not isinstance(part.value, ast.Name) or part.value.id != name:
        return None
    index = part.slice.value if isinstance(part.slice, ast.Constant) else None
    several = value.items is None or len(value.items) > 1
    return _confidence_of(site, _item(value.element, index)) if several and type(index) is int else None


def _confidence_of(site: CallSite, value: Value) -> Confidence | None:
    """How sure it is that a value is on the device: a certain tensor cannot be a number by mistake."""
    is_tensor = isinstance(value, Tensor) and value.evidence >= Evidence.ANNOTATION
    return confidence_at(site, value) if is_tensor else device_confidence(value)


def _is_tuple(value: Sequence) -> bool:
    return isinstance(value.element, Sequence)


def _item(value: Value, index: int) -> Value:
    """An item of a tuple or list; the value itself if it is none."""
    if not isinstance(value, Sequence):
        return value
    return value.items[index] if value.items is not None and index < len(value.items) else UNKNOWN


def _fix(site: CallSite) -> Fix | None:
    if site.target not in _BOTH or len(site.node.args) != 2 or site.node.keywords or site.has_unpacking:
        return None
    if _may_be_no_tensor(site):
        return None
    tensors = [isinstance(site.value(argument), Tensor) for argument in site.node.args]
    numbers = [scalar_type(site.value(argument)) in ("int", "float") for argument in site.node.args]
    if any(numbers) and use_of(site) in _READ_AT_ONCE:
        return None
    first, second = (code(argument.value) for argument in site.concrete.args)
    if all(tensors):
        name, arguments = _BOTH[site.target], f"{first}, {second}"
    elif tensors[0] and numbers[1]:
        name, arguments = "torch.clamp", f"{first}, {_BOUND[site.target]}={second}"
    elif tensors[1] and numbers[0] and may_swap(site.model, *site.node.args):
        name, arguments = "torch.clamp", f"{second}, {_BOUND[site.target]}={first}"
    else:
        return None
    function = spell(site.model.symbols, name, site.node)
    if function is None:
        return None
    return Fix(
        f"Use {name}",
        Safety.UNSAFE,
        (replace(site.model.source, site.span, f"{function.text}({arguments})"),),
        function.imports,
    )


def _may_be_no_tensor(site: CallSite) -> bool:
    """True if the function asks if an argument, or the name that gets the result, is a tensor."""
    around = site.model.parent(site.node)
    targets = around.targets if isinstance(around, ast.Assign) else []
    outer = site.model.ancestors(site.node)
    function = next((each for each in outer if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))), None)
    if function is None:
        return False
    return not _asked_for_their_type(site.model, function).isdisjoint(map(ast.unparse, (*site.node.args, *targets)))


@once_per_node
def _asked_for_their_type(model: Model, function: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """The texts of the first arguments that a function passes to `isinstance` or `is_tensor`."""
    calls = (node for node in calls_in(function) if node.args)
    return frozenset(ast.unparse(call.args[0]) for call in calls if last_name(call) in ("isinstance", "is_tensor"))
