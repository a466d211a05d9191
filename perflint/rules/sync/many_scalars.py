"""TPF102: several scalar reads in a row."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Effect, Finding, Severity, weakest
from perflint.rules._statements import block_of
from perflint.rules.base import Calls, CallSite, Group, Option, Rule, often, shown
from perflint.rules.sync._joined import read_together, reads_in, single_read
from perflint.rules.sync._scalars import NUMBERS, Read
from perflint.semantics.around import statement_of


class ManyScalars(Rule):
    """
    ## What it does
    Finds three or more scalar reads in a row, in one statement or in neighbouring ones:
    `a = x.item()`, `b = y.item()`, `c = z.item()`.

    ## Why is this bad
    The first read waits for the GPU; each further read is another round trip, a copy of a few bytes
    with a wait for it. One stacked copy fetches all numbers at once.

    ## When it is fine
    Code that runs rarely. Tensors on different devices, or on the CPU. Two reads are not worth the
    rewrite.

    ## Bad
    ```python
    import torch

    def stats(x: torch.Tensor) -> dict[str, float]:
        x = x.cuda()
        low = x.min().item()
        mean = x.mean().item()
        high = x.max().item()
        return {"low": low, "mean": mean, "high": high}
    ```

    ## Good
    ```python
    import torch

    def stats(x: torch.Tensor) -> dict[str, float]:
        x = x.cuda()
        low, mean, high = torch.stack([x.min(), x.mean(), x.max()]).tolist()
        return {"low": low, "mean": mean, "high": high}
    ```

    ## Fix safety
    Unsafe: all are computed before the first is read, so that none is read if one of them raises;
    tensors on different devices raise. The numbers are the same: floats are stacked only with
    floats, and whole numbers only with whole numbers.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns once per read on neighbouring lines; a profile shows
    as many GPU-to-CPU copies of a few bytes.

    ## References
    - [torch.stack](https://docs.pytorch.org/docs/stable/generated/torch.stack.html)
    - [Avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code, name = "TPF102", "many-scalars"
    group = Group.MANY
    effect, severity = Effect.SYNC, Severity.INFO
    measured = ("many-scalars-gpt", "many-scalars-gpt-host-work", "many-scalars-policy")
    costs = "four `.item()` in place of one `.tolist()` cost GPT-2 training {0}"
    listens = (Calls(*NUMBERS),)
    options = (Option("fewest", 3, "Fewer reads in a row are not reported.", least=2),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        reads = _group(site)
        if len(reads) < self.option("fewest"):
            return
        yield self.finding(
            site,
            f"{shown(site)} is the first of {len(reads)} reads in a row: the CPU waits for the GPU at"
            f" each{often(site)}",
            confidence=weakest(*(read.confidence for read in reads)),
            help="Read them at once: `torch.stack([…]).tolist()`.",
            fix=read_together(site, reads[0]),
        )


def _group(site: CallSite) -> list[Read]:
    """The reads of a run of statements, if the site is the first of them; else nothing."""
    if single_read(site) is None:
        return []
    statement = statement_of(site.model, site.node)
    if statement is None or site.node is not next((read.node for read in reads_in(site.model, statement)), None):
        return []
    block = block_of(site.model, statement)
    index = block.index(statement)
    if index and reads_in(site.model, block[index - 1]):
        return []
    found: list[Read] = []
    for follower in block[index:]:
        more = reads_in(site.model, follower)
        if not more:
            break
        found += more
    return found
