"""TPF949: an evaluation that keeps all logits to take the largest."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules.base import Calls, CallSite, Mentions, Rule
from perflint.semantics.model import Model
from perflint.semantics.structure import calls_in, last_name
from perflint.semantics.values import NONE

_TRAINERS = ("transformers.Trainer", "transformers.trainer.Trainer")
_FEW_CLASSES = (
    r"(?:Sequence|Token|Image|Audio|Video)Classification|MultipleChoice|batch_eval_metrics|eval_accumulation_steps"
)


class AllLogitsKept(Rule):
    """The evaluation of a `Trainer` keeps the logits of all examples, and only the largest are used.

    ## What it does
    Finds `Trainer(…)` of transformers with a `compute_metrics` that takes an `argmax`, and without
    `preprocess_logits_for_metrics`.

    ## Why is this bad
    The trainer gathers all outputs of the model on the GPU, joins them to one tensor that grows with each batch, and
    copies it to the CPU at the end. For a language model with 128,000 words, those of one text of 1,024 tokens are
    0.5 GB in float32. Their `argmax`, taken on the GPU, is 8 kB. An evaluation of GPT-2 over eight texts of 1,024
    tokens took 40 times as long with all logits on an H200, as they are copied and searched on the CPU, and 4.03 GiB of
    the GPU in place of 3.13. It is information because the file does not show how many classes the model has.

    ## When it is fine
    - A few classes: files that name such models are not reported.
    - Metrics that need the scores, such as the area under a curve: those without `argmax` are not reported.

    ## Bad
    ```python
    from transformers import Trainer, TrainingArguments

    def accuracy(result):
        return {"accuracy": (result.predictions.argmax(-1) == result.label_ids).mean()}

    def build(model, train, test):
        arguments = TrainingArguments("out", bf16=True)
        return Trainer(model, arguments, train_dataset=train, eval_dataset=test, compute_metrics=accuracy)
    ```

    ## Good
    ```python
    from transformers import Trainer, TrainingArguments

    def accuracy(result):
        return {"accuracy": (result.predictions == result.label_ids).mean()}

    def best(logits, labels):
        return logits.argmax(-1)

    def build(model, train, test):
        arguments = TrainingArguments("out", bf16=True)
        return Trainer(
            model, arguments, train_dataset=train, eval_dataset=test,
            compute_metrics=accuracy, preprocess_logits_for_metrics=best,
        )
    ```

    ## Fix safety
    No fix: the metrics get other arrays.

    ## How a GPU shows it
    The memory grows during an evaluation, which may end with an error for want of it.

    ## References
    - [transformers.Trainer](https://huggingface.co/docs/transformers/main_classes/trainer#transformers.Trainer):
      `preprocess_logits_for_metrics`
    """

    code, name = "TPF949", "all-logits-kept"
    effect, severity = Effect.MEMORY, Severity.INFO
    listens = (Calls(*_TRAINERS),)
    mentions = Mentions("compute_metrics", unlike=_FEW_CLASSES)

    def check(self, site: CallSite) -> Iterator[Finding]:
        metrics = site.argument("compute_metrics")
        if metrics is None or site.value(metrics) == NONE or site.has_unpacking:
            return
        if site.argument("preprocess_logits_for_metrics") is not None or not _takes_largest(site.model, metrics):
            return
        yield self.finding(
            site,
            f"`{site.text(metrics)}` needs only the largest of the logits, and the trainer keeps all of them",
            confidence=Confidence.MEDIUM,
            heat=Heat.WARM,
            help="Pass `preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1)`.",
        )


def _takes_largest(model: Model, metrics: ast.expr) -> bool:
    """True if a function of the project takes an `argmax`."""
    functions = filter(None, map(model.view.function, model.value(metrics).members))
    return any(last_name(call) == "argmax" for _, info in functions for call in calls_in(info.node))
