"""TPF192: Python's garbage collector takes a part of each step."""

from __future__ import annotations

from perflint.findings import Effect, Severity
from perflint.rules.base import TracedRule


class CollectorPause(TracedRule):
    """
    ## What it does
    Reports full garbage collections that take at least 3% of the time of the recorded steps. The
    finding is at the line at which most of them began. It needs `perflint check --trace FILE`; without a
    trace it reports nothing.

    ## Why is this bad
    A full collection looks through all objects that can hold others. In a program with millions of
    them, such as a data set in lists and dicts, that takes a second. Meanwhile no kernels are
    launched, and in distributed training all ranks wait for the one that collects.

    ## When it is fine
    The GPU has work for the time of the pause: the cost is never taken to be more than the time in
    which the GPU was idle, if the profiler has measured it. A single collection is not reported,
    and neither are the short collections of younger generations. Simulated runs report nothing,
    because the time of their steps is not that of a GPU.

    ## Bad
    ```python
    import json
    import torch

    def train(model: torch.nn.Module, path: str, batches):
        samples = json.load(open(path))  # millions of small objects
        for batch in batches:
            model(batch).sum().backward()
        return samples
    ```

    ## Good
    ```python
    import gc
    import json
    import torch

    def train(model: torch.nn.Module, path: str, batches):
        samples = json.load(open(path))
        gc.collect()
        gc.freeze()  # the collector skips the objects that exist now
        for batch in batches:
            model(batch).sum().backward()
        return samples
    ```

    ## Fix safety
    No fix: the right time for collections depends on the program. Without any collections, objects
    that refer to each other in a circle are never freed.

    ## How a GPU shows it
    `perflint trace` times each full collection through `gc.callbacks`, and notes where the program was.
    The time of all in the recorded steps is compared with the time of a step.

    ## References
    - [gc.freeze](https://docs.python.org/3/library/gc.html#gc.freeze)
    """

    code, name = "TPF192", "collector-pause"
    effect, severity = Effect.PIPELINE, Severity.INFO
