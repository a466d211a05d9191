"""TPF134: tokens that are drawn on the CPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Safety, Severity
from perflint.fixes.edits import replace
from perflint.frozen import dataclass
from perflint.rules._memory.flows import ahead, behind
from perflint.rules._methods import called_on
from perflint.rules.base import Calls, CallSite, Rule, device_confidence, often, shown
from perflint.rules.placement import MOVES, move
from perflint.rules.sync._scalars import DEVICE_TO_HOST_COPY
from perflint.semantics.model import Model
from perflint.semantics.structure import walk
from perflint.semantics.values import Device
from perflint.source.concrete import cst

_OTHER_DEVICES = ("mps", "npu", "xpu", "xla", "hpu", "cpu")
_NAMES = ("torch.multinomial", "torch.Tensor.multinomial")


@dataclass(frozen=True, slots=True)
class _Draw:
    """`torch.multinomial(p.cpu(), n).to(device)`."""

    leaves: ast.Call
    """`p.cpu()`."""
    returns: tuple[ast.Call, ...]
    """`….to(device)`, and all other moves of the result to the GPU."""
    confidence: Confidence
    """How sure it is that `p` is on the device."""


class MultinomialOnCpu(Rule):
    """Tokens are drawn on the CPU from probabilities on the GPU.

    ## What it does
    Finds `torch.multinomial(p.cpu(), n).to(device)`: probabilities are copied to the CPU, tokens
    are drawn there, and the result goes back to the GPU.

    ## Why is this bad
    The CPU waits until the GPU has computed the probabilities, copies the whole row (50 000 numbers
    for a language model), draws on one core, and copies the number back. The GPU is idle meanwhile,
    once for each token. `torch.multinomial` draws on the GPU and, since torch 2.6, does not wait.
    On an H200, sampling from a 124 M parameter GPT was 1.7 times slower for one sequence, and 16
    times for 32 of them.

    ## When it is fine
    - A `generator=` on the CPU, for numbers that are the same on every machine: not reported.
    - The CPU needs the number anyway and nothing goes back: not reported.
    - Devices that lack the operator: not reported in a branch that checks for such a device.

    ## Bad
    ```python
    import torch

    @torch.inference_mode()
    def generate(model: torch.nn.Module, ids: torch.Tensor, count: int):
        for _ in range(count):
            p = model(ids)[:, -1].softmax(-1)
            token = torch.multinomial(p.cpu(), 1).to(ids.device)
            ids = torch.cat([ids, token], dim=1)
        return ids
    ```

    ## Good
    ```python
    import torch

    @torch.inference_mode()
    def generate(model: torch.nn.Module, ids: torch.Tensor, count: int):
        for _ in range(count):
            p = model(ids)[:, -1].softmax(-1)
            token = torch.multinomial(p, 1)
            ids = torch.cat([ids, token], dim=1)
        return ids
    ```

    ## Fix safety
    Unsafe: the GPU's generator draws other numbers than the CPU's, from the same probabilities. The
    copy back stays; it costs nothing if the result is already on the GPU.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns twice at the line; a profile shows `Memcpy DtoH`, a gap,
    and `Memcpy HtoD`, for each token.

    ## References
    - [torch.multinomial](https://docs.pytorch.org/docs/stable/generated/torch.multinomial.html)
    - [pytorch#134818](https://github.com/pytorch/pytorch/pull/134818): it waits no longer
    - [rasbt/reasoning-from-scratch#178](https://github.com/rasbt/reasoning-from-scratch/pull/178): about
      20% more tokens per second
    """

    code, name = "TPF134", "multinomial-on-cpu"
    effect, severity = Effect.SYNC, Severity.ERROR
    measured = ("multinomial-on-host-gpt-1", "multinomial-on-host-gpt-32")
    costs = "drawing each token on the CPU makes GPT-2 decoding {0} slower for one sequence, {1} for 32"
    listens = (Calls(*_NAMES),)
    replaces = (DEVICE_TO_HOST_COPY, "TPF201")

    def check(self, site: CallSite) -> Iterator[Finding]:
        if (draw := _drawn_on_host(site)) is not None:
            yield self.finding(
                site,
                f"{shown(site)} draws on the CPU, which waits for the probabilities{often(site)}",
                confidence=draw.confidence,
                help="Draw on the GPU: that waits for nothing.",
                fix=_fix(site, draw),
                parts=tuple(map(site.model.source.span, (draw.leaves, *draw.returns))),
            )


def _fix(site: CallSite, draw: _Draw) -> Fix | None:
    source = site.model.source
    written = source.concrete(draw.leaves)
    if not isinstance(written, cst.Call) or not isinstance(written.func, cst.Attribute):
        return None
    kept = written.func.value
    if site.target == "torch.multinomial":
        kept = kept.with_changes(lpar=[], rpar=[])
    return Fix("Draw on the GPU", Safety.UNSAFE, (replace(source, source.span(draw.leaves), kept),))


def _drawn_on_host(site: CallSite) -> _Draw | None:
    """The probabilities of a call of `multinomial`; None unless they go to the CPU for it and the result back.

    A generator belongs to one device: a call with one is meant to draw there.
    """
    if site.has_unpacking or site.argument("generator") is not None or site.argument("out") is not None:
        return None
    given = _given(site)
    leaves = None if given is None else behind(site.model, given)
    returns = tuple(each for each in _chain(site.model, site.node) if _moves(site.model, each))
    if not isinstance(leaves, ast.Call) or not returns:
        return None
    left = site.model.call(leaves)
    if left.target not in ("torch.Tensor.cpu", "torch.Tensor.to") or left.receiver is None:
        return None
    value = site.value(leaves).tensor
    if value is None or value.device is not Device.CPU:
        return None
    confidence = device_confidence(left.receiver)
    if confidence is None or _is_for_other_devices(site):
        return None
    return _Draw(leaves, returns, confidence)


def _is_for_other_devices(site: CallSite) -> bool:
    """True if a branch that asks for a device other than CUDA decides on the call: it may lack the operator."""
    tests = (each.test for each in site.model.ancestors(site.node) if isinstance(each, (ast.If, ast.IfExp)))
    return any(
        isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.startswith(_OTHER_DEVICES)
        for test in tests
        for part in walk(test)
    )


def _chain(model: Model, node: ast.expr) -> Iterator[ast.Call]:
    """The methods that are called on the result of an expression, one on the other's."""
    while (call := called_on(model, ahead(model, node))) is not None:
        yield call
        node = call


def _given(site: CallSite) -> ast.expr | None:
    if site.target == "torch.Tensor.multinomial":
        return site.owner
    return site.argument("input", 0)


def _moves(model: Model, call: ast.Call) -> bool:
    site = model.call(call)
    return site.target in MOVES and move(site) is not None
