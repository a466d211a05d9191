"""TPF409: a list of Python objects that all workers share."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._methods import in_tests
from perflint.rules._sources import sources
from perflint.rules.base import Files, FileSite, Rule
from perflint.rules.data._workers import Worker, worker_functions
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name, names_in, path_of, walk
from perflint.source.quoting import quoted

_WORKERS = re.compile(r"num_workers\s*=\s*(?!0\b)")
_LISTS = frozenset({"json.load", "json.loads", "pickle.load", "orjson.loads", "yaml.safe_load", "csv.DictReader"})
"""Functions that make objects of Python of a whole file, or of a line."""
_LINES = frozenset({"readlines", "splitlines"})


class RecordsInMemory(Rule):
    """A data set keeps the records of a file as a list of Python objects, and workers read them.

    ## What it does
    Finds attributes of data sets that hold the lines of a file, or the results of `json` and `pickle`, and that
    `__getitem__` indexes, in projects whose loaders have workers.

    ## Why is this bad
    Workers are forked and share the memory of the main process until one of the two writes to it. Each read of a Python
    object counts a reference in the object itself, which is a write: page by page, each worker gets a copy of the list.
    Its memory grows through the epoch, until all workers hold all records. With 200,000 dicts of a list of 16 numbers
    (torch 2.13, Python 3.11), the pages of four workers' own were 60 MiB after five batches of 256 and 535 MiB at the
    end of one shuffled epoch. With the same numbers in an array they were 27 and 30 MiB.

    ## When it is fine
    - Small files.
    - Loaders without workers.
    - Records in one array or tensor, in a memory-mapped file, or in a table of Arrow: their elements count no
      references.

    ## Bad
    ```python
    import json
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Records(Dataset):
        def __init__(self, path: str):
            with open(path) as file:
                self.records = [json.loads(line) for line in file]

        def __getitem__(self, i: int):
            return torch.tensor(self.records[i]["ids"])

    def build(path: str):
        return DataLoader(Records(path), 64, num_workers=16, pin_memory=True)
    ```

    ## Good
    ```python
    import numpy as np
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Records(Dataset):
        def __init__(self, path: str):
            self.records = np.load(path, mmap_mode="r")

        def __getitem__(self, i: int):
            return torch.from_numpy(self.records[i].copy())

    def build(path: str):
        return DataLoader(Records(path), 64, num_workers=16, pin_memory=True)
    ```

    ## Fix safety
    No fix: another form of the records needs other code.

    ## How a GPU shows it
    The unique memory of the workers (`USS` of `smem`) grows from batch to batch.

    ## References
    - [torch.utils.data: multi-process data
      loading](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading): "the loading process will be
      using the same amount of CPU memory as the parent process for all Python objects"
    - [pytorch#13246](https://github.com/pytorch/pytorch/issues/13246)
    """

    code, name = "TPF409", "records-in-memory"
    effect, severity = Effect.MEMORY, Severity.INFO
    listens = (Files("__getitem__", also=("json", "pickle", "yaml", "csv", "readlines", "splitlines")),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        if in_tests(model) or not (model.matches(_WORKERS) or model.view.matching(_WORKERS)):
            return
        for worker in worker_functions(model):
            for statement in _kept(model, worker):
                name = quoted(path_of(statement.targets[0]))
                yield self.finding(
                    site,
                    f"{name} is a list of Python objects: each worker gets its own copy in the end",
                    confidence=Confidence.MEDIUM,
                    heat=Heat.HOT,
                    span=model.source.span(statement),
                    help="Keep the records in an array, a memory-mapped file, or a table of Arrow.",
                )


def _kept(model: Model, worker: Worker) -> Iterator[ast.Assign]:
    """The assignments in the class of a worker's method that keep records in an attribute of which it reads an item."""
    parts = (each for each in walk(worker.node) if isinstance(each, ast.Subscript))
    read = {path_of(each.value) for each in parts if names_in(each.slice) & worker.item}
    owner = model.parent(worker.node)
    for statement in walk(owner) if isinstance(owner, ast.ClassDef) else ():
        if isinstance(statement, ast.Assign) and path_of(statement.targets[0]) in read:
            if _holds_records(model, statement):
                yield statement


def _holds_records(model: Model, statement: ast.Assign) -> bool:
    """True if an assignment takes a list from a whole file: one object, or one for each line."""
    made = sources(model, statement.value)
    return any(_is_list(model, each) for each in made)


def _is_list(model: Model, node: ast.expr) -> bool:
    while isinstance(node, ast.Subscript):
        # One list of a file that holds several.
        node = node.value
    if isinstance(node, ast.ListComp):
        return any(_parses(model, part) for part in walk(node))
    if isinstance(node, ast.Call) and model.symbols.full_name(node.func) == "builtins.list" and node.args:
        return any(_parses(model, part) for part in walk(node.args[0]))
    return _parses(model, node)


def _parses(model: Model, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return last_name(node) in _LINES or model.symbols.full_name(node.func) in _LISTS
