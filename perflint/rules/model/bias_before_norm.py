"""TPF301: a layer's bias right before a norm that subtracts it again."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.fixes.edits import with_one_more
from perflint.frozen import dataclass
from perflint.rules._arguments import passed
from perflint.rules._methods import is_self
from perflint.rules._statements import outward
from perflint.rules._weights import is_published, loads_weights
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.rules.model._flow import handed_over
from perflint.rules.model._layers import Built, cancels, has_bias, is_norm, layer, norm
from perflint.rules.model._module_lists import side_by_side
from perflint.rules.model._sequence import neighbours
from perflint.rules.precision._region import region
from perflint.rules.worth import cost, sentence
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.structure import walk
from perflint.semantics.symbols import Symbols
from perflint.semantics.values import Instance

# A pattern that begins with letters finds the files for the slower one.
_BIASES = re.compile(r"bias(?<=\.bias)(?<!\bself\.bias)\b")
_SETS = re.compile(r"(?<![\w.])(?!self\b)\w+(?:\.\w+)*\.bias\.\w|init\.\w+\(\s*(?!self\b)\w+(?:\.\w+)*\.bias\b")
"""`m.bias.data.zero_()` and `nn.init.zeros_(m.bias)`."""
_ASKS = re.compile(r"bias(?<=\.bias)\s+(?:is|and|or)\b|if\s+(?:not\s+)?[\w.]+\.bias\b")


@dataclass(frozen=True, slots=True)
class _Pair:
    """A layer with a bias and the norm right behind it."""

    layer: Built
    norm: Built
    certain: bool


_FEW = 3
"""So many linear layers with a bias cost a step something that can be measured."""


class BiasBeforeNorm(Rule):
    """
    ## What it does
    Finds convolutions and linear layers with a bias whose output goes straight, and only, into a
    batch norm or instance norm over the same channels. The proof is either two neighbours in one
    `nn.Sequential` that other code does not take apart, or the data flow in the class's methods:
    `self.norm(self.conv(x))`, or `x = self.conv(x)` followed by `x = self.norm(x)`. Two lists of
    modules that run side by side count as well: `for conv, norm in zip(self.convs, self.norms)`.

    ## Why is this bad
    The norm subtracts each channel's mean, and the bias with it, so the bias has no effect. It
    still costs the addition and, in training, a reduction over the whole gradient. A ResNet-50 with
    biases trained 12% slower in float32 on an H200, 14% slower under bfloat16 autocast and 25%
    slower with channels_last as well; a stack of convolutions took 19% more time in float32
    inference; linear layers with BatchNorm1d lost 4% in float32 and 13% under autocast.

    ## When it is fine
    - GroupNorm and LayerNorm take the mean over several channels and keep the bias: not reported.
    - If another operation stands between the two, or the layer's output is used elsewhere too, the
      bias has an effect.
    - A norm that stays in evaluation mode subtracts a stored mean, which includes the bias of its
      training: reported with low confidence if the file freezes norms.
    - A linear layer works on the last axis, BatchNorm1d on the second: they are the same only for
      two-dimensional inputs.
    - A norm that a configuration may replace (`norm_layer`, `nn.Identity`) is not reported.
    - Models with published weights keep their layout: low confidence.
    - The biases of one or two linear layers of a class cost almost nothing: reported as info.

    ## Bad
    ```python
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.conv = nn.Conv2d(width, width, 3, padding=1)
            self.norm = nn.BatchNorm2d(width)

        def forward(self, x):
            return self.norm(self.conv(x)).relu()
    ```

    ## Good
    ```python
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(width)

        def forward(self, x):
            return self.norm(self.conv(x)).relu()
    ```

    ## Fix safety
    Risky: the state dict loses a key, so strict loading of an older checkpoint fails, as does
    loading an older optimizer state; later layers draw other initial weights. In training, results
    differ in the last bits, and the running means differ by the bias. Loaders of weights and code that
    initializes layers read the bias, too: no fix is offered if the file loads weights, if a file that imports it
    downloads weights, if it freezes norms, or if a file that may run in the same process sets biases of other objects
    without a test for None.

    ## How a GPU shows it
    `aten::conv2d` gets a bias right before `aten::batch_norm`; a reduction kernel for its gradient
    runs in each backward pass. `benchmarks/rules/layers.py bias-before-norm` times both.

    A trace records which module took the output of a layer. A norm that took it confirms the finding; no
    norm, another module besides it, or a norm that subtracts a stored mean in training refutes it.

    ## References
    - [Performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code, name = "TPF301", "bias-before-norm"
    effect, severity = Effect.COMPUTE, Severity.WARNING
    measured = (
        "bias-before-norm-resnet50-float32",
        "bias-before-norm-resnet50-bfloat16",
        "bias-before-norm-resnet50-bfloat16-channels-last",
    )
    costs = None
    listens = (Files("Norm", also=("Conv", "Linear")),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        pairs = {pair.layer.call: pair for pair in _pairs(model, model.symbols)}
        if not pairs:
            return
        frozen, published = _freezes_norms(model), is_published(model)
        keeps = frozen or published or loads_weights(model) or _another_file_sets_biases(model)
        linear = Counter(_holder(model, call) for call, pair in pairs.items() if _is_linear(pair))
        for call, pair in pairs.items():
            by_hand = _touches_bias(model, pair.layer.made.cls)
            yield self.finding(
                site,
                f"{shown(site, call)} adds a bias, which the `{pair.norm.kind}` after it subtracts again",
                span=model.source.span(call),
                # It is built once, but runs with each forward pass.
                heat=Heat.HOT,
                confidence=_confidence(pair, frozen or published, by_hand),
                severity=Severity.INFO if _is_linear(pair) and linear[_holder(model, call)] < _FEW else None,
                help="Pass `bias=False`.",
                fix=None if keeps or by_hand else _fix(site, pair),
                cost=_cost(pair, model),
            )


def _pairs(model: Model, names: Symbols) -> Iterator[_Pair]:
    calls = model.nodes(ast.Call)
    norms = [call.lineno for call in calls if norm(model, names, call) is not None]
    layers = [call.lineno for call in calls if layer(model, names, call) is not None] if norms else []
    if not layers:
        return
    norms.sort()
    layers.sort()
    for each in neighbours(model, names):
        yield from _pair(model, names, each.first, each.second, each.certain)
    for node in model.nodes(ast.ClassDef):
        if _holds_any(node, norms) and _holds_any(node, layers):
            for first, second in (*handed_over(model, node), *side_by_side(model, names, node)):
                yield from _pair(model, names, first, second, True)


def _holds_any(definition: ast.ClassDef, lines: list[int]) -> bool:
    """True if any of some sorted lines lies in a class."""
    after = bisect_left(lines, definition.lineno)
    return after < len(lines) and lines[after] <= (definition.end_lineno or definition.lineno)


def _pair(model: Model, names: Symbols, first: ast.expr, second: ast.expr, certain: bool) -> Iterator[_Pair]:
    giver, taker = layer(model, names, first), norm(model, names, second)
    if giver is not None and taker is not None and has_bias(giver) and cancels(giver, taker):
        yield _Pair(giver, taker, certain)


def _is_linear(pair: _Pair) -> bool:
    return pair.layer.kind == "Linear"


def _holder(model: Model, node: ast.AST) -> ast.AST | None:
    """The class around a layer, else the function around it."""
    around = [outer for outer in model.ancestors(node) if isinstance(outer, (ast.ClassDef, ast.FunctionDef))]
    return next((outer for outer in around if isinstance(outer, ast.ClassDef)), around[0] if around else None)


def _confidence(pair: _Pair, keeps_weights: bool, by_hand: bool) -> Confidence:
    if keeps_weights:
        return Confidence.LOW
    certain = pair.certain and not by_hand and not _is_linear(pair)
    return Confidence.HIGH if certain else Confidence.MEDIUM


def _cost(pair: _Pair, model: Model) -> str:
    """The cost in the measured network nearest to a pair: by its kinds, the format and the layout of the file."""
    half = region(model).half is not None
    if _is_linear(pair):
        kind = "linear-train"
    elif pair.norm.kind.startswith(("InstanceNorm", "LazyInstanceNorm")):
        kind = "instance-norm-train"
    elif pair.layer.kind.endswith("1d"):
        kind = "conv1d-train"
    else:
        kind = "resnet50"
    last = kind == "resnet50" and half and model.says("channels_last")
    row = f"bias-before-norm-{kind}-{'bfloat16' if half else 'float32'}{'-channels-last' if last else ''}"
    network = "a ResNet-50" if kind == "resnet50" else f"a small network ({cost(row).shape})"
    return sentence(f"such biases in all layers make training of {network} {{0}} slower", row)


def _fix(site: FileSite, pair: _Pair) -> Fix | None:
    source, call = site.model.source, pair.layer.call
    given = passed(call, pair.layer.made, "bias")
    edit = with_one_more(source, call, "bias=False") if given is None else Edit(source.span(given), "False")
    if edit is None:
        return None
    return Fix("Pass `bias=False`", Safety.RISKY, (edit,), proof="the norm is the only reader of the layer's output")


def _freezes_norms(model: Model) -> bool:
    """True if a file puts norms, but not whole models, in evaluation mode: their statistics then stay."""
    for node in model.nodes(ast.Call):
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "eval":
            continue
        value = model.value(node.func.value)
        if isinstance(value, Instance) and is_norm(value):
            return True
        if any("Norm" in ast.unparse(test) for test in _tests_around(model, node)):
            return True
    return False


def _touches_bias(model: Model, cls: str) -> bool:
    """True if code of the file needs the bias of some object that may be of a layer class to be a tensor.

    Code that asks first, as in `if m.bias is not None`, does not.
    """
    return any(not _is_another(model, node.value, cls) for node in _needed_biases(model, model.source.tree))


def _another_file_sets_biases(model: Model) -> bool:
    """True if a file that may run with this one sets biases of other objects, and nowhere tests if they are there."""
    others = (file.path for file in model.view.beside(model.module, _BIASES) if file.path != model.module.path)
    return any(model.view.finds(path, _SETS) and not model.view.finds(path, _ASKS) for path in others)


@once_per_node
def _needed_biases(model: Model, tree: ast.Module) -> list[ast.Attribute]:
    """The places that use the biases of other objects without a test for None."""
    biases = (node for node in model.nodes(ast.Attribute) if node.attr == "bias")
    return [node for node in biases if not is_self(node.value) and not _is_asked(model, node)]


def _is_another(model: Model, node: ast.expr, cls: str) -> bool:
    """True if an object is known to be of a class other than `cls`, by its value or by an `isinstance` around."""
    value = model.value(node)
    own = cls.rpartition(".")[2]
    if isinstance(value, Instance) and value.cls.startswith("torch.nn."):
        known = value.cls.rpartition(".")[2]
        if known not in ("Module", own) and not known.startswith("_"):
            return True
    for test in _tests_around(model, node):
        # Classes are also recognized by their names: `m.__class__.__name__.find("BatchNorm") != -1`.
        words = {each.value for each in walk(test) if isinstance(each, ast.Constant) and isinstance(each.value, str)}
        if any("Norm" in word for word in words) and not any(word and word in own for word in words):
            return True
        for call in walk(test):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "isinstance" and len(call.args) == 2:
                others = set(_last_names(call.args[1])).isdisjoint({own, "_ConvNd", "Module"})
                if others and ast.unparse(call.args[0]) == ast.unparse(node):
                    return True
    return False


def _is_asked(model: Model, node: ast.Attribute) -> bool:
    """True if a condition around the place, or the place itself, tests whether the bias is there."""
    written = ast.unparse(node)
    parent = model.parent(node)
    if isinstance(parent, (ast.Compare, ast.If, ast.BoolOp, ast.IfExp)):
        return True
    return any(written in ast.unparse(test) for test in _tests_around(model, node))


def _tests_around(model: Model, node: ast.AST) -> Iterator[ast.expr]:
    for around, inner in outward(model, node):
        in_block = isinstance(around, (ast.If, ast.While)) and inner in around.body
        if isinstance(around, (ast.If, ast.While, ast.IfExp)) and (in_block or inner is around.body):
            yield around.test
        elif isinstance(around, ast.BoolOp):
            yield around


def _last_names(node: ast.expr) -> Iterator[str]:
    for part in node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]:
        yield ast.unparse(part).rpartition(".")[2]
