"""TPF377: TorchScript's freezing as a way to fast inference."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.rules.legacy._named import named

_FREEZES = frozenset({"torch.jit.freeze", "torch.jit.optimize_for_inference", "torch.jit.run_frozen_optimizations"})


class FrozenTorchscript(Rule):
    """A model is frozen by TorchScript for inference.

    ## What it does
    Finds `torch.jit.freeze`, `torch.jit.optimize_for_inference` and `torch.jit.run_frozen_optimizations`.

    ## Why is this bad
    They turn parameters into constants, fold batch norms into convolutions and fuse the operations
    that TorchScript's fuser supports. TorchScript is deprecated, and they are too. `torch.compile`
    with freezing does the same for today's operators, generates kernels for the GPU of the machine,
    and can use CUDA graphs.

    ## When it is fine
    The frozen file is loaded by C++ or on a phone, until `torch.export` can replace it there.

    ## Bad
    ```python
    import torch

    def prepare(model: torch.nn.Module, x: torch.Tensor):
        scripted = torch.jit.trace(model.eval(), x)
        return torch.jit.optimize_for_inference(torch.jit.freeze(scripted))
    ```

    ## Good
    ```python
    import torch

    def prepare(model: torch.nn.Module):
        return torch.compile(model.eval(), mode="reduce-overhead")
    ```

    ## Fix safety
    No fix: the result is another kind of object.

    ## How a GPU shows it
    A trace confirms the finding if the line ran under a torch that deprecates TorchScript.

    A profile shows `prim::` operators and kernels of TorchScript's fuser instead of `triton_…`.

    ## References
    - [torch.jit.freeze](https://docs.pytorch.org/docs/stable/generated/torch.jit.freeze.html): "TorchScript is
      deprecated"
    - [AOTInductor](https://docs.pytorch.org/docs/stable/torch.compiler_aot_inductor.html)
    """

    code, name = "TPF377", "frozen-torchscript"
    effect, severity = Effect.COMPUTE, Severity.INFO
    listens = (Files("jit", also=tuple(sorted(name.rpartition(".")[2] for name in _FREEZES))),)
    since = (2, 9)

    def check(self, site: FileSite) -> Iterator[Finding]:
        for use in named(site.model, _FREEZES):
            yield self.finding(
                site,
                f"{shown(site, use)} freezes a model for TorchScript, which is deprecated",
                heat=Heat.WARM,
                span=site.model.source.span(use),
                help="Use `torch.compile` with `torch._inductor.config.freezing`, or `torch.export` and AOTInductor.",
            )
