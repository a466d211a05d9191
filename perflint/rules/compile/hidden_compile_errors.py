"""TPF713: settings that hide failures of torch.compile."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules._methods import in_tests
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.semantics.symbols import Symbols

_LIMITS = {
    "cache_size_limit": 64,
    "recompile_limit": 64,
    "accumulated_cache_size_limit": 2048,
    "accumulated_recompile_limit": 2048,
}
"""From these numbers on, a limit is never reached; torch's own are 8 and 256."""

_CONFIG = "torch._dynamo.config."


class HiddenCompileErrors(Rule):
    """A setting hides failures of torch.compile.

    ## What it does
    Finds `torch._dynamo.config.suppress_errors = True`, and `recompile_limit` or `cache_size_limit`
    (and their accumulated variants) set to many times torch's own 8 (256).

    ## Why is this bad
    With `suppress_errors` a function that fails to compile runs eagerly, with a warning that is
    easy to miss: the program is as slow as without `torch.compile`, plus the compile time. With a
    limit of thousands a function is compiled for each value that it gets, seconds each time,
    instead of a report that a guard keeps failing; and each call tries all guards until one fits.

    ## When it is fine
    During the investigation of a failure. In tests: test files are not reported. A limit of a few
    dozen for code that is meant to have that many variants.

    ## Bad
    ```python
    import torch
    import torch._dynamo

    torch._dynamo.config.suppress_errors = True
    torch._dynamo.config.cache_size_limit = 10_000
    ```

    ## Good
    ```python
    import torch

    @torch.compiler.disable
    def what_cannot_be_compiled(x: torch.Tensor) -> list[float]:
        return x.tolist()

    @torch.compile(dynamic=True)
    def step(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * 2
    ```

    ## Fix safety
    No fix: without the setting the failure becomes visible.

    ## How a GPU shows it
    A trace confirms the finding if an error of the compiler was hidden, or if a function was compiled again more often
    than the default permits. It is refuted if functions were compiled, and nothing of this happened.

    `TORCH_LOGS=recompiles` prints each compilation with the guard that failed; a trace of perflint
    records them. A profile of a function that failed has no compiled region.

    ## References
    - [Recompilation](https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html)
    - [torch.compile troubleshooting](https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html)
    """

    code, name = "TPF713", "hidden-compile-errors"
    effect, severity = Effect.RECOMPILE, Severity.INFO
    listens = (Files("_dynamo", also=("suppress_errors", "_limit")),)
    since = (2, 0)

    def check(self, site: FileSite) -> Iterator[Finding]:
        if in_tests(site.model):
            return
        names = site.model.symbols
        for assignment in site.model.nodes(ast.Assign):
            for target in assignment.targets:
                what = _hides(names, target, assignment.value) if isinstance(target, ast.Attribute) else ""
                if what:
                    yield self.finding(
                        site,
                        f"{shown(site, assignment)} {what}",
                        heat=Heat.WARM,
                        span=site.model.source.span(assignment),
                        help=(
                            "Mark code that cannot be compiled with `@torch.compiler.disable`, and pass `dynamic=True`"
                            " or tensors for values that change."
                        ),
                    )


def _hides(names: Symbols, target: ast.Attribute, value: ast.expr) -> str:
    name = names.full_name(target)
    if not name.startswith(_CONFIG):
        return ""
    setting = name.removeprefix(_CONFIG)
    try:
        given = _number(value)
    except OverflowError:
        given = float("inf")
    if setting == "suppress_errors" and isinstance(value, ast.Constant) and value.value is True:
        return "silently runs code eagerly that fails to compile"
    if setting in _LIMITS and given is not None and given >= _LIMITS[setting]:
        return "lets a function compile again for each new value"
    return ""


def _number(node: ast.expr) -> float | None:
    """The number that an expression spells: `10_000`, `10 ** 4`, `1e4`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return float(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Pow, ast.Mult, ast.LShift)):
        left, right = _number(node.left), _number(node.right)
        if left is None or right is None or right > 64:
            return None
        if isinstance(node.op, ast.Mult):
            return left * right
        return left**right if isinstance(node.op, ast.Pow) else left * 2**right
    if isinstance(node, ast.Attribute) and node.attr == "maxsize":
        return float("inf")
    return None
