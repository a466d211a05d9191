"""TPF950: a trainer that computes in float32."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._methods import in_tests
from perflint.rules._names import TRAINING_ARGUMENTS
from perflint.rules.base import Calls, CallSite, Mentions, Rule

_FORMATS = ("bf16", "fp16", "tf32", "deepspeed", "use_cpu", "no_cuda", "use_mps_device", "jit_mode_eval")
_SAID = (
    r"float16|\.half\(|allow_tf32|matmul_precision|fp32_precision|dtype|load_in_|mixed_precision|quantization_config"
)


class TrainerInFloat32(Rule):
    """The `Trainer` of transformers computes in float32.

    ## What it does
    Finds `TrainingArguments(…)` without `bf16`, `fp16` or `tf32`, in files that mention no number format.

    ## Why is this bad
    The trainer computes in the type of the parameters, which is float32 for a model that is loaded without another.
    Matrix products in full float32 do not run on the tensor cores, which are several times faster, and activations
    take twice the memory of a half type. A training step of GPT-2 takes 6.2 × as long on an H200 as under autocast
    to bfloat16, and 11.1 GiB instead of 8.6. It is information because the number format is the author's choice: a
    trace of the program shows what another one would gain.

    ## When it is fine
    - GPUs without bfloat16 or TF32.
    - Models that are loaded in a half type elsewhere, and `accelerate config` with mixed precision.

    ## Bad
    ```python
    from transformers import Trainer, TrainingArguments

    def build(model, train):
        arguments = TrainingArguments("out", per_device_train_batch_size=16)
        return Trainer(model, arguments, train_dataset=train)
    ```

    ## Good
    ```python
    from transformers import Trainer, TrainingArguments

    def build(model, train):
        arguments = TrainingArguments("out", per_device_train_batch_size=16, bf16=True)
        return Trainer(model, arguments, train_dataset=train)
    ```

    ## Fix safety
    No fix: the results are rounded in another way.

    ## How a GPU shows it
    A profile shows `sgemm` kernels.

    ## References
    - [transformers: GPU training](https://huggingface.co/docs/transformers/main/en/perf_train_gpu_one): mixed precision
    """

    code, name = "TPF950", "trainer-in-float32"
    effect, severity = Effect.COMPUTE, Severity.INFO
    listens = (Calls(*TRAINING_ARGUMENTS),)
    mentions = Mentions("TrainingArguments", unlike=_SAID)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if site.has_unpacking or in_tests(site.model) or any(site.argument(each) is not None for each in _FORMATS):
            return
        yield self.finding(
            site,
            "training computes in float32: no number format is chosen",
            confidence=Confidence.MEDIUM,
            # It is set once, and holds for each step.
            heat=Heat.HOT,
            help="Pass `bf16=True`, or `tf32=True` where results must stay close to those of float32.",
        )
