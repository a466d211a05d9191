"""TPF946: a pipeline of transformers that gets one item at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules._given import arguments_given
from perflint.rules._memory.flows import made
from perflint.rules._sources import names_behind, sources
from perflint.rules._turns import heads, places
from perflint.rules.base import Files, Rule
from perflint.semantics.around import loops_around
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite, FileSite
from perflint.semantics.structure import is_none, keyword, names_in
from perflint.semantics.values import Const, Sequence
from perflint.source.quoting import quoted

_PIPELINES = ("transformers.pipeline", "transformers.pipelines.pipeline")


class OneItemAtATime(Rule):
    """A loop gives a pipeline of transformers one text or image after the other.

    ## What it does
    Finds calls of an object that `transformers.pipeline` made, in a loop over the items that it gets, also in a
    function that the loop calls.

    ## Why is this bad
    Each item is a batch of its own: the GPU computes one short text at a time, and waits for its preparation and its
    result. The pipeline warns about it: "You seem to be using the pipelines sequentially on GPU". It is a warning
    because others measured it: the
    [documentation](https://huggingface.co/docs/transformers/main_classes/pipelines#pipeline-batching) shows 187 texts
    in a second one by one, 1,206 in batches of 8 and 2,478 in batches of 64, for short texts of equal length on its
    GPU. The cost has not been measured here.

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
    No fix: batches need more memory, and are padded.

    ## How a GPU shows it
    A timeline shows short bursts of kernels with the tokenizer between them.

    ## References
    - [Pipelines: batching](https://huggingface.co/docs/transformers/main_classes/pipelines#pipeline-batching)
    """

    code, name = "TPF946", "one-item-at-a-time"
    effect, severity = Effect.PIPELINE, Severity.WARNING
    listens = (Files("pipeline", also=("transformers",)),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        for node in model.nodes(ast.Call):
            if not node.args or not isinstance(node.func, (ast.Name, ast.Attribute)):
                continue
            loop = _loop_over(model, node) if _is_pipeline(model, node.func) else None
            if loop is None:
                continue
            call: CallSite = model.call(node)
            yield self.finding(
                call,
                f"{quoted(call.text(node))} computes one item in each iteration of a loop",
                confidence=Confidence.HIGH,
                help=f"Pass all items at once: `{call.text(node.func)}(items, batch_size=…)`.",
            )


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


def _loop_over(model: Model, node: ast.Call) -> ast.AST | None:
    """The loop that gives its elements to a call, here or through the functions around it."""
    if _is_list(model, made(model, node.args[0])):
        return None
    names = names_behind(model, [node.args[0]])
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
