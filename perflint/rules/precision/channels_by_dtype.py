"""TPF374: layer sizes that eight-bit products do not support, or support only slowly."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._memory.flows import made
from perflint.rules._numbers import integer
from perflint.rules._weights import is_published
from perflint.rules.base import Calls, CallSite, Files, FileSite, Rule, shown
from perflint.rules.placement import FACTORIES
from perflint.rules.precision._region import EIGHT_BITS, Format, region
from perflint.rules.precision._sizes import Layer, Layers, Size, layers, padded
from perflint.rules.worth import sentence
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name, path_of, walk


class ChannelsByDtype(Rule):
    """
    ## What it does
    In files that compute in INT8 or FP8, finds sizes that do not suit those formats: in INT8 a
    linear layer's `in_features` and a convolution's channels that are not a multiple of 32, in FP8
    a linear layer's sizes that are not a multiple of 16.

    Evidence of INT8 is `torch._int_mm`, and imports of `pytorch_quantization`,
    `modelopt.torch.quantization`, or of the INT8 classes of torchao and bitsandbytes; evidence of
    FP8 is the dtypes `torch.float8_*`, `transformer_engine`, `torchao.float8`, and imports of the
    classes of torchao that convert weights and activations to FP8. Sizes for bfloat16, float16 and
    TF32 are reported by dims-not-multiple, which reports nothing in such files.

    ## Why is this bad
    Eight-bit tiles are wider. On an H200 an INT8 matmul over 1008 or 1040 inner elements took 1.4
    to 1.5 × as long as one over 1024 or 1056; the outer size made it no slower. Convolutions in
    INT8 use layouts of blocks of 32 channels, which smaller counts leave half empty. FP8 products
    raise an error: `torch._scaled_mm` raises unless both sizes of the weight are multiples of 16,
    so that the layer fails, or stays in bfloat16 if the library skips it.

    ## When it is fine
    - INT8 on the CPU (`torch.ao.quantization`): other instructions, other sizes, not reported.
    - Layers that stay in higher precision, usually the first and the last. Image channels,
      features, small numbers of classes and sizes below 32 are not reported.
    - Sizes that a published checkpoint prescribes: low confidence.

    ## Bad
    ```python
    import torch
    from torch import nn
    from torchao.float8 import convert_to_float8_training

    model = nn.Sequential(nn.Linear(1024, 1000), nn.GELU(), nn.Linear(1000, 1024))
    convert_to_float8_training(model)
    ```

    ## Good
    ```python
    import torch
    from torch import nn
    from torchao.float8 import convert_to_float8_training

    model = nn.Sequential(nn.Linear(1024, 1008), nn.GELU(), nn.Linear(1008, 1024))
    convert_to_float8_training(model)
    ```

    ## Fix safety
    No fix: a model with another width is another model.

    ## How a GPU shows it
    The timeline shows bfloat16 kernels instead of INT8 or FP8 ones, or slower INT8 ones.
    `benchmarks/rules/steps.py int8-step` times whole steps.

    A trace records products in eight bits, and the sizes of the layers that ran. Other sizes refute the
    finding.

    ## References
    - [NVIDIA: matrix multiplication background]
      (https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html)
    """

    code, name = "TPF374", "channels-by-dtype"
    effect, severity = Effect.COMPUTE, Severity.WARNING
    measured = ("int8-step-1000", "int8-step-1008", "int8-step-2008")
    costs = None
    listens = (Files("Linear", "Conv", also=EIGHT_BITS), Calls("torch._scaled_mm"))

    def check(self, site: FileSite | CallSite) -> Iterator[Finding]:
        if isinstance(site, CallSite):
            yield from self._product(site)
        else:
            yield from self._layers(site)

    def _product(self, site: CallSite) -> Iterator[Finding]:
        for operand in site.node.args[:2]:
            sizes = [each for each in _sizes_of(site.model, operand) if each % 16]
            if sizes:
                yield self.finding(
                    site,
                    f"{shown(site, operand)} has a size of {sizes[0]}: products in FP8 need multiples of 16",
                    confidence=Confidence.MEDIUM,
                    heat=Heat.HOT,
                    span=site.model.source.span(operand),
                    help=f"Pad it to {sizes[0] + -sizes[0] % 16}.",
                )

    def _layers(self, site: FileSite) -> Iterator[Finding]:
        around = region(site.model)
        if around.eight_bits is None:
            return
        published = is_published(site.model)
        found = layers(site.model)
        converted = _converted(site.model) if around.both_eight_bits else {}
        for layer in found.all:
            own = _format_of(site.model, layer, converted) if around.both_eight_bits else around.eight_bits
            format = own or around.eight_bits
            multiple = 32 if format is Format.INT8 else 16
            misfits = _misfits(layer, found, format, multiple)
            if not misfits:
                continue
            yield self.finding(
                site,
                _message(site, layer, misfits, format, multiple),
                span=site.model.source.span(layer.call),
                # It is built once, but runs with each forward pass.
                heat=Heat.HOT,
                severity=Severity.INFO if layer.kind == "convolution" else self.severity,
                confidence=Confidence.LOW if published or own is None else Confidence.MEDIUM,
                help=f"Use {_padded(misfits, multiple)}.",
                cost=sentence(_COST, *self.measured) if format is Format.INT8 and layer.kind == "linear" else None,
            )


def _sizes_of(model: Model, node: ast.expr) -> list[int]:
    """The sizes, as far as they are written out, of the new matrix that a value is, also transposed or cast."""
    made_of, seen = made(model, node), set[ast.expr]()
    while isinstance(made_of, (ast.Call, ast.Attribute)) and made_of not in seen:
        seen.add(made_of)
        if isinstance(made_of, ast.Call) and model.target(made_of) in FACTORIES:
            sizes = [integer(model, each) for each in made_of.args]
            return [each for each in sizes if each is not None] if len(sizes) == 2 else []
        owner = made_of.func if isinstance(made_of, ast.Call) else made_of
        if not isinstance(owner, ast.Attribute):
            return []
        made_of = made(model, owner.value)
    return []


def _converted(model: Model) -> dict[str, set[Format]]:
    """The formats that a file converts models to, by their names: `quantize_(first, Int8…Config())`."""
    found: dict[str, set[Format]] = {}
    for call in model.nodes(ast.Call):
        path = path_of(call.args[0]) if call.args else ""
        if path:
            others = [call.func, *call.args[1:], *(keyword.value for keyword in call.keywords)]
            words = {name.lower() for part in others for name in _words(part)}
            for format, word in ((Format.INT8, "int8"), (Format.FLOAT8, "float8")):
                if any(word in name for name in words):
                    found.setdefault(path, set()).add(format)
    return found


def _words(node: ast.expr) -> Iterator[str]:
    for part in walk(node):
        if isinstance(part, (ast.Name, ast.Attribute)):
            yield part.id if isinstance(part, ast.Name) else part.attr


def _format_of(model: Model, layer: Layer, converted: dict[str, set[Format]]) -> Format | None:
    """The format of the model that a layer is a part of; None if the file does not show it."""
    formats: set[Format] = set()
    for outer in model.ancestors(layer.call):
        if isinstance(outer, ast.ClassDef):
            made = [each for each in model.nodes(ast.Assign) if last_name(each.value) == outer.name]
            names = [path_of(target) for each in made for target in each.targets]
        else:
            names = [path_of(target) for target in outer.targets] if isinstance(outer, ast.Assign) else []
        formats |= {format for name in names for format in converted.get(name, ())}
    return formats.pop() if len(formats) == 1 else None


def _misfits(layer: Layer, found: Layers, format: Format, multiple: int) -> list[Size]:
    """The widths of a layer that the format takes badly."""
    if layer.is_tiny or layer.kind == "attention" or (layer.kind == "convolution" and format is not Format.INT8):
        return []
    sizes = layer.sizes
    if format is Format.INT8 and layer.kind == "linear":
        sizes = (layer.inner,) if layer.inner is not None else ()
    wrong = [size for size in sizes if size.value % multiple and found.is_width(size)]
    return list({size.value: size for size in wrong}.values())


_COST = "an INT8 forward pass with 1000 inputs in each layer is {0} slower than with 1024"


def _padded(misfits: list[Size], multiple: int) -> str:
    return " and ".join(dict.fromkeys(str(padded(size.value, multiple)) for size in misfits))


def _message(site: FileSite, layer: Layer, misfits: list[Size], format: Format, multiple: int) -> str:
    sizes = " and ".join(f"{size.name} {size.value}" for size in misfits)
    many = "is not a multiple" if len(misfits) == 1 else "are not multiples"
    return (
        f"`{site.text(layer.call.func)}(…)`: {sizes} {many} of {multiple}: in {format.value}, {_reason(layer, format)}"
    )


def _reason(layer: Layer, format: Format) -> str:
    if format is Format.FLOAT8:
        return "matmuls refuse other sizes, so the layer fails or stays in higher precision"
    if layer.kind == "convolution":
        return "convolutions compute whole blocks of 32 channels"
    return "the kernels for other inner sizes are slower"
