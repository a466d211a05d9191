"""TPF313: a last layer that computes all positions, of which the last one is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Severity
from perflint.rules._memory.flows import uses_of_target
from perflint.rules._methods import called_on
from perflint.rules._sources import results, sources
from perflint.rules.base import Calls, CallSite, Mentions, Rule, often, shown
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name, walk
from perflint.semantics.values import Const, Instance, Scalar

_CASTS = frozenset({"float", "half", "bfloat16", "to", "contiguous", "detach", "type"})
_MOST_USES = 12
_VOCABULARY = 1000
"""A layer with more outputs computes scores of words."""


class LogitsOfAllPositions(Rule):
    """A linear layer runs for all positions of a sequence, and only the last one is used.

    ## What it does
    Finds calls of `torch.nn.Linear`, and of modules of the file that return its result, whose result is used as
    `[:, -1]` or `[:, -1, :]` alone.

    ## Why is this bad
    The layer computes and stores the results of all other positions for nothing. It is the largest product of many
    language models: for 128,256 words and 8 prompts of 4,096 tokens, the logits alone are 8.4 GB in bfloat16, of
    which 2 MB are used. On an H200 in bfloat16, a decoder of 1.3 billion parameters with as many words takes 25%
    longer for 8 prompts of 1,024 tokens, and 4.60 GiB instead of 3.05.

    ## When it is fine
    - The other positions are used, too: for a loss, or to check proposed tokens. Not reported.
    - One token at a time: there is only one position.
    - Layers that are as wide as their input, or narrower, are reported as information.

    ## Bad
    ```python
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self, body: nn.Module):
            super().__init__()
            self.body, self.head = body, nn.Linear(2048, 128256, bias=False)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            logits = self.head(self.body(ids))
            return logits[:, -1, :]
    ```

    ## Good
    ```python
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self, body: nn.Module):
            super().__init__()
            self.body, self.head = body, nn.Linear(2048, 128256, bias=False)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.body(ids)[:, -1, :])
    ```

    ## Fix safety
    No fix: products of other sizes are rounded in another way.

    ## How a GPU shows it
    A profile shows a product of all tokens with the vocabulary for each new token.

    ## References
    - [torch.nn.Linear](https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html)
    - [transformers: `logits_to_keep`](https://huggingface.co/docs/transformers/main/en/model_doc/llama#transformers.LlamaForCausalLM.forward)
    """

    code, name = "TPF313", "logits-of-all-positions"
    effect, severity = Effect.COMPUTE, Severity.WARNING
    measured = ("logits-of-all-positions",)
    costs = "with 128256 words and 1.3 billion parameters, a forward pass of 8 × 1024 tokens is {0} slower"
    listens = (Calls("torch.nn.Module.__call__", "torch.nn.Linear.forward", "torch.nn.functional.linear"),)
    mentions = Mentions("-1")

    def check(self, site: CallSite) -> Iterator[Finding]:
        is_function = site.target == "torch.nn.functional.linear"
        layer = None if is_function else _head(site.model, site.node)
        if not is_function and layer is None:
            return
        parts = _parts(site.model, site.node)
        tensor = site.value(site.node).tensor
        sizes = None if layer is None else _sizes(layer)
        is_own = layer is not None and site.value(site.node.func) != layer
        is_deep = tensor is not None and tensor.rank is not None and tensor.rank > 2
        # Nobody asks for the last one of so many features.
        has_positions = is_deep or (sizes is not None and max(sizes[0], _VOCABULARY) < sizes[1])
        if not parts or not all(_is_last(each, has_positions) for each in parts):
            return
        yield self.finding(
            site,
            f"{shown(site)} computes all positions, and only the last one is used{often(site)}",
            severity=Severity.INFO if sizes is not None and sizes[0] >= sizes[1] else Severity.WARNING,
            help="Let the module compute its last layer for the last position alone, `self.head(x[:, -1:])`, if asked."
            if is_own
            else "Take the last position first, `[:, -1]`, and run the layer on it.",
        )


def _head(model: Model, call: ast.Call) -> Instance | None:
    """The linear layer that a call runs, or that the called module of the file runs at last; None for others."""
    layer = model.value(call.func)
    if not isinstance(layer, Instance) or layer.cls == "torch.nn.Linear":
        return layer if isinstance(layer, Instance) else None
    own = model.module.klass(layer.cls.removeprefix(f"{model.module.name}."))
    forward = None if own is None else own.methods.get("forward")
    found = [] if forward is None else [*results(model, forward.node)]
    heads = [each for result in found for each in sources(model, result)]
    if any(isinstance(each, ast.Call) and any(_is_cut(model, given) for given in each.args) for each in heads):
        return None
    layers = [model.value(each.func) if isinstance(each, ast.Call) else None for each in heads]
    first = layers[0] if layers else None
    is_linear = isinstance(first, Instance) and first.cls == "torch.nn.Linear"
    return first if is_linear and all(each == first for each in layers) else None  # type: ignore[return-value]


def _is_cut(model: Model, node: ast.expr) -> bool:
    """True if a value is a part of another one, which may be its last position."""
    return any(isinstance(part, ast.Subscript) for source in sources(model, node) for part in walk(source))


def _parts(model: Model, node: ast.expr) -> list[ast.Subscript]:
    """The indexings that are the only uses of a value; none if there are others."""
    found: list[ast.Subscript] = []
    waiting: list[ast.expr] = [node]
    seen: set[ast.expr] = set()
    while waiting:
        place = _after_casts(model, waiting.pop())
        if place in seen:
            continue
        seen.add(place)
        parent = model.parent(place)
        if isinstance(parent, ast.Subscript) and parent.value is place and isinstance(parent.ctx, ast.Load):
            found.append(parent)
            continue
        uses = uses_of_target(model, parent)
        if not uses or len(found) + len(waiting) + len(uses) > _MOST_USES:
            return []
        waiting += uses
    return found


def _after_casts(model: Model, node: ast.expr) -> ast.expr:
    """The value after changes of its type."""
    while (call := called_on(model, node)) is not None and last_name(call) in _CASTS:
        node = call
    return node


def _sizes(layer: Instance) -> tuple[int, int] | None:
    """The numbers of inputs, 0 if it is unknown, and of outputs of a layer; None if nothing shows a vocabulary."""
    sizes = [layer.argument("in_features"), layer.argument("out_features")]
    known = [each.default if isinstance(each, Scalar) else each for each in sizes]
    before, after = [each.value if isinstance(each, Const) else None for each in known]
    if not isinstance(after, int):
        return None
    # A layer with so many outputs has a width of its input that the file may not tell.
    return (before, after) if isinstance(before, int) else (0, after) if after > _VOCABULARY else None


def _is_last(part: ast.Subscript, has_positions: bool) -> bool:
    """True for `x[:, -1, :]`, and for `x[:, -1]` of a tensor that has an axis behind the positions."""
    index = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
    if len(index) == 3 and isinstance(index[0], ast.Constant) and index[0].value is Ellipsis:
        return _is_minus_one(index[1]) and _is_whole(index[2])
    if len(index) not in (2, 3) or not _is_whole(index[0]) or not _is_minus_one(index[1]):
        return False
    return _is_whole(index[2]) if len(index) == 3 else has_positions


def _is_whole(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and part.lower is None and part.upper is None and part.step is None


def _is_minus_one(part: ast.expr) -> bool:
    """True for `-1`, `-1:` and `[-1]`."""
    if isinstance(part, ast.Slice):
        return part.upper is None and part.step is None and part.lower is not None and _is_minus_one(part.lower)
    if isinstance(part, ast.List):
        return len(part.elts) == 1 and _is_minus_one(part.elts[0])
    return isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub) and ast.unparse(part.operand) == "1"
