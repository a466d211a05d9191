"""TPF405: data sets and collate functions that move tensors to the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity, lowered
from perflint.rules.base import CallSite, Files, FileSite, Rule, shown
from perflint.rules.data._loaders import LOADERS, passed, workers
from perflint.rules.data._workers import worker_functions
from perflint.rules.placement import CONSTRUCTORS, FACTORIES, MOVES, creation_confidence, move
from perflint.semantics.model import Model
from perflint.semantics.structure import ClassInfo, calls_in, last_name, path_of, walk
from perflint.semantics.values import Instance


class DeviceInWorker(Rule):
    """The code of a data set or its collate function moves items or batches to the GPU.

    ## What it does
    Finds `.cuda()`, `.to(device)` and `device=` in `__getitem__` of data sets and in collate
    functions, and in the constructor of a data set, if a loader with workers reads items from such
    tensors.

    ## Why is this bad
    Each worker creates a CUDA context of its own, which takes hundreds of megabytes of the GPU. Under `fork`, the
    default on Linux, this fails with "Cannot re-initialize CUDA in forked subprocess", so that `num_workers` must
    stay 0. Without workers, each item is copied separately with a blocking copy, in the process that should feed
    the GPU. Training of a ResNet-50 takes 7.4 × as long on an H200 if its data set moves each image, so that no
    worker unpacks it (182 ms, not 25). It is information because most of that is the missing workers, which TPF401
    reports, and data sets that are held on the GPU as a whole are fast.

    ## When it is fine
    - Preprocessing on the GPU by a library that has processes of its own (DALI, cuCIM).
    - Data that lives on the GPU, and a loader without workers (low confidence if the file creates
      only loaders with `num_workers=0`).

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
    No fix: the move belongs in the loop over the batches, which may be anywhere.

    ## How a GPU shows it
    A trace shows many small `Memcpy HtoD` with gaps between them instead of one copy per batch, or
    several processes on one GPU.

    A trace records tensors that code of a data set puts on the GPU in the process that trains. Tensors
    that stay on the CPU, or data that no loader with workers reads, refute the finding. Workers
    themselves are not traced.

    ## References
    - [CUDA in multiprocessing](https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing)
    - [torch.utils.data](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading): "not
      recommended to return CUDA tensors in multi-process loading"
    """

    code, name = "TPF405", "device-in-worker"
    effect, severity = Effect.PIPELINE, Severity.INFO
    listens = (Files("__getitem", "collate_fn", also=("cuda", "device")),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        alone = _without_workers(site.model)
        for worker in worker_functions(site.model):
            for part in calls_in(worker.node):
                call = site.model.call(part)
                sure = _confidence(call)
                if sure is None:
                    continue
                yield self.finding(
                    call,
                    f"{shown(call, part)} goes to the GPU in `{worker.what}`, which the workers of a loader run",
                    confidence=Confidence.LOW if alone else sure,
                    heat=Heat.HOT,
                    help="Return CPU tensors, and move the whole batch in the loop.",
                )
        for dataset in () if alone else _with_workers(site.model):
            yield from self._held(dataset, site.model)

    def _held(self, dataset: ClassInfo, model: Model) -> Iterator[Finding]:
        for call, attribute in _placed(model, dataset):
            sure = _confidence(call)
            if sure is not None:
                yield self.finding(
                    call,
                    f"{shown(call)} puts `{attribute}` on the device, where the workers of a loader"
                    f" read it in `{dataset.node.name}.__getitem__`",
                    confidence=sure,
                    heat=Heat.HOT,
                    help="Keep the data on the CPU and move each batch in the loop, or use no workers.",
                )


def _with_workers(model: Model) -> Iterator[ClassInfo]:
    """The data sets of a file that a loader of the file with workers reads."""
    seen: set[str] = set()
    for node in model.nodes(ast.Call):
        call = model.call(node)
        given = passed(call, "dataset") if call.target in LOADERS and workers(call) != 0 else None
        for member in () if given is None else model.value(given).members:
            if isinstance(member, Instance) and member.cls not in seen:
                seen.add(member.cls)
                own = model.module.structure.classes.get(member.cls.removeprefix(f"{model.module.name}."))
                if own is not None and "__init__" in own.methods and "__getitem__" in own.methods:
                    yield own


def _placed(model: Model, dataset: ClassInfo) -> Iterator[tuple[CallSite, str]]:
    """The tensors that the constructor of a data set puts on a device, and from which its items are read."""
    reads = {path_of(part) for part in walk(dataset.methods["__getitem__"].node) if isinstance(part, ast.Attribute)}
    for part in walk(dataset.methods["__init__"].node):
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Call):
            path = path_of(part.targets[0])
            if path.startswith("self.") and path in reads:
                yield model.call(part.value), path


def _confidence(site: CallSite) -> Confidence | None:
    if not site.target and last_name(site.node) == "cuda" and not site.node.args and not site.node.keywords:
        # Whatever has this method goes to the GPU: `torch.load(path).cuda()`.
        return Confidence.MEDIUM
    if site.target in MOVES:
        moved = move(site)
        # The other tensor, whose device it gets, may be on the CPU.
        return None if moved is None or moved.other is not None else moved.confidence
    if site.target in FACTORIES or site.target in CONSTRUCTORS:
        sure = creation_confidence(site)
        return None if sure is None else lowered(sure) if sure is not Confidence.HIGH else sure
    return None


def _without_workers(model: Model) -> bool:
    """True if all loaders that a file makes have no workers."""
    made = [site for call in model.nodes(ast.Call) if (site := model.call(call)).target in LOADERS]
    return bool(made) and all(workers(site) == 0 for site in made)
