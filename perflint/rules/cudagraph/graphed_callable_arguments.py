"""TPF804: arguments that make_graphed_callables does not accept."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._names import AUTOCAST_OF_MODULE
from perflint.rules.base import Calls, CallSite, Files, FileSite, Rule, shown
from perflint.semantics.model import Model
from perflint.semantics.regions.captured import GRAPHED
from perflint.semantics.values import BY_GRAPHED, NONE, Function, Instance, Value, scalar_type


class GraphedCallableArguments(Rule):
    """make_graphed_callables gets arguments that it does not accept.

    ## What it does
    Finds calls of `torch.cuda.make_graphed_callables` with numbers, texts, flags or None among
    `sample_args`, and calls under an autocast that caches; also calls of the graphed callable that pass an
    argument by keyword.

    ## Why is this bad
    The graph reads its arguments from fixed memory, so only tensors can be arguments: anything else
    is an error ("sample_args for each callable must contain only Tensors"). A number would have
    become part of the graph. Autocast's cache of weights is outside the graph's memory, so torch
    does not accept it either. The graphed callable takes its arguments by position only: passing an
    argument by keyword, even an optional one, is a TypeError. It is a warning because the call
    raises, not because of what it costs.

    ## When it is fine
    Tensors, and tuples, lists and dicts of them. `torch.autocast("cuda", cache_enabled=False)`.

    ## Bad
    ```python
    import torch

    def graphed(model: torch.nn.Module, x: torch.Tensor):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return torch.cuda.make_graphed_callables(model, (x, 0.5))
    ```

    ## Good
    ```python
    import torch

    def graphed(model: torch.nn.Module, x: torch.Tensor):
        scale = torch.full((), 0.5, device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16, cache_enabled=False):
            return torch.cuda.make_graphed_callables(model, (x, scale))
    ```

    ## Fix safety
    No fix: the replacement depends on whether the value changes between calls.

    ## How a GPU shows it
    The call raises; nothing is recorded.

    ## References
    - [torch.cuda.make_graphed_callables](https://docs.pytorch.org/docs/stable/generated/torch.cuda.make_graphed_callables.html)
    """

    code, name = "TPF804", "graphed-callable-arguments"
    effect, severity = Effect.CAPTURE, Severity.WARNING
    listens = (Calls(*GRAPHED), Files("graphed", "Graphed"))
    since = (1, 10)

    def check(self, site: CallSite | FileSite) -> Iterator[Finding]:
        yield from self._made(site) if isinstance(site, CallSite) else self._called(site)

    def _called(self, site: FileSite) -> Iterator[Finding]:
        """The calls of graphed callables that pass an argument by keyword."""
        for call in site.model.nodes(ast.Call):
            named = next((each.arg for each in call.keywords if each.arg is not None), None)
            sure = None if named is None else _is_graphed(site.value(call.func))
            if sure is not None and not _is_shared(site.model, call.func):
                yield self.finding(
                    site,
                    f"{shown(site, call)} passes `{named}` by keyword, which a graphed callable does not take",
                    confidence=sure,
                    heat=Heat.WARM,
                    span=site.model.source.span(call),
                    help="Pass all arguments by position, with a sample of each in `sample_args`.",
                )

    def _made(self, site: CallSite) -> Iterator[Finding]:
        """The arguments that make_graphed_callables refuses, and an autocast around it."""
        if site.has_unpacking:
            return
        samples = site.argument("sample_args", 1)
        for part in _parts(samples) if samples is not None else ():
            if _is_no_tensor(site.value(part)):
                yield self.finding(
                    site,
                    f"{shown(site, part)} is not a tensor: `make_graphed_callables` refuses it in `sample_args`",
                    heat=Heat.WARM,
                    span=site.model.source.span(part),
                    help="Bind it with `functools.partial` or a default, or pass a tensor on the GPU.",
                )
        caching = _caching(site.model, site.node)
        if caching is not None:
            yield self.finding(
                site,
                f"{shown(site, caching)} caches weights, which `make_graphed_callables` refuses",
                heat=Heat.WARM,
                span=site.model.source.span(caching),
                help="Pass `cache_enabled=False` to autocast.",
            )


def _is_graphed(callee: Value) -> Confidence | None:
    """How sure it is that a callee is a graphed callable; None if it is not.

    A module runs its own `forward` in the other of its two modes.
    """
    members = [each for each in callee.members if isinstance(each, (Function, Instance))]
    if not members or any(each.graphs != BY_GRAPHED for each in members):
        return None
    return Confidence.MEDIUM if any(isinstance(each, Instance) for each in members) else Confidence.HIGH


def _is_shared(model: Model, callee: ast.expr) -> bool:
    """True for a name of the top level that a function binds again: the order of both is unknown."""
    if not isinstance(callee, ast.Name):
        return False
    variable = model.symbols.variable(callee)
    is_global = variable.scope is model.symbols.module
    return is_global and any(model.function(binding.node) is not None for binding in variable.bindings)


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """The leaves of tuples, lists and dicts that are spelled out."""
    if isinstance(node, (ast.Tuple, ast.List)):
        for element in node.elts:
            yield from _parts(element)
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield from _parts(value)
    elif not isinstance(node, ast.Starred):
        yield node


def _is_no_tensor(value: Value) -> bool:
    return bool(value.members) and all(
        member == NONE or scalar_type(member) in ("int", "float", "bool", "str") for member in value.members
    )


def _caching(model: Model, call: ast.Call) -> ast.expr | None:
    """The autocast around a call, if it is on and caches."""
    for outer in model.ancestors(call):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return None
        if not isinstance(outer, ast.With):
            continue
        for item in outer.items:
            context = item.context_expr
            if isinstance(context, ast.Call) and model.target(context) in AUTOCAST_OF_MODULE:
                named = {each.arg: each.value for each in context.keywords}
                if None in named or "cache_enabled" in named or "enabled" in named or len(context.args) > 2:
                    return None
                return context
    return None
