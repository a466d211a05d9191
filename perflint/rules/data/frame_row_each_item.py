"""TPF408: a row of a pandas table for each item of a data set."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.rules.data._workers import worker_functions
from perflint.semantics.structure import calls_in, last_name, names_in, walk

_INDEXERS = frozenset({"iloc", "loc"})
_OPENING = ("open", "read", "load", "decode")


class FrameRowEachItem(Rule):
    """A data set takes each item from a table of pandas.

    ## What it does
    Finds `table.iloc[i]` and `table.loc[i]` with an index that depends on the item, in `__getitem__` of data sets.

    ## Why is this bad
    Each access checks the index, makes a `Series` with labels of its own, and converts a row of several types to
    objects of Python. An index into an array of NumPy does none of this. A thousand rows of 16 numbers, in batches of
    100, took 22 ms of a core by `iloc` and 1.6 ms from a tensor: 13 × as long, 11 to 17 × in fifteen runs, with
    pandas 3.1, torch 2.13 and no workers. It counts if an item needs little other work.

    ## When it is fine
    - Items that read and decode a file, which takes far longer: a `__getitem__` that opens one is not reported.
    - Tables that are read in the constructor alone.

    ## Bad
    ```python
    import pandas as pd
    import torch
    from torch.utils.data import Dataset

    class Rows(Dataset):
        def __init__(self, path: str):
            self.table = pd.read_csv(path)

        def __getitem__(self, i: int):
            return torch.tensor(self.table.iloc[i].values.astype("float32"))
    ```

    ## Good
    ```python
    import pandas as pd
    import torch
    from torch.utils.data import Dataset

    class Rows(Dataset):
        def __init__(self, path: str):
            self.rows = torch.from_numpy(pd.read_csv(path).to_numpy(dtype="float32"))

        def __getitem__(self, i: int):
            return self.rows[i]
    ```

    ## Fix safety
    No fix: the columns may have several types.

    ## How a GPU shows it
    A profile of a worker, such as that of py-spy, shows `pandas/core/indexing.py`.

    ## References
    - [pandas: fast scalar value getting](https://pandas.pydata.org/docs/user_guide/indexing.html#fast-scalar-value-getting-and-setting)
    """

    code, name = "TPF408", "frame-row-each-item"
    effect, severity = Effect.PIPELINE, Severity.INFO
    listens = (Files("__getitem", also=(".iloc[", ".loc[")),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        for worker in worker_functions(site.model):
            if "__getitem" not in worker.what or _opens_file(worker.root):
                continue
            for part in walk(worker.node):
                if _is_row(part) and names_in(part.slice) & worker.item:
                    yield self.finding(
                        site.model.subscript(part),
                        f"{shown(site, part)} makes a pandas row for each item",
                        confidence=Confidence.MEDIUM,
                        heat=Heat.HOT,
                        help="Keep the columns as arrays: take `.to_numpy()` in the constructor, and index that.",
                    )
                    break


def _is_row(node: ast.AST) -> TypeGuard[ast.Subscript]:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr in _INDEXERS


def _opens_file(function: ast.AST) -> bool:
    """True if an item comes from a file of its own, as names of functions tell."""
    calls = (last_name(each).lower() for each in calls_in(function))
    return any(word in name for name in calls for word in _OPENING)
