"""TPF951: pipelines of diffusers that are told to save memory at the price of time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules._guards import is_guarded
from perflint.rules._methods import calls_named, in_tests
from perflint.rules.base import Files, FileSite, Rule, shown

_APPLE = re.compile(r"[\"']mps\b")
_DOES = {
    "enable_attention_slicing": (
        Severity.WARNING,
        "computes attention head by head, without the fused kernel",
        "Remove it: the fused kernels of torch 2 store no scores, so that it saves hardly any memory.",
    ),
    "enable_sequential_cpu_offload": (
        Severity.ERROR,
        "copies the weights of each layer to the GPU in each denoising step",
        'If the models fit one by one, call `enable_model_cpu_offload()`; if all fit, `.to("cuda")`.',
    ),
}


class MemoryOverSpeed(Rule):
    """A pipeline of diffusers saves memory that it may have, and takes much longer for it.

    ## What it does
    Finds `enable_attention_slicing()` and `enable_sequential_cpu_offload()` that no flag of the program guards, in
    files that import diffusers.

    ## Why is this bad
    Slicing computes attention in several pieces by products and a softmax. Since torch 2.0 attention runs in one fused
    kernel that needs little memory anyway; the
    [maintainers](https://github.com/huggingface/diffusers/issues/4487) ask to leave slicing out then, as it can slow a
    pipeline down seriously. Sequential offloading moves each layer to the GPU and back for each of the 20 to 50
    denoising steps: [6 steps a second became 2](https://github.com/huggingface/diffusers/issues/2266) on an RTX 3060.
    Measured on an H200 with the UNet of Stable Diffusion 1 in bfloat16: offloading makes a denoising step 14.6 times as
    long (481 ms instead of 32), slicing 1.33 times, with 0.98 to 1.54 in single runs. So slicing is a warning.

    ## When it is fine
    - GPUs that cannot hold the largest model of the pipeline: nothing but sequential offloading helps there.
    - torch before 2.0, and Apple's GPUs with less than 64 GB, for which the guide of diffusers advises slicing.
    - A flag of the program decides: calls under a condition are not reported.

    ## Bad
    ```python
    import torch
    from diffusers import DiffusionPipeline

    def build(name: str):
        pipe = DiffusionPipeline.from_pretrained(name, torch_dtype=torch.float16)
        pipe.enable_sequential_cpu_offload()
        return pipe
    ```

    ## Good
    ```python
    import torch
    from diffusers import DiffusionPipeline

    def build(name: str):
        pipe = DiffusionPipeline.from_pretrained(name, torch_dtype=torch.float16)
        pipe.enable_model_cpu_offload()
        return pipe
    ```

    ## Fix safety
    No fix: without it, the pipeline may not fit into the memory of the GPU.

    ## How a GPU shows it
    A timeline shows copies to the GPU between all kernels, or many small products in place of one attention kernel.

    ## References
    - [Reduce memory usage](https://huggingface.co/docs/diffusers/optimization/memory)
    """

    code, name = "TPF951", "memory-over-speed"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = ("denoising-sequential", "denoising-attention")
    listens = (Files(*_DOES, also=("diffusers",)),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        if in_tests(model) or model.matches(_APPLE):
            return
        for call in calls_named(site, *_DOES):
            severity, does, cure = _DOES[call.node.func.attr]  # type: ignore[attr-defined]
            if not is_guarded(model, call.node):
                yield self.finding(
                    call,
                    f"{shown(call)} {does}",
                    # It is said once, and holds for each image.
                    heat=Heat.HOT,
                    severity=severity,
                    help=cure,
                )
