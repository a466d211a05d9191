"""TPF712: Python state that compiled code changes, so that it is compiled again and again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules._methods import is_self
from perflint.rules.base import Files, FileSite, Rule
from perflint.rules.compile._breaks import guarded
from perflint.semantics.model import Model
from perflint.semantics.structure import GROWS, path_of
from perflint.semantics.values import Sequence, scalar_type
from perflint.source.quoting import quoted


class CounterRecompiles(Rule):
    """A compiled function counts in Python.

    ## What it does
    Finds, in functions that run under `torch.compile`, `self.steps += 1` and similar counting of an
    integer in an object or in the module's globals, and lists of an object that grow
    (`self.seen.append(x)`).

    ## Why is this bad
    `torch.compile` treats an integer attribute as a constant and guards it. The next call finds
    another number, and the function is compiled again, until the limit of 8 is reached. From then
    on it always runs eagerly. On torch 2.13 fifteen calls of a module that counts them are compiled
    eight times, and the other seven run uncompiled, with one warning. After that, a forward of
    eight small blocks took 1.4 times as long on an H200 as one that counts in a buffer.

    ## When it is fine
    Counting outside of the compiled function, or in a buffer: `self.steps += 1` of a tensor is part
    of the graph. Floats become inputs of the graph at the second compilation, and so do integers
    that are passed as arguments. A flag that is set once costs one more compilation. In functions
    under `@torch.compiler.disable`, and if the file sets `allow_unspec_int_on_nn_module`.

    ## Bad
    ```python
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(8, 8)
            self.steps = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.steps += 1
            return self.linear(x)

    model = torch.compile(Net())
    ```

    ## Good
    ```python
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(8, 8)
            self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.steps += 1
            return self.linear(x)

    model = torch.compile(Net())
    ```

    ## Fix safety
    No fix: the uses of the number decide whether a buffer is enough.

    ## How a GPU shows it
    A trace confirms the finding if a guard on the number failed. It is refuted if torch.compile traced the line and
    several steps compiled nothing again because of it.

    `TORCH_LOGS=recompiles` prints each one with the guard that failed (`self.steps == 3`), and then
    "torch._dynamo hit config.recompile_limit (8)".

    ## References
    - [Recompilation](https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html)
    """

    code, name = "TPF712", "counter-recompiles"
    effect, severity = Effect.RECOMPILE, Severity.ERROR
    measured = ("counter-recompiles",)
    costs = "past the limit, a forward of eight small blocks is {0} slower than compiled"
    listens = (Files("compile", without=("allow_unspec_int_on_nn_module",)),)
    since = (2, 0)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        if not model.compiles:
            return
        for changed, what, sure in _changes(model):
            compiled = model.compiled(changed)
            if compiled is None:
                continue
            yield self.finding(
                site,
                f"{what}: each call compiles the function of {compiled.options.place} "
                "again, and after 8 times it stays eager",
                confidence=guarded(model, changed, sure),
                heat=model.heat(changed),
                span=model.source.span(changed),
                help="Count outside of the compiled call, or in a buffer: `self.register_buffer(…)`.",
            )


def _changes(model: Model) -> Iterator[tuple[ast.expr, str, Confidence]]:
    """The places that change an integer or grow a list that outlives the call."""
    written = model.source.written
    for statement in model.nodes(ast.AugAssign):
        target = statement.target
        if isinstance(target, (ast.Attribute, ast.Name)) and _outlives(model, target) and _counts(model, statement):
            yield target, f"{quoted(written(statement))} changes a number that is guarded", Confidence.HIGH
    for assignment in model.nodes(ast.Assign):
        assigned = assignment.targets[0]
        if isinstance(assigned, ast.Attribute) and _outlives(model, assigned):
            if _is_next(model, assigned, assignment.value):
                yield assigned, f"{quoted(written(assignment))} changes a number that is guarded", Confidence.HIGH
    for call in model.nodes(ast.Call):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in GROWS - {"update", "add"}:
            held = func.value
            if isinstance(held, ast.Attribute) and _outlives(model, held):
                value = model.value(held)
                if isinstance(value, Sequence) and value.type == "list":
                    yield call, f"{quoted(written(call))} grows a list whose length is guarded", Confidence.MEDIUM


def _outlives(model: Model, target: ast.Attribute | ast.Name) -> bool:
    """True if a target belongs to `self`, or to the module's globals."""
    if isinstance(target, ast.Attribute):
        return is_self(target.value)
    return model.function(target) is not None and model.symbols.variable(target).scope is model.symbols.module


def _counts(model: Model, statement: ast.AugAssign) -> bool:
    """True if the statement adds, subtracts or multiplies Python integers."""
    if not isinstance(statement.op, (ast.Add, ast.Sub, ast.Mult)) or scalar_type(model.value(statement.value)) != "int":
        return False
    before = model.value(statement.target)
    return before.tensor is None and all(scalar_type(member) in ("int", "bool") for member in before.members)


def _is_next(model: Model, target: ast.Attribute, value: ast.expr) -> bool:
    """`self.n = self.n + 1`, also in brackets under `%`."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mod):
        value = value.left
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, (ast.Add, ast.Sub)):
        return False
    left = value.left
    if path_of(left) != path_of(target):
        return False
    return scalar_type(model.value(left)) == "int" and scalar_type(model.value(value.right)) == "int"
