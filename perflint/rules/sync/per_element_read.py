"""TPF103: reading a tensor one element at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Edit, Effect, Finding, Fix, Safety, Severity
from perflint.fixes.edits import replace
from perflint.fixes.imports import spell
from perflint.rules._memory.bodies import LAST, Writers, writers
from perflint.rules._memory.flows import behind, flow_around
from perflint.rules._memory.operators import reshapes_somewhere
from perflint.rules._proven import is_list
from perflint.rules._visible import is_local
from perflint.rules.base import Calls, CallSite, Group, Rule, often, shown
from perflint.rules.sync._elements import Element, element_read
from perflint.rules.sync._scalars import (
    DEVICE_TO_HOST_COPY,
    MAP,
    NUMBERS,
    SCALAR_READ,
    TOLIST,
    Read,
    mapped_at,
    read_at,
)
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name, root_of, walk
from perflint.semantics.values import Evidence, Kind, Mapping, Sequence, Tensor, Value
from perflint.source.concrete import code, cst


class PerElementRead(Rule):
    """
    ## What it does
    Finds loops and comprehensions that read a tensor, or a collection of tensors, one element per
    iteration: `[t.item() for t in x]`, `for i in range(n): int(x[i])`,
    `{k: v.item() for k, v in d.items()}`, `map(int, x)`.

    ## Why is this bad
    Every iteration is a round trip between CPU and GPU: a copy of a few bytes and a wait for it.
    One `.tolist()` copies all elements at once. Serving systems that made this change went from
    thousands of syncs per step to a handful.

    ## When it is fine
    On the CPU: an array, or a tensor that `.cpu()` or `.tolist()` has copied before the loop. Two
    or three elements outside of hot code.

    ## Bad
    ```python
    import torch

    def lengths(mask: torch.Tensor) -> list[int]:
        counts = mask.cuda().sum(dim=1)
        return [int(count) for count in counts]
    ```

    ## Good
    ```python
    import torch

    def lengths(mask: torch.Tensor) -> torch.Tensor:
        return mask.cuda().sum(dim=1)
    ```

    ## Fix safety
    Safe for `[t.item() for t in x]` if `x` is known to be a one-dimensional tensor: `x.tolist()`
    returns the same Python numbers. So does `[t for x in rows for t in x.tolist()]`, in a loop over such
    tensors. Unsafe for attributes and names that other code may set, for what objects give, as other code may derive
    their classes, for tensors that other code or a layer gets, and in a file that gives any tensor another shape in
    place (`unsqueeze_`, `x.data = y`, `out=x`, `setattr`) or registers hooks of a forward pass: for a column of
    numbers, `x.tolist()` is a list of lists. Unsafe, too, for a list or tuple of scalar tensors, which becomes
    `torch.stack(x).tolist() if x else []`: elements of different dtypes or devices are brought to one dtype
    or raise. It is only shown for a list that only an annotation calls one.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns once per element at the line; a profile shows a
    series of tiny GPU-to-CPU copies with nothing between them.

    ## References
    - [torch.Tensor.tolist](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.tolist.html)
    - [Avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code, name = "TPF103", "per-element-read"
    group = Group.MANY
    effect, severity = Effect.SYNC, Severity.ERROR
    measured = ("per-element-read-policy", "per-element-read-gpt", "per-element-read-gpt-host-work")
    costs = "64 numbers read one by one in each step make training of a small MLP {0} slower, and of a GPT-2 {1}"
    listens = (Calls(*NUMBERS, MAP),)
    replaces = (SCALAR_READ, DEVICE_TO_HOST_COPY)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if site.target == MAP:
            yield from self._of_map(site)
            return
        read = read_at(site)
        element = None if read is None else element_read(site.model, read.node, read.tensor)
        if read is None or element is None:
            return
        yield self.finding(
            site,
            _message(site, read, element.whole),
            confidence=read.confidence,
            help=_cure(site, read.tensor, element.whole),
            fix=_fix(site, read, element),
        )

    def _of_map(self, site: CallSite) -> Iterator[Finding]:
        if (read := mapped_at(site)) is not None:
            yield self.finding(
                site,
                _message(site, read, read.tensor),
                confidence=read.confidence,
                help=f"Read all elements at once: pass `{_numbers(site, read.tensor)}`.",
            )


def _message(site: CallSite, read: Read, whole: ast.expr) -> str:
    each = shown(site, whole)
    return f"{shown(site, read.node)} makes the CPU wait once for each element of {each}{often(site)}"


def _cure(site: CallSite, read: ast.expr, whole: ast.expr) -> str:
    value, text = site.value(whole), shown(site, whole)
    before = f"Read all of {text} at once, before the loop"
    if value.tensor is None:
        name = site.text(whole) if isinstance(whole, ast.Name) else "…"
        name = f"list({name}.values())" if isinstance(value, Mapping) else name
        if site.target != TOLIST:
            return f"{before}: `torch.stack({name}).tolist()`."
        # The elements may differ in length.
        made = behind(site.model, whole)
        if isinstance(made, ast.Call) and last_name(made) in _PARTS:
            return f"Copy the tensor to the CPU once, before {shown(site, made)}."
        return f"Copy all of {text} at once, before the loop: joined by `torch.cat`, and split again on the CPU."
    if isinstance(read, ast.Subscript) and isinstance(read.slice, ast.Tuple):
        return f"{before}: `{site.text(whole)}[rows, columns].tolist()`, with tensors of all rows and columns."
    of = site.text(whole) if isinstance(whole, (ast.Name, ast.Attribute)) else ""
    return f"{before}: `{of}.tolist()`."


def _numbers(site: CallSite, whole: ast.expr) -> str:
    """The code that reads all elements of a tensor, or of a collection of tensors, at once."""
    value, text = site.value(whole), site.text(whole)
    if value.tensor is not None:
        return f"{text if isinstance(whole, _IN_ONE_PIECE) else f'({text})'}.tolist()"
    is_stackable = isinstance(value, Sequence) and value.type in ("list", "tuple")
    return f"torch.stack({text if is_stackable else f'list({text})'}).tolist()"


_IN_ONE_PIECE = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
"""Expressions that a method may be called on without brackets."""
_PARTS = frozenset({"split", "chunk", "unbind", "tensor_split", "split_with_sizes"})


def _fix(site: CallSite, read: Read, element: Element) -> Fix | None:
    """`x.tolist()` in place of a list comprehension that does nothing but read each element."""
    loop = element.loop
    if not isinstance(loop, ast.ListComp) or loop.elt is not read.node:
        return None
    generator = loop.generators[-1]
    if generator.ifs or generator.is_async or generator.iter is not element.whole:
        return None
    if not isinstance(generator.target, ast.Name) or not isinstance(read.tensor, ast.Name):
        return None
    model, whole = site.model, site.value(element.whole)
    written = model.source.concrete(element.whole)
    assert isinstance(written, cst.BaseExpression)
    if isinstance(whole, Tensor):
        if whole.rank != 1 or whole.evidence < Evidence.ANNOTATION or not _same_number(site.target, whole.kind):
            return None
        safety = Safety.SAFE if _keeps_rank(model, element.whole) else Safety.UNSAFE
        if len(loop.generators) == 1:
            return _replaced(model, loop, written, safety, ())
        return _read_at_once(model, loop, generator, written, safety)
    if len(loop.generators) > 1:
        return None
    stack = spell(model.symbols, "torch.stack", loop)
    if stack is None or not _stacks(whole, site.target):
        return None
    call = cst.Call(cst.parse_expression(stack.text), [cst.Arg(written)])
    safety = Safety.UNSAFE if is_list(model, element.whole) else Safety.DISPLAY
    if isinstance(whole, Sequence) and whole.items:
        return _replaced(model, loop, call, safety, stack.imports)
    # `torch.stack` raises for an empty list.
    simple = isinstance(written, cst.Name) and isinstance(model.parent(loop), _ALONE)
    return _replaced(model, loop, call, safety, stack.imports, if_any=written) if simple else None


def _keeps_rank(model: Model, whole: ast.expr) -> bool:
    """True if no code can have given a tensor other dimensions than those that its function shows."""
    # A loop may run code behind it first.
    return (
        _is_made_here(model, whole, set())
        and not reshapes_somewhere(model)
        and writers(model, whole, (0, 0), LAST) < Writers.LAYERS
    )


def _is_made_here(model: Model, node: ast.expr, seen: set[ast.expr]) -> bool:
    """True if neither an expression nor what its names stand for asks an object, whose class other files may derive."""
    seen.add(node)
    for each in walk(node):
        if isinstance(each, (ast.Name, ast.Attribute)) and model.value(each).tensor is not None:
            if not isinstance(each, ast.Name) or not is_local(model, each):
                return False
        if isinstance(each, ast.Attribute):
            of_tensor = model.value(each.value).tensor is not None
            if not of_tensor and root_of(each) not in model.module.imports:
                return False
        elif isinstance(each, ast.Name):
            flow = flow_around(model, each)
            values = [bound.value for bound in flow.behind(flow.used.get(each))]
            if not all(
                _is_made_here(model, value, seen) for value in values if value is not None and value not in seen
            ):
                return False
    return True


def _read_at_once(
    model: Model, loop: ast.ListComp, generator: ast.comprehension, written: cst.BaseExpression, safety: Safety
) -> Fix | None:
    """`[x for y in parts for x in y.tolist()]` for `[x.item() for y in parts for x in y]`."""
    source, numbers = model.source, cst.Call(cst.Attribute(_in_brackets(written), cst.Name("tolist")))
    edits = (
        replace(source, source.span(loop.elt), ast.unparse(generator.target)),
        # All of it, since the copy that is left is found where it begins.
        Edit(source.span(generator.iter), code(numbers)),
    )
    return Fix(_MESSAGE, safety, edits, leaves=(DEVICE_TO_HOST_COPY,))


_MESSAGE = "Read all elements with one `.tolist()`"


_ALONE = (ast.Assign, ast.AnnAssign, ast.Return, ast.Call, ast.keyword, ast.Dict, ast.List, ast.Tuple)
"""Nodes with parts that need no brackets if they become a conditional."""


def _same_number(target: str, kind: Kind) -> bool:
    """True if `.tolist()` gives the same numbers as the call for each element."""
    if target == "torch.Tensor.item":
        return True
    return (target, kind) in (("builtins.float", Kind.FLOAT), ("builtins.int", Kind.INT))


def _stacks(whole: Value, target: str) -> bool:
    """True if a value is a list or tuple of scalar tensors of one kind."""
    if not isinstance(whole, Sequence) or whole.type not in ("list", "tuple"):
        return False
    element = whole.element
    return isinstance(element, Tensor) and element.rank == 0 and _same_number(target, element.kind)


def _replaced(
    model: Model,
    loop: ast.ListComp,
    whole: cst.BaseExpression,
    safety: Safety,
    imports: tuple[str, ...],
    if_any: cst.BaseExpression | None = None,
) -> Fix:
    """The fix that writes `whole.tolist()` for a loop; with `if_any`, for a list of that name, which may be empty."""
    new: cst.BaseExpression = cst.Call(cst.Attribute(_in_brackets(whole), cst.Name("tolist")))
    if if_any is not None:
        new = cst.IfExp(test=if_any, body=new, orelse=cst.List([]))
    edit = replace(model.source, model.source.span(loop), new)
    return Fix(_MESSAGE, safety, (edit,), imports, leaves=(DEVICE_TO_HOST_COPY,))


def _in_brackets(whole: cst.BaseExpression) -> cst.BaseExpression:
    """An expression that a method may be called on."""
    if isinstance(whole, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or whole.lpar:
        return whole
    return whole.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
