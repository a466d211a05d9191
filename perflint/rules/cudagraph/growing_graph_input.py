"""TPF814: a tensor that grows, for code that runs as CUDA graphs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Severity
from perflint.rules._memory.flows import made, target_of
from perflint.rules._turns import iteration_around, nodes_of
from perflint.rules.base import Calls, CallSite, Mentions, Rule, often, shown
from perflint.rules.cudagraph._outputs import graphs_of
from perflint.semantics.model import Model
from perflint.semantics.structure import names_in


class GrowingGraphInput(Rule):
    """Code that runs as CUDA graphs gets a longer tensor in each iteration.

    ## What it does
    Finds `x = torch.cat([x, …])` in a loop that also passes `x` to something compiled with `mode="reduce-overhead"` or
    `"max-autotune"`.

    ## Why is this bad
    A CUDA graph holds for one shape. Each new length is a new recording, with a warm-up before it and memory for its
    inputs, so that the mode makes the loop slower than without it: a forward of eight small blocks took 6.5 times as
    long as with the default mode while its input grew by a row in each call, on an H200. torch warns after many of
    them.

    ## When it is fine
    - Few iterations that are repeated for the same lengths, again and again.
    - A mode without CUDA graphs, and `torch._inductor.config.triton.cudagraph_skip_dynamic_graphs`: not reported.

    ## Bad
    ```python
    import torch

    @torch.inference_mode()
    def generate(model: torch.nn.Module, ids: torch.Tensor, steps: int):
        model = torch.compile(model.cuda(), mode="reduce-overhead")
        for _ in range(steps):
            token = model(ids)[:, -1].argmax(-1, keepdim=True).clone()
            ids = torch.cat([ids, token], dim=1)
        return ids
    ```

    ## Good
    ```python
    import torch

    @torch.inference_mode()
    def generate(model: torch.nn.Module, ids: torch.Tensor, cache, steps: int):
        model = torch.compile(model.cuda(), mode="reduce-overhead")
        token, tokens = ids, []
        for _ in range(steps):
            token = model(token, cache)[:, -1].argmax(-1, keepdim=True).clone()
            tokens.append(token)
        return torch.cat([ids, *tokens], dim=1)
    ```

    ## Fix safety
    No fix: the model has to support a cache, or a mask for a buffer of the full length.

    ## How a GPU shows it
    `TORCH_LOGS=cudagraphs` prints a recording for each length.

    ## References
    - [CUDAGraph Trees: dynamic shape
      support](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_cudagraph_trees.html)
    """

    code, name = "TPF814", "growing-graph-input"
    effect, severity = Effect.CAPTURE, Severity.ERROR
    measured = ("growing-graph-input",)
    costs = "an input that grows in each call makes a forward of eight small blocks {0} slower than without graphs"
    listens = (Calls("torch.cat", "torch.concat", "torch.concatenate", "torch.hstack", "torch.nn.functional.pad"),)
    mentions = Mentions("reduce-overhead", "max-autotune", "cudagraphs", without=("cudagraph_skip_dynamic_graphs",))
    since = (2, 0)

    def check(self, site: CallSite) -> Iterator[Finding]:
        model, target = site.model, target_of(site.model, site.node)
        if not isinstance(target, ast.Name) or target.id not in _joined(site):
            return
        loop = iteration_around(model, site.node)
        call = None if loop is None else _runs_as_graph(model, loop, target.id)
        if call is None:
            return
        yield self.finding(
            site,
            f"{shown(site)} gives {shown(site, call.func)} another shape, and each "
            f"shape is recorded as a CUDA graph of its own{often(site)}",
            help="Pass the new part alone, with a cache, or a buffer of the full length.",
        )


def _joined(site: CallSite) -> set[str]:
    """The names that a call joins to a longer tensor."""
    given = site.argument("input" if site.target.endswith("pad") else "tensors", 0)
    given = None if given is None else made(site.model, given)
    parts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else [given] if given is not None else []
    return {part.id for part in parts if isinstance(part, ast.Name)}


def _runs_as_graph(model: Model, loop: ast.AST, name: str) -> ast.Call | None:
    """The call in a loop that passes a tensor to code that runs as CUDA graphs."""
    for node in nodes_of(model, loop):  # type: ignore[arg-type]
        if isinstance(node, ast.Call) and any(name in names_in(each) for each in node.args) and graphs_of(model, node):
            return node
    return None
