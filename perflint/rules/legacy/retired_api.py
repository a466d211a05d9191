"""TPF906: parts of torch and packages that are retired, and what replaces them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules._methods import in_tests
from perflint.rules._names import FSDP
from perflint.rules._sources import sources
from perflint.rules.base import CallSite, Files, FileSite, Rule, shown
from perflint.rules.placement import goes_to_cuda, move
from perflint.semantics.structure import calls_in, last_name

_QUANTIZERS = tuple(
    f"torch.{home}quantization.{name}"
    for home in ("", "ao.")
    for name in ("quantize_dynamic", "quantize", "prepare", "prepare_qat", "convert", "quantize_qat")
)
_IPEX = ("intel_extension_for_pytorch.optimize", "intel_extension_for_pytorch.llm.optimize")
_RETIRED = {
    **dict.fromkeys(
        _QUANTIZERS,
        (
            "belongs to the eager quantization that torch gives up, with kernels for the CPU alone",
            "`torchao.quantize_`",
        ),
    ),
    **dict.fromkeys(_IPEX, ("belongs to a package whose development has ended", "torch itself, which knows `xpu`")),
    **dict.fromkeys(FSDP, ("is the first version of FSDP, which is kept as it is", "`fully_shard`")),
}


class RetiredApi(Rule):
    """Code uses a part of torch, or a package, that gets no faster any more.

    ## What it does
    Finds the eager quantization of `torch.ao.quantization`, `intel_extension_for_pytorch.optimize` and
    `FullyShardedDataParallel`.

    ## Why is this bad
    New kernels, formats and the work with `torch.compile` go to their successors: torchao, `torch.xpu` in torch itself,
    `fully_shard`. Nothing is lost today, so it is information. Eager quantization of a model that is on the GPU is
    another matter: its kernels exist for the CPU alone, so that the call of the model fails. It is a warning because
    of that.

    ## When it is fine
    - Models for the CPU, and releases of torch without the successor.
    - Checkpoints that other programs read in the old form.

    ## Bad
    ```python
    import torch

    def build(model: torch.nn.Module):
        return torch.ao.quantization.quantize_dynamic(model.cuda(), {torch.nn.Linear}, dtype=torch.qint8)
    ```

    ## Good
    ```python
    import torch
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    def build(model: torch.nn.Module):
        quantize_(model.cuda(), Int8WeightOnlyConfig())
        return torch.compile(model)
    ```

    ## Fix safety
    No fix: the successors have other forms, and other checkpoints.

    ## How a GPU shows it
    The call of a model that was quantized for the CPU raises "Could not run 'quantized::linear_dynamic'".

    ## References
    - [torch.ao.quantization](https://docs.pytorch.org/docs/stable/quantization.html): deprecated in favour of torchao
    - [fully_shard](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html)
    - [Intel Extension for PyTorch](https://github.com/intel/intel-extension-for-pytorch): end of life
    """

    code, name = "TPF906", "retired-api"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (Files("quantization", "intel_extension", "FullyShardedDataParallel", "ipex"),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        for node in () if in_tests(model) else model.nodes(ast.Call):
            target = model.target(node) or model.symbols.full_name(node.func)
            if target not in _RETIRED:
                continue
            what, successor = _RETIRED[target]
            is_moved = target in _QUANTIZERS and _is_moved(model.call(node))
            yield self.finding(
                model.call(node),
                f"{shown(site, node.func)} {what}" + (", and the model is on the GPU" if is_moved else ""),
                severity=Severity.WARNING if is_moved else Severity.INFO,
                heat=Heat.WARM,
                help=f"Its successor is {successor}.",
            )


def _is_moved(site: CallSite) -> bool:
    """True if the model that is quantized was moved to a GPU."""
    given = site.argument("model", 0)
    found = [] if given is None else sources(site.model, given)
    moves = (move(site.model.call(each)) for each in calls_in(*found) if last_name(each) in ("cuda", "to"))
    return any(moved is not None and goes_to_cuda(site, moved) for moved in moves)
