"""TPF107: checking a GPU tensor for NaN or infinity."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Effect, Finding, Severity
from perflint.rules.base import Calls, CallSite, Rule, TruthSite, often, shown
from perflint.rules.sync._asserts import async_assert
from perflint.rules.sync._nan import checks_for_nan
from perflint.rules.sync._scalars import (
    DEVICE_TO_HOST_COPY,
    NAN_CHECK,
    READS,
    SCALAR_READ,
    TRUTH_OF_TENSOR,
    read_at,
)
from perflint.rules.sync._tested import asked_together


class NanCheckPerStep(Rule):
    """
    ## What it does
    Finds branches, assertions and reads that ask whether a tensor holds NaN or infinity:
    `if torch.isnan(loss):`, `torch.isfinite(grad).all().item()`, `math.isnan(loss.item())`,
    `if (x != x).any():`.

    ## Why is this bad
    The check is cheap, but the wait for its answer is not: the CPU stops queuing work until the GPU
    has caught up. `if torch.isnan(loss)` made each training step of a 124 M parameter GPT 2%
    slower on an H200; a check of each parameter's gradient waits once per parameter.
    `isnan(x) or isinf(x)` waits twice; `isfinite(x)` waits once.

    ## When it is fine
    Every 100 steps, or once per epoch. As a safety check of an expensive run with long steps.
    CPU tensors and Python numbers.

    ## Bad
    ```python
    import torch

    def train(model: torch.nn.Module, loader, optimizer):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
            if torch.isnan(loss):
                raise FloatingPointError("loss is NaN")
            loss.backward()
            optimizer.step()
    ```

    ## Good
    ```python
    import torch

    def train(model: torch.nn.Module, loader, optimizer):
        bad = torch.zeros((), dtype=torch.bool, device="cuda")
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
            bad |= torch.isnan(loss)
            loss.backward()
            optimizer.step()
        return bad
    ```

    ## Fix safety
    In an `assert`, `torch._assert_async(condition)` is unsafe: it checks on the GPU
    without waiting; `assert not x.any()` becomes the check of `~x.any()`. When the condition fails, the
    error comes later, at some other call, and the
    CUDA context cannot be used any more. No fix is offered if the code around the `assert` handles its error,
    and none for findings of low confidence.

    Two checks in a row become one question: `torch.isnan(x).any() or torch.isinf(x).any()` becomes
    `torch.isnan(x).any() | torch.isinf(x).any()`. The answer is the same; the second check runs even if the first
    one decides. That is safe for checks of one tensor, and unsafe elsewhere, as truth-of-tensor describes.
    Other checks need a place to collect the answer, and only the author can choose it.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line; a profile shows `aten::isnan` or
    `aten::isfinite`, a reduction, and `aten::item` with a GPU-to-CPU copy.

    ## References
    - [torch.isfinite](https://docs.pytorch.org/docs/stable/generated/torch.isfinite.html)
    - [torch.amp.GradScaler](https://docs.pytorch.org/docs/stable/amp.html) looks for infinite gradients by itself
    """

    code, name = NAN_CHECK, "nan-check-per-step"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("nan-check-per-step-gpt", "nan-check-per-step-gpt-host-work", "nan-check-per-step-policy")
    listens = (TruthSite, Calls(*READS))
    replaces = (SCALAR_READ, "TPF103", TRUTH_OF_TENSOR, DEVICE_TO_HOST_COPY)

    def check(self, site: TruthSite | CallSite) -> Iterator[Finding]:
        read = read_at(site)
        if read is None or not checks_for_nan(site.model, read.node, read.tensor):
            return
        joined = asked_together(site.model, read)
        yield self.finding(
            site,
            f"{shown(site, read.node)} makes the CPU wait for the GPU to look for NaN or infinity{often(site)}",
            confidence=read.confidence,
            help=(
                "Keep a flag on the GPU (`bad |= ~torch.isfinite(t).all()`) and read it every 100 steps, or "
                "replace"
                " the values with `torch.nan_to_num`."
            ),
            fix=async_assert(site.model, read) or (None if joined is None else joined.fix),
        )
