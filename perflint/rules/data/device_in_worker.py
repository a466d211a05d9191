"""TPF405: data sets and collate functions that move tensors to the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity, lowered
from perflint.rules._methods import call_site
from perflint.rules.base import Files, Rule
from perflint.rules.data._loaders import LOADERS, workers
from perflint.rules.data._workers import worker_functions
from perflint.rules.placement import CONSTRUCTORS, FACTORIES, MOVES, creation_confidence, move
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite, FileSite
from perflint.semantics.structure import walk
from perflint.source.concrete import cst
from perflint.source.quoting import quoted


class DeviceInWorker(Rule):
    """Items or batches are moved to the device by the code that loaders run.

    ## What it does
    Finds `.cuda()`, `.to(device)` and `device=` in `__getitem__` of data sets and in collate functions.

    ## Why is this bad
    With workers, each of them makes a CUDA context of its own, which takes hundreds of megabytes of the
    device; under `fork`, the default on Linux, it fails with "Cannot re-initialize CUDA in forked
    subprocess", so that `num_workers` must stay 0. Without workers, each item is copied by itself and
    waited for, in the process that should feed the device. It has not been measured here.

    ## When it is fine
    - Preprocessing on the device by a library that has processes of its own (DALI, cuCIM).
    - Data that lives on the device, and a loader without workers (low confidence where the file makes
      loaders with `num_workers=0` only).

    ## Bad
    ```python
    import torch
    from torch.utils.data import Dataset

    class Images(Dataset):
        def __init__(self, images: list[torch.Tensor]):
            self.images = images

        def __getitem__(self, index: int):
            return self.images[index].cuda()
    ```

    ## Good
    ```python
    import torch
    from torch.utils.data import Dataset

    class Images(Dataset):
        def __init__(self, images: list[torch.Tensor]):
            self.images = images

        def __getitem__(self, index: int):
            return self.images[index]

    def train(model, loader):
        for x in loader:
            model(x.to("cuda", non_blocking=True)).sum().backward()
    ```

    ## Fix safety
    No fix: the move belongs into the loop over the batches, which may be anywhere.

    ## How a GPU shows it
    A trace shows many small `Memcpy HtoD` with gaps between them where a batch should be one copy, or
    several processes on one device.

    ## References
    - [CUDA in multiprocessing](https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing)
    - [torch.utils.data](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading): "not
      recommended to return CUDA tensors in multi-process loading"
    """

    code, name = "TPF405", "device-in-worker"
    effect, severity = Effect.PIPELINE, Severity.INFO
    listens = (Files("__getitem", "collate_fn"),)

    def nominate(self, site: FileSite) -> bool:
        text = site.model.source.text
        return "cuda" in text or "device" in text

    def check(self, node: cst.CSTNode, site: FileSite) -> Iterator[Finding]:
        alone = _without_workers(site.model)
        for worker in worker_functions(site.model):
            for part in walk(worker.node):
                if not isinstance(part, ast.Call):
                    continue
                call = call_site(site.model, part)
                sure = _confidence(call)
                if sure is None:
                    continue
                yield self.finding(
                    call,
                    f"{quoted(call.text(part))} goes to the device in `{worker.what}`, which workers of loaders run",
                    confidence=Confidence.LOW if alone else sure,
                    heat=Heat.HOT,
                    help="Return tensors on the host, and move the whole batch in the loop.",
                )


def _confidence(site: CallSite) -> Confidence | None:
    if site.target in MOVES:
        moved = move(site)
        # A tensor may follow another one on the host.
        return None if moved is None or moved.other is not None else moved.confidence
    if site.target in FACTORIES or site.target in CONSTRUCTORS:
        sure = creation_confidence(site)
        return None if sure is None else lowered(sure) if sure is not Confidence.HIGH else sure
    return None


def _without_workers(model: Model) -> bool:
    """Whether all loaders that a file makes have no workers."""
    made = [site for call in model.nodes(ast.Call) if (site := call_site(model, call)).target in LOADERS]
    return bool(made) and all(workers(site) == 0 for site in made)
