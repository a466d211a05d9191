"""TPF402: batches that are copied to the GPU from pageable memory."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Severity
from perflint.fixes.imports import spell
from perflint.rules._methods import is_false, is_true
from perflint.rules._names import TRAINING_ARGUMENTS
from perflint.rules._sources import passed_to
from perflint.rules.base import Calls, CallSite, Rule, shown
from perflint.rules.data._loaders import LOADERS, added, is_off, loops_in_callees, loops_over, may_pin, move_in
from perflint.rules.worth import sentence


class PinMemoryOff(Rule):
    """A loader without pinned memory, whose batches go to the GPU.

    ## What it does
    Finds `DataLoader`s without a `pin_memory` argument, if a loop over them in the same file moves
    their batches to the GPU, also one in a function that gets the loader. Finds `dataloader_pin_memory=False` of
    `transformers.TrainingArguments`.

    ## Why is this bad
    A copy from pageable memory goes through a buffer of the driver, and the CPU waits for it. From
    pinned memory the GPU copies by itself, and with `non_blocking=True` the CPU continues
    meanwhile. Copying 38 MB from pageable memory took 3.1 times as long on an H200.

    ## When it is fine
    - The data set is on the GPU already.
    - Memory is short: pinned pages cannot be swapped.
    - Small batches: the copy takes microseconds either way.
    - Apple's GPUs share memory with the CPU.
    - An explicit `pin_memory=False`: not reported.

    ## Bad
    ```python
    import torch
    from torch.utils.data import DataLoader

    def train(model: torch.nn.Module, data):
        loader = DataLoader(data, batch_size=64, num_workers=8)
        for x, y in loader:
            model(x.to("cuda", non_blocking=True)).sum().backward()
    ```

    ## Good
    ```python
    import torch
    from torch.utils.data import DataLoader

    def train(model: torch.nn.Module, data):
        loader = DataLoader(data, batch_size=64, num_workers=8, pin_memory=True)
        for x, y in loader:
            model(x.to("cuda", non_blocking=True)).sum().backward()
    ```

    ## Fix safety
    Unsafe: `pin_memory=torch.cuda.is_available()` is added. A thread of the loader then copies each
    batch once more, into pages that the system cannot swap; objects of your own classes need a
    method `pin_memory` to be pinned. No fix is offered if the dataset may hold tensors of the GPU, which
    cannot be pinned.

    ## How a GPU shows it
    A profile shows `Memcpy HtoD (Pageable -> Device)` instead of `(Pinned -> Device)`.

    A trace records where the batches are and their size. Pinned memory, or batches that are on the GPU
    already, refute the finding; small batches lose nothing by the measured rate.

    ## References
    - [Memory pinning](https://docs.pytorch.org/docs/stable/data.html#memory-pinning)
    - [A guide on good usage of non_blocking and
      pin_memory](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """

    code, name = "TPF402", "pin-memory-off"
    effect, severity = Effect.TRANSFER, Severity.WARNING
    measured = (
        "copy-pageable-nonblocking-pinned-resnet50",
        "copy-pageable-nonblocking-pinned-resnet50-host-work",
    )
    listens = (Calls(*LOADERS, *TRAINING_ARGUMENTS),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        yield from self._of_trainer(site) if site.target in TRAINING_ARGUMENTS else self._of_loader(site)

    def _of_trainer(self, site: CallSite) -> Iterator[Finding]:
        if is_false(passed_to(site.model, site.node, "dataloader_pin_memory")):
            yield self.finding(
                site,
                "`dataloader_pin_memory=False` makes the trainer copy each batch from pageable memory",
                severity=Severity.INFO,
                heat=Heat.HOT,
                help="Leave it out: pinned memory is the default.",
            )

    def _of_loader(self, site: CallSite) -> Iterator[Finding]:
        if not is_off(site, "pin_memory"):
            return
        model = site.model
        loops = (*loops_over(model, site.node), *loops_in_callees(model, site.node, again=False))
        moves = [found for loop in loops if (found := move_in(model, loop))]
        if not moves:
            return
        yield self.finding(
            site,
            f"{shown(moves[0])} copies the batches of this loader from pageable memory",
            confidence=Confidence.MEDIUM,
            # A copy that waits anyway is a finding of its own: TPF201.
            severity=None if is_true(moves[0].argument("non_blocking")) else Severity.INFO,
            heat=moves[0].heat,
            help="Pass `pin_memory=True`, and copy with `non_blocking=True`.",
            fix=_fix(site),
            cost=sentence("a copy from pageable memory is {0} slower than an asynchronous one", "pageable-copy"),
        )


def _fix(site: CallSite) -> Fix | None:
    name = spell(site.model.symbols, "torch.cuda.is_available", site.node)
    if name is None or not may_pin(site):
        return None
    return added(site, f"pin_memory={name.text}()", "Pin the memory of batches", *name.imports)
