"""TPF942: settings of the Trainer of transformers that make each step wait."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.fixes.edits import with_one_more
from perflint.rules._methods import in_tests
from perflint.rules._names import TRAINING_ARGUMENTS
from perflint.rules._sources import passed_to
from perflint.rules.base import Calls, CallSite, Rule
from perflint.rules.worth import sentence
from perflint.semantics.values import Const

_OFTEN = 10
"""Caches that are emptied every 10 steps, or more often, are never warm for long."""


class TrainerReadsEachStep(Rule):
    """Settings of `transformers.TrainingArguments` that make the CPU wait in each step.

    ## What it does
    Finds `logging_steps=1`, `torch_empty_cache_steps` of ten or less, and, with low confidence,
    `TrainingArguments` that keep `logging_nan_inf_filter` on.

    ## Why is this bad
    With `logging_steps=1` the trainer reads the loss in every step, as `.item()` does. Emptying the cache gives memory
    back that the next step asks the driver for again: 17% of a step in training of a 124 M
    parameter GPT on an H200. The filter, on by default, tests `if isnan(loss) or isinf(loss)` in
    each step, which waits twice: a branch on `isnan(loss)` made the step of that GPT 2% slower. A
    user's profile put 7% of the training time on that line.

    ## When it is fine
    - Short runs, and runs that are being debugged.
    - The filter: a loss that may be NaN now and then would spoil the average in the log. It does not change
      the training.
    - Memory is short: `torch_empty_cache_steps` is meant for that.

    ## Bad
    ```python
    from transformers import TrainingArguments

    arguments = TrainingArguments(output_dir="out", logging_steps=1)
    ```

    ## Good
    ```python
    from transformers import TrainingArguments

    arguments = TrainingArguments(output_dir="out", logging_steps=50, logging_nan_inf_filter=False)
    ```

    ## Fix safety
    Unsafe, and offered for the filter only: `logging_nan_inf_filter=False` lets a NaN of one step
    into the average loss of the log, which callbacks read, too (early stopping by `loss`). No fix is offered in tests.

    ## How a GPU shows it
    A trace confirms the finding if the CPU waited in `transformers/trainer.py` in at least half of the
    steps, and refutes it otherwise; `torch.cuda.set_sync_debug_mode("warn")` warns there.

    ## References
    - [TrainingArguments](https://huggingface.co/docs/transformers/main_classes/trainer#transformers.TrainingArguments)
    - [transformers#33693](https://github.com/huggingface/transformers/issues/33693)
    - [transformers#31372](https://github.com/huggingface/transformers/issues/31372)
    """

    code, name = "TPF942", "trainer-reads-each-step"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("scalar-read-in-loop-gpt", "scalar-read-in-loop-gpt-host-work")
    listens = (Calls(*TRAINING_ARGUMENTS),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        logging, empty = (
            passed_to(site.model, site.node, name) for name in ("logging_steps", "torch_empty_cache_steps")
        )
        if logging is not None and site.value(logging) == Const(1):
            yield self._found(site, "`logging_steps=1` reads the loss (runs every step)", Confidence.MEDIUM)
        if empty is not None and _is_often(site.value(empty)):
            price = sentence("`empty_cache()` in each step makes GPT-2 training {0} slower", "empty-cache-per-step-gpt")
            text = "`torch_empty_cache_steps` empties the cache every few steps"
            yield self._found(site, text, Confidence.HIGH, cost=price)
        if site.argument("logging_nan_inf_filter") is None and not site.has_unpacking:
            edit = with_one_more(site.model.source, site.node, "logging_nan_inf_filter=False")
            fix = None if edit is None or in_tests(site.model) else Fix("Turn the filter off", Safety.UNSAFE, (edit,))
            text = (
                "`logging_nan_inf_filter` is on by default: the CPU waits in each step to know whether the loss is NaN"
            )
            price = sentence("such a test in each step costs GPT-2 training {0}", "isnan-branch-per-step-gpt")
            yield self._found(site, text, Confidence.LOW, fix, price)

    def _found(
        self, site: CallSite, text: str, confidence: Confidence, fix: Fix | None = None, cost: str | None = None
    ) -> Finding:
        # It is set once, and holds for each step.
        return self.finding(site, text, confidence=confidence, heat=Heat.HOT, fix=fix, cost=cost)


def _is_often(value: object) -> bool:
    return isinstance(value, Const) and type(value.value) is int and 0 < value.value <= _OFTEN
