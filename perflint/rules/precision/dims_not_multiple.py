"""TPF351: layer sizes that are not a multiple of a tensor-core tile."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._weights import is_published
from perflint.rules.base import Files, FileSite, Option, Rule
from perflint.rules.precision._project import Setting, setting
from perflint.rules.precision._region import Format
from perflint.rules.precision._sizes import LARGE, TINY, VOCABULARY, Layer, Layers, Size, layers, padded
from perflint.rules.worth import Grid, conditions, cost, grid, severity_of, slower


class DimsNotMultiple(Rule):
    """
    ## What it does
    Finds linear layers, convolutions and attention whose widths do not suit the dtype. In bfloat16
    or float16 (autocast, `.half()`, a dtype, a trainer's `precision`) widths must be a multiple of
    8; in float32 with TF32, which convolutions use by default, a multiple of 4.

    A width is a size that is the output of one layer of the file and the input of another, or a
    size of 512 and more. Sizes that data and task prescribe, such as image channels, features and
    small numbers of classes, are not reported, and neither are grouped convolutions and sizes below
    32.

    ## Why is this bad
    Tensor cores read tiles of 16 bytes, eight numbers of 16 bits. If a size is not a multiple of
    that, the product runs in slower kernels. On an H200 in bfloat16 a matmul with 1001 columns took
    4.4 × as long as one with 1008, with 1004 columns 2.5 ×; attention with heads of 50 took 1.9 ×
    as long as with heads of 56; a training step of width 1001 took 3.2 × as long as one of 1008. A
    training step of convolutions with 254 channels took 17% longer than with 256, 75% longer in
    channels_last, and in float32 with TF32 43% longer. More channels than needed are faster.

    ## When it is fine
    - In plain float32 without TF32 the width of a linear layer makes no difference (1.00): not
      reported. A whole step of linear layers of width 300 in bfloat16 took no longer than of 304:
      widths below 512 are reported by the pedantic profile only.
    - The first convolution's input channels, class and regression heads, depthwise convolutions,
      tiny layers: not reported. Padding 3 input channels to 8 is slower.
    - Sizes that a published checkpoint prescribes: low confidence.
    - Code in INT8 or FP8 has other multiples: see channels-by-dtype. Vocabularies: see
      vocab-not-padded.

    ## Bad
    ```python
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(784, 1001), nn.GELU(), nn.Linear(1001, 1001), nn.GELU(), nn.Linear(1001, 10))

    def train(batches, optimizer):
        for x, y in batches:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Good
    ```python
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(784, 1008), nn.GELU(), nn.Linear(1008, 1008), nn.GELU(), nn.Linear(1008, 10))

    def train(batches, optimizer):
        for x, y in batches:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    No fix: a model with another width is another model.

    ## How a GPU shows it
    The names of the matmul kernels contain `align1` or `align2`, or lack `tensorop`, `wgmma` or
    `s16816`. `benchmarks/rules/layers.py` times steps, `benchmarks/rules/sizes.py linear` a grid of sizes.

    A trace records the sizes, the format and the rows of each call. Other sizes, plain float32 or the
    CPU refute the finding; the measured ratio for the sizes and rows says whether it costs anything.

    ## References
    - [NVIDIA: matrix multiplication background]
      (https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html)
    - [Performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code, name = "TPF351", "dims-not-multiple"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = ("linear-step-1001-bfloat16", "width-764-step", "conv-step-254-bfloat16", "linear-step-300-bfloat16")
    costs = None
    listens = (Files("Linear", "Conv", "Attention", "Transformer"),)
    options = (
        Option("multiple", 8, "The number that divides good sizes; for TF32 it is half of this.", least=2),
        Option("smallest", TINY, "Layers with a smaller size are not reported.", least=1),
    )

    def check(self, site: FileSite) -> Iterator[Finding]:
        found = layers(site.model)
        if not any(self._misfits(layer, found, self.option("multiple")) for layer in found.all):
            return
        around = setting(site.model)
        if around.region.eight_bits and around.near:
            return
        published = is_published(site.model)
        for layer in found.all:
            finding = self._judge(site, layer, found, around, published)
            if finding is not None:
                yield finding

    def _judge(self, site: FileSite, layer: Layer, found: Layers, around: Setting, published: bool) -> Finding | None:
        format = _format(layer, around)
        if format is None:
            return None
        half = format is not Format.TF32
        whole = self.option("multiple")
        multiple = whole if half else whole // 2
        misfits = self._misfits(layer, found, multiple)
        # cuDNN's kernels for TF32 differ between multiples of 4 and of 8 in some sizes only.
        slight = not misfits and layer.kind == "convolution"
        if slight:
            misfits = self._misfits(layer, found, whole)
        if not misfits:
            return None
        sizes = " and ".join(f"{size.name} {size.value}" for size in misfits)
        cures = " and ".join(dict.fromkeys(str(padded(size.value, whole)) for size in misfits))
        estimate = _estimate(layer, format, misfits) if whole == 8 else None
        many = "is not a multiple" if len(misfits) == 1 else "are not multiples"
        return self.finding(
            site,
            f"`{site.text(layer.call.func)}(…)`: {sizes} {many} of {whole if slight else multiple}, so it runs slower "
            "kernels",
            span=site.model.source.span(layer.call),
            # It is built once, but runs with each forward pass.
            heat=Heat.HOT,
            severity=Severity.INFO if slight or _is_cheap(estimate) else _severity(layer, found, half, misfits),
            confidence=_confidence(layer, around, misfits, published),
            help=f"Use {cures}.",
            # The layers were measured in bfloat16: that says that the size matters in float16, not how much.
            cost=None if format is Format.FLOAT16 else _cost(estimate),
        )

    def _misfits(self, layer: Layer, found: Layers, multiple: int) -> list[Size]:
        """The widths of a layer that `multiple` does not divide, each once."""
        smallest = self.option("smallest")
        return [] if any(size.value < smallest for size in layer.sizes) else _indivisible(layer, found, multiple)


def _indivisible(layer: Layer, found: Layers, multiple: int) -> list[Size]:
    """The widths of a layer of any size that `multiple` does not divide, each once."""
    wrong = [
        size
        for size in layer.sizes
        if size.value % multiple and size.value < VOCABULARY and (layer.kind == "attention" or found.is_width(size))
    ]
    if not wrong and layer.heads is not None and layer.heads.value % multiple and layer.heads.value >= 8:
        return [layer.heads]
    return list({size.value: size for size in wrong}.values()) if layer.kind == "attention" else wrong


def _format(layer: Layer, around: Setting) -> Format | None:
    """In which format a layer computes; None if its sizes do not matter there."""
    if around.region.half is not None:
        return around.region.half
    if layer.kind == "convolution":
        return None if around.region.float32_convolutions else Format.TF32
    return Format.TF32 if Format.TF32 in around.region.formats else None


def _estimate(layer: Layer, format: Format, misfits: list[Size]) -> tuple[float, Grid] | None:
    """How much longer a linear layer takes than with its cure, where sizes like its own were measured.

    The time of convolutions and attention depends on sizes of images and sequences that the source
    does not show.
    """
    multiple = 4 if format is Format.TF32 else 8
    if layer.kind != "linear" or layer.inner is None or layer.outer is None:
        return None
    if sum(size.value % multiple > 0 for size in layer.sizes) != len(misfits):
        return None
    which = "both" if len(misfits) > 1 else "inner" if misfits[0] is layer.inner else "outer"
    power = min(size.value & -size.value for size in misfits)
    measured = grid(f"linear-{which}-{power}-{'tf32' if format is Format.TF32 else 'bfloat16'}")
    ratio = measured.ratio(padded(layer.inner.value, 8), padded(layer.outer.value, 8))
    return None if ratio is None else (ratio, measured)


def _cost(estimate: tuple[float, Grid] | None) -> str | None:
    if estimate is None:
        return None
    ratio, measured = estimate
    return (
        f"Measured {conditions(measured.device, measured.dtype)}: forward and backward of a layer of this size are "
        f"{slower(ratio)} with "
        f"{measured.most_rows:,} rows."
    )


def _is_cheap(estimate: tuple[float, Grid] | None) -> bool:
    """True if the layer itself loses so little that a step of such layers cannot lose more."""
    return estimate is not None and severity_of(1 - 1 / estimate[0]) is Severity.INFO


def _severity(layer: Layer, found: Layers, half: bool, misfits: list[Size]) -> Severity:
    if layer.kind == "convolution":
        return Severity.WARNING
    wide = [size for size in misfits if size.value >= LARGE]
    if half and any(size.value in found.handed_on for size in wide):
        return cost("linear-step-1001-bfloat16").severity
    if layer.kind == "linear" and not wide:
        # The product is slower, a whole step of such layers is not.
        return cost("linear-step-300-bfloat16").severity
    return Severity.WARNING


def _confidence(layer: Layer, around: Setting, misfits: list[Size], published: bool) -> Confidence:
    if published:
        return Confidence.LOW
    by_default = any(size.by_default for size in misfits)
    told = bool(around.region.formats)
    if by_default:
        return Confidence.MEDIUM if told and around.near else Confidence.LOW
    return Confidence.HIGH if told and around.near else Confidence.MEDIUM
