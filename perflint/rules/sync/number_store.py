"""TPF135: a Python number stored at single positions of a GPU tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Need, Safety, Severity, lowered
from perflint.fixes.edits import replace
from perflint.rules._memory.flows import bound
from perflint.rules._memory.operators import reshapes_somewhere
from perflint.rules._numbers import literal
from perflint.rules._proven import is_number
from perflint.rules.base import ExpressionSite, Group, Rule, SubscriptSite, device_confidence, often, shown
from perflint.rules.sync._indices import Index, indices, parts
from perflint.rules.sync._scalars import NUMBERS, read_at
from perflint.semantics.facts import rule_conventions, torch_api
from perflint.semantics.model import Model
from perflint.semantics.purpose.need import need_of_numbers
from perflint.semantics.structure import calls_in, last_name
from perflint.semantics.values import Array, Const, Evidence, Tensor, scalar_type
from perflint.source.concrete import cst

_NUMBERS = ("int", "float", "bool", "complex")
_SURELY_COMPLETE = 3
"""An index with so many integers is taken for one element rather than a part of a tensor."""
_PLAIN = (
    ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.Tuple, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop,
    ast.expr_context,
)  # fmt: skip
"""Parts of expressions that call nothing."""
_SIZED = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "rand", "randn"))
"""Factories whose arguments are the size."""


class NumberStore(Rule):
    """
    ## What it does
    Finds stores of a Python number into a GPU tensor with an index that is one element
    (`table[i, j] = 1.0`) or a tensor of positions (`x[indices] = 0`).

    ## Why is this bad
    torch creates a tensor from the number on the CPU and copies it to the GPU, and the CPU waits
    for the copy. A loop over elements repeats this for each of them.

    ## When it is fine
    Stores to slices (`x[:, 0] = 1.0`, `x[2:4] = 0`) and through a boolean mask fill with a kernel.
    Tensors on the CPU; tables that are built once.

    ## Bad
    ```python
    import torch

    class Affine(torch.nn.Module):
        def forward(self, x: torch.Tensor, angle: float):
            matrix = torch.eye(3, device=x.device)
            matrix[0, 2] = angle
            return x @ matrix
    ```

    ## Good
    ```python
    import torch

    class Affine(torch.nn.Module):
        def forward(self, x: torch.Tensor, angle: float):
            matrix = torch.eye(3, device=x.device)
            matrix[0, 2].fill_(angle)
            return x @ matrix
    ```

    ## Fix safety
    `x[i, 2] = number` becomes `x[i, 2:3] = number`: a store to a slice, which torch fills. It is safe
    if x is certainly a tensor, the value certainly a number (`(start + n) % size` with an unknown
    size is not), and the call that makes x shows that it has this position, in a file
    that gives no tensor another shape in place. It is unsafe otherwise: a list or an
    object of your own class may not accept the index, and a position outside of the tensor raises no error any more,
    because the slice is empty.

    If no position is written as a number, `x[i, j] = number` becomes `x[i, j].fill_(number)`. That is
    unsafe: on a GPU it raises where float16 cannot hold the number. No fix is offered if the index
    or the number contains a call, because `fill_` is evaluated in another order; and none if a
    position may be a boolean, because `x[True, 0]` is a copy. There is none either if the same statement reads a
    number of the GPU, for which the CPU waits in any case. It is only shown if an annotation alone calls
    the number or a position one: for a list of positions, `x[i, j]` is a copy, too. `x[i, j, None] = number` does not
    wait either, but `torch.onnx.export` loses such a store. `x[indices] = number` gets no fix:
    `x.index_fill_(0, indices, number)` needs positions of one dimension and int64.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line (torch 2.11); a trace shows a
    `Memcpy HtoD (Pageable -> Device)` of a few bytes.

    ## References
    - [Tensor.fill_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.fill_.html)
    - [Tensor.index_fill_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_fill_.html)
    """

    code, name = "TPF135", "number-store"
    effect, severity = Effect.SYNC, Severity.WARNING
    group = Group.NUMBERS
    measured = ("number-store-gpt", "number-store-gpt-host-work", "number-store-policy")
    listens = (SubscriptSite,)

    def need(self, site: ExpressionSite) -> Need:
        return need_of_numbers(site)

    def check(self, site: SubscriptSite) -> Iterator[Finding]:
        confidence = _confidence(site)
        if confidence is None or site.stored is None:
            return
        positions = not {Index.POSITIONS, Index.TENSOR}.isdisjoint(indices(site))
        method = "index_fill_" if positions else ".fill_"
        cure = f"Use `{method}`, which takes the number without a copy."
        yield self.finding(
            site,
            f"Storing {shown(site, site.stored)} in {shown(site)} copies the number to the GPU: "
            f"the CPU waits for the copy{often(site)}",
            confidence=confidence,
            help=cure,
            fix=None if positions else _fix(site),
        )


def _confidence(site: SubscriptSite) -> Confidence | None:
    if site.mode != "store" or site.stored is None:
        return None
    receiver = site.value(site.node.value)
    if receiver.tensor is None:
        return None
    confidence = device_confidence(receiver)
    if not _is_number(site, site.stored):
        if confidence is None or not (_is_remainder(site, site.stored) or _is_of_numpy(site, site.stored)):
            return None
        confidence = lowered(confidence)
    found = list(indices(site))
    if confidence is None:
        return None
    if set(found) <= {Index.POSITIONS, Index.TENSOR, Index.INTEGER, Index.VIEW}:
        # Of two tensors neither is a mask that `masked_fill_` could take.
        if Index.POSITIONS in found or found.count(Index.TENSOR) > 1:
            return confidence
        if Index.TENSOR in found and any(_is_called_positions(part.node) for part in parts(site)):
            return lowered(confidence)
    if any(index is not Index.INTEGER for index in found):
        return None
    rank = receiver.tensor.rank
    if rank is not None:
        return confidence if rank == len(found) else None
    if len(found) == 1:
        return None
    return lowered(confidence) if len(found) >= _SURELY_COMPLETE else Confidence.LOW


def _is_called_positions(node: ast.expr) -> bool:
    """True if the name of an index of unknown dtype says that it holds positions."""
    return bool(rule_conventions.holds_positions(last_name(node)))


def _is_number(site: SubscriptSite, stored: ast.expr) -> bool:
    return all(scalar_type(member) in _NUMBERS for member in site.value(stored).members)


def _is_of_numpy(site: SubscriptSite, stored: ast.expr) -> bool:
    """True for the result of NumPy, or a number: torch stores no arrays, so that it is a number of NumPy."""
    members = site.value(stored).members
    return all(isinstance(member, Array) or scalar_type(member) in _NUMBERS for member in members)


def _is_remainder(site: SubscriptSite, stored: ast.expr) -> bool:
    """True for `(start + count) % size` of an integer and an unknown size: the next place in a ring."""
    if not isinstance(stored, ast.BinOp) or not isinstance(stored.op, ast.Mod):
        return False
    size = site.value(stored.right)
    return scalar_type(site.value(stored.left)) == "int" and size.tensor is None and not isinstance(size, Array)


def _fix(site: SubscriptSite) -> Fix | None:
    """The store to a slice of one element, or `fill_` if no position is written as a number."""
    assignment, found = site.model.parent(site.node), parts(site)
    if not isinstance(assignment, ast.Assign) or site.node not in assignment.targets:
        return None
    if _reads_number(site.model, assignment):
        return None
    node = site.concrete
    # A tuple in brackets or behind a name stays one; a boolean selects a copy.
    if not isinstance(node, cst.Subscript) or len(node.slice) != len(found):
        return None
    if not all(scalar_type(part.value) == "int" or isinstance(part.value, Array) for part in found):
        return None
    written = [at for at, part in enumerate(found) if literal(part.node) is not None]
    if not written:
        return _filled(site, assignment)
    receiver = site.value(site.node.value)
    is_tensor = isinstance(receiver, Tensor) and receiver.evidence >= Evidence.ANNOTATION
    inside = [at for at in written if _has_element(site, found[at].node, at)]
    sure = is_tensor and _is_number(site, assignment.value) and bool(inside)
    sliced = (inside or written)[-1]
    elements = list(node.slice)
    elements[sliced] = elements[sliced].with_changes(slice=_slice(found[sliced].node))
    edit = replace(site.model.source, site.span, node.with_changes(slice=elements))
    return Fix("Store to a slice of one element", Safety.SAFE if sure else Safety.UNSAFE, (edit,))


def _reads_number(model: Model, statement: ast.Assign) -> bool:
    """True if the CPU waits for a number of the GPU in the same statement, so that it saves nothing to fill."""
    calls = (model.call(each) for each in calls_in(statement))
    return any(read_at(call) is not None for call in calls if call.target in NUMBERS)


def _has_element(site: SubscriptSite, position: ast.expr, axis: int) -> bool:
    """True if a position that is written as a number is surely inside of the tensor."""
    place = literal(position)
    return place is not None and _is_element(site.model, site.node.value, axis, place)


def _slice(node: ast.expr) -> cst.BaseSlice:
    """The slice of one element: `2:3` for 2, `-1:` for -1."""
    first = literal(node)
    assert first is not None
    made = cst.parse_expression(f"x[{first}:{'' if first == -1 else first + 1}]")
    assert isinstance(made, cst.Subscript)
    return made.slice[0].slice


def _filled(site: SubscriptSite, assignment: ast.Assign) -> Fix | None:
    """`x[i].fill_(number)`; None if the order of evaluation might show."""
    source, number = site.model.source, assignment.value
    if len(assignment.targets) != 1 or assignment.lineno != assignment.end_lineno:
        return None
    if not all(isinstance(each, _PLAIN) for part in (site.node, number) for each in ast.walk(part)):
        return None
    text = f"{source.written(site.node)}.fill_({source.written(number)})"
    proven = all(is_number(site.model, each) for each in (number, *(part.node for part in parts(site))))
    safety = Safety.UNSAFE if proven else Safety.DISPLAY
    return Fix("Fill the element", safety, (replace(source, source.span(assignment), text),))


def _is_element(model: Model, tensor: ast.expr, axis: int, place: int) -> bool:
    """True if the call that makes a tensor shows that a dimension has an element at a position."""
    made = bound(model, tensor) if isinstance(tensor, ast.Name) else tensor
    if not isinstance(made, ast.Call) or reshapes_somewhere(model):
        return False
    sizes = _lengths(model, made)
    length = model.value(sizes[axis]) if axis < len(sizes) else None
    return isinstance(length, Const) and isinstance(length.value, int) and -length.value <= place < length.value


def _lengths(model: Model, made: ast.Call) -> list[ast.expr]:
    """The lengths of the dimensions of a new tensor; empty if the call does not list them."""
    target = torch_api.canonical(model.target(made))
    given = list(made.args)
    if target == "torch.eye":
        return [] if any(each.arg in ("n", "m") for each in made.keywords) else (given * 2)[:2]
    if target == "torch.arange" and len(given) == 1:
        return given
    if target == "torch.full":
        given = given[:1] if given and isinstance(given[0], (ast.Tuple, ast.List)) else []
    elif target not in _SIZED:
        return []
    if len(given) == 1 and isinstance(given[0], (ast.Tuple, ast.List)):
        given = list(given[0].elts)
    return [] if any(isinstance(each, ast.Starred) for each in given) else given
