"""TPF212: a tensor is copied repeatedly although a view is enough."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Safety, Severity
from perflint.fixes.edits import replace
from perflint.frozen import dataclass
from perflint.rules._memory.bodies import Writers, memory_around, writers_during
from perflint.rules._memory.flows import body_around, bound, flow_around
from perflint.rules._memory.operators import reshapes_somewhere
from perflint.rules._memory.uses import Fate, Uses
from perflint.rules.base import Calls, CallSite, Rule, often, shown
from perflint.rules.sync._filling import is_size
from perflint.rules.transfer._ones import is_one, shape
from perflint.rules.worth import sentence
from perflint.semantics.model import Model
from perflint.semantics.structure import walk
from perflint.semantics.values import Const, Device, Evidence, Kind
from perflint.source.concrete import cst

_ATTENTION = ("softmax", "scaled_dot_product_attention")


@dataclass(frozen=True, slots=True)
class _Repeats:
    """The arguments of `expand` that stand for those of `repeat`.

    `certain`: each repeated dimension is new or of size 1, whatever the number of dimensions is; `ranked`: that
    number is known; `sliced`: the tensor is a slice, and may be empty; `adds_alike`: the backward passes of both
    add up in the same order.
    """

    sizes: tuple[str, ...]
    certain: bool
    ranked: bool
    sliced: bool
    adds_alike: bool


class RepeatInsteadOfExpand(Rule):
    """`repeat` copies a tensor along dimensions of size 1, and nothing writes to the copies.

    ## What it does
    Finds `x.repeat(n, 1, 1)` in which each repeated dimension is new or known to be of size 1
    (`unsqueeze`, `x[:, None]`, `torch.zeros(1, 1, d)`, `keepdim=True`, a list with one element) and
    whose result is only read: added, compared, concatenated, used as an index.

    ## Why is this bad
    `repeat` allocates a tensor of n times the size and fills it, and each reader of the result
    reads all of it. `expand` makes a view: no memory, no kernel, and reads come from the cache.
    Alone, the sum of a batch and a repeated row took 1.85 times as long on an H200. A step of a
    vision transformer lost 4.4% to a bias of the attention scores that each layer repeats over the
    batch, and no measurable time to a class token, positions or an index for `gather` that are
    repeated once. So a repeat to four dimensions in a function that computes attention is a
    warning, and all others are info.

    ## When it is fine
    - The result is or may be written to: `out[i] = …`, `add_`, `nn.Parameter(…)`. Writing into an
      expanded tensor is an error or changes all rows at once. Not reported.
    - The tensor is written to while the result is in use, which a view of it would show. Not reported.
    - The result is laid out anew at once: `.view(b * n, …)`, `.reshape(…)`, `.contiguous()`. An
      expanded tensor would be copied as well. Not reported.
    - Dimensions of other sizes, which only `repeat` can tile. Not reported.
    - `einops.repeat` returns a view itself. Not reported.
    - The result is returned or kept, so that other code may write to it. Not reported. If it is
      passed to code outside this file, the finding has low confidence: check whether that code
      writes to it.

    ## Bad
    ```python
    import torch

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.token = torch.nn.Parameter(torch.zeros(1, 1, 768))

        def forward(self, x: torch.Tensor):
            return torch.cat([self.token.repeat(x.shape[0], 1, 1), x], dim=1)
    ```

    ## Good
    ```python
    import torch

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.token = torch.nn.Parameter(torch.zeros(1, 1, 768))

        def forward(self, x: torch.Tensor):
            return torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1)
    ```

    ## Fix safety
    Safe if the result is only joined, gathered with, or compared to compute a mask, in the same
    statements that create it, so that nothing else runs in between: values, strides and gradients
    are the same. Unsafe if it goes into a product or a sum, or two or more new dimensions get a
    gradient (additions may run in another order); if strides of its results can be observed, which
    may follow those of the other operand; if autograd keeps it, so that a write to the tensor
    before the backward pass raises an error; if other code, which does not get the tensor, runs
    while it is in use; if the number of dimensions is only inferred from the number of arguments (a
    tensor with fewer raises an error), or the file gives any tensor another shape in place;
    if a number of copies may be negative, for which `repeat` raises an
    error; and if a slice is repeated: for an empty slice, `repeat`
    returns an empty tensor, and `expand` raises. Risky if code runs while it is in use that may
    have the tensor from elsewhere, as a method has an attribute: a write to the tensor would show
    in the result. No fix is offered if such a write, or a call that gets the tensor, is found.

    ## How a GPU shows it
    A trace confirms the finding if neither the result nor its source was written to while the result
    lived, and refutes it if one of them was. Torch does not count the writes of inference mode, of
    NumPy and through `.data`: then the trace cannot decide. A profile shows `aten::repeat` with a copy
    kernel, and the memory of the result.

    ## References
    - [torch.Tensor.expand](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.expand.html)
    - [torch.Tensor.repeat](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.repeat.html)
    """

    code, name = "TPF212", "repeat-instead-of-expand"
    effect, severity = Effect.MEMORY, Severity.WARNING
    measured = ("repeat-bias-each-layer-vit", "repeat-gather-index-vit", "repeat-tokens-vit")
    listens = (Calls("torch.Tensor.repeat", "torch.Tensor.tile"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        found = _repeats(site)
        if found is None:
            return
        uses = Uses(site.model, layout=True)
        uses.follow(site.node)
        becomes = uses.fates
        if not becomes or not becomes.isdisjoint({Fate.WRITTEN, Fate.COPIED, Fate.KEPT}):
            return
        others = _writers(site, uses)
        if others is Writers.WRITTEN or _is_reshaped(site):
            return
        tensor = None if site.receiver is None else site.receiver.tensor
        is_shown = becomes.isdisjoint({Fate.PASSED, Fate.LAYER})
        if tensor is None or not is_shown or tensor.device is Device.CPU:
            confidence = Confidence.LOW
        else:
            strong = found.certain and tensor.evidence >= Evidence.CONVENTION
            confidence = Confidence.HIGH if strong else Confidence.MEDIUM
        safety = _safety(site, found, uses, others)
        cure = f"Use `.expand({', '.join(found.sizes)})`, which makes a view."
        of_scores = len(found.sizes) > 3 and _is_in_attention(site)
        yield self.finding(
            site,
            f"{shown(site)} makes copies that nothing {'here ' * (not is_shown)}writes to{often(site)}",
            confidence=confidence,
            severity=None if of_scores else Severity.INFO,
            help=cure,
            fix=_fix(site, found, safety) if is_shown and others < Writers.HANDED else None,
            cost=sentence(_COST, self.measured[0]) if of_scores else None,
        )


_COST = "a bias of the attention scores repeated in each layer costs training of a ViT-B/16 {0}"


def _repeats(site: CallSite) -> _Repeats | None:
    """The arguments of `expand`, if every repeated dimension is new or of size 1."""
    given = _given(site)
    if given is None or not isinstance(site.node.func, ast.Attribute) or all(_is_one(site, each) for each in given):
        return None
    made = shape(site.model, site.node.func.value)
    rank = made.rank
    if rank is not None and rank > len(given):
        return None
    leading = [i for i, each in enumerate(given) if isinstance(each, ast.Starred)]
    if leading and (rank is None or leading != [0]):
        return None
    assumed = len(given) if rank is None else rank
    known = made.of_rank(assumed)
    sizes: list[str] = []
    new = 0
    for i, each in enumerate(given):
        dimension = i - (len(given) - assumed)
        if _is_one(site, each):
            sizes.append("1" if dimension < 0 else "-1")
        elif dimension < 0 or (known.is_one(dimension) and not isinstance(each, ast.Starred)):
            sizes.append(site.text(each))
            new += dimension < 0
        else:
            return None
    # The first is new if it is not the dimension of size 1 that it is taken for.
    only_first = all(_is_one(site, each) for each in given[1:])
    certain = rank is not None or (only_first and 0 in made.ones)
    # The backward pass of `repeat` adds up new dimensions one after the other, that of `expand` all at once.
    alike = not leading and (new == 0 or (new == 1 and len(given) - sum(_is_one(site, each) for each in given) == 1))
    return _Repeats(tuple(sizes), certain, rank is not None, made.sliced, alike)


def _is_in_attention(site: CallSite) -> bool:
    """True if the function around computes attention: repeated tensors there are as large as its scores."""
    calls = (each for each in walk(body_around(site.model, site.node)) if isinstance(each, ast.Call))
    return any(site.model.target(call).rpartition(".")[2] in _ATTENTION for call in calls)


def _given(site: CallSite) -> list[ast.expr] | None:
    arguments = site.node.args
    if site.node.keywords or not arguments:
        return None
    if len(arguments) == 1 and isinstance(arguments[0], (ast.Tuple, ast.List)):
        arguments = arguments[0].elts
    elif len(arguments) == 1 and isinstance(arguments[0], ast.Starred):
        return None
    return arguments


def _is_one(site: CallSite, node: ast.expr) -> bool:
    return not isinstance(node, ast.Starred) and is_one(site.model, node)


def _is_reshaped(site: CallSite) -> bool:
    return isinstance(site.node.func, ast.Attribute) and memory_around(site.model, site.node).is_reshaped(
        site.node.func.value
    )


def _writers(site: CallSite, uses: Uses) -> Writers:
    """The code that may write to the repeated tensor while the result is in use: a view would show the write."""
    if not isinstance(site.node.func, ast.Attribute):
        return Writers.HANDED
    return writers_during(site.model, site.node, site.node.func.value, uses, until_backward=False)


def _safety(site: CallSite, found: _Repeats, uses: Uses, others: Writers) -> Safety:
    if others is Writers.KNOWING:
        return Safety.RISKY
    tensor = None if site.receiver is None else site.receiver.tensor
    has_gradient = tensor is None or tensor.kind not in (Kind.INT, Kind.BOOL)
    if has_gradient and not found.adds_alike:
        return Safety.UNSAFE
    exact = uses.fates == {Fate.READ} and not uses.laid_bare and not uses.saved and others is Writers.NONE
    # `repeat` raises an error for -1, with which `expand` leaves the dimension as it is.
    sized = all(_is_count(site, each) for each in _given(site) or ())
    ranked = found.ranked and not found.sliced and not reshapes_somewhere(site.model)
    return Safety.SAFE if exact and sized and ranked else Safety.UNSAFE


def _is_count(site: CallSite, node: ast.expr) -> bool:
    """True for a number of copies that surely is not negative."""
    value = site.value(node)
    if isinstance(value, Const) and isinstance(value.value, int):
        return value.value >= 0
    if not isinstance(node, ast.Name):
        return is_size(site.model, node)
    made = bound(site.model, node)
    return _is_unpacked_size(site.model, node) if made is None else is_size(site.model, made)


def _is_unpacked_size(model: Model, use: ast.Name) -> bool:
    """True for a name that only `rows, columns = x.shape`, or the same with `x.size()`, can have set."""
    found = flow_around(model, use).used.get(use)
    target = None if found is None or found.node is None else model.parent(found.node)
    statement = None if target is None else model.parent(target)
    if not isinstance(statement, ast.Assign):
        return False
    sizes = statement.value
    if isinstance(sizes, ast.Call):
        return model.target(sizes) == "torch.Tensor.size"
    return isinstance(sizes, ast.Attribute) and sizes.attr == "shape" and model.value(sizes.value).tensor is not None


def _fix(site: CallSite, found: _Repeats, safety: Safety) -> Fix | None:
    node = site.concrete
    if not isinstance(node.func, cst.Attribute):
        return None
    arguments = [cst.Arg(cst.parse_expression(size)) for size in found.sizes if not size.startswith("*")]
    if len(arguments) != len(found.sizes):
        return None
    given = node.args[0].value
    if len(node.args) == 1 and isinstance(given, (cst.Tuple, cst.List)):
        pairs = zip(given.elements, arguments, strict=True)
        elements = [element.with_changes(value=argument.value) for element, argument in pairs]
        arguments = [node.args[0].with_changes(value=given.with_changes(elements=elements))]
    else:
        arguments = [old.with_changes(value=new.value) for old, new in zip(node.args, arguments, strict=True)]
    new = node.with_changes(func=node.func.with_changes(attr=cst.Name("expand")), args=arguments)
    return Fix("Expand instead", safety, (replace(site.model.source, site.span, new),))
