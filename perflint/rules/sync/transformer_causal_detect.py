"""TPF128: masks that a transformer compares to find out whether they are causal."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Safety, Severity
from perflint.fixes.edits import with_one_more
from perflint.frozen import dataclass
from perflint.rules._bindings import alone
from perflint.rules._since import IS_CAUSAL
from perflint.rules.base import Calls, CallSite, Rule, device_confidence, often, shown
from perflint.semantics.binders import defaults
from perflint.semantics.model import Model
from perflint.semantics.structure import walk
from perflint.semantics.values import NONE, Const, Instance


@dataclass(frozen=True, slots=True)
class _Mask:
    """The names and positions of a mask's parameter, and of the parameter that says if the mask is causal."""

    operand: str
    mask: str
    position: int
    told: str
    told_position: int


_TAKES = {
    "torch.nn.TransformerEncoder": (_Mask("src", "mask", 1, "is_causal", 3),),
    "torch.nn.TransformerDecoder": (_Mask("tgt", "tgt_mask", 2, "tgt_is_causal", 6),),
    "torch.nn.Transformer": (
        _Mask("src", "src_mask", 2, "src_is_causal", 8),
        _Mask("src", "tgt_mask", 3, "tgt_is_causal", 9),
    ),
}
_CURE = "Pass `{}=True` if the mask is the causal one, else `False`."
_CAUSAL = "torch.nn.Transformer.generate_square_subsequent_mask"


class TransformerCausalDetect(Rule):
    """A transformer compares its mask to find out whether it is causal.

    ## What it does
    Finds calls of `torch.nn.TransformerEncoder`, `torch.nn.TransformerDecoder` and `torch.nn.Transformer` with
    a mask and without `is_causal` (`tgt_is_causal`, `src_is_causal`).

    ## Why is this bad
    Without the hint, torch builds a causal mask of that size in each forward pass and compares it
    with the given one on the GPU, and the CPU waits for the answer. On an H200 this took 5% of the
    training of a six-layer encoder with 128 tokens, and no measurable time with 1024.

    ## When it is fine
    - With a hint: `is_causal=True` together with the causal mask, `is_causal=False` with any other. A wrong
      hint gives wrong results.
    - The mask may be None according to the caller (`mask=None` among the arguments): reported by
      the audit profile only.
    - A mask for each head or sequence, of three dimensions, is not compared.
    - `src_key_padding_mask` alone is not compared in training; in evaluation mode an encoder with
      `enable_nested_tensor=True` checks whether the padding is at the ends, and skips it.
    - Single layers (`nn.TransformerEncoderLayer`) compare nothing: their `is_causal` is False.

    ## Bad
    ```python
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, batch_first=True), 6)

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return self.encoder(x, mask=mask)
    ```

    ## Good
    ```python
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, batch_first=True), 6)

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return self.encoder(x, mask=mask, is_causal=True)
    ```

    ## Fix safety
    Unsafe, and offered only if the mask comes from `generate_square_subsequent_mask` in the same
    function: `is_causal=True` is the result that torch would compute. No fix is offered if the mask
    is passed to anything but a module, because it may be changed there.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns in `_detect_is_causal_mask` of torch's `transformer.py`.

    ## References
    - [torch.nn.TransformerEncoder](https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoder.html):
      `is_causal`
    - [_detect_is_causal_mask](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/nn/modules/transformer.py)
    """

    code, name = "TPF128", "transformer-causal-detect"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = (
        "causal-detect-128",
        "causal-detect-1024",
        "causal-detect-128-host-work",
        "causal-detect-1024-host-work",
    )
    costs = "with 128 tokens it costs training of a TransformerEncoder {0}"
    listens = (Calls("torch.nn.Module.__call__"),)
    since = (2, 1)

    def check(self, site: CallSite) -> Iterator[Finding]:
        value = site.value(site.node.func)
        if not isinstance(value, Instance) or value.cls not in _TAKES or site.has_unpacking:
            return
        for place in _TAKES[value.cls]:
            confidence = _confidence(site, place)
            if confidence is not None:
                given = site.argument(place.mask, place.position)
                assert given is not None
                yield self.finding(
                    site,
                    f"{shown(site)} compares `{place.mask}` with a causal mask: the CPU waits"
                    f" for the answer{often(site)}",
                    confidence=confidence,
                    help=_CURE.format(place.told),
                    fix=_fix(site, place, given),
                )
                return


def _confidence(site: CallSite, place: _Mask) -> Confidence | None:
    """How sure it is that the mask is compared on the device; None if it is not compared."""
    given = site.argument(place.mask, place.position)
    told = site.argument(place.told, place.told_position)
    if given is None or (told is not None and site.value(told) != NONE):
        return None
    mask = site.value(given)
    if mask in (NONE, Const(False)) or (mask.tensor is not None and mask.tensor.rank not in (None, 2)):
        return None
    operand = site.argument(place.operand, 0)
    confidence = None if operand is None else device_confidence(site.value(operand))
    if confidence is not None and _may_be_none(site, given):
        # Without a mask, torch compares nothing.
        return Confidence.LOW
    return confidence


def _may_be_none(site: CallSite, given: ast.expr) -> bool:
    """True if a mask is an unchanged parameter of the function around the call, with the default None."""
    function = site.model.function(given)
    if not isinstance(given, ast.Name) or function is None:
        return False
    stored = (each for each in walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    default = defaults(function).get(given.id)
    is_none = isinstance(default, ast.Constant) and default.value is None
    return is_none and given.id not in {each.id for each in stored}


def _may_be_written(model: Model, mask: ast.Name) -> bool:
    """True if a mask may have other values than it was made with: something else than a call of a module gets it."""
    function = model.function(mask) or model.module.tree
    uses = (each for each in walk(function) if isinstance(each, ast.Name) and each.id == mask.id)
    return any(isinstance(use.ctx, ast.Load) and not _is_given_to_module(model, use) for use in uses)


def _is_given_to_module(model: Model, use: ast.Name) -> bool:
    call = model.parent(use)
    if isinstance(call, ast.keyword):
        call = model.parent(call)
    return isinstance(call, ast.Call) and call.func is not use and isinstance(model.value(call.func), Instance)


def _fix(site: CallSite, place: _Mask, given: ast.expr) -> Fix | None:
    made = alone(site.model, given) if isinstance(given, ast.Name) else given
    if isinstance(given, ast.Name) and _may_be_written(site.model, given):
        return None
    if not isinstance(made, ast.Call) or site.model.target(made) != _CAUSAL:
        return None
    if site.argument(place.told, place.told_position) is not None:
        return None
    edit = with_one_more(site.model.source, site.node, f"{place.told}=True")
    return None if edit is None else Fix(f"Pass `{place.told}=True`", Safety.UNSAFE, (edit,), since=IS_CAUSAL)
