"""TPF715: debugging of torch.compile that stayed on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules._guards import is_guarded
from perflint.rules._methods import in_tests
from perflint.rules._sources import passed_to
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.semantics.model import Model
from perflint.semantics.values import Const

_COMPILE = "torch.compile"
_DEBUGGING = ("eager", "aot_eager", "pre_dispatch_eager")
"""The beginnings of the names of backends that run the traced operators one by one."""
_WRITES = "writes the graphs and the code of each compilation to files"
_ENDS = "turns `torch.compile` off, which this file uses"
_SEVERITY = {_WRITES: Severity.INFO, _ENDS: Severity.WARNING}
_VARIABLES = {"TORCH_COMPILE_DEBUG": _WRITES, "TORCH_COMPILE_DISABLE": _ENDS, "TORCHDYNAMO_DISABLE": _ENDS}
_OFF = "torch._dynamo.config.disable"


class DebugBackend(Rule):
    """torch.compile runs with a backend or a switch for debugging.

    ## What it does
    Finds `torch.compile(…, backend="eager")`, `"aot_eager"` and their variants,
    `os.environ["TORCH_COMPILE_DEBUG"] = "1"`, and, in a file that compiles, `torch._dynamo.config.disable = True` and
    the variables `TORCH_COMPILE_DISABLE` and `TORCHDYNAMO_DISABLE`, that no condition guards.

    ## Why is this bad
    These backends exist to find out which part of the compiler fails. They trace the program, guard it and compile it
    again like `inductor`, and then call the same kernels as without `torch.compile`: all of the overhead, and none of
    the fusion. A forward of eight small blocks took 1.6 times as long with `aot_eager` as with `inductor`, on an H200.
    `TORCH_COMPILE_DEBUG` writes the graphs and the code of each compilation to files, which was not measured.
    The other switches turn `torch.compile` off for the whole process: the program runs as if it did not compile.

    ## When it is fine
    - While a failure of the compiler is looked for: behind a flag, and in tests. Neither is reported.
    - `aot_eager` for its memory: the partitioner may recompute activations.

    ## Bad
    ```python
    import torch

    def build(model: torch.nn.Module):
        return torch.compile(model, backend="aot_eager")
    ```

    ## Good
    ```python
    import torch

    def build(model: torch.nn.Module):
        return torch.compile(model)
    ```

    ## Fix safety
    No fix: the backend may be there because `inductor` fails.

    ## How a GPU shows it
    A profile shows the kernels of the eager program, and `Torch-Compiled Region` around them.

    ## References
    - [torch.compile troubleshooting: ablation](https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html)
    """

    code, name = "TPF715", "debug-backend"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = ("debug-backend",)
    costs = "with `aot_eager`, a forward of eight small blocks is {0} slower than with `inductor`"
    listens = (Files("backend", *_VARIABLES), Files("config", also=("disable",)))
    since = (2, 0)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        if in_tests(model):
            return
        found: list[tuple[ast.expr | ast.stmt, str]] = [*_compiling(model), *_switching(model)]
        for node, does in found:
            if is_guarded(model, node):
                continue
            yield self.finding(
                site,
                f"{shown(site, node)} {does}",
                severity=_SEVERITY.get(does),
                # It is said once, and holds for every step.
                heat=Heat.HOT,
                span=model.source.span(node),
                help="Choose it with a flag, only while you look for a failure of the compiler.",
            )


def _compiling(model: Model) -> Iterator[tuple[ast.expr, str]]:
    """The calls of torch.compile with a backend that compiles nothing."""
    for call in model.nodes(ast.Call):
        backend = passed_to(model, call, "backend") if model.target(call) == _COMPILE else None
        value = None if backend is None else model.value(backend)
        if isinstance(value, Const) and str(value.value).startswith(_DEBUGGING):
            yield call, "traces the program and runs its operators one by one, as without `torch.compile`"


def _switching(model: Model) -> Iterator[tuple[ast.stmt, str]]:
    """The assignments that make each compilation write files, or turn compilation off."""
    compiles = model.says("torch.compile") or model.says(".compile()")
    for assignment in model.nodes(ast.Assign):
        does = _switch(model, assignment)
        if does and (compiles or does == _WRITES):
            yield assignment, does


def _switch(model: Model, assignment: ast.Assign) -> str:
    """The effect of an assignment of a switch of the compiler; "" for all others."""
    target, value = assignment.targets[0], model.value(assignment.value)
    if isinstance(target, ast.Subscript) and model.symbols.full_name(target.value) == "os.environ":
        name = model.value(target.slice)
        return _VARIABLES.get(str(name.value), "") if isinstance(name, Const) and value == Const("1") else ""
    is_off = isinstance(target, ast.Attribute) and model.symbols.full_name(target) == _OFF and value == Const(True)
    return _ENDS if is_off else ""
