"""TPF703: printing, logging and formatting in compiled code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence
from perflint.rules._operators import operators
from perflint.rules.base import Calls, CallSite, FormatSite, device_confidence, shown
from perflint.rules.compile._breaks import Break, BreakRule, guarded, in_compiled
from perflint.rules.compile._device_blind import device_blind

_LEVELS = ("debug", "info", "warning", "error", "critical", "exception", "log")
_WRITES = operators("graphs", "writes")
_TEXTS = ("f-string", "str", "repr", "format", "str.format", "%")
_SETTINGS = ("reorderable_logging_functions", "ignore_logger_methods", "ignore_logging_functions")


class PrintOrLog(BreakRule):
    """A compiled function prints or logs.

    ## What it does
    Finds `print`, `warnings.warn` and the calls of Python's loggers in functions that run under
    `torch.compile`, and tensors that these turn into text.

    ## Why is this bad
    A graph holds only tensor operations. `torch.compile` ends it, lets Python print, and begins
    another: the code before and after it is not fused and its tensors go through memory. That is
    true for a literal text too, and for `logger.debug` at a disabled level. One graph break by a
    `print` in a forward of eight small blocks made it 15% slower on an H200.

    ## When it is fine
    Under an `if` that is false: only the branch that is taken is traced, so calls in branches are
    reported by the audit profile only. In functions under `@torch.compiler.disable`, and in
    branches that `torch.compiler.is_compiling()` hides from the compiler. If the file sets
    `torch._dynamo.config.reorderable_logging_functions` or `ignore_logging_functions`. The message
    of an exception.

    ## Bad
    ```python
    import torch

    @torch.compile
    def forward(x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(x)
        print("relu done")
        return x * 2
    ```

    ## Good
    ```python
    import torch

    @torch.compile
    def forward(x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(x)
        if not torch.compiler.is_compiling():
            print("relu done")
        return x * 2
    ```

    ## Fix safety
    No fix: only the author can say whether the text is still needed.

    ## How a GPU shows it
    A trace confirms the finding if a graph ended at this line, or if torch.compile gave up on the function here. It is
    refuted if torch.compile traced the line and no graph ended there.

    `TORCH_LOGS=graph_breaks` prints "Failed to trace builtin operator `print`" (GB0059) or
    "logging.Logger method not supported for non-export cases" (GB0291).

    ## References
    - [Working with graph breaks](https://docs.pytorch.org/docs/stable/compile/programming_model.graph_breaks_index.html)
    - [Graph break GB0291](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0291.html)
    """

    code, name = "TPF703", "print-or-log"
    measured = ("break-once-print", "break-once-debug")
    costs = "one such graph break makes a compiled forward of eight small blocks {0} slower"
    listens = (Calls(*_WRITES), FormatSite)
    mentions = in_compiled(without=_SETTINGS)

    def at(self, site: CallSite | FormatSite) -> Iterator[Break]:
        cure = "Move it out of the compiled call, or guard it: `if not torch.compiler.is_compiling():`."
        if isinstance(site, CallSite):
            yield Break(site.node, f"{shown(site)} writes output", cure,
                        guarded(site.model, site.node, Confidence.HIGH))  # fmt: skip
            return
        confidence = device_confidence(device_blind(site).value(site.node))
        if confidence is not None and site.sink in _TEXTS and not _is_written(site):
            yield Break(site.node, f"{shown(site)} is turned into text", cure,
                        guarded(site.model, site.node, confidence))  # fmt: skip


def _is_written(site: FormatSite) -> bool:
    """True if the text goes to a call that is reported itself."""
    return any(isinstance(outer, ast.Call) and site.model.target(outer) in _WRITES
               for outer in site.model.ancestors(site.node))  # fmt: skip
