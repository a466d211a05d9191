"""TPF111: rows that a mask selects for a loss that could ignore the others."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Safety, Severity, lowered, surest
from perflint.frozen import dataclass
from perflint.rules._bindings import alone
from perflint.rules._memory.flows import behind
from perflint.rules.base import Calls, CallSite, Rule, device_confidence, often, shown
from perflint.rules.sync._data_sized import indexed
from perflint.semantics.values import Const, Instance, scalar_type

_FUNCTIONS = ("torch.nn.functional.cross_entropy", "torch.nn.functional.nll_loss")
"""Losses that can ignore rows by their target."""
_MODULES = ("torch.nn.CrossEntropyLoss", "torch.nn.NLLLoss")


@dataclass(frozen=True, slots=True)
class _MaskedLoss:
    """`loss(x[mask], y[mask])`."""

    input: ast.Subscript
    target: ast.Subscript

    @property
    def mask(self) -> ast.expr:
        """The index of both."""
        return self.input.slice


_IGNORED = -100
"""The default of `ignore_index`."""
_CURE = "Keep all rows, and give those that should not count the target `ignore_index`."
_PRIMARIES = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)


class MaskBeforeLoss(Rule):
    """A boolean mask selects the rows of a loss that could ignore the others.

    ## What it does
    Finds `cross_entropy(logits[mask], labels[mask])`, `nll_loss` and their modules if input and
    target are indexed by the same boolean GPU tensor.

    ## Why is this bad
    The number of rows depends on the data. The CPU waits for it twice in the forward pass and again
    in the backward pass, which counts the mask anew and copies the rows. Varying shapes break CUDA
    graphs and make `torch.compile` break or recompile. For targets equal to `ignore_index` (−100)
    the loss leaves these rows out by itself. Leaving out 15% of the rows with a mask made training
    of a 124 M parameter GPT 11% slower on an H200, and training of a small launch-bound network 22
    %.

    ## When it is fine
    - The mask keeps few rows of many and the operations after it are expensive: with 85% of the
      rows left out, the same training was 5% faster with the mask than with the loss of all rows
      over 50 304 words. It is best to select before the last layer, by positions that the collate
      function knows.
    - `reduction="none"`, whose result has only the selected rows, and losses that cannot ignore
      rows, such as `mse_loss`: TPF110 reports these.
    - Positions instead of a mask: `logits[rows]` does not wait.
    - Tensors on the CPU.

    ## Bad
    ```python
    import torch
    import torch.nn.functional as F

    def loss_of(model: torch.nn.Module, x: torch.Tensor, labels: torch.Tensor):
        logits = model(x.cuda())
        labels = labels.cuda()
        kept = labels != 0
        return F.cross_entropy(logits[kept], labels[kept])
    ```

    ## Good
    ```python
    import torch
    import torch.nn.functional as F

    def loss_of(model: torch.nn.Module, x: torch.Tensor, labels: torch.Tensor):
        logits = model(x.cuda())
        labels = labels.cuda()
        return F.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=0)
    ```

    ## Fix safety
    Unsafe, and offered only if the mask is a comparison of the target itself, so that shapes are
    known: `labels[mask]` becomes `labels.masked_fill(~mask, -100).flatten()` and `logits[mask]`
    becomes `logits.flatten(0, -2)`. The loss is computed over all rows, with the time and memory
    that they need; sums may round in another order. Ignored rows get gradients of zero as before,
    but of NaN if their logits are not finite. If no row is kept, both versions return NaN.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns twice at the line, and in the backward pass; a trace has
    `aten::nonzero` with a `Memcpy DtoH` of one number.

    ## References
    - [torch.nn.functional.cross_entropy](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html):
      `ignore_index`
    - [torch.nonzero](https://docs.pytorch.org/docs/stable/generated/torch.nonzero.html): "causes
      host-device synchronization"
    """

    code, name = "TPF111", "mask-before-loss"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = (
        "mask-before-loss-padding",
        "mask-before-loss-masked-words",
        "mask-before-loss-policy",
        "mask-before-loss-padding-host-work",
        "mask-before-loss-masked-words-host-work",
    )
    costs = "with 15% of the rows ignored it costs GPT-2 training {0}; with 85% ignored, the mask is faster"
    listens = (Calls(*_FUNCTIONS, "torch.nn.Module.__call__"),)
    replaces = ("TPF110",)

    def check(self, site: CallSite) -> Iterator[Finding]:
        found = _masked_loss(site)
        confidence = None if found is None else _confidence(site, found)
        if found is None or confidence is None:
            return
        yield self.finding(
            site,
            f"{shown(site, found.input)} and {shown(site, found.target)} call nonzero(): the CPU waits "
            f"while the GPU counts the rows{often(site)}",
            confidence=confidence,
            help=_CURE,
            fix=_fix(site, found),
            parts=(site.model.source.span(found.input), site.model.source.span(found.target)),
        )


def _confidence(site: CallSite, found: _MaskedLoss) -> Confidence | None:
    """How sure it is that the rows are counted on the device."""
    known = [
        confidence
        for each in (found.input, found.target)
        if (confidence := indexed(site.model.subscript(each))) is not None
    ]
    if known:
        return surest(*known)
    if _comparison(site, found.mask) is None:
        return None
    # The comparison of an unknown value with a number is assumed to be a mask if it indexes logits.
    confidence = device_confidence(site.value(found.input.value))
    return None if confidence is None or site.value(found.mask).tensor is not None else lowered(confidence)


def _comparison(site: CallSite, mask: ast.expr) -> ast.Compare | None:
    """The single comparison that makes a mask."""
    if isinstance(mask, ast.Name):
        made = alone(site.model, mask)
        return made if isinstance(made, ast.Compare) and _is_comparison(made) else None
    return mask if isinstance(mask, ast.Compare) and _is_comparison(mask) else None


def _is_comparison(node: ast.Compare) -> bool:
    return len(node.ops) == 1 and isinstance(node.ops[0], (ast.NotEq, ast.Eq, ast.Gt, ast.GtE, ast.Lt, ast.LtE))


def _fix(site: CallSite, found: _MaskedLoss) -> Fix | None:
    """Pass all rows, and set the target of those that the mask leaves out to the number that the loss ignores."""
    compared = _comparison(site, found.mask)
    ignored = _ignored(site)
    if compared is None or ignored is None or not isinstance(found.mask, ast.Name):
        return None
    logits, labels = found.input.value, found.target.value
    if not isinstance(logits, _PRIMARIES) or not isinstance(labels, _PRIMARIES):
        return None
    if ast.dump(compared.left) != ast.dump(labels) or not _is_number(site, compared.comparators[0]):
        return None
    texts = site.text(logits), site.text(labels)
    source = site.model.source
    edits = (
        Edit(source.span(found.input), f"{texts[0]}.flatten(0, -2)"),
        Edit(source.span(found.target), f"{texts[1]}.masked_fill(~{found.mask.id}, {ignored}).flatten()"),
    )
    return Fix("Ignore the other rows", Safety.UNSAFE, edits)


def _ignored(site: CallSite) -> int | None:
    """The target that the loss ignores; None if it is not known."""
    value = _setting(site, "ignore_index")
    if value is None:
        return _IGNORED
    number = value.value if isinstance(value, Const) else None
    return number if type(number) is int else None


def _is_number(site: CallSite, node: ast.expr) -> bool:
    return scalar_type(site.value(node)) in ("int", "float")


def _masked_loss(site: CallSite) -> _MaskedLoss | None:
    """The arguments of a call of such a loss, if input and target have the same index."""
    given = site.argument("input", 0), site.argument("target", 1)
    first, second = (each and behind(site.model, each) for each in given)
    if not isinstance(first, ast.Subscript) or not isinstance(second, ast.Subscript):
        return None
    if site.has_unpacking or not _is_loss(site):
        return None
    if ast.dump(first.slice) != ast.dump(second.slice) or _setting(site, "reduction") == Const("none"):
        return None
    return _MaskedLoss(first, second)


def _setting(site: CallSite, name: str) -> object:
    """The value of an argument of a loss or, for a module, of its constructor; None if it is not passed."""
    made = _module(site)
    if made is not None:
        return made.argument(name)
    given = site.argument(name)
    return None if given is None else site.value(given)


def _is_loss(site: CallSite) -> bool:
    return site.target in _FUNCTIONS or _module(site) is not None


def _module(site: CallSite) -> Instance | None:
    if site.target != "torch.nn.Module.__call__":
        return None
    value = site.value(site.node.func)
    return value if isinstance(value, Instance) and value.cls in _MODULES else None
