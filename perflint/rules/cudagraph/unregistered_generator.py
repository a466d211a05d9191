"""TPF812: random numbers of a generator that the recording CUDA graph does not know."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.semantics.structure import keyword
from perflint.semantics.values import Instance


class UnregisteredGenerator(Rule):
    """A CUDA graph records random numbers of a generator that is not registered with it.

    ## What it does
    Finds calls with `generator=` in the code that a CUDA graph records, for a `torch.Generator` that the file made, if
    it never calls `register_generator_state`.

    ## Why is this bad
    A replay has to advance the state of a generator, or each one draws the same numbers. torch does so for the default
    generators, and for those that are registered. For others the capture fails: "Attempt to increase offset for a CUDA
    generator not in capture mode". It is a warning because the capture fails, not because of what it costs.

    ## When it is fine
    - The default generator of the GPU.
    - Random numbers from before the capture, in a tensor that the graph reads.

    ## Bad
    ```python
    import torch

    def capture(model: torch.nn.Module, static_x: torch.Tensor):
        generator = torch.Generator(device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            noise = torch.rand(static_x.shape, device="cuda", generator=generator)
            out = model(static_x + noise)
        return graph, out
    ```

    ## Good
    ```python
    import torch

    def capture(model: torch.nn.Module, static_x: torch.Tensor):
        generator = torch.Generator(device="cuda")
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(generator)
        with torch.cuda.graph(graph):
            noise = torch.rand(static_x.shape, device="cuda", generator=generator)
            out = model(static_x + noise)
        return graph, out
    ```

    ## Fix safety
    No fix: the graph may be made elsewhere.

    ## How a GPU shows it
    The capture raises the error above.

    ## References
    - [torch.cuda.CUDAGraph](https://docs.pytorch.org/docs/stable/generated/torch.cuda.CUDAGraph.html):
      `register_generator_state`
    """

    code, name = "TPF812", "unregistered-generator"
    effect, severity = Effect.CAPTURE, Severity.WARNING
    listens = (Files("generator", also=("graph", "Graph"), without=("register_generator_state",)),)
    since = (2, 4)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        for call in model.nodes(ast.Call) if model.captures else ():
            given = keyword(call, "generator")
            value = None if given is None else model.value(given)
            if given is None or not isinstance(value, Instance) or value.cls != "torch.Generator":
                continue
            capture = model.captures.surely_of(call)
            if capture is None:
                continue
            name = model.source.written(given)
            yield self.finding(
                site,
                f"{shown(site, call)} draws from `{name}`, which is unknown to the CUDA graph "
                f"of line {capture.start.lineno}",
                heat=Heat.WARM,
                span=model.source.span(call),
                help=f"Call `graph.register_generator_state({name})` before the capture.",
            )
