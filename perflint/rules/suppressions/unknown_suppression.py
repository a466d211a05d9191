"""TPF982: a comment for perflint that perflint does not understand."""

from __future__ import annotations

from perflint.findings import Effect, Severity
from perflint.rules.base import CommentRule


class UnknownSuppression(CommentRule):
    """
    ## What it does
    Reports words in the list of a `# perflint: ignore` comment that name no rule, such as `TPF1O1` with a letter
    in place of a digit, codes without brackets (`# perflint: ignore TPF101`), comments such as `# perflint: disable`,
    which do not exist, and `ignore-block` on a line where no block begins.

    ## Why is this bad
    The comment silences nothing, although the author believes that it does. It is a warning because it
    is a fault in the comment; no time is lost.

    ## When it is fine
    Never: the name of a rule that an older version had is of no use, either.

    ## Bad
    ```python
    import torch

    def log(loss: torch.Tensor) -> float:
        return loss.item()  # perflint: ignore[TPF1O1] once an epoch
    ```

    ## Good
    ```python
    import torch

    def log(loss: torch.Tensor) -> float:
        return loss.item()  # perflint: ignore[TPF101] once an epoch
    ```

    ## Fix safety
    The fix is safe: it corrects a misspelt code or name, and removes other words that name no rule. No code changes.

    ## How a GPU shows it
    It does not: a comment costs no time.

    ## References
    - [Suppressions](../guide/suppressions.md)
    """

    code, name = "TPF982", "unknown-suppression"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
