"""TPF901: TorchScript, which is deprecated."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.rules.legacy._named import named
from perflint.semantics.model import Model

_NAMES = "script trace trace_module script_method ScriptModule ScriptFunction interface"
_DEPRECATED = frozenset(f"torch.jit.{name}" for name in _NAMES.split())


class Torchscript(Rule):
    """Code is compiled by TorchScript.

    ## What it does
    Finds `torch.jit.script`, `torch.jit.trace`, `trace_module`, `script_method` and classes that inherit
    from `ScriptModule`, as calls and as decorators.

    ## Why is this bad
    TorchScript is deprecated and gets no new operators, fusions or Python features; torch warns
    since 2.10, and on Python 3.14 it "is not supported and may break". `torch.compile` does not
    look into scripted modules: a graph ends before each and begins anew after it (scripted
    functions are traced through). Helpers that are scripted for speed prevent `torch.compile` from
    being used on the whole model. It is a warning because TorchScript will be removed, not because
    of what it costs: on an H200, a scripted block cost a compiled forward 3%, which may be chance,
    and after eager blocks a scripted helper was faster than a compiled one. Decorators are
    warnings, calls are reported by the pedantic profile.

    ## When it is fine
    A program in C++ or on a phone loads the file: move to `torch.export` with AOTInductor or
    ExecuTorch when you can. In files that save something, only decorated functions of the top level
    are reported by the default profile: they are not saved by themselves. `script_if_tracing`,
    `torch.jit.is_scripting()`, `torch.jit.ignore` and similar names do nothing by themselves. A scripted
    elementwise function can still be faster than a compiled one for very small inputs: measure.

    ## Bad
    ```python
    import torch

    @torch.jit.script
    def gelu(x: torch.Tensor) -> torch.Tensor:
        return x * 0.5 * (1.0 + torch.erf(x / 1.41421))
    ```

    ## Good
    ```python
    import torch

    @torch.compile
    def gelu(x: torch.Tensor) -> torch.Tensor:
        return x * 0.5 * (1.0 + torch.erf(x / 1.41421))
    ```

    ## Fix safety
    No fix: `torch.compile` compiles when it is first called, for the shapes that it gets, and saves
    nothing.

    ## How a GPU shows it
    A trace confirms the finding if the line ran under a torch that deprecates TorchScript.

    A profile names the fused kernels of TorchScript's fuser (`fused_mul_add…`, `nvfuser…`); those of
    `torch.compile` are named `triton_…`. `TORCH_LOGS=graph_breaks` prints GB4695 for scripted modules.

    ## References
    - [TorchScript](https://docs.pytorch.org/docs/stable/jit.html): "TorchScript is deprecated, please use
      torch.export instead"
    - [torch.export](https://docs.pytorch.org/docs/stable/export.html)
    """

    code, name = "TPF901", "torchscript"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (Files("jit"),)
    since = (2, 9)
    is_deprecation = True

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        saved = model.says(".save(", "torch.jit.save")
        for use in named(model, _DEPRECATED):
            yield self.finding(
                site,
                f"{shown(site, use)} is TorchScript, which is deprecated",
                confidence=Confidence.LOW if saved and not _is_of_function(model, use) else Confidence.HIGH,
                severity=Severity.INFO if isinstance(model.parent(use), ast.Call) else None,
                heat=Heat.WARM,
                span=model.source.span(use),
                help="To run faster: `torch.compile`. To run elsewhere: `torch.export`, AOTInductor, ExecuTorch.",
            )


def _is_of_function(model: Model, use: ast.expr) -> bool:
    """True for the decorator of a function of the top level, which is not saved by itself."""
    function = model.parent(use)
    return isinstance(function, ast.FunctionDef) and isinstance(model.parent(function), ast.Module)
