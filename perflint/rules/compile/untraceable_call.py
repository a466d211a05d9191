"""TPF708: calls that torch.compile cannot put into a graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence
from perflint.rules._operators import operators
from perflint.rules.base import Calls, CallSite, shown
from perflint.rules.compile._breaks import Break, BreakRule, guarded
from perflint.semantics.structure import keyword
from perflint.semantics.values import Instance, Sequence, Value

_CLOCKS = tuple(f"time.{name}" for name in "time time_ns perf_counter monotonic process_time sleep".split())
_NOW = ("datetime.datetime.now", "datetime.datetime.utcnow")
_RANDOM = tuple(f"random.{name}" for name in "random choice shuffle sample gauss".split())
_NUMPY_RANDOM = tuple(f"numpy.random.{name}" for name in "choice randint random uniform normal".split())
_SYSTEM = ("builtins.open", "os.system", "os.getpid", "os.urandom", "os.path.exists", "uuid.uuid4", "gc.collect")
_TEXTS = ("json.dumps", "json.loads", "torch.save", "torch.load")
_STATE = operators("graphs", "state")
_TENSORS = ("torch.Tensor.is_inference", "torch.Tensor.data_ptr", "torch.Tensor.to_sparse")
_COPIES = ("copy.deepcopy", "copy.copy")
_MADE = operators("graphs", "made")
_BREAKS = ("torch._dynamo.graph_break", "torch._dynamo.decorators.graph_break")
_SURE = (*_BREAKS, *_CLOCKS, *_NOW, *_RANDOM, *_SYSTEM, *_TEXTS, *_STATE, *_TENSORS)


class UntraceableCall(BreakRule):
    """A compiled function calls a function that a graph cannot hold.

    ## What it does
    Finds calls that end a graph in functions that run under `torch.compile`: clocks (`time.time`,
    `perf_counter`, `datetime.now`), Python's `random`, files, JSON, `copy.deepcopy` of tensors and
    modules, seeds and states of random generators, `data_ptr()`, `to_sparse()`, `sorted` of
    tensors, modules or parameters that are created anew in each call, and `torch._dynamo.graph_break()`.

    ## Why is this bad
    A graph holds tensor operations, and values that Python computes during tracing become
    constants. A call that returns a new value each time, or has effects outside the program, cannot
    become part of it: `torch.compile` ends the graph, lets Python run the call, and begins another.
    One graph break by a clock in a forward of eight small blocks made it 31% slower on an H200. A
    timer inside compiled code does not measure the GPU either: the CPU is done long before the GPU.

    ## When it is fine
    In a branch that is not taken, because only the other one is traced: calls under an `if` are
    reported by the audit profile only. In functions under `@torch.compiler.disable`, and in
    branches that `torch.compiler.is_compiling()` hides from the compiler. `random.randint` and
    `random.uniform`, torch's own random numbers without a generator, and modules without parameters
    can be traced.

    ## Bad
    ```python
    import time
    import torch

    @torch.compile
    def forward(x: torch.Tensor) -> torch.Tensor:
        start = time.perf_counter()
        x = torch.tanh(x) * 2
        return x + (time.perf_counter() - start)
    ```

    ## Good
    ```python
    import torch

    @torch.compile
    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) * 2
    ```

    ## Fix safety
    No fix: only the author can say where the call belongs.

    ## How a GPU shows it
    A trace confirms the finding if a graph ended at this line, or if torch.compile gave up on the function here. It is
    refuted if torch.compile traced the line and no graph ended there.

    `TORCH_LOGS=graph_breaks` prints "Attempted to call function marked as skipped" (GB0007), "Attempted
    to copy.deepcopy a tensor" (GB4198), "torch.Generator method" (GB7650) and the like.

    ## References
    - [Working with graph breaks](https://docs.pytorch.org/docs/stable/compile/programming_model.graph_breaks_index.html)
    - [Graph break GB0007](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0007.html)
    """

    code, name = "TPF708", "untraceable-call"
    measured = ("break-once-clock", "break-once-random", "break-once-deepcopy")
    costs = "one such graph break makes a compiled forward of eight small blocks {0} slower"
    listens = (Calls(*_SURE, *_NUMPY_RANDOM, *_COPIES, *_MADE, "builtins.sorted"),)

    def at(self, site: CallSite) -> Iterator[Break]:
        what = _what(site)
        if what:
            yield Break(
                site.node,
                f"{shown(site)} {what}",
                "Move it out of the compiled call, or guard it: `if not torch.compiler.is_compiling():`.",
                guarded(site.model, site.node, Confidence.HIGH),
            )


def _what(site: CallSite) -> str:
    """Why a call cannot be traced; empty if it can."""
    if site.target in _COPIES:
        given = site.value(site.node.args[0]) if site.node.args else None
        return (
            "copies an object that exists only at run time" if given is not None and _holds_state(site, given) else ""
        )
    if site.target in _MADE:
        return "makes parameters"
    if site.target == "builtins.sorted":
        given = site.value(site.node.args[0]) if site.node.args else None
        many = given if isinstance(given, Sequence) and given.type in ("list", "tuple") else None
        return "compares tensors one by one" if many is not None and many.element.tensor is not None else ""
    if site.target in _NUMPY_RANDOM:
        # A function that draws an array is traced with tensors; a single number is read.
        sized = len(site.node.args) > 1 or keyword(site.node, "size") is not None
        return "" if sized or not _is_number(site) else "draws a random number"
    if site.target.startswith("random."):
        return "draws a random number"
    if site.target in _BREAKS:
        return "ends the graph on purpose"
    if site.target in (*_CLOCKS, *_NOW):
        return "reads the clock"
    return "cannot become part of a graph"


def _is_number(site: CallSite) -> bool:
    return isinstance(site.model.parent(site.node), (ast.BinOp, ast.Compare, ast.Call))


def _holds_state(site: CallSite, value: Value) -> bool:
    if isinstance(value, Instance):
        return site.target == "copy.deepcopy" and site.model.is_module(value)
    return value.tensor is not None and site.target == "copy.deepcopy"
