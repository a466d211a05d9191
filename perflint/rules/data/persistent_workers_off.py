"""TPF403: loader workers that start anew for each epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.rules._turns import heads
from perflint.rules.base import Calls, CallSite, Rule, shown
from perflint.rules.data._loaders import LOADERS, added, is_off, loops_in_callees, loops_over, passed, repeats, workers
from perflint.semantics.around import loops_around
from perflint.semantics.model import Model
from perflint.semantics.structure import path_of


class PersistentWorkersOff(Rule):
    """The workers of a loader are started again for each epoch.

    ## What it does
    Finds `DataLoader`s with workers and without `persistent_workers`, if a loop over them is inside
    a loop over epochs, or in a function that a loop over epochs calls with them. Options that the
    same function collects in a dict count.

    ## Why is this bad
    The workers end with each epoch and are created anew for the next. Processes are forked or
    spawned, which under `spawn` imports the whole program again, and data sets are copied into
    them. The first batch waits for all of it, while the GPU is idle. For many short epochs that was
    most of the time in projects that measured it. In a measurement, 32 batches of small images with
    four workers took 97 ms an epoch, and 28 ms with workers that stay.

    ## When it is fine
    - One epoch, or long ones: starting the workers takes a second in an hour.
    - The data set is changed between epochs (`dataset.set_epoch`): workers that stay do not see it.
    - Memory is short: workers of a validation loader that stay keep their memory.
    - `num_workers=0`: there is nothing to keep, and `persistent_workers=True` raises.

    ## Bad
    ```python
    from torch.utils.data import DataLoader

    def train(model, data, epochs: int):
        loader = DataLoader(data, batch_size=64, num_workers=8)
        for epoch in range(epochs):
            for x in loader:
                model(x).sum().backward()
    ```

    ## Good
    ```python
    from torch.utils.data import DataLoader

    def train(model, data, epochs: int):
        loader = DataLoader(data, batch_size=64, num_workers=8, persistent_workers=True)
        for epoch in range(epochs):
            for x in loader:
                model(x).sum().backward()
    ```

    ## Fix safety
    Risky: workers keep their copy of the data set and their random state, so that the random
    numbers drawn in them differ from the second epoch on, and changes of the data set do not reach
    them. The process itself draws one number less in each of these epochs, which shifts all its
    later draws. The fix is offered if only loaders and samplers get the data set.

    ## How a GPU shows it
    A trace shows idle time of the GPU at the start of each epoch, in `DataLoader.__iter__`.

    A trace counts how often the workers of the loader start, and the time until the first batch. Workers
    that stay, or none, refute the finding.

    ## References
    - [torch.utils.data.DataLoader](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader)
    - [mmhuman3d#233](https://github.com/open-mmlab/mmhuman3d/pull/233): 7 minutes became 35 seconds
    """

    code, name = "TPF403", "persistent-workers-off"
    effect, severity = Effect.PIPELINE, Severity.INFO
    listens = (Calls(*LOADERS),)
    since = (1, 8)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if not is_off(site, "persistent_workers") or passed(site, "num_workers") is None or workers(site) == 0:
            return
        model, count = site.model, workers(site)
        loop = next((each for each in loops_over(model, site.node) if repeats(model, each)), None)
        loop = loop or next(loops_in_callees(model, site.node, again=True), None)
        # A loader that is made anew in each iteration has nothing to keep: TPF404.
        made_anew = next(loops_around(model, site.node), None) is not None
        if loop is None or made_anew or model.says("set_epoch"):
            return
        kept = "the workers" if not count else "1 worker" if count == 1 else f"{count} workers"
        _, over = next(heads(model, loop))
        yield self.finding(
            site,
            f"`for … in {shown(site, over).strip('`')}` starts {kept} of this loader again each time",
            confidence=Confidence.MEDIUM if count else Confidence.LOW,
            # Once an epoch.
            heat=Heat.WARM,
            help="Pass `persistent_workers=True`.",
            fix=_fix(site) if count else None,
        )


def _fix(site: CallSite) -> Fix | None:
    proof = "nothing but the loader gets the data set" if _is_only_loaded(site) else None
    return added(site, "persistent_workers=True", "Keep the workers", safety=Safety.RISKY, proof=proof)


def _is_only_loaded(site: CallSite) -> bool:
    """True if nothing in sight can change the data set between epochs: loaders, samplers and `len` get it alone."""
    model, given = site.model, passed(site, "dataset")
    path = "" if given is None else path_of(given)
    if not path:
        return isinstance(given, ast.Call)
    nodes: list[ast.expr] = [*model.nodes(ast.Name), *model.nodes(ast.Attribute)]
    uses = [node for node in nodes if isinstance(getattr(node, "ctx", None), ast.Load) and path_of(node) == path]
    if "." not in path:
        uses = [use for use in uses if model.function(use) is model.function(site.node)]
    return all(_only_reads(model, model.parent(use)) for use in uses)


def _only_reads(model: Model, taker: ast.AST | None) -> bool:
    if isinstance(taker, ast.keyword):
        taker = model.parent(taker)
    if not isinstance(taker, ast.Call):
        return False
    target = model.target(taker)
    return target == "builtins.len" or target in LOADERS or target.startswith("torch.utils.data.")
