"""TPF983: a comment that silences findings and does not say why."""

from __future__ import annotations

from perflint.findings import Effect, Severity
from perflint.rules.base import CommentRule


class SuppressionWithoutReason(CommentRule):
    """
    ## What it does
    Reports `# perflint: ignore` comments without a text behind them. It is on only with the setting
    `require-reasons = true`.

    ## Why is this bad
    A reader cannot tell if the cost was weighed or the warning was in the way. With a reason, the comment can be
    reviewed, and removed when the reason is gone. It is a warning because it
    is a fault in the comment; no time is lost.

    ## When it is fine
    Without the setting `require-reasons`, the rule reports nothing.

    ## Bad
    ```python
    import torch

    def log(loss: torch.Tensor) -> float:
        return loss.item()  # perflint: ignore[TPF101]
    ```

    ## Good
    ```python
    import torch

    def log(loss: torch.Tensor) -> float:
        return loss.item()  # perflint: ignore[TPF101] once an epoch
    ```

    ## Fix safety
    No fix: only the author knows the reason.

    ## How a GPU shows it
    It does not: a comment costs no time.

    ## References
    - [Suppressions](../guide/suppressions.md)
    """

    code, name = "TPF983", "suppression-without-reason"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
