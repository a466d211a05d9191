"""TPF404: a loader that is created anew in each epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules.base import Calls, CallSite, Rule, shown
from perflint.rules.data._loaders import LOADERS, is_looped_in, loops_over, workers
from perflint.semantics.around import loops_around
from perflint.semantics.model import Model
from perflint.semantics.structure import walk
from perflint.semantics.values import Instance


class LoaderRebuiltEachEpoch(Rule):
    """A loader that is created again for each epoch.

    ## What it does
    Finds `DataLoader(…)` in a loop whose body iterates over that loader, or passes it to a function of the project
    that does, if none of its arguments change between iterations. A data set or sampler that the loop makes of
    the same arguments in each iteration does not count as a change.

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
        if not inner and not is_looped_in(site.model, site.node, loop):
            return
        yield self.finding(
            site,
            f"{shown(site)} is made again in each iteration of the loop: its workers start again",
            confidence=Confidence.LOW if workers(site) == 0 else Confidence.MEDIUM,
            heat=Heat.WARM,
            help="Make it once before the loop, with `persistent_workers=True`.",
        )


def _varies(model: Model, call: ast.Call, loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """True if anything that a loader is made of may be another in each iteration of a loop."""
    arguments = [*call.args, *(item.value for item in call.keywords)]
    return not all(_is_fixed(model, argument, loop, frozenset()) for argument in arguments)


def _is_fixed(model: Model, node: ast.expr, loop: ast.AST, seen: frozenset[str]) -> bool:
    """True if an expression has the same parts in each iteration: names bound before, objects made of such."""
    for part in walk(node):
        if isinstance(part, ast.Call):
            if not isinstance(model.value(part), Instance) or not _is_made_of_own(model, part, loop):
                return False
        elif isinstance(part, (ast.Subscript, ast.Lambda)):
            return isinstance(part, ast.Lambda)
        elif isinstance(part, ast.Name) and not _is_fixed_name(model, part, loop, seen):
            return False
    return True


def _is_made_of_own(model: Model, call: ast.Call, loop: ast.AST) -> bool:
    """True if the loop uses the names in the arguments of a call nowhere else: nothing changes their objects."""
    arguments = [*call.args, *(item.value for item in call.keywords)]
    names = {part.id for argument in arguments for part in walk(argument) if isinstance(part, ast.Name)}
    return all(call in model.ancestors(use) for name in names for use in model.names(loop, name))


def _is_fixed_name(model: Model, name: ast.Name, loop: ast.AST, seen: frozenset[str]) -> bool:
    bound = [part for part in model.names(loop, name.id) if isinstance(part.ctx, ast.Store)]
    if not bound:
        return True
    statement = model.parent(bound[0])
    is_alone = len(bound) == 1 and isinstance(statement, ast.Assign) and statement.targets == bound
    if not is_alone or name.id in seen:
        return False
    return _is_fixed(model, statement.value, loop, seen | {name.id})  # type: ignore[union-attr]
