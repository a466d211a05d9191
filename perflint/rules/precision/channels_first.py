"""TPF354: convolutions in half precision, in a layout that tensor cores cannot read."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules._memory.flows import value_of
from perflint.rules._methods import in_tests, is_false
from perflint.rules._names import AUTOCAST
from perflint.rules._parts import elements
from perflint.rules.base import Files, FileSite, Rule, often, shown
from perflint.rules.placement import MOVES, move
from perflint.semantics.binders import targets
from perflint.semantics.facts import rule_conventions
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.module import Module
from perflint.semantics.structure import FunctionNode, calls_in, grouped, keyword, last_name, path_of, walk
from perflint.semantics.values import Const, Dtype, Instance, Value

_CONVOLUTIONS = re.compile(r"(Lazy)?Conv(Transpose)?2d$")
_OTHER = re.compile(
    r"Attention|Transformer|Embedding|LSTM|GRU|RNN|Conv(Transpose)?[13]d|scaled_dot_product|attn", re.IGNORECASE
)
"""Layers that do not benefit from another layout, or that prevent it."""
_LIBRARIES = ("torchvision.models.", "segmentation_models_pytorch.", "timm.", "torch.hub.load")
_NETWORKS = re.compile(
    r"(?:^|[./_])(?:seresne|wide_resne|resne|vgg|densenet|efficientnet|mobilenet|regnet|convnext|inception|googlenet"
    r"|shufflenet|mnasnet|squeezenet|fcn_resnet|deeplab|lraspp|unet|fpn|pspnet|linknet|darknet|rexnet|hrnet)",
    re.IGNORECASE,
)
"""Networks of convolutions as libraries name them; `resne` begins `resnet` and `resnext`."""
_HALF = frozenset({"half", "float16", "bfloat16"})
_DEEPEST = 4
_SETTLED = ("channels_last", "memory_format", "torch.compile", ".compile(", "tensorrt", "onnx")
"""A layout was chosen, or something chooses it that is not in sight."""
_NO_IMAGES = re.compile(r"vit|transformer|clip|bert|swin|token|caption", re.IGNORECASE)


class ChannelsFirst(Rule):
    """Convolutions compute in half precision on tensors whose channels come first.

    ## What it does
    Finds models that run under autocast, or that are converted to float16 or bfloat16 (`.half()`,
    `.to(torch.bfloat16)`, `dtype=`), and are networks of two-dimensional convolutions, by their
    class in the project or by their name in torchvision, timm or segmentation_models_pytorch, if no
    file that may run in the same process uses `channels_last`. Each function and model get one finding, at the move
    of the input to the GPU, or at the call. If the model is unknown, but the name of its input says
    image and the file does not mention layouts, confidence is low.

    ## Why is this bad
    Tensor cores multiply over channels, and need the channels of a pixel next to each other in
    memory. To get that order, cuDNN copies each tensor twice, before and after each convolution. A
    ResNet-50 trained with bfloat16 autocast took 1.7 times as long on an H200 as in
    `channels_last`, a U-Net 2.1 times, and in inference a ResNet-50 in bfloat16 1.5 times (batch
    64) and 1.1 times (batch 1).

    ## When it is fine
    - float32: the other layout may be slower there. Not reported.
    - Vision transformers, sequences, volumes: no or few two-dimensional convolutions. Not reported.
    - `torch.compile` chooses the layout of convolutions by itself. Not reported.
    - Convolutions along one axis, with kernels such as (5, 1). Not reported.
    - Layers that support only one layout, `.view()` of activations, custom operators: they copy, or
      raise.

    ## Bad
    ```python
    import torch
    from torch import nn

    model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 64, 3)).cuda()

    def train(loader, optimizer: torch.optim.Optimizer):
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Good
    ```python
    import torch
    from torch import nn

    model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 64, 3)).cuda()
    model = model.to(memory_format=torch.channels_last)

    def train(loader, optimizer: torch.optim.Optimizer):
        for x, y in loader:
            x, y = x.to("cuda", memory_format=torch.channels_last), y.cuda()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    No fix: the model and its input change together, and other code may rely on their strides.

    ## How a GPU shows it
    A profile shows kernels named `nchwToNhwc` and `nhwcToNchw` around those of the convolutions. The
    experiment `channels-last` of `perflint trace --experiments` times the program's own layers.

    A trace records the format and the layout of the convolutions that each call of a model runs.
    Channels last, float32 or the CPU refute the finding.

    ## References
    - [Channels last memory format](https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html)
    - [NVIDIA: tensor layouts in memory]
      (https://docs.nvidia.com/deeplearning/performance/dl-performance-convolutional/index.html#tensor-layout)
    """

    code, name = "TPF354", "channels-first"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = (
        "no-channels-last-resnet50",
        "no-channels-last-unet-float16",
        "no-channels-last-unet-bfloat16",
        "no-channels-last-resnet50-inference-64",
        "no-channels-last-resnet50-inference-1",
    )
    costs = "without channels_last, training of a ResNet-50 is {0} slower, and of a U-Net {2}"
    listens = (Files("autocast", "half", "float16", without=_SETTLED),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        if in_tests(site.model):
            return
        model = site.model
        said: set[tuple[ast.AST | None, str]] = set()
        for run, sure in (*_under_autocast(model), *_of_half_models(model)):
            if sure is not Confidence.LOW and _is_settled_elsewhere(model):
                continue
            what = (model.function(run), path_of(run.func))
            if what in said:
                continue
            said.add(what)
            moved = _moved(model, run)
            at = model.call(run)
            yield self.finding(
                at,
                f"{shown(at, run)} computes convolutions in half precision with channels first: cuDNN converts "
                f"the layout and back{often(at)}",
                confidence=sure,
                span=model.source.span(moved or run),
                help="Move the model and its input with `memory_format=torch.channels_last`.",
            )


def _under_autocast(model: Model) -> Iterator[tuple[ast.Call, Confidence]]:
    """The first call of a model of convolutions in each region of autocast, and how sure that is."""
    for around in model.nodes(ast.With):
        if any(_casts(model, item.context_expr) for item in around.items):
            yield from itertools.islice(_runs(model, around), 1)


def _of_half_models(model: Model) -> Iterator[tuple[ast.Call, Confidence]]:
    """The calls of models of convolutions that are converted to half precision, with input that may be on the GPU."""
    for call in model.nodes(ast.Call):
        if call.args and _may_run(model, call) and _is_half(model, call.func) and _is_convolutional(model, call.func):
            given = model.value(call.args[0]).tensor
            if given is None or given.off_host:
                yield call, Confidence.HIGH


def _casts(model: Model, node: ast.expr) -> bool:
    """True if a context is an autocast of the device that is not switched off."""
    if not isinstance(node, ast.Call) or model.target(node) not in AUTOCAST:
        return False
    kind = keyword(node, "device_type") or (node.args[0] if node.args else None)
    given = None if kind is None else model.value(kind)
    on_host = isinstance(given, Const) and isinstance(given.value, str) and given.value.startswith("cpu")
    return not on_host and not is_false(keyword(node, "enabled")) and given != Const(False)


def _runs(model: Model, around: ast.With) -> Iterator[tuple[ast.Call, Confidence]]:
    """The first call of a model of convolutions in a region, and how sure that is."""
    calls = [part for part in calls_in(*around.body) if part.args]
    modules = [call for call in calls if _may_run(model, call)]
    yield from ((call, Confidence.HIGH) for call in modules if _is_convolutional(model, call.func))
    if _speaks_of_no_images(model, model.function(around) or model.source.tree):
        return
    for call in modules:
        if not _is_seen(model, call) and rule_conventions.is_image(last_name(call.args[0])):
            yield call, Confidence.LOW


@once_per_node
def _speaks_of_no_images(model: Model, body: FunctionNode | ast.Module) -> bool:
    if isinstance(body, ast.Module):
        return model.matches(_NO_IMAGES)
    return _NO_IMAGES.search(model.source.written(body)) is not None


def _may_run(model: Model, call: ast.Call) -> bool:
    """True if a call is one of a module, or of something unknown that is called like one."""
    if not isinstance(call.func, (ast.Name, ast.Attribute)):
        return False
    value = model.value(call.func)
    if any(isinstance(member, Instance) and model.is_module(member) for member in value.members):
        return True
    return value.is_unknown and bool(rule_conventions.is_model_of_images(last_name(call.func)))


def _is_seen(model: Model, call: ast.Call) -> bool:
    """True if the class of a model is known."""
    return any(
        isinstance(member, Instance) and member.cls != "torch.nn.Module" for member in model.value(call.func).members
    )


def _moved(model: Model, run: ast.Call) -> ast.Call | None:
    """The call that moves the input of another call to the device earlier in the same function, or None."""
    first = _first_moves(model, model.function(run) or model.source.tree).get(path_of(run.args[0]))
    return first if first is not None and first.lineno < run.lineno else None


@once_per_node
def _first_moves(model: Model, body: ast.AST) -> dict[str, ast.Call]:
    """The tensors that a function or file moves to the GPU and binds to a name or an attribute: the first for each."""
    found: dict[str, ast.Call] = {}
    for each in walk(body):
        if not isinstance(each, ast.Assign) or (model.function(each) or model.source.tree) is not body:
            continue
        for target in (part for whole in each.targets for part in targets(whole)):
            path, value = path_of(target), value_of(model, target)
            if path and path not in found and isinstance(value, ast.Call):
                site = model.call(value)
                if site.target in MOVES and move(site) is not None:
                    found[path] = value
    return found


_LAYOUTS = re.compile("channels_last")


def _is_settled_elsewhere(model: Model) -> bool:
    """True if a file that may run in the same process mentions layouts."""
    return bool(model.view.beside(model.module, _LAYOUTS))


def _is_convolutional(model: Model, callee: ast.expr) -> bool:
    """True if the callee is certainly a module of two-dimensional convolutions, without attention."""
    members = model.value(callee).members
    known = [each for each in members if isinstance(each, Instance) and each.cls != "torch.nn.Module"]
    if known:
        return all(_holds_convolutions(model, each, _DEEPEST) for each in known)
    return any(_is_made_by_library(model, call) for call in _makers(model, callee))


def _is_half(model: Model, callee: ast.expr) -> bool:
    """True if the code that makes a module, or a statement on it, converts it to float16 or bfloat16."""
    return any(_converts(model, call) for call in _makers(model, callee))


def _makers(model: Model, callee: ast.expr) -> list[ast.Call]:
    """The calls in the values that a name or attribute is bound to, and in the statements that are calls on it."""
    path, here = path_of(callee), {None, model.function(callee), *model.ancestors(callee)}
    bound = _bound(model, model.source.tree).get(path, ()) if path else ()
    made = [node.value for node in bound if "." in path or model.function(node) in here]
    return [*calls_in(*made)]


def _converts(model: Model, call: ast.Call) -> bool:
    """True for `.half()`, `.to(torch.bfloat16)` and `make(dtype=torch.float16)`."""
    name = last_name(call)
    if name in ("half", "bfloat16"):
        return not call.args and isinstance(call.func, ast.Attribute)
    given = [each.value for each in call.keywords if each.arg in ("dtype", "torch_dtype")]
    values = map(model.value, [*given, *call.args] if name == "to" else given)
    return any(isinstance(value, Dtype) and value.name in _HALF for value in values)


@once_per_node
def _bound(model: Model, tree: ast.Module) -> dict[str, list[ast.Assign | ast.Expr]]:
    """The assignments of a file, and the statements that only call methods, by the names and attributes of these."""
    found: list[tuple[str, ast.Assign | ast.Expr]] = []
    for node in model.nodes(ast.Assign):
        found += ((path, node) for path in dict.fromkeys(map(path_of, node.targets)))
    for statement in model.nodes(ast.Expr):
        called = statement.value
        while isinstance(called, ast.Call) and isinstance(called.func, ast.Attribute):
            called = called.func.value
        if called is not statement.value and (path := path_of(called)):
            found.append((path, statement))
    return grouped(found)


def _is_made_by_library(model: Model, call: ast.Call) -> bool:
    target = model.target(call)
    if not target.startswith(_LIBRARIES):
        return False
    named = [each.value for argument in call.args if isinstance(each := model.value(argument), Const)]
    names = [target.rpartition(".")[2], *(each for each in named if isinstance(each, str))]
    return any(_NETWORKS.search(name) for name in names)


def _holds_convolutions(model: Model, value: Value, depth: int) -> bool:
    if not isinstance(value, Instance) or depth == 0:
        return False
    if value.cls.startswith("torch.nn."):
        if _CONVOLUTIONS.search(value.cls):
            return True
        parts = [part for _, argument in value.arguments or () for part in elements(argument)]
        return any(_holds_convolutions(model, part, depth - 1) for part in parts)
    found = model.view.klass(value.cls)
    return found is not None and _convolutions(found[0], found[1].node, set()) > 1


def _convolutions(home: Module, node: ast.ClassDef, seen: set[str]) -> int:
    """How many convolutions a class and the classes of its file that it uses make; none where there is attention."""
    count = 0
    for call in calls_in(node):
        name = last_name(call)
        if _OTHER.search(name) or (_CONVOLUTIONS.search(name) and _is_along_one_axis(call)):
            return 0
        if _CONVOLUTIONS.search(name):
            count += 1
        inner = home.klass(name) if name not in seen else None
        if inner is not None:
            seen.add(name)
            if any(_OTHER.search(last_name(part)) for part in calls_in(inner.node)):
                return 0
            count += _convolutions(home, inner.node, seen)
    return count


def _is_along_one_axis(call: ast.Call) -> bool:
    """True if the kernel of a convolution is as those of signals are, which were folded into an image: (5, 1)."""
    kernel = call.args[2] if len(call.args) > 2 else keyword(call, "kernel_size")
    sides = kernel.elts if isinstance(kernel, ast.Tuple) else []
    return len(sides) == 2 and ast.dump(sides[0]) != ast.dump(sides[1])
