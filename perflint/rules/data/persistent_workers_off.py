"""TPF403: loader workers that start anew for each epoch."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._places import loops_around
from perflint.rules.base import Calls, Rule
from perflint.rules.data._loaders import LOADERS, added, is_off, loops_in_callees, loops_over, passed, repeats, workers
from perflint.semantics.sites import CallSite
from perflint.source.concrete import cst
from perflint.source.quoting import quoted


class PersistentWorkersOff(Rule):
    """Workers of a loader that are started again for each epoch.

    ## What it does
    Finds `DataLoader`s with workers and without `persistent_workers`, where a loop over them stands in a
    loop over epochs, or in a function that a loop over epochs calls with them. Options that the same function
    gathers in a dict are seen.

    ## Why is this bad
    At the end of each epoch the workers end, and at the start of the next they are made anew: processes
    are forked or spawned, which under `spawn` imports the whole program again, data sets are copied into
    them, and the first batch waits for all of it, while the device has nothing to do. For many short
    epochs that was most of the time in projects that measured it. Here, 32 batches of small images by four
    workers took 97 ms an epoch, and 28 ms with workers that stay.

    ## When it is fine
    - One epoch, or long ones: the start is a second in an hour.
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
    Unsafe: workers keep their copy of the data set and their random state, so that the random numbers
    drawn in them differ from the second epoch on. The process itself draws one number less in each of
    these epochs, which moves all that it draws later.

    ## How a GPU shows it
    A trace shows idle time of the device at the start of each epoch, in `DataLoader.__iter__`.

    ## References
    - [torch.utils.data.DataLoader](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader)
    - [mmhuman3d#233](https://github.com/open-mmlab/mmhuman3d/pull/233): 7 minutes became 35 seconds
    """

    code, name = "TPF403", "persistent-workers-off"
    effect, severity = Effect.PIPELINE, Severity.INFO
    listens = (Calls(*LOADERS),)
    since = (1, 8)

    def nominate(self, site: CallSite) -> bool:
        return is_off(site, "persistent_workers") and passed(site, "num_workers") is not None and workers(site) != 0

    def check(self, node: cst.CSTNode, site: CallSite) -> Iterator[Finding]:
        model, count = site.model, workers(site)
        loop = next((each for each in loops_over(model, site.node) if repeats(model, each)), None)
        loop = loop or next(loops_in_callees(model, site.node), None)
        # A loader that is made anew in each turn has nothing to keep: TPF404.
        made_anew = next(loops_around(model, site.node), None) is not None
        if loop is None or made_anew or "set_epoch" in model.source.text:
            return
        yield self.finding(
            site,
            f"`for … in {quoted(model.source.written(loop.iter)).strip('`')}` starts "
            f"{f'{count} workers' if count else 'the workers'} of this loader anew each time",
            confidence=Confidence.MEDIUM if count else Confidence.LOW,
            # Once an epoch.
            heat=Heat.WARM,
            help="Pass `persistent_workers=True`.",
            fix=added(site, node, "persistent_workers=True", "Keep the workers") if count else None,
        )
