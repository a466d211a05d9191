"""TPF353: batches of text whose length no tensor-core tile divides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.fixes.edits import replace, with_argument
from perflint.rules._names import Names
from perflint.rules.base import Files, Rule
from perflint.rules.precision._region import region
from perflint.rules.sync._words import quoted
from perflint.semantics.model import Model
from perflint.semantics.sites import FileSite, Site
from perflint.source.concrete import cst

_COLLATORS = frozenset(
    f"DataCollator{name}" for name in ("WithPadding", "ForTokenClassification", "ForSeq2Seq", "ForLanguageModeling")
)
_FIXED = re.compile(r"max_length[\"']|group_texts|block_size|packing|PaddingFree|flash_attention|padding_free")


class UnpaddedTokens(Rule):
    """A collator pads to the longest text of each batch, whatever its length.

    ## What it does
    Finds `DataCollatorWithPadding`, `DataCollatorForSeq2Seq`, `DataCollatorForTokenClassification` and
    `DataCollatorForLanguageModeling` of transformers without `pad_to_multiple_of`, in files that train in bfloat16
    or float16.

    ## Why is this bad
    The length of a batch is then any number. Products over it, those of attention above all, run fastest in half
    precision where it is a multiple of 8, and every other length is a new shape for `torch.compile`, for CUDA
    graphs and for the caching allocator.

    ## When it is fine
    - Texts of one length: padding to a maximum, texts that are joined and cut into blocks, packing.
    - Attention over joined texts of any length, without padding (flash attention with `cu_seqlens`).
    - float32 without TF32, which knows no tiles.
    - Some people measured nothing: the loss depends on the lengths and on the model.

    ## Bad
    ```python
    from transformers import DataCollatorWithPadding, Trainer, TrainingArguments

    def trainer(model, tokenizer, data):
        return Trainer(
            model=model,
            args=TrainingArguments("out", bf16=True),
            train_dataset=data,
            data_collator=DataCollatorWithPadding(tokenizer),
        )
    ```

    ## Good
    ```python
    from transformers import DataCollatorWithPadding, Trainer, TrainingArguments

    def trainer(model, tokenizer, data):
        return Trainer(
            model=model,
            args=TrainingArguments("out", bf16=True),
            train_dataset=data,
            data_collator=DataCollatorWithPadding(tokenizer, pad_to_multiple_of=8),
        )
    ```

    ## Fix safety
    Unsafe: batches have up to seven more tokens, which the attention mask hides; sums are rounded in another order,
    and a model with absolute positions must have room for them.

    ## How a GPU shows it
    Kernels of attention with `align1` or `align2` in their names. `benchmarks/rules/models.py tokens` times both.

    ## References
    - [Padding and truncation](https://huggingface.co/docs/transformers/pad_truncation)
    - [Data collators](https://huggingface.co/docs/transformers/main_classes/data_collator)
    - [Seen: 11 to 10 seconds a step](https://github.com/LAION-AI/Open-Assistant/issues/1979);
      [not seen](https://github.com/allenai/allennlp/pull/4929)
    """

    code, name = "TPF353", "unpadded-tokens"
    effect, severity = Effect.COMPUTE, Severity.INFO
    listens = (Files(*sorted(_COLLATORS)),)

    def check(self, node: cst.CSTNode, site: FileSite) -> Iterator[Finding]:
        model = site.model
        if _FIXED.search(model.source.text):
            return
        names = Names(model.module.structure)
        made = [call for call in model.nodes(ast.Call) if _is_unpadded(names, call)]
        half = region(model).half if made else None
        if half is None:
            return
        for call in made:
            yield self.finding(
                Site(model, call),
                f"{quoted(site.text(call))} makes batches of any length in a program that trains in {half.value}",
                confidence=Confidence.MEDIUM,
                # It is made once, and works for every step.
                heat=Heat.HOT,
                help="Pass `pad_to_multiple_of=8`.",
                fix=_fix(model, call),
            )


def _is_unpadded(names: Names, call: ast.Call) -> bool:
    module, _, name = names.full_name(call.func).rpartition(".")
    if name not in _COLLATORS or module.partition(".")[0] != "transformers" or len(call.args) > 2:
        return False
    return not any(keyword.arg in (None, "pad_to_multiple_of", "padding") for keyword in call.keywords)


def _fix(model: Model, call: ast.Call) -> Fix | None:
    source = model.source
    concrete = source.concrete(call)
    assert isinstance(concrete, cst.Call)
    changed = with_argument(concrete, "pad_to_multiple_of=8")
    if changed is None:
        return None
    return Fix("Pass `pad_to_multiple_of=8`", Safety.UNSAFE, (replace(source, source.span(call), changed),))
