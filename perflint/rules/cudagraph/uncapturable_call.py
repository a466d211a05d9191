"""TPF801: code that makes the CPU wait while a CUDA graph is recorded."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from perflint.findings import Confidence, Effect, Finding, Heat, Severity, Span, surest
from perflint.rules._methods import is_false, is_true
from perflint.rules._operators import operators
from perflint.rules.base import CallSite, Files, FileSite, OutsideRule, Rule, Site, often, shown
from perflint.rules.precedence import most_precise
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.regions.captured import Capture, Captures
from perflint.semantics.structure import last_name

_WAITING = (Effect.SYNC, Effect.TRANSFER)


class UncapturableCall(Rule):
    """A CUDA graph records code that makes the CPU wait.

    ## What it does
    Finds everything that the rules on synchronization and transfers report, in code that a CUDA
    graph records: reads of numbers, branches on tensors, sizes that depend on data, copies between
    CPU and GPU that are not pinned, `torch.cuda.synchronize()`. A graph records the block of
    `with torch.cuda.graph(g):` or of a `torch.accelerator.Graph`, the code between `capture_begin()` and
    `capture_end()`, the functions and modules that `make_graphed_callables` gets, and the functions that these
    call in the same file, if no test decides whether they come to the wait. Finds two calls that may need the
    driver there, as information: new pinned memory, and checkpoints that keep the states of the random generators.

    ## Why is this bad
    A graph records kernels without running them, so the CPU has nothing to wait for: CUDA fails
    with "operation not permitted when stream is capturing", and the capture is lost. Work of the
    CPU is not recorded either: a replay repeats only the kernels. It is a warning because the
    capture fails, not because of what it costs.

    ## When it is fine
    Before and after the capture. In a branch on `torch.cuda.is_current_stream_capturing()`.
    Copies from pinned memory with `non_blocking=True` are recorded. Shapes are known.

    ## Bad
    ```python
    import torch

    def capture(model: torch.nn.Module, static_x: torch.Tensor):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = model(static_x.cuda())
            if torch.isnan(y).any():
                raise ValueError("not a number")
        return graph, y
    ```

    ## Good
    ```python
    import torch

    def capture(model: torch.nn.Module, static_x: torch.Tensor):
        graph = torch.cuda.CUDAGraph()
        static_x = static_x.cuda()
        with torch.cuda.graph(graph):
            y = model(static_x)
            is_bad = torch.isnan(y).any()
        return graph, y, is_bad
    ```

    ## Fix safety
    No fix of its own: the rule that reports the wait may have one.

    ## How a GPU shows it
    A trace confirms the finding if the capture ended with an error here, and refutes it if the capture ended well.

    The capture raises "CUDA error: operation not permitted when stream is capturing". An eager run of the
    same code under `torch.cuda.set_sync_debug_mode("error")` raises at the line.

    ## References
    - [CUDA graphs: constraints](https://docs.pytorch.org/docs/stable/notes/cuda.html#constraints)
    - [NVIDIA: PyTorch CUDA graph best practices](https://docs.nvidia.com/dl-cuda-graph/torch-cuda-graph/index.html)
    - [torch.cuda.graph](https://docs.pytorch.org/docs/stable/generated/torch.cuda.graph.html)
    """

    code, name = "TPF801", "uncapturable-call"
    effect, severity = Effect.CAPTURE, Severity.WARNING
    listens = (Files("graph", "Graph"),)
    since = (1, 10)

    def check(self, site: FileSite) -> Iterator[Finding]:
        captures = site.model.captures
        if not captures:
            return
        sites: dict[tuple[str, Span], tuple[Site, Capture]] = {}
        waits: list[Finding] = []
        for inner in site.model.sites():
            capture = None if isinstance(inner, FileSite) or not _may_run(inner) else captures.of(inner.node)
            if capture is None:
                continue
            for found in _waits(self, inner):
                sites.setdefault((found.code, found.span), (inner, capture))
                waits.append(found)
        yield from self._of_the_host(site)
        seen = set()
        for found in most_precise(waits, _waiting().rules).findings:
            if found.span in seen:
                continue
            seen.add(found.span)
            inner, capture = sites[found.code, found.span]
            yield self.finding(
                site,
                f"{found.message.removesuffix(often(inner))}, which is not permitted while the CUDA graph of line "
                f"{capture.start.lineno} records it",
                confidence=_confidence(captures, inner, found.confidence),
                heat=Heat.WARM,
                span=found.span,
                help="Call it before the capture, or after the replay.",
                fix=found.fix,
            )

    def _of_the_host(self, site: FileSite) -> Iterator[Finding]:
        for call in site.model.nodes(ast.Call):
            needs = _needs(site.model.call(call))
            capture = None if needs is None else site.model.captures.surely_of(call)
            if needs is not None and capture is not None:
                yield self.finding(
                    site,
                    f"{shown(site, call)} {needs[0]} while the CUDA graph of line "
                    f"{capture.start.lineno} records it, which may fail",
                    severity=Severity.INFO,
                    confidence=Confidence.MEDIUM,
                    heat=Heat.WARM,
                    span=site.model.source.span(call),
                    help=needs[1],
                )


def _needs(site: CallSite) -> tuple[str, str] | None:
    """The work of the driver besides kernels that a call starts, with the cure."""
    if last_name(site.node) == "pin_memory" or is_true(site.argument("pin_memory")):
        return "takes new pinned memory", "Make it before the capture: a replay writes to the same memory."
    if site.target.endswith("checkpoint") and "torch.utils.checkpoint" in site.target:
        if not is_false(site.argument("preserve_rng_state")) and not site.has_unpacking:
            return "reads the states of the random generators", "Pass `preserve_rng_state=False`."
    return None


def _confidence(captures: Captures, site: Site, confidence: Confidence) -> Confidence:
    """LOW if a test decides whether the capture comes to a wait; a block computes on the GPU what it reads itself."""
    if captures.is_in_block(site.node):
        return surest(confidence, Confidence.MEDIUM)
    return confidence if captures.is_certain(site.node) else Confidence.LOW


_BY_THEMSELVES = operators("waits", "by_themselves")
"""They wait, or ask whether work is done, whatever their arguments."""


@cache
def _waiting() -> RuleSet:
    return RuleSet(rule for rule in all_rules() if rule.effect in _WAITING and not isinstance(rule, OutsideRule))


def _may_run(site: Site) -> bool:
    """True if a site may be in a capture at all; cheap."""
    return bool(_waiting().listening(site)) or (isinstance(site, CallSite) and site.target in _BY_THEMSELVES)


def _waits(rule: Rule, site: Site) -> Iterator[Finding]:
    """The findings of the rules of waits and transfers at a site."""
    if isinstance(site, CallSite) and site.target in _BY_THEMSELVES:
        yield rule.finding(site, f"`{site.text(site.node)}` asks for the state of the GPU")
        return
    for other in _waiting().listening(site):
        yield from other.check(site)
