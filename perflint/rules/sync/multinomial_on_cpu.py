"""TPF134: tokens that are drawn on the CPU."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Effect, Finding, Fix, Safety, Severity
from perflint.fixes.edits import replace
from perflint.rules._words import often
from perflint.rules.base import Calls, Rule
from perflint.rules.sync._drawn import NAMES, Draw, drawn_on_host
from perflint.rules.sync._scalars import DEVICE_TO_HOST_COPY
from perflint.semantics.sites import CallSite
from perflint.source.concrete import cst
from perflint.source.quoting import quoted


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
    listens = (Calls(*NAMES),)
    replaces = (DEVICE_TO_HOST_COPY, "TPF201")

    def check(self, site: CallSite) -> Iterator[Finding]:
        draw = drawn_on_host(site)
        if draw is None:
            return
        yield self.finding(
            site,
            f"{quoted(site.text(site.node))} draws on the CPU, which waits for the probabilities{often(site)}",
            confidence=draw.confidence,
            help="Draw on the GPU: that waits for nothing.",
            fix=_fix(site, draw),
            parts=tuple(map(site.model.source.span, (draw.leaves, *draw.returns))),
        )


def _fix(site: CallSite, draw: Draw) -> Fix | None:
    source = site.model.source
    written = source.concrete(draw.leaves)
    if not isinstance(written, cst.Call) or not isinstance(written.func, cst.Attribute):
        return None
    kept = written.func.value
    if site.target == "torch.multinomial":
        kept = kept.with_changes(lpar=[], rpar=[])
    return Fix("Draw on the GPU", Safety.UNSAFE, (replace(source, source.span(draw.leaves), kept),))
