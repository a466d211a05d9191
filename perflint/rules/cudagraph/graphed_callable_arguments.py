"""TPF804: arguments that make_graphed_callables does not accept."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules.base import Calls, Rule
from perflint.rules.cudagraph._replays import is_global
from perflint.semantics.model import Model
from perflint.semantics.regions.captured import GRAPHED
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import path_of
from perflint.semantics.values import NONE, Instance, Unknown, Value, scalar_type
from perflint.source.quoting import quoted

_AUTOCASTS = frozenset({"torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast",
                        "torch.amp.autocast_mode.autocast"})  # fmt: skip


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
    listens = (Calls(*GRAPHED),)
    since = (1, 10)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if site.has_unpacking:
            return
        samples = site.argument("sample_args", 1)
        for part in _parts(samples) if samples is not None else ():
            if _is_no_tensor(site.value(part)):
                yield self.finding(
                    site,
                    f"{quoted(site.text(part))} is not a tensor: `make_graphed_callables` refuses it in `sample_args`",
                    confidence=Confidence.HIGH,
                    heat=Heat.WARM,
                    span=site.model.source.span(part),
                    help="Bind it with `functools.partial` or a default, or pass a tensor on the GPU.",
                )
        for call, named in _named_arguments(site.model, site.node):
            yield self.finding(
                site,
                f"{quoted(site.text(call))} passes `{named}` by keyword, which a graphed callable does not take",
                confidence=Confidence.MEDIUM if _makes_module(site.value(site.node)) else Confidence.HIGH,
                heat=Heat.WARM,
                span=site.model.source.span(call),
                help="Pass all arguments by position, with a sample of each in `sample_args`.",
            )
        caching = _caching(site.model, site.node)
        if caching is not None:
            yield self.finding(
                site,
                f"{quoted(site.text(caching))} caches weights, which `make_graphed_callables` refuses",
                confidence=Confidence.HIGH,
                heat=Heat.WARM,
                span=site.model.source.span(caching),
                help="Pass `cache_enabled=False` to autocast.",
            )


def _named_arguments(model: Model, made: ast.Call) -> Iterator[tuple[ast.Call, str]]:
    """The calls of the graphed callable that pass an argument by keyword, if its name is assigned only once."""
    assignment = model.parent(made)
    path = path_of(assignment.targets[0]) if isinstance(assignment, ast.Assign) else ""
    bound = [each for each in model.nodes(ast.Assign) if any(path_of(target) == path for target in each.targets)]
    if not path or sum(_means_same(model, made, each, path) for each in bound) > 1:
        return
    for call in model.nodes(ast.Call):
        if call.keywords and path_of(call.func) == path and _means_same(model, made, call, path):
            named = call.keywords[0].arg
            if named is not None:
                yield call, named


def _means_same(model: Model, made: ast.AST, node: ast.AST, path: str) -> bool:
    """True if a path at a node is the one that is assigned where something is made."""
    around = _around(model, made, path)
    if "." not in path and around is None:
        return is_global(model, model.function(node), path)
    return _around(model, node, path) is around


def _around(model: Model, node: ast.AST, path: str) -> ast.AST | None:
    """The function in which a name, or the class in which an attribute of `self`, stands for one thing."""
    if "." not in path:
        return model.function(node)
    return next((outer for outer in model.ancestors(node) if isinstance(outer, ast.ClassDef)), None)


def _makes_module(value: Value) -> bool:
    """True if it may be a module, which runs its own `forward` in the other of its two modes."""
    return any(isinstance(member, (Instance, Unknown)) for member in value.members)


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
            if isinstance(context, ast.Call) and model.target(context) in _AUTOCASTS:
                named = {each.arg: each.value for each in context.keywords}
                if None in named or "cache_enabled" in named or "enabled" in named or len(context.args) > 2:
                    return None
                return context
    return None
