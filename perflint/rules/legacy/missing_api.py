"""TPF378: names that torch does not have."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._operators import words
from perflint.rules._sources import passed_to
from perflint.rules._statements import outward
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.semantics.facts import torch_api
from perflint.semantics.model import Model
from perflint.semantics.structure import stands_in, walk
from perflint.semantics.symbols import Symbols
from perflint.semantics.values import Const, Function
from perflint.source.quoting import quoted

_MEANT = words("missing-api", "meant")
"""Names that texts on performance use but torch never had, with the names that were meant."""

_GONE = frozenset({"onnxrt", "nvfuser", "aot_ts_nvfuser", "nvprims_nvfuser", "nvprims_aten", "ofi", "fx2trt"})
"""Backends of `torch.compile` that torch 2.13 does not have."""
_CLOSE = 0.85
_MOVES = frozenset({"to", "cuda", "half", "bfloat16", "eval"})


class MissingApi(Rule):
    """Code uses names that torch does not have.

    ## What it does
    Finds names below `torch`, `torch.cuda`, `torch.compiler`, `torch.jit`, `torch.nn.functional` and the like
    that torch 2.13 does not have: `torch.compiler.optimize`, `torch.jit.get_trace`, `torch.no_gradient`;
    `.to(device)`, `.cuda()` of a plain function; and backends of `torch.compile` that are gone, such as `"onnxrt"`.

    ## Why is this bad
    Such calls come from articles and generated code. They raise AttributeError when they first run,
    which may be late (in a branch for the GPU, after an epoch). If the error is caught, the
    optimisation silently never happens. It is a warning because the program raises.

    ## When it is fine
    A `hasattr` or a version test guards the use, or an `except` handles the error; the program
    defines the name there itself. Names that torch has had, or will have, are reported by the audit
    profile only, unless they differ by one letter from an existing name.

    ## Bad
    ```python
    import torch

    def prepare(model: torch.nn.Module):
        model = torch.compiler.optimize(model)
        with torch.no_gradient():
            return model(torch.zeros(1, 8))
    ```

    ## Good
    ```python
    import torch

    def prepare(model: torch.nn.Module):
        model = torch.compile(model)
        with torch.no_grad():
            return model(torch.zeros(1, 8))
    ```

    ## Fix safety
    No fix: the intended function may take other arguments.

    ## How a GPU shows it
    The line raises AttributeError. A trace confirms the finding if the program ended with that error; it is refuted
    if the next statement ran, too.

    ## References
    - [torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
    - [torch.compiler API](https://docs.pytorch.org/docs/stable/torch.compiler_api.html)
    """

    code, name = "TPF378", "missing-api"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (Files("torch"),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        names = model.symbols
        for used, full in _used(model, names):
            if not _is_missing(full) or _is_known_to_miss(model, names, used, full):
                continue
            meant, confidence = _meant(full)
            yield self.finding(
                site,
                f"torch has no `{full}`: this raises {'Import' if isinstance(used, ast.stmt) else 'Attribute'}Error",
                confidence=confidence,
                heat=Heat.WARM,
                span=model.source.span(used),
                help=f"`{meant}` is probably meant." if meant else "It may be gone: torch 2.13 does not have it.",
            )
        yield from self._moved_functions(site)
        yield from self._gone_backends(site)

    def _gone_backends(self, site: FileSite) -> Iterator[Finding]:
        """`torch.compile` for a backend that torch had once."""
        model = site.model
        for call in model.nodes(ast.Call):
            backend = passed_to(model, call, "backend") if model.target(call) == "torch.compile" else None
            value = None if backend is None else model.value(backend)
            if isinstance(value, Const) and value.value in _GONE:
                yield self.finding(
                    site,
                    f"torch has no backend {quoted(str(value.value))} any more: the first call raises InvalidBackend",
                    heat=Heat.WARM,
                    span=model.source.span(call),
                    help="Leave it out, for `inductor`; `torch.compiler.list_backends()` has the others.",
                )

    def _moved_functions(self, site: FileSite) -> Iterator[Finding]:
        """`.to(device)` of a function."""
        model = site.model
        for call in model.nodes(ast.Call):
            func = call.func
            if not isinstance(func, ast.Attribute) or func.attr not in _MOVES or not isinstance(func.value, ast.Name):
                continue
            value = model.value(func.value)
            if isinstance(value, Function) and not value.captured and _is_plain(model, value):
                yield self.finding(
                    site,
                    f"{shown(site, call)}: `{func.value.id}` is a function, which has no `{func.attr}`",
                    heat=Heat.WARM,
                    span=model.source.span(call),
                    help="Move the tensors and modules that it uses.",
                )


@cache
def _known() -> dict[str, frozenset[str]]:
    return {module: frozenset(names.split()) for module, names in torch_api.table("names")["names"].items()}


def _is_missing(full: str) -> bool:
    module, _, name = full.rpartition(".")
    known = _known().get(module)
    return known is not None and not name.startswith("_") and name not in known


def _used(model: Model, names: Symbols) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """The names below torch that a file reads or imports."""
    for attribute in model.nodes(ast.Attribute):
        if isinstance(attribute.ctx, ast.Load):
            full = names.full_name(attribute)
            # `torch.npu.empty_cache` is a module of a plugin.
            is_module = isinstance(model.parent(attribute), ast.Attribute) and full not in _MEANT
            if full.startswith("torch.") and not is_module:
                yield attribute, full
    for statement in model.nodes(ast.ImportFrom):
        if statement.level == 0 and statement.module in _known():
            named = [alias.name for alias in statement.names if alias.name != "*"]
            yield from ((statement, f"{statement.module}.{name}") for name in named)


def _is_known_to_miss(model: Model, names: Symbols, used: ast.expr | ast.stmt, full: str) -> bool:
    """True if the file asks for a name before it uses it, or puts it there."""
    name = full.rpartition(".")[2]
    if model.says(f'"{name}"', f"'{name}'"):
        return True
    for outer, inner in outward(model, used):
        if _is_annotation(outer, inner):
            return True
        if isinstance(outer, ast.Try) and outer.handlers and stands_in(outer.body, inner):
            return True
        if isinstance(outer, (ast.If, ast.IfExp, ast.While)) and _asks_for_version(outer.test):
            return True
        if isinstance(outer, ast.BoolOp) and _asks_for_version(outer):
            return True
    return any(
        isinstance(each.ctx, ast.Store) and each.attr == name and names.full_name(each) == full
        for each in model.nodes(ast.Attribute)
    )


def _is_annotation(outer: ast.AST, inner: ast.AST) -> bool:
    """True if a part of a definition or assignment is its annotation, which may never be evaluated."""
    if isinstance(outer, (ast.arg, ast.AnnAssign)):
        return inner is outer.annotation
    return isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)) and inner is outer.returns


def _asks_for_version(test: ast.expr) -> bool:
    words = (getattr(node, field, "") for node in walk(test) for field in ("id", "attr"))
    return any(
        isinstance(word, str) and ("version" in word.lower() or "hasattr" in word or "torch_g" in word.lower())
        for word in words
    )


def _meant(full: str) -> tuple[str, Confidence]:
    """The probably intended name, and how certain it is that torch never had this one."""
    if full in _MEANT:
        return _MEANT[full], Confidence.HIGH
    # Imported late: a clean file does not pay for it.
    from difflib import get_close_matches

    module, _, name = full.rpartition(".")
    close = get_close_matches(name, _known()[module], n=1, cutoff=_CLOSE)
    return (f"{module}.{close[0]}", Confidence.MEDIUM) if close else ("", Confidence.LOW)


def _is_plain(model: Model, function: Function) -> bool:
    """True if a function of this file has no decorators that make an object of it."""
    info = model.function_of(function)
    return info is not None and not getattr(info.node, "decorator_list", True)
