"""TPF204: a tensor filled on the CPU and then moved to the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Fix, Safety, Severity, weakest
from perflint.fixes.edits import replace
from perflint.rules._arguments import with_arguments
from perflint.rules._memory.uses import Fate, fates
from perflint.rules._methods import called_on
from perflint.rules._numbers import can_fill, number
from perflint.rules._operators import operators
from perflint.rules._order import has_effects, may_swap
from perflint.rules._project_text import is_recorded, may_be_traced
from perflint.rules.base import Calls, CallSite, Rule, often, shown
from perflint.rules.placement import (
    LEGACY_CONSTRUCTORS,
    MOVES,
    Content,
    Move,
    as_arguments,
    content,
    creator,
    dtype_name,
    host_confidence,
    move,
)
from perflint.rules.transfer._computed import computed_there
from perflint.semantics.structure import arguments, keyword, last_name
from perflint.semantics.values import Const, Dtype, Kind, scalar_type
from perflint.source.concrete import code, cst

_EXACT = operators("creation", "exact")
"""Factories that give the same bits on every device (arange: of integers)."""
_PLAIN = frozenset(f"torch.{name}{like}" for name in ("zeros", "ones", "empty") for like in ("", "_like"))
"""Those whose tensors each dtype holds exactly."""
_RESHAPES = operators("creation", "reshapes")
_IN_ORDER = frozenset(("permute", "transpose", "t"))
"""Methods that change the order of the dimensions, which a copy of an expanded tensor keeps."""
_VIEWS = frozenset("view reshape unsqueeze squeeze flatten unflatten expand permute transpose t".split())
"""Methods whose result may share the memory of the tensor."""
_CASTS = frozenset("float double half bfloat16 long int short bool byte".split())
_INTEGERS = frozenset("int8 int16 int32 int64 uint8 short int long".split())
_COMMON = _INTEGERS | frozenset("float16 bfloat16 float32 float64 half float double bool".split())
"""The dtypes that each factory but that of indices has on each device."""
_OF_EYE = frozenset("complex64 complex128 cfloat cdouble".split())
"""The other dtypes that `torch.eye` has."""
_FIXED_BY_HAND = frozenset({"out", "pin_memory", "generator", "device", "layout"})


class CreateThenMove(Rule):
    """
    ## What it does
    Finds tensors that `torch.zeros`, `ones`, `full`, `empty`, `arange`, `rand` and the like fill
    on the CPU and that the same expression moves to the GPU with `.to(…)`, `.cuda()` or
    `.type_as(…)`.

    ## Why is this bad
    The CPU fills the memory and waits while it is copied: a copy from pageable memory blocks until
    the GPU has received it. With `device=` one kernel fills the memory where it is needed.
    `torch.zeros(1_000_000).cuda()` takes about 50 times as long as
    `torch.zeros(1_000_000, device="cuda")` on an H200.

    ## When it is fine
    Code that runs once: constructors, set-up, checkpoints (the default profile hides it there).
    Random numbers that must be the same on every device are drawn on the CPU on purpose.

    ## Bad
    ```python
    import torch

    class Shift(torch.nn.Module):
        def forward(self, x):
            offset = torch.arange(x.shape[1]).to(x.device)
            return x + offset
    ```

    ## Good
    ```python
    import torch

    class Shift(torch.nn.Module):
        def forward(self, x):
            offset = torch.arange(x.shape[1], device=x.device)
            return x + offset
    ```

    ## Fix safety
    The fix adds `device=` (and `dtype=` if the move changed it) to the factory and drops the move, and with it a
    `.to` behind it that names the device again or casts zeros or ones.
    It is safe for zeros, ones, full, empty, eye and arange of integers if the argument of `.to` is
    certainly a device or a tensor. It is unsafe:

    - if the GPU may compute other bits: random numbers come from the GPU's generator; linspace,
      windows and arange of floats or as floats may differ in the last bit; a cast of a tensor that
      `full` filled may round differently;
    - with `requires_grad=True`, because the result becomes a leaf;
    - for floats after `view`, `unsqueeze` and the like, if the result is returned, kept, passed on or written to:
      the move made a tensor of its own, and the result becomes a view. Autograd allows no write to a view from
      `torch.no_grad()` elsewhere, nor `detach_()`;
    - for `full` with a number that float16 may not hold, if the dtype is unknown: that raises an
      error only on a GPU;
    - if the move casts `eye` to an unknown dtype, which `eye` may not support;
    - after `expand`: the fix adds `.contiguous()`, because the move gave each element its own
      memory; but if the tensor is on that device already, `.to` copies nothing, and `.contiguous()`
      takes more memory.

    Also unsafe is the fix for a tensor that is indexed or computed with before it is moved (see
    blocking-h2d).

    No fix is offered for `.type_as(x)` and `.to(x)` in projects that call `torch.jit.trace` or
    `torch.onnx.export`: a trace follows them to any device, and keeps `device=` as a constant. None is
    offered in a lambda that is passed to `torch.jit.trace`, because the steps of its graph may be what
    is asked for.

    No fix is offered for `.cuda(gpu)` if `gpu` may be None: `.cuda(None)` is the current GPU, and
    `device=None` is the CPU. A tensor with `requires_grad=True` that is written to in place gets no
    fix, because autograd allows no such write to a leaf. A cast of `tril_indices` or `triu_indices`
    gets no fix either, because these functions create integers only. A cast of `eye` to a dtype that
    it does not support, such as `torch.uint16`, stays behind it.

    ## How a GPU shows it
    A trace has a `Memcpy HtoD (Pageable -> Device)` below the line and a
    `cudaStreamSynchronize` that ends it; `torch.cuda.set_sync_debug_mode("warn")` warns there.

    ## References
    - [Performance Tuning Guide: create tensors directly on the target
      device](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code, name = "TPF204", "create-then-move"
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("create-then-move-gpt-host-work", "create-then-move-gpt", "create-then-move-policy")
    costs = "a tensor of 1024 × 1024 copied once per step costs GPT-2 training {0} if 2 ms of CPU work follows"
    listens = (Calls(*MOVES),)
    replaces = ("TPF201",)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if not isinstance(site.node.func, ast.Attribute):
            return
        given = site.node.func.value
        made = _filled(site, given)
        if made is None:
            return
        moved, source = move(site), host_confidence(site.value(given))
        if moved is None or source is None or not moved.blocking:
            return
        function = site.text(made.func)
        if site.model.target(made) in LEGACY_CONSTRUCTORS:
            advice = f"Make it with `torch.empty(…, device=…)`: `{function}` takes no GPU."
        else:
            advice = f"Pass `device=` to `{function}`, so that the GPU fills it."
        yield self.finding(
            site,
            f"{shown(site)} fills the tensor on the CPU and copies it to the GPU: the CPU waits{often(site)}",
            confidence=weakest(moved.confidence, source),
            help=advice,
            fix=None if is_recorded(site.model, site.node) else _fix(site, moved, made) or computed_there(site),
        )


def _filled(site: CallSite, given: ast.expr) -> ast.Call | None:
    """The call that fills the tensor `given`, if it does so on the CPU."""
    made = creator(site, given)
    if made is None or content(site, made, site.model.target(made)) is not Content.FILLED:
        return None
    return made


def _fix(site: CallSite, moved: Move, made: ast.Call) -> Fix | None:
    steps = _steps(site, made)
    added = as_arguments(site, moved)
    target = site.model.target(made)
    by_hand = any(item.arg in _FIXED_BY_HAND for item in made.keywords) or not moved.simple or moved.may_be_none
    if moved.other is not None and may_be_traced(site.model):
        return None
    if steps is None or added is None or by_hand or not target.removeprefix("torch.")[0].islower():
        return None
    whole: ast.expr = site.node
    if not steps and keyword(made, "requires_grad") is None:
        whole, added = _with_next_call(site, made, added)
    casts = any(text.startswith("dtype=") for text in added)
    if casts and (steps or keyword(made, "dtype") is not None or not _may_have(site, target, moved)):
        return None
    names = [step.func.attr for step in steps if isinstance(step.func, ast.Attribute)]
    if not _keeps_order(site, moved, steps) or _is_written_leaf(site, made, names):
        return None
    node = site.concrete.func
    new = _with_arguments(node.value, len(steps), added) if isinstance(node, cst.Attribute) else None
    if new is None:
        return None
    safe = moved.proven and _gives_same(site, made, moved, names) and all(name in _RESHAPES for name in names)
    safe = safe and not _may_be_written_view(site, names)
    if _repeats_memory(steps):
        if not _IN_ORDER.isdisjoint(names):
            return None
        new, safe = cst.Call(cst.Attribute(new, cst.Name("contiguous"))), False
    edit = replace(site.model.source, site.model.source.span(whole), _without_brackets(site, new))
    return Fix("Create the tensor on the GPU", Safety.SAFE if safe else Safety.UNSAFE, (edit,))


def _with_next_call(site: CallSite, made: ast.Call, added: list[str]) -> tuple[ast.expr, list[str]]:
    """The expression to replace and the arguments to add: a `.to` that follows the move goes, too, if they say as much.

    It names the device or the dtype again, or casts zeros or ones, which each dtype holds exactly.
    """
    call = called_on(site.model, site.node)
    if call is None or last_name(call) != "to" or len(arguments(call)) != 1:
        return site.node, added
    (given,) = arguments(call)
    if has_effects(site.model, given):
        return site.node, added
    if call.keywords and call.keywords[0].arg not in ("device", "dtype"):
        return site.node, added
    text = site.text(given)
    if f"device={text}" in added or f"dtype={text}" in added:
        return call, added
    is_cast = isinstance(given, (ast.Name, ast.Attribute)) and isinstance(site.value(given), Dtype)
    has_dtype = keyword(made, "dtype") is not None or any(each.startswith("dtype=") for each in added)
    if is_cast and not has_dtype and site.model.target(made) in _PLAIN:
        return call, [*added, f"dtype={text}"]
    return site.node, added


def _may_have(site: CallSite, target: str, moved: Move) -> bool:
    """True if a factory may make tensors of the dtype that a move casts to."""
    if target == "torch.eye" and moved.dtype is not None:
        return (dtype_name(site, moved.dtype) or "float32") in _COMMON | _OF_EYE
    return "indices" not in target


def _without_brackets(site: CallSite, new: cst.BaseExpression) -> cst.BaseExpression:
    """A call on one line without brackets around it; with them if they part it from a keyword: `return(zeros(3))`."""
    before = site.model.source.lines[site.span.line - 1][: site.span.column - 1]
    if before[-1:].isidentifier() or "\n" in code(new):
        return new
    return new.with_changes(lpar=(), rpar=())


def _steps(site: CallSite, made: ast.Call) -> list[ast.Call] | None:
    """The calls of methods between the factory and the move, the last first; None if something else is in between."""
    assert isinstance(site.node.func, ast.Attribute)
    steps: list[ast.Call] = []
    node = site.node.func.value
    while node is not made:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            return None
        steps.append(node)
        node = node.func.value
    return steps


def _keeps_order(site: CallSite, moved: Move, steps: list[ast.Call]) -> bool:
    """True if evaluating the device before the arguments of the steps changes nothing."""
    given = [each for each in (moved.device, moved.other, moved.dtype) if each is not None]
    between = [each for step in steps for each in (*step.args, *(item.value for item in step.keywords))]
    return may_swap(site.model, *given, *between)


def _is_written_leaf(site: CallSite, made: ast.Call, names: list[str]) -> bool:
    """True if the tensor has a gradient and is written to in place: the result of a move may be, a leaf may not."""
    has_gradient = keyword(made, "requires_grad") is not None or "requires_grad_" in names
    return has_gradient and Fate.WRITTEN in fates(site.model, site.node)


def _may_be_written_view(site: CallSite, names: list[str]) -> bool:
    """True if the result becomes a view, and autograd may refuse a write to it. The result of a move is a tensor."""
    tensor = site.value(site.node).tensor
    is_counted = tensor is not None and tensor.kind in (Kind.INT, Kind.BOOL)
    if is_counted or _VIEWS.isdisjoint(names):
        return False
    return not fates(site.model, site.node).isdisjoint({Fate.KEPT, Fate.PASSED, Fate.WRITTEN})


def _repeats_memory(steps: list[ast.Call]) -> bool:
    """True if the tensor may be expanded when it is moved: a copy to another device has memory for each element."""
    for step in steps:
        assert isinstance(step.func, ast.Attribute)
        name = step.func.attr
        whole = not step.args or ast.unparse(step.args[0]) == "-1"
        if name in ("contiguous", "repeat", "tile") or (name in ("flatten", "reshape") and whole):
            return False
        if name == "expand":
            return True
    return False


def _with_arguments(node: cst.BaseExpression, depth: int, added: list[str]) -> cst.BaseExpression | None:
    """The expression with arguments added to the call that stands `depth` method calls deep in it."""
    if not isinstance(node, cst.Call):
        return None
    if depth:
        assert isinstance(node.func, cst.Attribute)
        inner = _with_arguments(node.func.value, depth - 1, added)
        return None if inner is None else node.with_changes(func=node.func.with_changes(value=inner))
    return with_arguments(node, *added)


def _gives_same(site: CallSite, made: ast.Call, moved: Move, steps: list[str]) -> bool:
    """True if the device fills the tensor with the same bits as the CPU, and has the factory for the dtype."""
    target = site.model.target(made)
    if target not in _EXACT or keyword(made, "requires_grad") is not None:
        return False
    casts = moved.dtype is not None or moved.other is not None
    if target == "torch.arange":
        return not casts and _counts(site, made)
    if "full" in target:
        return not casts and _CASTS.isdisjoint(steps) and _fills(site, made)
    if target == "torch.eye":
        return not casts or (moved.dtype is not None and dtype_name(site, moved.dtype) in _COMMON)
    return True


def _fills(site: CallSite, made: ast.Call) -> bool:
    """True if `full` on the device accepts each number that it accepts on the CPU."""
    filled = site.model.call(made).argument("fill_value", 1)
    like = site.model.target(made).endswith("_like")
    given = keyword(made, "dtype")
    dtype = dtype_name(site, given) if given is not None else "" if like else None
    return filled is not None and can_fill(number(site.model, filled), dtype)


def _counts(site: CallSite, made: ast.Call) -> bool:
    """True if an `arange` is one of integers, which each dtype that it may have holds exactly."""
    named = [keyword(made, name) for name in ("start", "end", "step")]
    numbers = [site.value(each) for each in (*made.args, *named) if each is not None]
    given = keyword(made, "dtype")
    name = "int64" if given is None else dtype_name(site, given)
    if name in _INTEGERS:
        return all(scalar_type(each) == "int" for each in numbers)
    exact = all(isinstance(each, Const) and type(each.value) is int and abs(each.value) < 2**24 for each in numbers)
    return exact and name in ("float32", "float64", "float", "double")
