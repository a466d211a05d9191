"""TPF716: a method of a compiled module that runs eagerly."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._results import COMPILE, result_of
from perflint.rules.base import CallSite, Files, FileSite, Rule, often, shown
from perflint.semantics.model import Model
from perflint.semantics.module import Module
from perflint.semantics.structure import ClassInfo, FunctionInfo, last_name, path_of
from perflint.semantics.values import Instance

_GENERATE = "torch.nn.Module.generate"
"""The method of transformers: its models come from calls whose class no file of the project has."""


class UncompiledMethod(Rule):
    """A method of a compiled module is called that `torch.compile` does not compile.

    ## What it does
    Finds calls such as `model.encode(x)` and `model.generate(ids)` where `model` is the result of
    `torch.compile(module)`, and the method runs layers.

    ## Why is this bad
    `torch.compile(module)` compiles the call of the module. Other attributes are those of the module itself: `encode`
    runs its layers one by one, and `generate` calls the `forward` that is not compiled. Nothing fails and nothing
    warns, so that the program is as slow as without `torch.compile`. The cost depends on the model. It is a
    warning because others measured it: with `forward` compiled as well, `generate` gave 51.7 tokens per second instead
    of 42.6.

    ## When it is fine
    - The method runs once, or is slow for other reasons.
    - The method is compiled itself: `@torch.compile`, or `model.encode = torch.compile(model.encode)`.
    - `generate` of transformers with a static cache, which compiles `forward` by itself.

    ## Bad
    ```python
    import torch
    from torch import nn

    class Coder(nn.Module):
        def __init__(self):
            super().__init__()
            self.inward, self.outward = nn.Linear(512, 64), nn.Linear(64, 512)

        def encode(self, x):
            return self.inward(x).relu()

        def forward(self, x):
            return self.outward(self.encode(x))

    def vectors(loader):
        coder = torch.compile(Coder().cuda())
        return [coder.encode(x.cuda()) for x in loader]
    ```

    ## Good
    ```python
    import torch
    from torch import nn

    class Coder(nn.Module):
        def __init__(self):
            super().__init__()
            self.inward, self.outward = nn.Linear(512, 64), nn.Linear(64, 512)

        def encode(self, x):
            return self.inward(x).relu()

        def forward(self, x):
            return self.outward(self.encode(x))

    def vectors(loader):
        coder = Coder().cuda()
        coder.encode = torch.compile(coder.encode)
        return [coder.encode(x.cuda()) for x in loader]
    ```

    ## Fix safety
    No fix: only the author can say which of the methods are worth compiling.

    ## How a GPU shows it
    A profile of the method has no region `Torch-Compiled Region`, and the same kernels as without `torch.compile`.

    ## References
    - [torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
    - [pytorch#141473](https://github.com/pytorch/pytorch/issues/141473): only `forward` is compiled
    - [pytorch#161743](https://github.com/pytorch/pytorch/issues/161743): `generate` of a compiled model
    """

    code, name = "TPF716", "uncompiled-method"
    effect, severity = Effect.COMPUTE, Severity.WARNING
    listens = (Files("compile(", without=("cache_implementation",)),)
    since = (2, 0)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        for node in model.nodes(ast.Call):
            method = node.func
            if not isinstance(method, ast.Attribute) or method.attr == "forward":
                continue
            call = model.call(node)
            confidence = _runs_layers(call)
            made = None if confidence is None else result_of(model, method.value, COMPILE)
            if confidence is None or made is None or _is_compiled(model, method):
                continue
            yield self.finding(
                call,
                f"{shown(site, node)} runs eagerly: `torch.compile` compiles only the call of the module{often(call)}",
                confidence=confidence if _is_sure(model, node, made) else Confidence.LOW,
                # It runs the layers once for each token.
                heat=Heat.HOT if call.target == _GENERATE else call.heat,
                help=_help(call, method),
            )


def _is_sure(model: Model, node: ast.Call, made: ast.Call) -> bool:
    """True if a module is compiled before a call in any case, and not by a method that users may call."""
    function = model.function(made)
    info = model.module.defined_by(function)
    is_returned = isinstance(model.parent(made), ast.Return)
    return function in (None, model.function(node)) or is_returned or (info is not None and info.constructs)


def _runs_layers(call: CallSite) -> Confidence | None:
    """How sure it is that a call runs the layers of a module by a method of its own; None if it does not."""
    if not isinstance(call.receiver, Instance) or not call.model.is_module(call.receiver):
        return None
    if call.target == _GENERATE:
        return Confidence.MEDIUM
    for value in call.value(call.node.func).members:
        found = call.model.view.function(value)
        owner = None if found is None else found[0].klass(found[1].owner)
        if found is not None and owner is not None and _calls_layers(found[0], owner, found[1], set()):
            return Confidence.HIGH
    return None


def _calls_layers(module: Module, owner: ClassInfo, info: FunctionInfo, seen: set[FunctionInfo]) -> bool:
    """True if a method that is not compiled calls its object or an attribute of it, also through other methods."""
    if (
        info in seen
        or isinstance(info.node, ast.Lambda)
        or any(_compiles(module, each) for each in info.node.decorator_list)
    ):
        return False
    seen.add(info)
    if "self" in info.calls or not info.calls.isdisjoint(owner.assigned_in):
        return True
    methods = [owner.methods[name] for name in info.calls & owner.methods.keys()]
    nested = [each for each in module.structure.functions.values() if each.outer is info]
    return any(_calls_layers(module, owner, each, seen) for each in (*methods, *nested))


def _compiles(module: Module, decorator: ast.expr) -> bool:
    made = decorator.func if isinstance(decorator, ast.Call) else decorator
    return module.full_name(path_of(made)) == COMPILE


def _is_compiled(model: Model, method: ast.Attribute) -> bool:
    """True if the file compiles a method of this name, in whatever way: `model.encode = torch.compile(…)`."""
    calls = (model.call(call) for call in model.nodes(ast.Call) if model.target(call) == COMPILE)
    compiled = (given for call in calls if (given := call.argument("model", 0)) is not None)
    return any(last_name(given) == method.attr for given in compiled)


def _help(call: CallSite, method: ast.Attribute) -> str:
    path = call.text(method)
    if call.target == _GENERATE:
        return f"Compile in place: `{call.text(method.value)}.compile()`, so that `{method.attr}` calls compiled code."
    return f"Compile the method: `{path} = torch.compile({path})`."
