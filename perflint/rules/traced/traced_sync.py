"""TPF199: a wait in a trace that no rule reports."""

from __future__ import annotations

from perflint.findings import Effect, Severity
from perflint.rules.base import TracedRule


class TracedSync(TracedRule):
    """
    ## What it does
    Reports the lines on which a traced program waited for the GPU, if no other rule reports them.
    It needs `perflint check --trace FILE`; without a trace it reports nothing. On MPS and XPU it reports operators for
    which the GPU has no kernel: PyTorch warns of them, copies their inputs to the CPU, and waits.

    ## Why is this bad
    The CPU cannot launch the next kernels while it waits. The cost is not the wait itself but the
    time in which the GPU is idle afterwards. The trace measures that time, and it decides the
    severity.

    ## When it is fine
    The GPU has other work meanwhile: the verdict then says "confirmed, no cost". The wait is
    intended: `with perflint.allow_sync("reason")` in the program states that, and it is not
    reported. Waits outside the recorded steps, waits of whole modules on their way to the GPU and
    waits of the compiler are not reported either.

    ## Bad
    ```python
    import torch

    def reward(env, actions: torch.Tensor):
        return env.step(actions)  # an extension that reads `actions` on the CPU
    ```

    ## Good
    ```python
    import torch

    def reward(env, actions: torch.Tensor):
        return env.step_on_device(actions)
    ```

    ## Fix safety
    No fix: the cure depends on the code that waits.

    ## How a GPU shows it
    `perflint trace` records it: torch's sync debug mode reports the wait, and the profiler the time in
    which the GPU was idle after it. Operators that fall back to the CPU are those of PyTorch's own warnings.

    ## References
    - [torch.cuda.set_sync_debug_mode](https://docs.pytorch.org/docs/stable/generated/torch.cuda.set_sync_debug_mode.html)
    """

    code, name = "TPF199", "traced-sync"
    effect, severity = Effect.SYNC, Severity.INFO
