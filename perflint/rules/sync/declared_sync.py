"""TPF137: a call of a function that the settings declare to wait for the GPU."""

from __future__ import annotations

from perflint.findings import Effect, Severity
from perflint.rules.base import DeclaredRule


class DeclaredSync(DeclaredRule):
    """
    ## What it does
    Reports calls of the functions in the setting `sync-functions`. Without that setting it reports nothing.

    ## Why is this bad
    A function of a library in C++ or CUDA may wait for the GPU, and no source of Python shows it. Each call in a step
    makes the CPU wait for all work that it has queued, as `torch.cuda.synchronize()` does.

    ## When it is fine
    In code that rarely runs, and after the loop. `perflint trace` measures what a call costs.

    ## Bad
    ```python
    import torch
    from mylib import to_cpu  # sync-functions = ["mylib.to_cpu"]

    def train(model: torch.nn.Module, loader):
        for batch in loader:
            loss = model(batch.cuda()).sum()
            loss.backward()
            print(to_cpu(loss))
    ```

    ## Good
    ```python
    import torch
    from mylib import to_cpu  # sync-functions = ["mylib.to_cpu"]

    def train(model: torch.nn.Module, loader):
        for batch in loader:
            loss = model(batch.cuda()).sum()
            loss.backward()
        print(to_cpu(loss))
    ```

    ## Fix safety
    No fix: perflint does not know what the function does.

    ## How a GPU shows it
    `perflint trace` lists the call among the lines that wait.

    ## References
    - [sync-functions](../guide/settings.md#sync-functions)
    """

    code, name = "TPF137", "declared-sync"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("explicit-synchronize-gpt", "explicit-synchronize-gpt-host-work", "explicit-synchronize-policy")
    costs = None
