"""TPF116: one Python number copied to the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Safety, Severity
from perflint.fixes.edits import argument, replace, with_argument
from perflint.fixes.imports import spell
from perflint.rules._numbers import can_fill
from perflint.rules._since import INFERRED_FULL
from perflint.rules._words import often
from perflint.rules.base import Calls, Rule
from perflint.rules.placement import (
    MOVES,
    Content,
    Move,
    content,
    creation_confidence,
    creator,
    dtype_name,
    move,
)
from perflint.semantics.sites import CallSite, device_confidence
from perflint.semantics.structure import keyword
from perflint.source.concrete import cst
from perflint.source.quoting import quoted

_CONSTRUCTORS = ("torch.tensor", "torch.as_tensor", "torch.asarray")
_NEW = "torch.Tensor.new_tensor"
_KEPT = frozenset({"dtype", "device", "requires_grad"})


class ScalarToCuda(Rule):
    """
    ## What it does
    Finds single Python numbers that become a tensor on the CPU and are copied to the GPU:
    `torch.tensor(0.0, device=…)`, `torch.as_tensor(1, device=…)`, `torch.tensor(3).cuda()`,
    `x.new_tensor(1.0)`.

    ## Why is this bad
    The number is copied from pageable memory and the CPU waits for the copy. `torch.full` with the
    same arguments launches a kernel that takes the number as its argument. On an H200 the copy
    alone takes 1.6 times as long, and one in each of twelve layers adds 3 percent to a GPT training
    step.

    ## When it is fine
    In constructors and set-up code. Often the tensor is not needed at all: arithmetic accepts
    Python numbers.

    ## Bad
    ```python
    import torch

    class Loss(torch.nn.Module):
        def forward(self, predictions):
            total = torch.tensor(0.0, device=predictions.device)
            for prediction in predictions:
                total = total + prediction.mean()
            return total
    ```

    ## Good
    ```python
    import torch

    class Loss(torch.nn.Module):
        def forward(self, predictions):
            total = torch.full((), 0.0, device=predictions.device)
            for prediction in predictions:
                total = total + prediction.mean()
            return total
    ```

    ## Fix safety
    `torch.tensor(number, device=d)` becomes `torch.full((), number, device=d)`, with `dtype` and
    `requires_grad` kept. It is safe for a number in the source: both infer the same dtype. It is
    unsafe:

    - for a variable, which may hold a NumPy scalar with a dtype of its own;
    - if the move also changed the dtype, because the number was rounded twice;
    - for `True` and `False` without `dtype`, because `torch.full` turns them into integers in
      TorchScript;
    - for numbers above 65504 in float16 or in an unknown dtype: `torch.tensor` turns a number that
      the dtype cannot hold into infinity, while `torch.full` raises an error on a GPU;
    - for complex numbers without a dtype of at least 64 bits, for integers beyond int64 and numbers of
      `uint64`, because other numbers raise.

    `torch.tensor(number).cuda(gpu)` has no fix if `gpu` may be None: `.cuda(None)` is the current
    GPU, and `device=None` is the CPU.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line; a trace shows a
    `Memcpy HtoD (Pageable -> Device)` of a few bytes and a `cudaStreamSynchronize`.

    ## References
    - [torch.full](https://docs.pytorch.org/docs/stable/generated/torch.full.html)
    """

    code = "TPF116"
    name = "scalar-to-cuda"
    effect = Effect.SYNC
    severity = Severity.WARNING
    measured = ("scalar-to-cuda-gpt", "scalar-to-cuda-gpt-host-work", "scalar-to-cuda-policy")
    listens = (Calls(*_CONSTRUCTORS, _NEW, *MOVES),)
    replaces = ("TPF201",)

    def check(self, site: CallSite) -> Iterator[Finding]:
        confidence = _confidence(site)
        if confidence is None:
            return
        yield self.finding(
            site,
            f"{quoted(site.text(site.node))} is a blocking CPU-to-GPU copy of one number{often(site)}",
            confidence=confidence,
            help="Use the Python number itself, or fill a tensor on the GPU: `torch.full((), number, device=…)`.",
            fix=_fix(site),
        )


def _made(site: CallSite) -> ast.Call | None:
    """The constructor call whose result goes to the device."""
    if site.target not in MOVES:
        return site.node
    assert isinstance(site.node.func, ast.Attribute)
    return creator(site, site.node.func.value)


def _confidence(site: CallSite) -> Confidence | None:
    made = _made(site)
    if made is None or content(site, made, site.model.target(made)) is not Content.NUMBER:
        return None
    if site.target in MOVES:
        moved = move(site)
        return moved.confidence if moved is not None and moved.blocking else None
    if site.target == _NEW and keyword(site.node, "device") is None:
        return None if site.receiver is None else device_confidence(site.receiver)
    return creation_confidence(site)


def _fix(site: CallSite) -> Fix | None:
    made = _made(site)
    if site.target == _NEW or made is None:
        return None
    node = site.concrete
    if site.target in MOVES:
        assert isinstance(node.func, cst.Attribute)
        inner, moved = node.func.value, move(site)
        if not isinstance(site.node.func, ast.Attribute) or site.node.func.value is not made:
            return None
        added = None if moved is None or keyword(made, "requires_grad") is not None else _place(site, moved, made)
    else:
        inner, added = node, []
    full = spell(site.model.symbols, "torch.full", site.node)
    if not isinstance(inner, cst.Call) or added is None or full is None or not _is_plain(site, made):
        return None
    # The move rounded once more than torch.full does.
    casts = any(text.startswith("dtype=") for text in added)
    shape = argument("()").with_changes(comma=cst.Comma(whitespace_after=_after_first(inner)))
    new: cst.Call | None = inner.with_changes(func=cst.parse_expression(full.text), args=[shape, *inner.args])
    for text in added:
        new = None if new is None else with_argument(new, text)
    if new is None:
        return None
    return Fix(
        "Fill the tensor on the GPU",
        Safety.SAFE if _infers_same(site, made) and not casts else Safety.UNSAFE,
        (replace(site.model.source, site.span, new),),
        full.imports,
        since=None if keyword(made, "dtype") is not None or casts else INFERRED_FULL,
    )


def _after_first(call: cst.Call) -> cst.BaseParenthesizableWhitespace:
    """The white space after one more argument at the front: a line of its own if all others have one."""
    comma = call.args[0].comma
    if isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace) and isinstance(comma, cst.Comma):
        after = comma.whitespace_after
        if len(call.args) > 1 and isinstance(after, cst.ParenthesizedWhitespace):
            return after.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[])
    return cst.SimpleWhitespace(" ")


def _is_plain(site: CallSite, made: ast.Call) -> bool:
    """True if the call is a number by position and keywords that it and torch.full have."""
    taken = _KEPT - {"requires_grad"} if site.model.target(made) == "torch.as_tensor" else _KEPT
    return len(made.args) == 1 and all(item.arg in taken for item in made.keywords)


def _place(site: CallSite, moved: Move, made: ast.Call) -> list[str] | None:
    """The arguments that stand for the move."""
    if not moved.proven or not moved.simple or moved.may_be_none or site.target.endswith(".type"):
        return None
    casts = moved.other is not None or moved.dtype is not None
    if casts and keyword(made, "dtype") is not None:
        return None
    if moved.other is not None:
        if not isinstance(moved.other, (ast.Name, ast.Attribute)):
            return None
        other = site.text(moved.other)
        return [f"device={other}.device", f"dtype={other}.dtype"]
    device = '"cuda"' if moved.device is None else site.text(moved.device)
    return [f"device={device}"] + ([] if moved.dtype is None else [f"dtype={site.text(moved.dtype)}"])


def _infers_same(site: CallSite, made: ast.Call) -> bool:
    """True if torch.full certainly gives the dtype and the number that the constructor gives."""
    number = made.args[0]
    while isinstance(number, ast.UnaryOp):
        number = number.operand
    if not isinstance(number, ast.Constant):
        return False
    given = keyword(made, "dtype")
    if isinstance(number.value, bool) and given is None:
        # TorchScript makes an integer tensor of True.
        return False
    return can_fill(site.value(made.args[0]), None if given is None else dtype_name(site, given))
