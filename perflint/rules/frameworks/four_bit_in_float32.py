"""TPF945: weights of four bits that compute in float32."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules._methods import calls_named, is_true
from perflint.rules._sources import passed_to, unpacked
from perflint.rules.base import Calls, CallSite, Files, FileSite, Rule

_CONFIGS = tuple(f"transformers.{home}BitsAndBytesConfig" for home in ("", "utils.", "utils.quantization_config."))


class FourBitInFloat32(Rule):
    """A model with weights of four bits computes in float32.

    ## What it does
    Finds `BitsAndBytesConfig(load_in_4bit=True)` of transformers without `bnb_4bit_compute_dtype`,
    and `from_pretrained(…, load_in_4bit=True)`.

    ## Why is this bad
    The weights are unpacked for each product into the type of the argument, which is float32 by default: the
    products do not run on the fast units for half precision, and twice the memory is moved. No warning reaches the
    user. Sixteen products with weights of 4096 × 4096 take 1.6 × as long on an H200 for one row, as in decoding, and
    3.1 × for 512 rows, as in a prompt.
    h2oGPT went from 5 to 16 tokens per second with a half type.

    ## When it is fine
    - Results that need float32.
    - GPUs without bfloat16: pass `torch.float16`.

    ## Bad
    ```python
    from transformers import BitsAndBytesConfig

    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")
    ```

    ## Good
    ```python
    import torch
    from transformers import BitsAndBytesConfig

    config = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
    )
    ```

    ## Fix safety
    No fix: the results are rounded in another way.

    ## How a GPU shows it
    A profile shows `sgemm` kernels, or those of TF32, behind `kDequantizeBlockwise`.

    ## References
    - [BitsAndBytesConfig](https://huggingface.co/docs/transformers/main_classes/quantization#transformers.BitsAndBytesConfig)
    - [h2ogpt#682](https://github.com/h2oai/h2ogpt/pull/682): 5 and 16 tokens per second
    - [bitsandbytes#2077](https://github.com/bitsandbytes-foundation/bitsandbytes/pull/2077): why no warning is shown
    - [bitsandbytes: compute data type](https://huggingface.co/docs/transformers/quantization/bitsandbytes)
    """

    code, name = "TPF945", "four-bit-in-float32"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = ("four-bit-in-float32-1", "four-bit-in-float32-512")
    costs = "products of one row with weights of 4096 × 4096 are {0} slower than in bfloat16, those of 512 rows {1}"
    listens = (Calls(*_CONFIGS), Files("load_in_4bit", also=("from_pretrained",)))

    def check(self, site: CallSite | FileSite) -> Iterator[Finding]:
        if isinstance(site, CallSite):
            yield from self._configured(site)
            return
        for call in calls_named(site, "from_pretrained"):
            if site.model.symbols.full_name(call.node.func).startswith("transformers."):
                yield from self._configured(call)

    def _configured(self, site: CallSite) -> Iterator[Finding]:
        model, node = site.model, site.node
        is_known = not site.has_unpacking or unpacked(model, node)[1]
        is_chosen = passed_to(model, node, "bnb_4bit_compute_dtype", 6) is not None
        if not is_known or is_chosen or not is_true(passed_to(model, node, "load_in_4bit", 1)):
            return
        yield self.finding(
            site,
            "`bnb_4bit_compute_dtype` is float32 by default: each layer computes in float32",
            # It is said once, and holds for each step.
            heat=Heat.HOT,
            help="Pass `bnb_4bit_compute_dtype=torch.bfloat16`, or the type of the model.",
        )
