"""TPF981: a comment that silences a finding which does not exist."""

from __future__ import annotations

from perflint.findings import Effect, Severity
from perflint.rules.base import CommentRule


class UnusedSuppression(CommentRule):
    """
    ## What it does
    Reports `# perflint: ignore`, `ignore-block` and `ignore-file` comments that silence no finding, and the codes in
    their lists that silence none. A code counts only if its rule is on for the file. A comment without a list
    counts only if all rules are on.

    ## Why is this bad
    The code around the comment has changed, or perflint has learned that the line is fine. The comment would
    silence the next finding of that line, which may be a real one. It is a warning because it
    is a fault in the comment; no time is lost.

    ## When it is fine
    Rules that need a trace are left out, because another trace may have their findings. If other
    versions of perflint check the same code, `ignore = ["unused-suppression"]` turns the rule off.

    ## Bad
    ```python
    import torch

    x = torch.ones(3)  # perflint: ignore[TPF101] the scheduler needs it
    ```

    ## Good
    ```python
    import torch

    x = torch.ones(3)
    ```

    ## Fix safety
    The fix is safe: it removes the comment, or the code from its list. No code changes. A comment that stands alone on
    its line is probably meant for the next one, so it gets no fix.

    ## How a GPU shows it
    It does not: a comment costs no time.

    ## References
    - [Suppressions](../guide/suppressions.md)
    """

    code, name = "TPF981", "unused-suppression"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
