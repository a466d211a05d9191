"""TPF907: switches of TF32 from before torch 2.9."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules._methods import in_tests
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.semantics.model import Model

_OLD = ("torch.backends.cuda.matmul.allow_tf32", "torch.backends.cudnn.allow_tf32")


class OldTf32Switches(Rule):
    """A program switches TF32 by the old names, or by old and new ones together.

    ## What it does
    Finds assignments to `torch.backends.cuda.matmul.allow_tf32` and `torch.backends.cudnn.allow_tf32`.

    ## Why is this bad
    Since torch 2.9 the switches are called `fp32_precision`. A program that sets both kinds for one library gets a
    RuntimeError when either is read, as `torch.compile` and autocast do: "you have used mix of the legacy and new
    APIs". It is a warning because of that error; the old names alone still work and cost nothing, so that they are
    information.

    ## When it is fine
    - torch before 2.9, which does not know the new names.

    ## Bad
    ```python
    import torch

    torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.backends.cuda.matmul.allow_tf32 = True
    ```

    ## Good
    ```python
    import torch

    torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.backends.cudnn.conv.fp32_precision = "tf32"
    ```

    ## Fix safety
    No fix: other files may read the old names, which then raises.

    ## How a GPU shows it
    It needs none: reading either switch raises.

    ## References
    - [TF32](https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices)
    """

    code, name = "TPF907", "old-tf32-switches"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (Files("allow_tf32"),)
    since = (2, 9)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        set_here = [*_set(model)]
        mixed = {full for full, _ in set_here if full not in _OLD}
        for full, statement in set_here if not in_tests(model) else ():
            library = full.rpartition(".")[0]
            is_mixed = any(other.startswith(library) for other in mixed)
            if full in _OLD:
                yield self.finding(
                    site,
                    f"{shown(site, statement)} is an old switch"
                    + (", and the file sets the new one, too: reading either raises an error" if is_mixed else ""),
                    severity=Severity.WARNING if is_mixed else Severity.INFO,
                    heat=Heat.WARM,
                    span=model.source.span(statement),
                    help=f"Set `{library}.{'conv.' if library.endswith('cudnn') else ''}fp32_precision` alone.",
                )


def _set(model: Model) -> Iterator[tuple[str, ast.Assign]]:
    """The switches of TF32 that a file sets, by their full names."""
    for statement in model.nodes(ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Attribute) and target.attr in ("allow_tf32", "fp32_precision"):
                yield model.symbols.full_name(target), statement
