"""TPF375: C++ and CUDA extensions that are compiled at run time, or called unregistered in compiled code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._memory.flows import value_of
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.semantics.binders import targets
from perflint.semantics.model import Model
from perflint.semantics.structure import path_of

_LOADS = frozenset({"torch.utils.cpp_extension.load", "torch.utils.cpp_extension.load_inline"})
_REGISTERS = (
    *("torch.library", "custom_op", "register_fake", "TORCH_LIBRARY", "allow_in_graph", "is_python_module=False"),
)


class UnregisteredExtension(Rule):
    """An extension is compiled while the program runs, or called in compiled code without being registered.

    ## What it does
    Finds `torch.utils.cpp_extension.load` and `load_inline` at the top level of a module, and calls
    of their results in functions that run under `torch.compile`, in files that register no
    operator.

    ## Why is this bad
    `load` runs a compiler when the module is imported: seconds to minutes at each first start on a
    machine, in each process of a job, behind one lock. It returns a Python module of C++ functions,
    which are unknown to `torch.compile`: the graph ends at each call and another begins.

    ## When it is fine
    During the development of a kernel. In a function that is called once, when the program needs
    it. If the C++ code registers its functions (`TORCH_LIBRARY`) or Python does
    (`torch.library.custom_op` with `register_fake`): then a graph can hold them.

    ## Bad
    ```python
    import torch
    from torch.utils.cpp_extension import load_inline

    SOURCE = "torch::Tensor twice(torch::Tensor x) { return x * 2; }"
    kernels = load_inline("kernels", cpp_sources=SOURCE, functions="twice")

    @torch.compile
    def step(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(kernels.twice(x))
    ```

    ## Good
    ```python
    import torch
    import kernels  # built ahead of time, by setup.py

    @torch.library.custom_op("mine::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return kernels.twice(x)

    @twice.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    @torch.compile
    def step(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(twice(x))
    ```

    ## Fix safety
    No fix: only the author can say what the function does to its arguments.

    ## How a GPU shows it
    `TORCH_LOGS=graph_breaks` prints "Attempted to call function marked as skipped" (GB0007) with the name
    of the extension; the first start spends its time in `ninja`.

    ## References
    - [Custom operators in Python](https://docs.pytorch.org/tutorials/advanced/python_custom_ops.html)
    - [torch.utils.cpp_extension](https://docs.pytorch.org/docs/stable/cpp_extension.html)
    """

    code, name = "TPF375", "unregistered-extension"
    effect, severity = Effect.GRAPH_BREAK, Severity.INFO
    listens = (Files("cpp_extension"),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        loaded = set(_loaded(model))
        for call in model.nodes(ast.Call):
            if model.target(call) in _LOADS and model.function(call) is None:
                yield self.finding(
                    site,
                    f"{shown(site, call)} runs a C++ compiler when the module is first imported",
                    confidence=Confidence.MEDIUM,
                    effect=Effect.PIPELINE,
                    heat=Heat.WARM,
                    span=model.source.span(call),
                    help="Build the extension ahead of time, with `CUDAExtension` in setup.py.",
                )
        if model.says(*_REGISTERS):
            return
        for call in model.nodes(ast.Call):
            path = path_of(call.func).rpartition(".")[0]
            compiled = model.compiled(call) if path in loaded else None
            if compiled is not None:
                yield self.finding(
                    site,
                    f"{shown(site, call)} calls an extension that is not registered: this breaks the graph of "
                    f"{compiled.options.place}",
                    heat=model.heat(call),
                    span=model.source.span(call),
                    help="Register it: `torch.library.custom_op` and `register_fake`.",
                )


def _loaded(model: Model) -> Iterator[str]:
    """The names of the extensions that the file loads."""
    for assignment in model.nodes(ast.Assign):
        for target in (each for whole in assignment.targets for each in targets(whole)):
            value = value_of(model, target)
            if isinstance(value, ast.Call) and model.target(value) in _LOADS:
                yield path_of(target)
