"""Rules about layers: the calls of those that the place of a finding constructs, with their shapes and formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from perflint.findings import Ruling, Verdict
from perflint.rules.worth import Grid, amount, conditions, grid
from perflint.tracer.events import ModuleCall, Observation
from perflint.tracer.experiments.layers import Layer, layer, layers, per_step
from perflint.tracer.judges.base import Case, Judge, function_around, times

HALF = ("float16", "bfloat16")
CHEAP = 1.03
"""A layer that takes less than this longer loses nothing that can be measured in a step."""
WIDE = 8192
"""The number of rows from which on a table is one of a vocabulary."""
_SIZE = re.compile(r"(\w+) (\d+)")
_ATTENTION = re.compile(r"\.(?:MultiheadAttention|Transformer\w*)$")
_NORMS = re.compile(r"\.(?:BatchNorm\dd|InstanceNorm\dd|SyncBatchNorm)$")
_UNKNOWN = Verdict(
    Ruling.UNDECIDED,
    "without a GPU the formats of a run differ; trace on one, or with `perflint trace --simulate`",
)


def built(case: Case) -> list[ModuleCall]:
    """The calls of the modules whose construction lies within the finding."""
    return [call for at, call in case.modules if case.finding.span.contains(at)]


def uncalled(case: Case) -> Verdict | None:
    """The verdict on a layer that was constructed, but whose calls were not seen."""
    if case.ran is False:
        return None
    why = "no call of this layer was seen in the first recorded steps: it ran in others, compiled, or not at all"
    return Verdict(Ruling.UNDECIDED, why)


def rate(calls: Iterable[ModuleCall]) -> float:
    """How often a step makes some calls."""
    return sum(map(per_step, calls))


# Biases before norms


def _bias(case: Case) -> Verdict | None:
    found = [each for each in layers(built(case)) if each.is_linear or each.is_convolution]
    if not found:
        return uncalled(case)
    if not any(each["bias"] for each in found):
        return Verdict(Ruling.REFUTED, f"it ran without a bias, as {found[0].text}")
    named = [each.call for each in found if each.call.name]
    readers = _readers(case, named)
    norms = [reader for reader in readers if _NORMS.search(reader.type)]
    others = [reader for reader in readers if not _NORMS.search(reader.type)]
    if not norms:
        # Only modules are seen, and only those that have a name.
        return uncalled_norm(named)
    if others:
        return Verdict(Ruling.REFUTED, f"its output went to a {_kind(others[0])}, too")
    if not any(norm.training for norm in norms) and any(norm.grad and _learns(norm) for norm in norms):
        return Verdict(Ruling.REFUTED, f"the {_kind(norms[0])} subtracted a stored mean while gradients were computed")
    ran = rate(named)
    text = f"{found[0].text} added a bias to {_shape(found[0])} right before a {_kind(norms[0])}"
    return Verdict(Ruling.CONFIRMED, f"{text}, {times(ran)} a step", per_step=ran)


def uncalled_norm(named: Sequence[ModuleCall]) -> Verdict:
    """The verdict on layers whose output went to no norm that was seen."""
    if not named:
        return Verdict(Ruling.UNDECIDED, "the layer is not a submodule of a model, so its readers are unknown")
    return Verdict(Ruling.REFUTED, "no norm took its output as it was")


def _learns(norm: ModuleCall) -> bool:
    return ".BatchNorm" in norm.type and any(each.requires_grad for each in norm.inputs)


def _readers(case: Case, named: Sequence[ModuleCall]) -> list[ModuleCall]:
    """The modules whose first input was the output of one of some calls."""
    given = {(call.name, call.outputs[0]) for call in named if call.outputs}
    return [each for each in case.trace.of(ModuleCall) if each.inputs and (each.follows, each.inputs[0]) in given]


def _kind(call: ModuleCall) -> str:
    return call.type.rpartition(".")[2]


def _shape(each: Layer) -> str:
    return " × ".join(map(str, each.call.outputs[0].shape))


# Sizes


@dataclass(frozen=True, slots=True)
class _Ran:
    """A layer that ran with sizes that misfit its format."""

    layer: Layer | None
    call: ModuleCall
    format: str
    misfits: dict[str, int]
    ratio: float | None = None
    measured: Grid | None = None

    @property
    def rows(self) -> int:
        """The rows of the input, over all dimensions but the last."""
        return prod(self.call.inputs[0].shape[:-1]) if self.call.inputs else 0


_Misfits = Callable[[ModuleCall, int], _Ran | None]
"""Gives a call with the sizes that a number does not divide; None if it divides them all."""


def format_of(call: ModuleCall, precisions: Mapping[str, str]) -> str:
    """The format in which a call computed: `bfloat16`, `float16`, `TF32`, `float32`, `CPU`; empty if unknown."""
    tensors = [each for each in (*call.inputs, *call.outputs) if each.dtype.startswith(("float", "bfloat"))]
    if not tensors:
        return call.autocast
    if tensors[0].device.startswith("cpu"):
        return "CPU"
    dtype = call.autocast if call.autocast and tensors[0].dtype != "float64" else tensors[0].dtype
    return precisions["convolutions" if ".conv." in call.type else "products"] if dtype == "float32" else dtype


def precisions(case: Case) -> dict[str, str]:
    """The formats in which products and convolutions of float32 tensors were computed; empty if unknown."""
    return {what: _precision(case, what) for what in ("products", "convolutions")}


def _precision(case: Case, what: str) -> str:
    if case.of_process(f"float32.tf32-{what}"):
        return "TF32"
    return "float32" if case.of_process(f"float32.full-{what}") else ""


def _judge_sizes(case: Case, calls: Sequence[ModuleCall], misfitting: _Misfits) -> Verdict | None:
    """The verdict on sizes by the calls of the layers that have them."""
    if not calls:
        return uncalled(case)
    if not any(misfitting(call, 8) for call in calls):
        return Verdict(Ruling.REFUTED, f"it ran with other sizes: {_described(calls[0])}")
    if not case.has_gpu:
        return _UNKNOWN
    of_float32 = precisions(case)
    formats = {call: format_of(call, of_float32) for call in calls}
    ran = [found for call in calls if (found := _ran(call, formats[call], misfitting)) is not None]
    if ran:
        return _cost_of(ran)
    if not all(formats.values()):
        return Verdict(Ruling.UNDECIDED, "the trace does not say whether it computed in TF32")
    seen = sorted(set(formats.values()))
    if seen == ["CPU"]:
        return Verdict(Ruling.REFUTED, "the layer ran on the CPU")
    return Verdict(Ruling.REFUTED, f"the layer computed in {' and '.join(seen)}, where its sizes make no difference")


def _ran(call: ModuleCall, format: str, misfitting: _Misfits) -> _Ran | None:
    multiple = 8 if format in HALF else 4 if format == "TF32" else 0
    found = misfitting(call, multiple) if multiple else None
    if found is None and format == "TF32" and ".conv." in call.type:
        # cuDNN's kernels for TF32 differ between multiples of 4 and of 8, too.
        found = misfitting(call, 8)
    return None if found is None else _measured(found, format)


def _measured(found: _Ran, format: str) -> _Ran:
    """A layer with the measured ratio for its sizes and rows."""
    each, call = found.layer, found.call
    if each is None or not each.is_linear or format == "float16" or not call.inputs:
        return _Ran(each, call, format, found.misfits)
    inner, outer = each["in_features"], each["out_features"]
    power = min(size & -size for size in found.misfits.values())
    kind = "tf32" if format == "TF32" else "bfloat16"
    if outer >= WIDE:
        name, fits = f"head-outer-{power}-{kind}", inner % 8 == 0
        outer = -(-outer // 64) * 64
    else:
        which = "both" if len(found.misfits) > 1 else "inner" if "in_features" in found.misfits else "outer"
        name, fits = f"linear-{which}-{power}-{kind}", True
        inner, outer = -(-inner // 8) * 8, -(-outer // 8) * 8
    try:
        measured = grid(name) if fits else None
    except KeyError:
        measured = None
    ratio = None if measured is None else measured.ratio(inner, outer, found.rows)
    return _Ran(each, call, format, found.misfits, ratio, measured)


def _cost_of(ran: Sequence[_Ran]) -> Verdict:
    most = max(ran, key=lambda each: each.ratio or 0.0)
    calls = rate(each.call for each in ran)
    text = f"{_described(most.call)} ran in {most.format}, {times(calls)} a step"
    if most.ratio is None or most.measured is None:
        return Verdict(Ruling.CONFIRMED, text, per_step=calls)
    rows = min(max(most.rows, most.measured.rows[0]), most.measured.most_rows)
    size = f"a layer of its sizes, with {rows:,} rows {conditions(most.measured.device, most.measured.dtype)},"
    if all(each.ratio is not None and each.ratio < CHEAP for each in ran):
        return Verdict(Ruling.NO_COST, f"{text}; {size} is not measurably slower", per_step=calls)
    return Verdict(Ruling.CONFIRMED, f"{text}; {size} takes {_longer(most.ratio)}", per_step=calls)


def _longer(ratio: float) -> str:
    """The time of a layer in words: `3.8 × the time`, `10% longer`."""
    text = amount(ratio)
    return f"{text} longer" if text.endswith("%") else f"{text} the time"


def _described(call: ModuleCall) -> str:
    shape = " × ".join(map(str, call.inputs[0].shape)) if call.inputs else ""
    settings = ", ".join(call.settings.split(", ")[:2])
    return f"{_kind(call)}({settings}) on {shape}"


def _dims(case: Case) -> Verdict | None:
    claimed = [name for name, _ in _SIZE.findall(case.finding.message)]
    sized = [call for call in built(case) if _is_sized(call)]
    return _judge_sizes(case, sized, lambda call, multiple: _misfit(call, multiple, claimed))


def _is_sized(call: ModuleCall) -> bool:
    each = layer(call)
    return (each is not None and (each.is_linear or each.is_convolution)) or _ATTENTION.search(call.type) is not None


def _misfit(call: ModuleCall, multiple: int, claimed: Sequence[str]) -> _Ran | None:
    """A call with the claimed sizes that a number does not divide; None if it divides them all."""
    each = layer(call)
    if each is not None and (each.is_linear or each.is_convolution):
        sizes = {name: each[name] for name in each.sizes}
        misfits = {name: size for name, size in sizes.items() if size % multiple and (name in claimed or not claimed)}
    elif each is not None:
        width, heads = each["embed_dim"], each["num_heads"]
        misfits = {"embed_dim": width} if width % multiple else {}
        misfits |= {"head": width // heads} if (width // heads) % multiple else {}
    else:
        width = call.outputs[0].shape[-1] if call.outputs and call.outputs[0].shape else 0
        # The source shows the sizes of heads, and the record of a transformer's layer does not.
        misfits = {"d_model": width} if width % multiple or "head" in claimed else {}
    return _Ran(each, call, "", misfits) if misfits else None


def _vocabulary(case: Case) -> Verdict | None:
    sizes = {int(size) for _, size in _SIZE.findall(case.finding.message)}
    inside = built(case)
    if own := [call for call in inside if _is_linear(call)]:
        return _judge_sizes(case, own, _misfit_of_head)
    # The finding is at an embedding, or at the default of a size.
    wide = [(at, call) for at, call in case.modules if _is_linear(call) and _rows_of(call) >= WIDE]
    # One whose construction names its own size has its own finding.
    heads = [call for at, call in wide if str(_rows_of(call)) not in case.source.segment(at)]
    if mine := [call for _, call in wide if _rows_of(call) in sizes]:
        return _judge_sizes(case, mine, _misfit_of_head)
    products = [seen for _, seen in case.observed if seen.fact == "product.odd"]
    if fitting := [seen for seen in products if any(f" to {size} in" in seen.detail for size in sizes)]:
        return _of_product(case, fitting[0])
    if heads:
        return _judge_sizes(case, heads, _misfit_of_head)
    tables = [call for _, call in case.modules if call.type.endswith(".Embedding") and _rows_of(call) >= WIDE]
    if not tables:
        return uncalled(case)
    if not any(_rows_of(call) in sizes for call in tables):
        return Verdict(Ruling.REFUTED, f"it ran with other sizes: {_described(tables[0])}")
    return Verdict(Ruling.UNDECIDED, "the table looked up rows, and no product with it was seen in the first steps")


def _of_product(case: Case, seen: Observation) -> Verdict:
    """The verdict on a product with the weight of an embedding."""
    if seen.detail.endswith("CPU"):
        return Verdict(Ruling.REFUTED, "the product ran on the CPU") if case.has_gpu else _UNKNOWN
    if " in float32" in seen.detail and not case.of_process("float32.tf32-products"):
        return Verdict(Ruling.REFUTED, f"its product, {seen.detail}, is none of tensor cores")
    return Verdict(Ruling.CONFIRMED if seen.hits.steps else Ruling.NO_COST, f"it ran a product of {seen.detail}")


def _is_linear(call: ModuleCall) -> bool:
    return call.type.endswith(".Linear")


def _rows_of(call: ModuleCall) -> int:
    """The outputs of a linear layer, or the rows of an embedding; 0 for others."""
    if call.type.endswith(".Embedding"):
        first = call.settings.partition(",")[0]
        return int(first) if first.isdecimal() else 0
    each = layer(call)
    return int(each["out_features"]) if each is not None and each.is_linear else 0


def _misfit_of_head(call: ModuleCall, multiple: int) -> _Ran | None:
    size = _rows_of(call)
    return _Ran(layer(call), call, "", {"out_features": size}) if size % multiple else None


# Layouts


def _layout(case: Case) -> Verdict | None:
    if not case.has_gpu:
        return _UNKNOWN if case.ran else None
    around = function_around(case.source, case.finding.span)
    names = ("channels-first", "channels-last", "other-dtype", "on-host")
    seen = {name: case.facts(f"convolution.{name}", within=around) for name in names}
    if first := seen["channels-first"]:
        most = max(first, key=lambda each: each.hits.steps)
        text = f"a model computed convolutions with channels first, {most.detail.replace(' of ', ' of its ', 1)}"
        return Verdict(Ruling.CONFIRMED if most.hits.steps else Ruling.NO_COST, text)
    if seen["channels-last"]:
        return Verdict(Ruling.REFUTED, "the convolutions ran with channels last")
    if other := seen["other-dtype"]:
        dtype = other[0].detail.rpartition(" in ")[2]
        return Verdict(Ruling.REFUTED, f"the convolutions ran in {dtype}, not in 16 bits")
    return Verdict(Ruling.REFUTED, "the convolutions ran on the CPU") if seen["on-host"] else None


# Eight bits


def _eight_bits(case: Case) -> Verdict | None:
    found = [*layers(built(case))]
    if not found:
        return uncalled(case)
    is_int8 = "INT8" in case.finding.message
    multiple = 32 if is_int8 else 16
    claimed = [name for name, _ in _SIZE.findall(case.finding.message)]
    if not any(each[name] % multiple for each in found for name in each.sizes if name in claimed):
        return Verdict(Ruling.REFUTED, f"it ran with other sizes: {_described(found[0].call)}")
    products = case.of_process("product.int8" if is_int8 else "product.fp8")
    if not products:
        return Verdict(Ruling.UNDECIDED, "no product in eight bits was seen: torch.compile and libraries hide theirs")
    name = "INT8" if is_int8 else "FP8"
    own = found[0]
    return Verdict(
        Ruling.CONFIRMED,
        f"{own.text} ran in a program that computes products in {name}, such as {products[0].detail}",
        per_step=rate(each.call for each in found),
    )


JUDGES: dict[str, Judge] = {
    "TPF301": _bias,
    "TPF351": _dims,
    "TPF352": _vocabulary,
    "TPF354": _layout,
    "TPF374": _eight_bits,
}
