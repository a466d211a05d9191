"""TPF948: generation by compiled code with a cache that grows."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._results import COMPILE
from perflint.rules.base import Calls, Mentions, Rule
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import path_of
from perflint.source.quoting import quoted

_CACHES = ("cache_implementation", "StaticCache", "past_key_values", "cache_config")


class DynamicCacheCompiled(Rule):
    """A compiled model of transformers generates with the cache that grows.

    ## What it does
    Finds `model.generate(…)` of a model whose `forward` is compiled, by `model.compile()` or
    `model.forward = torch.compile(model.forward)`, in files that choose no other cache.

    ## Why is this bad
    By default the keys and values are joined to longer tensors for each token. The compiled code gets other shapes each
    time: it is compiled again or for any length, and in the mode `reduce-overhead` each length is a CUDA graph of its
    own. A cache of a fixed length keeps the shapes. The cost depends on the model; it has not been measured here.

    ## When it is fine
    - Models without a static cache, and a cache that would take more memory than there is.
    - Files that mention `cache_implementation`, `StaticCache` or `past_key_values`: not reported.

    ## Bad
    ```python
    import torch
    from transformers import AutoModelForCausalLM

    def answer(ids: torch.Tensor):
        model = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
        model.forward = torch.compile(model.forward, mode="reduce-overhead")
        return model.generate(ids.cuda(), max_new_tokens=128)
    ```

    ## Good
    ```python
    import torch
    from transformers import AutoModelForCausalLM

    def answer(ids: torch.Tensor):
        model = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
        model.forward = torch.compile(model.forward, mode="reduce-overhead")
        return model.generate(ids.cuda(), max_new_tokens=128, cache_implementation="static")
    ```

    ## Fix safety
    No fix: the cache takes the memory of the longest text from the beginning.

    ## How a GPU shows it
    `TORCH_LOGS=recompiles` prints a recompilation for the first tokens, and `TORCH_LOGS=cudagraphs` one recording for
    each token.

    ## References
    - [transformers: optimizing inference](https://huggingface.co/docs/transformers/main/en/llm_optims): static
      key-value cache and torch.compile
    """

    code, name = "TPF948", "dynamic-cache-compiled"
    effect, severity = Effect.RECOMPILE, Severity.INFO
    listens = (Calls("torch.nn.Module.generate"),)
    mentions = Mentions("compile(", without=_CACHES)

    def check(self, site: CallSite) -> Iterator[Finding]:
        path = "" if site.owner is None else path_of(site.owner)
        if not path or not _compiles_forward(site, path):
            return
        yield self.finding(
            site,
            f"{quoted(site.text(site.node))} gives the compiled `forward` a longer cache for each token",
            confidence=Confidence.MEDIUM,
            # It runs the model once for each token.
            heat=Heat.HOT,
            help='Pass `cache_implementation="static"`.',
        )


def _compiles_forward(site: CallSite, path: str) -> bool:
    """True if the file compiles the code that runs when an object is called, in place."""
    model = site.model
    if any(path_of(call.func) == f"{path}.compile" for call in model.nodes(ast.Call)):
        return True
    for statement in model.nodes(ast.Assign):
        if any(path_of(target) == f"{path}.forward" for target in statement.targets):
            if isinstance(statement.value, ast.Call) and model.target(statement.value) == COMPILE:
                return True
    return False
