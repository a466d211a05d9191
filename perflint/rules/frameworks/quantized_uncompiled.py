"""TPF947: a model that torchao quantizes, and nothing compiles."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._memory.flows import made
from perflint.rules._methods import serves_tests
from perflint.rules._project_text import project_says
from perflint.rules.base import Calls, CallSite, Mentions, Rule, shown

_COMPILES = re.compile(r"torch\.compile\b|(?<!\bre\.)\bcompile\(|torch_compile|aot_compile|torch\.export\b|tensorrt")
_FROM = ("torchao.float8", "torchao.quantization", "torchao", "torchao.quantization.quant_api")
_NAMES = tuple(f"{home}.{name}" for home in _FROM for name in ("convert_to_float8_training", "quantize_"))


class QuantizedUncompiled(Rule):
    """A model is quantized by torchao, and runs without `torch.compile`.

    ## What it does
    Finds `convert_to_float8_training(…)` and `quantize_(…)` of torchao in projects that compile nothing.

    ## Why is this bad
    torchao writes scales, casts and products as separate operators, and leaves it to the compiler to fuse them.
    Eagerly, each is a kernel of its own that reads and writes the whole tensor: the model is slower than before.
    Eight blocks of width 4096 take 3.7 × as long on an H200 in float8 as compiled (10.8 ms, not 2.9). In
    [torchao#685](https://github.com/pytorch/ao/issues/685), a feed-forward layer of width 1024 took 3.14 ms in
    float16, 7.17 in float8 and 2.61 in compiled float8, on an L20.

    ## When it is fine
    - The callers compile the model, or a library such as vLLM does. Projects with `torch.compile` are not reported.
    - Memory is the reason, not time.
    - Models on the CPU: files that name no device are not reported.
    - Formats with kernels of their own, such as four-bit weights for one token at a time.

    ## Bad
    ```python
    import torch
    from torchao.float8 import convert_to_float8_training

    def build(model: torch.nn.Module):
        return convert_to_float8_training(model.cuda())
    ```

    ## Good
    ```python
    import torch
    from torchao.float8 import convert_to_float8_training

    def build(model: torch.nn.Module):
        return torch.compile(convert_to_float8_training(model.cuda()))
    ```

    ## Fix safety
    No fix: compiling takes time at the start, and the caller may do it.

    ## How a GPU shows it
    A profile shows many short elementwise kernels around each product.

    ## References
    - [torchao: float8 training](https://github.com/pytorch/ao/tree/main/torchao/float8)
    - [torchao: quantization](https://docs.pytorch.org/ao/stable/quick_start.html)
    """

    code, name = "TPF947", "quantized-uncompiled"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = ("quantized-uncompiled",)
    costs = "eager, a float8 forward pass of eight blocks of width 4096 is {0} slower than compiled"
    listens = (Calls(*_NAMES),)
    mentions = Mentions(pattern="(?i:cuda|device|gpu|accelerat)")

    def check(self, site: CallSite) -> Iterator[Finding]:
        if serves_tests(site.model) or project_says(site.model, _COMPILES) or _has_four_bits(site):
            return
        yield self.finding(
            site,
            f"{shown(site)} makes a model that is slower than before unless it is compiled",
            confidence=Confidence.MEDIUM,
            # It is called once, and each step pays for it.
            heat=Heat.HOT,
            help="Compile the model afterwards: `model = torch.compile(model)`.",
        )


def _has_four_bits(site: CallSite) -> bool:
    """True for weights of four bits, which have kernels of their own."""
    config = site.argument("config", 1)
    return config is not None and "nt4" in site.text(made(site.model, config))
