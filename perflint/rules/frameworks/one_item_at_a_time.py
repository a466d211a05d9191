"""TPF946: a pipeline or a model of transformers that gets one item at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._guards import is_guarded
from perflint.rules._memory.flows import made
from perflint.rules._methods import in_tests
from perflint.rules._sources import names_behind, sources
from perflint.rules._turns import heads, places
from perflint.rules.base import CallSite, Files, FileSite, Rule, shown
from perflint.semantics.around import loops_around
from perflint.semantics.model import Model
from perflint.semantics.purpose.given import arguments_given
from perflint.semantics.structure import is_none, keyword, last_name, names_in
from perflint.semantics.values import Const, Sequence

_INPUTS = frozenset({"text", "images", "image", "audio", "raw_speech", "conversation"})
_PIPELINES = ("transformers.pipeline", "transformers.pipelines.pipeline")


class OneItemAtATime(Rule):
    """A loop gives a pipeline or a model of transformers one text or image after the other.

    ## What it does
    Finds calls of an object that `transformers.pipeline` made, and of models and their `generate` with what a tokenizer
    or processor makes of one item, `tokenizer(text, return_tensors="pt")`, in a loop over these items, also in a
    function that the loop calls.

    ## Why is this bad
    Each item is a batch of its own: the GPU computes one short text at a time, and waits for its preparation and its
    result. The pipeline warns about it: "You seem to be using the pipelines sequentially on GPU". Measured on an H200
    with a model of 12 layers: 64 texts take 183 ms one by one, and 3.3 ms as one batch, without their preparation. The
    [documentation](https://huggingface.co/docs/transformers/main_classes/pipelines#pipeline-batching) of the pipeline
    shows 187 texts in a second one by one, 1,206 in batches of 8 and 2,478 in batches of 64, for short texts of equal
    length on its GPU.

    ## When it is fine
    - Items come one at a time, from a user or a queue: a loop over a list is needed for a finding.
    - A few items, or texts of very different lengths: the same page shows that padding may cost more than batches gain.
    - A pipeline on the CPU: not reported where the call says so.
    - Each item depends on the result of the one before.

    ## Bad
    ```python
    from transformers import pipeline

    classify = pipeline("text-classification", device=0)

    def run(texts: list[str]):
        return [classify(text) for text in texts]
    ```

    ## Good
    ```python
    from transformers import pipeline

    classify = pipeline("text-classification", device=0)

    def run(texts: list[str]):
        return list(classify(texts, batch_size=64))
    ```

    ## Fix safety
    No fix: batches need more memory, and are padded; a decoder needs a tokenizer with `padding_side="left"`.

    ## How a GPU shows it
    A timeline shows short bursts of kernels with the tokenizer between them.

    ## References
    - [Pipelines: batching](https://huggingface.co/docs/transformers/main_classes/pipelines#pipeline-batching)
    """

    code, name = "TPF946", "one-item-at-a-time"
    effect, severity = Effect.PIPELINE, Severity.ERROR
    measured = ("one-item-at-a-time",)
    listens = (Files("pipeline", "return_tensors", also=("transformers", "tokeniz", "processor")),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        for node in () if in_tests(model) else model.nodes(ast.Call):
            if not isinstance(node.func, (ast.Name, ast.Attribute)):
                continue
            is_pipeline = bool(node.args) and _is_pipeline(model, node.func)
            items = node.args[:1] if is_pipeline else _items(model, node)
            if not any(_loop_over(model, node, item) for item in items):
                continue
            call: CallSite = model.call(node)
            yield self.finding(
                call,
                f"{shown(call, node)} computes one item in each iteration of a loop",
                confidence=Confidence.HIGH if is_pipeline else Confidence.MEDIUM,
                # The loop makes it often, also in a function that runs once.
                heat=call.heat if call.heat is not Heat.COLD or is_guarded(model, node) else Heat.WARM,
                help=f"Pass all items at once: `{call.text(node.func)}(items, batch_size=…)`."
                if is_pipeline
                else "Give the tokenizer a list of items with `padding=True`, and the model the whole batch.",
            )


def _items(model: Model, node: ast.Call) -> list[ast.expr]:
    """The arguments of the tokenizer or processor that made the inputs of a call of a model or of `generate`."""
    if last_name(node) != "generate" and model.target(node) != "torch.nn.Module.__call__":
        return []
    for passed in (*node.args[:1], *(each.value for each in node.keywords)):
        source, seen = made(model, passed), set[ast.expr]()
        while source not in seen:
            seen.add(source)
            if isinstance(source, (ast.Attribute, ast.Subscript)):
                source = made(model, source.value)
            elif isinstance(source, ast.Call) and last_name(source) in ("to", "cuda", "pin_memory"):
                source = made(model, source.func.value if isinstance(source.func, ast.Attribute) else source.func)
            else:
                break
        if isinstance(source, ast.Call) and keyword(source, "return_tensors") is not None:
            return [*source.args, *(each.value for each in source.keywords if each.arg in _INPUTS)]
    return []


def _is_pipeline(model: Model, node: ast.expr) -> bool:
    """True if an object is a pipeline, and may be on a GPU."""
    found = [each for each in sources(model, node) if not is_none(each)]
    for each in found:
        if not isinstance(each, ast.Call) or model.target(each) not in _PIPELINES:
            return False
        device = keyword(each, "device")
        if device is not None and model.value(device) in (Const(-1), Const("cpu")):
            return False
    return bool(found)


def _loop_over(model: Model, node: ast.Call, item: ast.expr) -> ast.AST | None:
    """The loop that gives its elements to a call as an item, here or through the functions around it."""
    if _is_list(model, made(model, item)):
        return None
    names = names_behind(model, [item])
    for place in places(model, node):
        for loop in loops_around(model, place):
            for target, source in heads(model, loop):
                if names_in(target) & {each.id for each in names} and not _has_batches(model, target, source):
                    return loop
        names = names_behind(model, [passed for each in names for passed in arguments_given(model, each) or [each]])
    return None


def _is_list(model: Model, given: ast.expr) -> bool:
    """True if an argument is a list of several items already, and no conversation; also `texts[i : i + 8]`."""
    if isinstance(given, ast.List) and all(isinstance(made(model, each), ast.Dict) for each in given.elts):
        return False
    return isinstance(model.value(given), Sequence) or _is_slice(given)


def _is_slice(given: ast.expr) -> bool:
    """True for `texts[i : i + 8]`."""
    return isinstance(given, ast.Subscript) and isinstance(given.slice, ast.Slice)


def _has_batches(model: Model, target: ast.expr, source: ast.expr) -> bool:
    """True if the elements of a loop are batches already."""
    return model.is_over_batches(source) or any("batch" in name or "chunk" in name for name in names_in(target))
