"""TPF948: generation by compiled code with a cache that grows."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._results import COMPILE
from perflint.rules._sources import passed_to
from perflint.rules.base import Calls, CallSite, Mentions, Rule, shown
from perflint.semantics.structure import path_of
from perflint.semantics.values import Const

_GRAPHS = (Const("reduce-overhead"), Const("max-autotune"))
_CACHES = ("cache_implementation", "StaticCache", "past_key_values", "cache_config")


class DynamicCacheCompiled(Rule):
    """A model of transformers that runs as CUDA graphs generates with the cache that grows.

    ## What it does
    Finds `model.generate(…)` of a model whose `forward` is compiled to CUDA graphs, by `model.compile(mode=…)` or
    `model.forward = torch.compile(model.forward, mode=…)` with `"reduce-overhead"` or `"max-autotune"`, in files that
    choose no other cache.

    ## Why is this bad
    By default the keys and values are joined to longer tensors for each token. Each length is a CUDA graph of its own,
    and the cache keeps the outputs of one graph while the next one runs, which writes to the same memory: a Llama of 12
    layers raised "accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run" at the first
    tokens, with torch 2.11 and transformers 5.17. It is a warning because generation fails. A cache of a fixed length
    keeps the shapes and its memory.

    ## When it is fine
    - Modes without CUDA graphs: not reported. With the default mode the same model took no longer than with a static
      cache on an H200: 189 against 212 ms for 32 tokens.
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
    A run raises, or `TORCH_LOGS=cudagraphs` prints one recording for each token.

    ## References
    - [transformers: optimizing inference](https://huggingface.co/docs/transformers/main/en/llm_optims): static
      key-value cache and torch.compile
    """

    code, name = "TPF948", "dynamic-cache-compiled"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (Calls("torch.nn.Module.generate"),)
    mentions = Mentions("compile(", without=_CACHES)

    def check(self, site: CallSite) -> Iterator[Finding]:
        path = "" if site.owner is None else path_of(site.owner)
        if not path or not _compiles_forward(site, path):
            return
        yield self.finding(
            site,
            f"{shown(site)} gives the CUDA graphs of `forward` a longer cache for each token, and keeps their outputs",
            confidence=Confidence.MEDIUM,
            # It runs the model once for each token.
            heat=Heat.HOT,
            help='Pass `cache_implementation="static"`.',
        )


def _compiles_forward(site: CallSite, path: str) -> bool:
    """True if the file compiles the code that runs when an object is called to CUDA graphs, in place."""
    model = site.model
    calls = [call for call in model.nodes(ast.Call) if path_of(call.func) == f"{path}.compile"]
    for statement in model.nodes(ast.Assign):
        if any(path_of(target) == f"{path}.forward" for target in statement.targets):
            if isinstance(statement.value, ast.Call) and model.target(statement.value) == COMPILE:
                calls.append(statement.value)
    modes = (passed_to(model, call, "mode") for call in calls)
    return any(mode is not None and model.value(mode) in _GRAPHS for mode in modes)
