"""TPF406: work for each item of a data set that could be done once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._names import OPENS, READS
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.rules.data._workers import Worker, worker_functions
from perflint.semantics.model import Model
from perflint.semantics.structure import calls_in, keyword, names_in, root_of, walk

_MAKES = (".from_pretrained", "tiktoken.get_encoding", "spacy.load")


class HeavyItem(Rule):
    """The same file is read, or the same tokenizer created, for each item of a data set.

    ## What it does
    Finds calls in `__getitem__` of data sets, and in functions that only it calls, that read a file or open an archive
    whose name does not depend on the item, and those that load a tokenizer, a processor or a model.

    ## Why is this bad
    Work that does not depend on the item is repeated for each one: workers spend their time on it,
    and the GPU waits for them. It is a warning because a whole file, or a model, is read for each item: that
    grows with the file, and no representative one was measured. Archives that are only opened are reported by
    the pedantic profile.

    ## When it is fine
    - One file for each item: not reported.
    - Opened at the first item and kept, which is the right way to open an object that cannot be
      sent to workers: `if self.file is None: self.file = h5py.File(self.path)`. Not reported.

    ## Bad
    ```python
    import h5py
    import torch
    from torch.utils.data import Dataset

    class Signals(Dataset):
        def __init__(self, path: str):
            self.path = path

        def __getitem__(self, index: int):
            with h5py.File(self.path) as file:
                return torch.from_numpy(file["signals"][index])
    ```

    ## Good
    ```python
    import h5py
    import torch
    from torch.utils.data import Dataset

    class Signals(Dataset):
        def __init__(self, path: str):
            self.path = path
            self.file = None

        def __getitem__(self, index: int):
            if self.file is None:
                self.file = h5py.File(self.path)
            return torch.from_numpy(self.file["signals"][index])
    ```

    ## Fix safety
    No fix: the right place to keep it depends on which objects can be sent to workers.

    ## How a GPU shows it
    A trace shows the GPU idle while the loop waits for the loader; a profile of a worker shows where
    the time goes.

    A trace records whether the process that trains runs the line, and how long the loop waits for its
    batches. Workers themselves are not traced.

    ## References
    - [torch.utils.data: multi-process data
      loading](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading)
    """

    code, name = "TPF406", "heavy-item"
    effect, severity = Effect.PIPELINE, Severity.WARNING
    listens = (Files("__getitem"),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        for worker in worker_functions(site.model):
            if "__getitem" not in worker.what:
                continue
            for call in _heavy(site.model, worker):
                arguments = [*call.args, *(item.value for item in call.keywords)]
                if any(names_in(argument) & worker.item for argument in arguments):
                    continue
                yield self.finding(
                    site.model.call(call),
                    f"{shown(site, call)} is repeated for each item in `{worker.what}`",
                    confidence=Confidence.MEDIUM,
                    severity=Severity.INFO if _is_only_opened(site.model, call) else None,
                    heat=Heat.HOT,
                    help="Do it once: in the constructor, or at the first item in each worker.",
                )


def _heavy(model: Model, worker: Worker) -> Iterator[ast.Call]:
    """The calls in a function that read a file or load a model, unless they are kept or only made when missing."""
    if any(_is_kept(model, call, function) for call, function in _ways(model, worker)):
        return
    for part in calls_in(worker.node):
        target = model.target(part)
        if (target in READS | OPENS or target.endswith(_MAKES)) and not _is_kept(model, part, worker.node):
            yield part


def _ways(model: Model, worker: Worker) -> Iterator[tuple[ast.Call, ast.AST]]:
    """The calls that lead to a function of a worker, each with the function around it."""
    for call in worker.calls:
        function = model.function(call)
        if function is not None:
            yield call, function


def _is_only_opened(model: Model, call: ast.Call) -> bool:
    return model.target(call) in OPENS or keyword(call, "mmap_mode") is not None


def _is_kept(model: Model, call: ast.Call, function: ast.AST) -> bool:
    """True if a call stands under a test or in a handler, or is stored where it outlives the function: in `self`."""
    names = (part for part in walk(function) if isinstance(part, ast.Name))
    own = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    for outer in model.ancestors(call):
        if outer is function:
            return False
        if isinstance(outer, (ast.If, ast.IfExp, ast.ExceptHandler, ast.BoolOp)):
            return True
        places = [each for each in getattr(outer, "targets", ()) if isinstance(each, (ast.Attribute, ast.Subscript))]
        if any(root_of(place) not in own for place in places):
            return True
    return False
