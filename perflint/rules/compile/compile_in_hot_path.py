"""TPF711: calling torch.compile in each step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._guards import is_done_once
from perflint.rules.base import Calls, CallSite, Files, FileSite, Rule
from perflint.rules.worth import sentence
from perflint.semantics.around import loops_around
from perflint.semantics.model import Model
from perflint.semantics.structure import calls_in
from perflint.semantics.values import Name
from perflint.source.quoting import quoted

_COMPILES = ("torch.compile", "torch.nn.Module.compile")
_RESETS = ("torch.compiler.reset", "torch._dynamo.reset")
_COST = "compiling in each call makes a forward of eight small blocks {0} slower"


class CompileInHotPath(Rule):
    """torch.compile is called in each step.

    ## What it does
    Finds calls of `torch.compile` in `forward`, in a training, evaluation or decoding loop, and in
    the functions that these call; also `@torch.compile` on a function that is defined there, and
    `torch.compiler.reset()`, which drops all that is compiled.

    ## Why is this bad
    `torch.compile` creates a wrapper. Creating it checks its options and, for a module, builds a
    module around it. Earlier compilations are reused (torch 2.13 compiles `torch.compile(f)(x)` in
    a loop once, also for a lambda), so the program is correct and warm. But each call takes half a
    millisecond for a function and 1.5 ms for a module on a CPU where calling the wrapper takes 0.06
    and 0.1 ms. If a closure holds a number that changes, or the module is a new one each time, it
    is also compiled again, up to the limit of 8, and then runs eagerly. A forward of eight small
    blocks that was compiled anew in each call took 4.6 times as long on an H200. After a reset, each
    function is compiled again when it is called next, which takes seconds.

    ## When it is fine
    Once, behind a check whether it has been done (`if self.compiled is None`), in a function under
    `functools.cache`, in `__init__` and set-up, in a loop over the layers of a model. A reset between models
    that are compiled one after the other.

    ## Bad
    ```python
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.compile(self.layer)(x)
    ```

    ## Good
    ```python
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.compile(torch.nn.Linear(8, 8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x)
    ```

    ## Fix safety
    No fix: only the author can say where the compiled object should be kept.

    ## How a GPU shows it
    A trace counts the calls of `torch.compile` in each step. Calls in several steps confirm the finding; one call in
    all steps refutes it.

    A profile shows `torch/__init__.py: compile` and `OptimizedModule.__init__` on the CPU in each step.

    ## References
    - [torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
    """

    code, name = "TPF711", "compile-in-hot-path"
    effect, severity = Effect.RECOMPILE, Severity.ERROR
    measured = ("compile-each-call",)
    costs = None
    listens = (Calls(*_COMPILES, *_RESETS), Files("compile", also=("@",)))
    since = (2, 0)

    def check(self, site: CallSite | FileSite) -> Iterator[Finding]:
        model = site.model
        compiling = [site.node] if isinstance(site, CallSite) else _plain_decorators(model)
        for node in compiling:
            # A decorator runs where the function is defined.
            defined = next((each for each in _definitions(model) if node in each.decorator_list), None)
            place = defined or node
            heat = model.heat(place)
            if heat is not Heat.HOT or is_done_once(model, place):
                continue
            resets = isinstance(site, CallSite) and site.target in _RESETS
            if resets and _compiles_too(model, node):
                continue
            does = "drops all compiled code" if resets else "makes a new compiled object"
            yield self.finding(
                site,
                f"{quoted(('@' if defined else '') + site.text(node))} {does} in each step",
                confidence=Confidence.HIGH if resets else Confidence.MEDIUM,
                heat=heat,
                span=model.source.span(node),
                help="Remove it, or call it before the loop." if resets else _help(defined),
                cost=None if resets else sentence(_COST, *self.measured),
            )


def _compiles_too(model: Model, reset: ast.AST) -> bool:
    """True if each iteration also compiles a model: a reset separates one model from the next."""
    loop = next(loops_around(model, reset), None)
    calls = calls_in(loop) if loop is not None else ()
    return any(model.target(each) in _COMPILES for each in calls)


def _help(defined: ast.FunctionDef | ast.AsyncFunctionDef | None) -> str:
    if defined is None:
        return "Compile once, in `__init__` or before the loop, and call the result."
    return f"Define `{defined.name}` once, outside of this function, and pass it all that it needs."


def _definitions(model: Model) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from model.nodes(ast.FunctionDef)
    yield from model.nodes(ast.AsyncFunctionDef)


def _plain_decorators(model: Model) -> list[ast.expr]:
    """The decorators of a file that are `torch.compile` itself, without a call."""
    found = [each for node in _definitions(model) for each in node.decorator_list]
    return [each for each in found if model.value(each) == Name("torch.compile")]
