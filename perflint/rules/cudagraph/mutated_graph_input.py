"""TPF807: changing an argument in place in a function that is to run as a CUDA graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.semantics.facts import torch_api
from perflint.semantics.model import Model
from perflint.semantics.structure import FunctionNode


class MutatedGraphInput(Rule):
    """A function that is compiled as a CUDA graph changes its argument.

    ## What it does
    Finds in-place operations on tensor arguments (`x.add_(1)`, `x += 1`, `cache[:, i] = k`) in
    functions that are compiled with `torch.compile(mode="reduce-overhead")` or `"max-autotune"`.

    ## Why is this bad
    The graph works on copies of its arguments, at fixed addresses, so a change of an argument would
    change the copy. `torch.compile` then does not use CUDA graphs ("skipping cudagraphs due to
    mutated inputs"), and the compiled code keeps the launch overhead that the mode should remove. A
    forward of eight small blocks took 2.4 times as long on an H200.

    ## When it is fine
    Parameters and buffers of the module, which stay where they are, and outputs of the same graphs
    may be changed: a key-value cache in a buffer is the usual way. Arguments whose addresses never
    change and that are marked by `torch._dynamo.mark_static_address`. If the mode uses no graphs.

    ## Bad
    ```python
    import torch

    @torch.compile(mode="reduce-overhead")
    def step(cache: torch.Tensor, k: torch.Tensor, position: int) -> torch.Tensor:
        cache[:, position] = k
        return cache.sum(1)
    ```

    ## Good
    ```python
    import torch

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("cache", torch.zeros(2, 128, 64))

        def forward(self, k: torch.Tensor, position: int) -> torch.Tensor:
            self.cache[:, position] = k
            return self.cache.sum(1)

    step = torch.compile(Step(), mode="reduce-overhead")
    ```

    ## Fix safety
    No fix: only the author can say who owns the tensor.

    ## How a GPU shows it
    A trace confirms the finding if the compiler names this line as the reason for a skipped CUDA graph. It is refuted
    if the line was compiled and no CUDA graph was skipped.

    `TORCH_LOGS=perf_hints` prints "skipping cudagraphs due to mutated inputs" with the line; a trace of
    perflint has a `cudagraph-skip` record. A profile shows no `cudaGraphLaunch`.

    ## References
    - [CUDAGraph Trees: input mutation](https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html#input-mutation-support)
    """

    code, name = "TPF807", "mutated-graph-input"
    effect, severity = Effect.CAPTURE, Severity.ERROR
    measured = ("mutated-argument",)
    costs = "without its CUDA graph, a forward of eight small blocks is {0} slower"
    listens = (Files("reduce-overhead", "max-autotune", "cudagraphs", without=("mark_static_address",)),)
    since = (2, 0)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        if not model.compiles:
            return
        for changed, name in _changes(model):
            function = model.function(changed)
            compiled = model.compiled(changed)
            if function is None or compiled is None or compiled.depth or not compiled.options.uses_graphs:
                continue
            if name not in _arguments(function) or _is_bound(model, function, name):
                continue
            yield self.finding(
                site,
                f"{shown(site, changed)} changes the argument `{name}`: the function of `{compiled.options.text}`"
                " then runs without a CUDA graph",
                confidence=Confidence.MEDIUM,
                heat=model.heat(changed),
                span=model.source.span(changed),
                help="Keep the tensor in a buffer of the module, or return the new value.",
            )


def _changes(model: Model) -> Iterator[tuple[ast.expr, str]]:
    """Expressions that change a tensor of a plain name in place."""
    for statement in model.nodes(ast.AugAssign):
        if isinstance(statement.target, ast.Name) and model.value(statement.target).tensor is not None:
            yield statement.target, statement.target.id
    for subscript in model.nodes(ast.Subscript):
        if isinstance(subscript.ctx, ast.Store) and isinstance(subscript.value, ast.Name):
            if model.value(subscript.value).tensor is not None:
                yield subscript, subscript.value.id
    for call in model.nodes(ast.Call):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr.endswith("_") and not func.attr.endswith("__"):
            if isinstance(func.value, ast.Name) and func.attr in torch_api.tensor_methods():
                if func.attr not in ("requires_grad_", "retain_grad_"):
                    yield call, func.value.id


def _arguments(function: FunctionNode) -> set[str]:
    args = function.args
    return {arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)} - {"self", "cls"}


def _is_bound(model: Model, function: FunctionNode, name: str) -> bool:
    """True if a function binds an argument's name to something else."""
    return any(
        isinstance(target, ast.Name) and target.id == name and model.function(assignment) is function
        for assignment in model.nodes(ast.Assign)
        for target in assignment.targets
    )
