"""TPF199: a wait that a trace has seen and no rule."""

from __future__ import annotations

from perflint.findings import Effect, Severity
from perflint.rules.base import TracedRule


class TracedSync(TracedRule):
    """
    ## What it does
    Reports the lines on which a traced program waited for the GPU and no other rule says so. It needs
    `perflint check --trace FILE`; without a trace it is silent.

    ## Why is this bad
    The CPU cannot launch the next kernels while it waits. What that costs is not the wait itself but
    the time in which the GPU has nothing to do afterwards; the trace says how much, and the severity
    follows it.

    ## When it is fine
    Where the GPU has work meanwhile: the verdict then says "confirmed, no cost". Where the wait is
    meant: `with perflint.allow_sync("reason")` in the program says so, and it is not reported. Waits
    outside the recorded steps, of whole modules on their way to the GPU and of the compiler are not
    reported either.

    ## Bad
    ```python
    import torch

    def reward(env, actions: torch.Tensor):
        return env.step(actions)  # an extension that reads `actions` on the host
    ```

    ## Good
    ```python
    import torch

    def reward(env, actions: torch.Tensor):
        return env.step_on_device(actions)
    ```

    ## Fix safety
    No fix: what to do depends on the code that waits.

    ## How a GPU shows it
    `perflint trace` records it: torch's sync debug mode reports the wait, and the profiler the time in
    which the GPU was idle after it.

    ## References
    - [torch.cuda.set_sync_debug_mode](https://docs.pytorch.org/docs/stable/generated/torch.cuda.set_sync_debug_mode.html)
    """

    code = "TPF199"
    name = "traced-sync"
    effect = Effect.SYNC
    severity = Severity.INFO
