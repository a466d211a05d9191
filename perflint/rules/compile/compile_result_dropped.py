"""TPF710: calling torch.compile without using its result."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Edit, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.fixes.edits import replace
from perflint.rules._memory.flows import uses_of
from perflint.rules._since import MODULE_COMPILE
from perflint.rules._visible import is_private
from perflint.rules.base import Calls, CallSite, Rule
from perflint.rules.worth import cost
from perflint.semantics.around import loops_around
from perflint.semantics.model import Model
from perflint.semantics.structure import FunctionNode, names_in, path_of
from perflint.semantics.values import Const, Instance
from perflint.source.concrete import cst


class CompileResultDropped(Rule):
    """A compiled function that is never called.

    ## What it does
    Finds calls of `torch.compile` whose result is not used: a bare `torch.compile(model)`,
    `self = torch.compile(self)` in a method, `layer = torch.compile(layer)` of a loop variable, and
    a local name that is not read afterwards.

    ## Why is this bad
    `torch.compile(model)` does not change `model`: it returns another object, which compiles when
    it is called. If that object is dropped the program runs eagerly, in silence. The loss depends
    on the model: a forward of a 124 M parameter GPT at batch 4 was no faster compiled by default on
    an H200, and 1.7 times as fast with `mode="reduce-overhead"`; a forward of eight small blocks
    took 1.3 times as long uncompiled, and 3.3 times as long as with that mode.

    ## When it is fine
    The result is assigned and called, returned, passed on, put into a container or an attribute.
    `model.compile()` compiles in place and returns nothing. `@torch.compile` is a decorator.

    ## Bad
    ```python
    import torch

    def run(model: torch.nn.Module, loader):
        torch.compile(model)
        for x in loader:
            yield model(x.cuda())
    ```

    ## Good
    ```python
    import torch

    def run(model: torch.nn.Module, loader):
        model = torch.compile(model)
        for x in loader:
            yield model(x.cuda())
    ```

    ## Fix safety
    Risky, for the keys of checkpoints: compilation really begins. The first calls take seconds to
    minutes, results differ in the last bits, and code that cannot be compiled shows. A bare call of
    a plain name or attribute becomes an assignment: the keys of the compiled module's state dict
    get the prefix `_orig_mod.`. `self` and a loop variable are compiled in place by `.compile()`,
    which keeps the keys, but does nothing for modules of torch's own classes: if the source shows
    one, no fix is offered. There is also no fix for a name of an outer scope, because an assignment
    would make it local.

    ## How a GPU shows it
    A trace confirms the finding if the result was freed before anything was compiled.

    A profile has no `CompiledFxGraph`, no `Torch-Compiled Region` and no kernel named `triton_…`;
    `torch._dynamo.utils.counters["stats"]` is empty.

    ## References
    - [torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
    - [torch.nn.Module.compile](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.compile)
    - [google-research/timesfm#459](https://github.com/google-research/timesfm/issues/459)
    """

    code, name = "TPF710", "compile-result-dropped"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = ("compile-dropped", "compile-dropped-graphs")
    costs = "run eagerly, a forward of eight small blocks is {0} slower than compiled, and {1} than with CUDA graphs"
    listens = (Calls("torch.compile"),)
    since = (2, 0)

    def check(self, site: CallSite) -> Iterator[Finding]:
        fate = _fate(site)
        if fate is None:
            return
        what, in_place = fate
        yield self.finding(
            site,
            f"`torch.compile` returns the compiled object, but {what}: the code still runs eagerly",
            severity=cost(self.measured[1 if _asks_for_graphs(site) else 0]).severity,
            # Set-up code runs once; the function that it should compile runs often.
            heat=Heat.WARM,
            help="Call the result, or compile a module in place with `module.compile()`.",
            fix=_fix(site, in_place),
        )


def _asks_for_graphs(site: CallSite) -> bool:
    mode = site.argument("mode")
    return mode is not None and site.value(mode) in (Const("reduce-overhead"), Const("max-autotune"))


def _fate(site: CallSite) -> tuple[str, bool] | None:
    """Why the result is never called, and True if only compiling in place helps; None if it may be called."""
    model, call = site.model, site.node
    parent = model.parent(call)
    if isinstance(parent, ast.Expr):
        # `torch.compile(mode="…")` alone makes a decorator, which is dropped as well.
        return "the result is dropped here", False
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or not isinstance(parent.targets[0], ast.Name):
        return None
    target = parent.targets[0]
    if isinstance(model.function(call), ast.Lambda) or not is_private(model, target) or uses_of(model, target) != ():
        return None
    loops = (loop for loop in loops_around(model, call) if isinstance(loop, (ast.For, ast.AsyncFor)))
    if any(target.id in names_in(loop.target) for loop in loops):
        return f"`{target.id}` is bound again in the next iteration of the loop", True
    if target.id == "self" and call.args and path_of(call.args[0]) == "self":
        return "`self` is only a local name, and the caller's object stays as it is", True
    return f"nothing reads the local name `{target.id}` after this", False


def _fix(site: CallSite, in_place: bool) -> Fix | None:
    call = site.node
    given = call.args[0] if call.args and not site.has_unpacking else None
    if given is None or isinstance(given, ast.Starred):
        return None
    edit: Edit | None = None
    message = "Use the result of torch.compile"
    node = site.concrete
    if in_place:
        # `self = torch.compile(self, mode=m)` compiles in place as `self.compile(mode=m)`.
        value = site.value(given)
        if isinstance(value, Instance) and value.cls.startswith("torch.nn.") and value.cls != "torch.nn.Module":
            return None
        statement = site.model.parent(call)
        assert isinstance(statement, ast.Assign)
        first = node.args[0].value
        compiled = cst.Call(cst.Attribute(first, cst.Name("compile")), node.args[1:])
        edit = replace(site.model.source, site.model.source.span(statement), compiled)
        message = "Compile the module in place"
    elif isinstance(site.model.parent(call), ast.Expr) and isinstance(given, (ast.Name, ast.Attribute)):
        if not _may_assign(site.model, call, given):
            return None
        target = cst.parse_expression(site.text(given))
        assert isinstance(target, (cst.Name, cst.Attribute))
        assignment = cst.Assign([cst.AssignTarget(target)], node)
        edit = replace(site.model.source, site.span, assignment)
    return None if edit is None else Fix(message, Safety.RISKY, (edit,), since=MODULE_COMPILE if in_place else None)


def _may_assign(model: Model, call: ast.Call, node: ast.expr) -> bool:
    """True if an expression is an attribute path, or a plain name that is bound where it stands."""
    if isinstance(node, ast.Name):
        return node.id != "self" and _is_bound_in(model, model.function(call), node.id)
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _is_bound_in(model: Model, function: FunctionNode | None, name: str) -> bool:
    """True if a name is one that a function binds; all are outside of functions."""
    if function is None:
        return True
    scope = model.symbols.scope(function)
    return model.symbols.binds(scope, name) or name in scope.declared
