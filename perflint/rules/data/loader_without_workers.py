"""TPF401: batches that the training process prepares itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._methods import in_tests
from perflint.rules._operators import operators
from perflint.rules.base import Calls, CallSite, Rule, shown
from perflint.rules.data._loaders import LOADERS, is_off, passed, takers
from perflint.semantics.model import FunctionNode, Model
from perflint.semantics.module import Module
from perflint.semantics.structure import calls_in, last_name, path_of
from perflint.semantics.values import Array, Instance, Sequence, Tensor, Value
from perflint.source.quoting import quoted

_IMAGES = operators("data", "images")
"""Data sets that read and decode a file for each item; those that are small enough lie in memory."""
_IN_MEMORY = frozenset({"torch.utils.data.TensorDataset", "torch.utils.data.IterableDataset"})
_DECODES = operators("data", "decodes")
_READS = operators("data", "reads")
_TRAINING = ("backward(", "def training_step(", "def train_dataloader(")
_ANYTHING = re.compile("")
_DEEPEST = 3


class LoaderWithoutWorkers(Rule):
    """A training loader without workers: the training process prepares each batch itself.

    ## What it does
    Finds `DataLoader`s without a `num_workers` argument, in files that train or are imported by
    these, or whose loaders such files get. If the data set, of
    this file or another one, decodes an image, a recording or another file for each item, confidence
    is medium; otherwise it is low, for the audit profile only.

    ## Why is this bad
    The next batch is read, decoded and stacked only when the loop asks for it. Meanwhile nothing is
    launched, and the GPU waits. Workers prepare batches ahead of time, in processes of their own. A
    step of a ResNet-50 on an H200 whose 64 images were decoded in the training process, at 2 ms
    each, took 7 times as long as with eight workers.

    ## When it is fine
    - Data that is in memory already: rows of a tensor, tokens of an array. `TensorDataset`s, lists and
      tensors are not reported.
    - Data sets that are generated while they are read (`IterableDataset`): each worker would return
      all of it. Not reported.
    - Data sets that keep an open file or a database that processes cannot share.
    - Trainers of a library that set the workers themselves, notebooks under Windows, tests.
    - An explicit `num_workers=0`: not reported.

    ## Bad
    ```python
    import torch
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset
    from torchvision.transforms.functional import to_tensor

    class Images(Dataset):
        def __init__(self, paths: list[str]):
            self.paths = paths

        def __getitem__(self, index: int) -> torch.Tensor:
            return to_tensor(Image.open(self.paths[index]).resize((224, 224)))

    def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, paths: list[str]):
        loader = DataLoader(Images(paths), batch_size=64, shuffle=True)
        for x in loader:
            model(x.cuda()).sum().backward()
            optimizer.step()
    ```

    ## Good
    ```python
    import torch
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset
    from torchvision.transforms.functional import to_tensor

    class Images(Dataset):
        def __init__(self, paths: list[str]):
            self.paths = paths

        def __getitem__(self, index: int) -> torch.Tensor:
            return to_tensor(Image.open(self.paths[index]).resize((224, 224)))

    def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, paths: list[str]):
        loader = DataLoader(Images(paths), batch_size=64, shuffle=True, num_workers=8)
        for x in loader:
            model(x.cuda()).sum().backward()
            optimizer.step()
    ```

    ## Fix safety
    No fix: the best number of workers depends on the machine and on the data.

    ## How a GPU shows it
    A trace shows idle time of the GPU between steps, caused by the loader.

    A trace records the number of workers in force and the time that the loop waited for each batch.
    Workers refute the finding; if the GPU had work meanwhile, it cost nothing.

    ## References
    - [torch.utils.data: multi-process data
      loading](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading)
    - [Performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code, name = "TPF401", "loader-without-workers"
    effect, severity = Effect.PIPELINE, Severity.ERROR
    measured = ("images-without-workers-resnet50",)
    costs = "images unpacked by the training process make training of a ResNet-50 {0} slower than with eight workers"
    listens = (Calls(*LOADERS),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if not is_off(site, "num_workers") or in_tests(site.model) or not _trains(site):
            return
        data = passed(site, "dataset")
        if data is None or _is_in_memory(site.model, site.value(data)):
            return
        decoded = _decodes(site.model, site.value(data), _DEEPEST)
        what = f" and {decoded}" if decoded else ""
        yield self.finding(
            site,
            f"{shown(site)} makes each batch{what} in the process that trains",
            # Batches that take no time to make can be made in this process.
            severity=self.severity if decoded else Severity.INFO,
            confidence=Confidence.MEDIUM if decoded else Confidence.LOW,
            # It is made once, and runs with each step.
            heat=Heat.HOT if decoded else Heat.WARM,
            help="Pass `num_workers` (a few for each GPU) and `persistent_workers=True`.",
        )


def _trains(site: CallSite) -> bool:
    """True if this file trains, one that imports it, or that of a function or class that gets the loader."""
    model = site.model
    if model.says(*_TRAINING) or model.importer_has(_TRAINING, (), _ANYTHING):
        return True
    return any(model.view.mentions(path, word) for path in takers(model, site.node) for word in _TRAINING)


def _is_in_memory(model: Model, data: Value) -> bool:
    """True if items are there already, or made in turn."""
    for member in data.members:
        if isinstance(member, (Tensor, Array, Sequence)):
            return True
        if isinstance(member, Instance) and _IN_MEMORY.intersection((member.cls, *model.lineage(member.cls))):
            return True
    return False


def _decodes(model: Model, data: Value, depth: int) -> str:
    """The slow work of a data set for each item, in words; empty if there is none."""
    for member in data.members:
        if not isinstance(member, Instance) or depth == 0:
            continue
        if member.cls in _IMAGES:
            return "decodes its images"
        if member.cls in ("torch.utils.data.Subset", "torch.utils.data.dataset.Subset"):
            inner = member.argument("dataset") or member.argument("0")
            return "" if inner is None else _decodes(model, inner, depth - 1)
        read = next(_reads(model, member.cls, "__getitem__", set()), "")
        return f"runs {quoted(read)} for each item" if read else ""
    return ""


def _reads(model: Model, cls: str, method: str, seen: set[str]) -> Iterator[str]:
    """The calls of a method, and of those of the same object that it calls, that read or decode a file."""
    found = next((found for name in model.lineage(cls) if (found := _defined(model, name, method))), None)
    if found is None or method in seen:
        return
    seen.add(method)
    module, node = found
    is_own = module is model.module
    for call in calls_in(node):
        name = last_name(call)
        target = model.target(call) if is_own else module.symbols.full_name(call.func)
        if target in _READS or name in _DECODES:
            yield model.source.written(call) if is_own else f"{path_of(call.func) or name}(…)"
        elif isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            if call.func.value.id == "self":
                yield from _reads(model, cls, name, seen)


def _defined(model: Model, cls: str, method: str) -> tuple[Module, FunctionNode] | None:
    """A method that a class of the project defines itself, and its file."""
    found = model.view.klass(cls)
    info = None if found is None else found[1].methods.get(method)
    return None if found is None or info is None else (found[0], info.node)
