"""TPF717: code that is compiled without dynamic shapes, for numbers or lengths that change."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._methods import in_tests, is_false
from perflint.rules._results import COMPILE, result_of
from perflint.rules._sources import names_behind, passed_to
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.semantics.around import loops_around, targets
from perflint.semantics.model import Model
from perflint.semantics.structure import keyword, last_name, names_in, path_of, walk
from perflint.semantics.values import scalar_type

_PADS = "torch.nn.utils.rnn.pad_sequence"


class ChangingNumber(Rule):
    """Code compiled with `dynamic=False` gets another number or length in each iteration.

    ## What it does
    Finds calls of functions and modules that `torch.compile(…, dynamic=False)` made, with a number that the loop around
    changes, and such a compilation beside a loader that pads each batch to its own length by `pad_sequence`. Finds
    calls of compiled code with a list that each iteration makes longer, also without `dynamic=False`.

    ## Why is this bad
    `dynamic=False` makes each number and size a constant of the compiled code. Another one compiles again, which
    takes seconds, up to the limit of eight; then the function runs eagerly. By default, torch compiles twice: with
    the first number, and with any number. Counted with torch 2.13: 20 different numbers compiled 2 times by default
    and 8 times with `dynamic=False`, for an int and for a float alike; six lengths of a list compiled six times by
    default. Two blocks of width 512 on an H200: the first twelve runs take 12.0 s instead of 1.7, and each one after
    the limit 24% longer.

    ## When it is fine
    - A few values, each used often.
    - Lengths in buckets, which the file may not show: padding to a fixed length is not reported, nor a function that
      pads its batch once more.

    ## Bad
    ```python
    import torch

    @torch.compile(dynamic=False)
    def mix(a: torch.Tensor, b: torch.Tensor, weight: float) -> torch.Tensor:
        return a * (1 - weight) + b * weight

    def average(a: torch.Tensor, b: torch.Tensor, steps: int):
        for step in range(steps):
            a = mix(a, b, 1.0 / (step + 1))
        return a
    ```

    ## Good
    ```python
    import torch

    @torch.compile
    def mix(a: torch.Tensor, b: torch.Tensor, weight: float) -> torch.Tensor:
        return a * (1 - weight) + b * weight

    def average(a: torch.Tensor, b: torch.Tensor, steps: int):
        for step in range(steps):
            a = mix(a, b, 1.0 / (step + 1))
        return a
    ```

    ## Fix safety
    No fix: constants may make the compiled code faster.

    ## How a GPU shows it
    `TORCH_LOGS=recompiles` prints each compilation with the value that changed.

    ## References
    - [Recompilation](https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html)
    """

    code, name = "TPF717", "changing-number"
    effect, severity = Effect.RECOMPILE, Severity.WARNING
    measured = ("changing-number",)
    costs = "past the limit, a forward of two small blocks is {0} slower than with the default"
    listens = (Files("dynamic", ".append(", also=("compile",)),)
    since = (2, 0)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        for call in () if in_tests(model) else model.nodes(ast.Call):
            compilation = next(_compilations(model, call), None)
            is_static = isinstance(compilation, ast.Call) and is_false(passed_to(model, compilation, "dynamic"))
            changing = _changing(model, call) if is_static else None
            growing = None if compilation is None or changing is not None else _growing(model, call)
            if changing is not None:
                yield self._found(site, changing, "is another number in each iteration")
            elif growing is not None:
                yield self._found(site, growing, "is a longer list in each iteration", "Pass a tensor that is filled.")
            elif model.target(call) == COMPILE and is_false(passed_to(model, call, "dynamic")) and _pads(model, call):
                yield self._found(site, call, "compiles for one length, and the loader pads each batch to its own")

    def _found(
        self,
        site: FileSite,
        node: ast.expr,
        what: str,
        cure: str = "Leave `dynamic=False` out, or use few values.",
    ) -> Finding:
        return self.finding(
            site,
            f"{shown(site, node)} {what}: the code is compiled again for each, up to eight times",
            confidence=Confidence.MEDIUM,
            heat=Heat.HOT,
            span=site.model.source.span(node),
            help=cure,
        )


def _compilations(model: Model, call: ast.Call) -> Iterator[ast.expr]:
    """The calls and decorators that compile what a call runs."""
    compiled = result_of(model, call.func, COMPILE)
    if compiled is not None:
        yield compiled
        return
    for info in model.functions_of(call.func):
        for each in getattr(info.node, "decorator_list", ()):
            if model.symbols.full_name(each.func if isinstance(each, ast.Call) else each) == COMPILE:
                yield each


def _growing(model: Model, call: ast.Call) -> ast.expr | None:
    """The argument of a call that is a list to which the loop around the call appends, and that nothing shortens."""
    loops = list(loops_around(model, call))
    given = [*call.args, *(each.value for each in call.keywords)] if loops else []
    for each in given:
        path = path_of(each)
        if not path or getattr(model.value(each), "type", "") != "list":
            continue
        calls = {path_of(part.func) for part in walk(loops[0]) if isinstance(part, ast.Call)}
        if f"{path}.append" in calls and not any(_shortens(part, path) for part in walk(loops[-1])):
            return each
    return None


def _shortens(part: ast.AST, path: str) -> bool:
    """True for `rows.clear()`, `rows.pop()`, `del rows[0]` and `rows = …`."""
    if isinstance(part, ast.Attribute) and part.attr in ("clear", "pop", "remove"):
        return path_of(part.value) == path
    is_bound = isinstance(getattr(part, "ctx", None), (ast.Store, ast.Del))
    return is_bound and path_of(part.value if isinstance(part, ast.Subscript) else part) == path


def _changing(model: Model, call: ast.Call) -> ast.expr | None:
    """The argument of a call that is a number which the loop around the call changes."""
    loop = next(loops_around(model, call), None)
    if loop is None:
        return None
    changed = {name for target, _ in targets(loop) for name in names_in(target)}
    changed |= {
        part.target.id for part in walk(loop) if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name)
    }
    for given in (*call.args, *(each.value for each in call.keywords)):
        names = {each.id for each in names_behind(model, [given])}
        if names & changed and scalar_type(model.value(given)) in ("int", "float"):
            return given
    return None


def _pads(model: Model, compiling: ast.Call) -> bool:
    """True if the function around a compilation makes a loader that pads each batch to the longest of its items."""
    calls, function = model.nodes(ast.Call), model.function(compiling)
    loaders = [call for call in calls if model.function(call) is function]
    collates = {last_name(given) for call in loaders if (given := keyword(call, "collate_fn")) is not None}
    padding = {
        target: {getattr(model.function(call), "name", "") for call in calls if model.target(call) == target}
        for target in (_PADS, "torch.nn.functional.pad")
    }
    # A function that pads once more makes a length of its own.
    return not collates.isdisjoint(padding[_PADS] - padding["torch.nn.functional.pad"])
