"""TPF404: a loader that is created anew in each epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._places import loops_around
from perflint.rules.base import Calls, Rule
from perflint.rules.data._loaders import LOADERS, loops_over, workers
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import names_in, walk
from perflint.source.quoting import quoted


class LoaderRebuiltEachEpoch(Rule):
    """A loader that is created again for each epoch.

    ## What it does
    Finds `DataLoader(…)` in a loop whose body iterates over that loader, if none of its arguments
    change between iterations.

    ## Why is this bad
    Each new loader starts its workers and its pinning thread anew, and allocates pinned buffers
    again; `persistent_workers` cannot help. The GPU waits for the first batch each time. In a
    measurement, 32 batches of small images with four workers took 109 ms with a new loader, and 30
    ms with one whose workers stay.

    ## When it is fine
    - Another data set each time: cross-validation, a curriculum, tasks. Such loops are not reported.
    - `num_workers=0` and no pinned memory: a new loader costs almost nothing (low confidence).

    ## Bad
    ```python
    from torch.utils.data import DataLoader

    def train(model, data, epochs: int):
        for epoch in range(epochs):
            loader = DataLoader(data, batch_size=64, num_workers=8, shuffle=True)
            for x in loader:
                model(x).sum().backward()
    ```

    ## Good
    ```python
    from torch.utils.data import DataLoader

    def train(model, data, epochs: int):
        loader = DataLoader(data, batch_size=64, num_workers=8, shuffle=True, persistent_workers=True)
        for epoch in range(epochs):
            for x in loader:
                model(x).sum().backward()
    ```

    ## Fix safety
    No fix: the loader has to move out of the loop.

    ## How a GPU shows it
    A trace shows idle time of the GPU at the start of each epoch, in `DataLoader.__iter__`.

    A trace counts the loaders that are made at this place and iterated over, and the time until the
    first batch. One loader that is iterated over several times refutes the finding.

    ## References
    - [torch.utils.data.DataLoader](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader)
    """

    code, name = "TPF404", "loader-rebuilt-each-epoch"
    effect, severity = Effect.PIPELINE, Severity.INFO
    listens = (Calls(*LOADERS),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        loop = next(loops_around(site.model, site.node), None)
        if not isinstance(loop, (ast.For, ast.AsyncFor, ast.While)) or _varies(site.model, site.node, loop):
            return
        inner = [each for each in loops_over(site.model, site.node) if each is not loop and each in set(walk(loop))]
        if not inner:
            return
        yield self.finding(
            site,
            f"{quoted(site.text(site.node))} is made again in each iteration of the loop: its workers start again",
            confidence=Confidence.LOW if workers(site) == 0 else Confidence.MEDIUM,
            heat=Heat.WARM,
            help="Make it once before the loop, with `persistent_workers=True`.",
        )


def _varies(model: Model, call: ast.Call, loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """True if anything that a loader is made of is bound in the loop, or computed by a call."""
    arguments = [*call.args, *(item.value for item in call.keywords)]
    used = {name for argument in arguments for name in names_in(argument)}
    bound = {part.id for part in walk(loop) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    if used & bound:
        return True
    return any(isinstance(part, (ast.Call, ast.Subscript)) for argument in arguments for part in walk(argument))
