"""TPF352: a vocabulary that is not a multiple of a tensor-core tile."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Heat, Safety, Severity, Span
from perflint.frozen import dataclass
from perflint.rules._weights import is_published, loads_weights
from perflint.rules.base import Files, FileSite, Option, Rule
from perflint.rules.precision._project import Setting, setting
from perflint.rules.precision._region import Format
from perflint.rules.precision._sizes import VOCABULARY, Size, layers, padded
from perflint.rules.worth import Grid, conditions, cost, grid, slower
from perflint.semantics.model import Model
from perflint.semantics.purpose.takers import is_taken

_SIZED = re.compile(r"torch\.nn\.\w+")


@dataclass(frozen=True, slots=True)
class _Table:
    """A layer with a row for each token. `multiplied` says that its rows are known to be multiplied with.

    `width` is the size of a row, where the layer is a head and the source shows it.
    """

    call: ast.Call
    size: Size
    multiplied: bool
    width: Size | None = None


class VocabNotPadded(Rule):
    """
    ## What it does
    Finds output heads, `nn.Linear(width, vocabulary)`, and embeddings that serve as one, whose
    vocabulary (8192 and more) is not a multiple of 8, or of 4 in float32 with TF32. If the
    vocabulary is the default of a parameter or of a configuration's field in the same file, the
    finding is reported there.

    ## Why is this bad
    The head is the largest matmul of a language model, and one odd dimension makes it run in slow
    kernels. With a vocabulary of 50257 instead of 50304 the head took 5.6 × as long in bfloat16 on
    an H200, 2.8 × in float32 with TF32, and the whole training step of a GPT-2 of 124 M parameters
    1.5 × as long under bfloat16 autocast. In plain float32 it makes no difference. The number in a
    message is the cost of the head with its loss, interpolated between measured sizes.

    ## When it is fine
    - The tokenizer's own size needs no change: only the tables are padded, and the added rows are
      never looked up.
    - A published checkpoint prescribes its size: low confidence (its table can be padded after
      loading, as `resize_token_embeddings(pad_to_multiple_of=64)` does).
    - An embedding alone only looks up rows, which costs the same at any size: reported by the audit
      profile only, since its head may be in another file.

    ## Bad
    ```python
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(50257, 768)
            self.head = nn.Linear(768, 50257, bias=False)

        @torch.autocast("cuda", dtype=torch.bfloat16)
        def forward(self, ids):
            return self.head(self.tokens(ids))
    ```

    ## Good
    ```python
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(50304, 768)
            self.head = nn.Linear(768, 50304, bias=False)

        @torch.autocast("cuda", dtype=torch.bfloat16)
        def forward(self, ids):
            return self.head(self.tokens(ids))
    ```

    ## Fix safety
    Risky: checkpoints of the old shape no longer load, the loss runs over the added tokens too, and
    sampling can draw them until training has made them unlikely. The number is replaced everywhere
    in the file at once. No fix is offered if the number also has another meaning, if another file
    imports a constant for it from this one, or if the file loads weights.

    ## How a GPU shows it
    The kernel of the head's matmul is named `align1`, and is the longest of the step.
    `benchmarks/rules/sizes.py head` times a grid of sizes.

    A trace records the sizes and the format of the head, or of the product with the embedding. Another
    vocabulary, plain float32 or the CPU refute the finding.

    ## References
    - [NVIDIA: matrix multiplication background]
      (https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html)
    """

    code, name = "TPF352", "vocab-not-padded"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = ("vocabulary-50257-step",)
    costs = None
    listens = (Files("Linear", "Embedding"),)
    options = (
        Option("pad-to", 64, "The multiple that the advice and the fix fill up to.", least=8),
        Option("smallest", VOCABULARY, "Tables with fewer rows are not taken for a vocabulary.", least=1),
    )

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        tables = list(_tables(model, self.option("smallest")))
        if not any(table.size.value % 8 for table in tables):
            return
        around = setting(model)
        half = around.region.half is not None
        multiple = 4 if not half and Format.TF32 in around.region.formats else 8
        published = is_published(model)
        places: set[Span] = set()
        for table in tables:
            place = model.source.span(table.size.written or table.call)
            if table.size.value % multiple and place not in places:
                places.add(place)
                yield self.finding(
                    site,
                    _message(site, table),
                    span=place,
                    # It is built once, but runs with each forward pass.
                    heat=Heat.HOT,
                    severity=_severity(table, around),
                    confidence=_confidence(table, around, published),
                    help=_help(table, self.option("pad-to")),
                    cost=_cost(table, around),
                    fix=None if published or loads_weights(model) else _fix(model, table, self.option("pad-to")),
                )


def _tables(model: Model, smallest: int) -> Iterator[_Table]:
    """Heads, and the embeddings for which the file has no head of the same size."""
    found = layers(model)
    heads: set[int] = set()
    for layer in found.all:
        if layer.kind == "linear" and layer.outer is not None and layer.outer.value >= smallest:
            heads.add(layer.outer.value)
            yield _Table(layer.call, layer.outer, True, layer.inner)
    for call, size in found.embeddings:
        if size.value >= smallest and size.value not in heads:
            yield _Table(call, size, _is_multiplied(model, call))


def _is_multiplied(model: Model, embedding: ast.Call) -> bool:
    """True if an embedding's weight is the head's: `F.linear(x, self.tokens.weight)`, `x @ self.tokens.weight.T`."""
    parent = model.parent(embedding)
    if not isinstance(parent, ast.Assign) or not isinstance(parent.targets[0], (ast.Attribute, ast.Name)):
        return False
    weight = f"{ast.unparse(parent.targets[0])}.weight"
    for node in model.nodes(ast.Attribute):
        if node.attr == "weight" and ast.unparse(node) == weight:
            for around in model.ancestors(node):
                if isinstance(around, ast.BinOp):
                    return isinstance(around.op, ast.MatMult)
                if isinstance(around, ast.Call) and model.target(around) in _PRODUCTS:
                    return True
    return False


_PRODUCTS = frozenset({"torch.nn.functional.linear", "torch.matmul", "torch.mm", "torch.einsum"})


def _message(site: FileSite, table: _Table) -> str:
    size = table.size.value
    called = f"`{site.text(table.call.func)}(…)`"
    if table.size.by_default:
        return (
            f"{called} gets {table.size.name} {size} by default, which is not a multiple of 8: it runs slower kernels"
        )
    return f"{called}: {table.size.name} {size} is not a multiple of 8, so it runs slower kernels"


def _help(table: _Table, multiple: int) -> str:
    unless = "" if table.multiplied else ", if the head has the same size"
    return f"Pad it to {padded(table.size.value, multiple)}{unless}."


def _cost(table: _Table, around: Setting) -> str | None:
    """The measured cost of a head of this size, between the sizes that were measured."""
    half = around.region.half is not None or Format.TF32 not in around.region.formats
    measured = _measured(table, "bfloat16" if half else "tf32")
    if measured is None or table.width is None or around.region.half is Format.FLOAT16:
        return None
    ratio = measured.ratio(table.width.value, padded(table.size.value, 64))
    if ratio is None:
        return None
    return (
        f"Measured {conditions(measured.device, measured.dtype)}: such a head with its loss, forward and backward, "
        f"is {slower(ratio)}."
    )


def _measured(table: _Table, format: str) -> Grid | None:
    """How much longer heads and their cross entropy took that misfit as this one; None if the width does, too."""
    if table.width is None or table.width.value % 8:
        return None
    return grid(f"head-outer-{table.size.value & -table.size.value}-{format}")


def _severity(table: _Table, around: Setting) -> Severity:
    if not table.multiplied:
        return Severity.INFO
    if around.region.half is not None:
        return cost("vocabulary-50257-step").severity
    return Severity.WARNING if Format.TF32 in around.region.formats else Severity.INFO


def _confidence(table: _Table, around: Setting, published: bool) -> Confidence:
    if published or not table.multiplied:
        return Confidence.LOW
    told = bool(around.region.formats)
    return Confidence.HIGH if told and around.near and not table.size.by_default else Confidence.MEDIUM


def _fix(model: Model, table: _Table, multiple: int) -> Fix | None:
    better = padded(table.size.value, multiple)
    edits = _rewritten(model, table.size.value, better)
    if not edits or any(is_taken(model, name) for name in _constants(model, table.size.value)):
        return None
    return Fix(f"Pad the vocabulary to {better}", Safety.RISKY, edits)


def _constants(model: Model, size: int) -> Iterator[str]:
    """The names of the file's top level that stand for a size."""
    for statement in model.module.tree.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            if isinstance(statement.value, ast.Constant) and statement.value.value == size:
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                yield from (target.id for target in targets if isinstance(target, ast.Name))


def _rewritten(model: Model, old: int, new: int) -> tuple[Edit, ...]:
    """The edits that write `new` wherever the file writes `old`.

    Empty if the number also stands for something else: compared with, computed with,
    an index, an argument of anything but a layer.
    """
    edits: list[Edit] = []
    for node in model.nodes(ast.Constant):
        if type(node.value) is int and node.value == old:
            if not _is_a_size(model, node):
                return ()
            edits.append(Edit(model.source.span(node), str(new)))
    return tuple(edits)


def _is_a_size(model: Model, node: ast.Constant) -> bool:
    """True if a number is given to a layer, or to a name: by assignment, as a default, as a keyword."""
    parent = model.parent(node)
    if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.arguments)):
        return True
    if isinstance(parent, ast.keyword):
        return True
    return isinstance(parent, ast.Call) and _SIZED.fullmatch(model.target(parent)) is not None
