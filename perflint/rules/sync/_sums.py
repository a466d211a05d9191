"""Sums of scalar reads over a loop, kept on the device until the loop is over."""

from __future__ import annotations

import ast
from itertools import takewhile

from perflint.findings import Fix, Heat, Safety
from perflint.fixes.edits import replace
from perflint.frozen import dataclass
from perflint.rules._methods import called_on
from perflint.rules._project_text import names_apple_gpus
from perflint.rules._statements import block_of, line_behind, mention_before, shares_last_line
from perflint.rules.sync._scalars import NUMBERS, SCALAR_READ, Read, read_at
from perflint.semantics.around import inside, statement_of
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import calls_in, last_name, names_in, walk
from perflint.semantics.values import Kind, Tensor, scalar_type
from perflint.source.concrete import cst

_SEVERAL = "TPF102"
"""Several reads in a place that runs rarely."""


@dataclass(frozen=True, slots=True)
class _Sum:
    """`name += …` in a loop, with `name = 0` before it and nothing else that sees the name meanwhile."""

    name: str
    loop: ast.For | ast.AsyncFor | ast.While
    type: str
    """The Python type of the sum: "int" or "float"."""
    reads: tuple[ast.Name, ...] = ()
    """The uses of the sum in the loop that run in few of its iterations, as for a log every 100 steps."""


def summed_on_device(site: CallSite, read: Read) -> Fix | None:
    """`.detach()` in place of `.item()`, and one conversion after the loop; None if the sum is used before."""
    if site.target != "torch.Tensor.item" or site.node.args or read.tensor is site.node.func:
        return None
    found, source = _sum(site.model, read), site.model.source
    last = None if found is None else line_behind(source, found.loop, f"{found.name} = {found.type}({found.name})")
    if found is None or last is None:
        return None
    wide = wide_float(site.model) if found.type == "float" else ""
    new = detached(site.concrete, wide, is_data(site.model, read.tensor) or is_of_comparison(read.node))
    edits = (
        replace(source, source.span(site.node), new),
        last,
        *(replace(source, source.span(each), f"{found.type}({each.id})") for each in found.reads),
    )
    leaves = (SCALAR_READ,) * (1 + len(found.reads))
    return Fix("Sum on the GPU and read once after the loop", Safety.UNSAFE, edits, leaves=leaves, brings=(_SEVERAL,))


def wide_float(model: Model) -> str:
    """The dtype for sums of floats on the device. Python sums in double precision, which the GPUs of Apple lack."""
    return "float" if names_apple_gpus(model) else "double"


def detached(read: cst.Call, wide: str, is_data: bool) -> cst.BaseExpression:
    """`x.detach()` in place of `x.item()`, as a `wide` dtype if one is named. `is_data` says that `x` has no graph."""
    assert isinstance(read.func, cst.Attribute)
    last = _last_methods(read.func.value)
    without_graph = is_data or "detach" in last
    new = read.func.value if without_graph else read.with_changes(func=read.func.with_changes(attr=cst.Name("detach")))
    dtype = next((name for name in last if name != "detach"), "")
    return cst.Call(cst.Attribute(new, cst.Name(wide))) if wide and dtype not in (wide, "double") else new


def is_data(model: Model, tensor: ast.expr) -> bool:
    """True for `x.data` of a tensor `x`, also behind methods that change at most the dtype: it has no graph."""
    while isinstance(tensor, ast.Call) and isinstance(tensor.func, ast.Attribute) and not tensor.args:
        if tensor.func.attr not in _PLAIN:
            return False
        tensor = tensor.func.value
    if not isinstance(tensor, ast.Attribute) or tensor.attr != "data":
        return False
    return isinstance(model.value(tensor.value), Tensor)


_PLAIN = ("detach", "double", "float")
"""Methods that change at most the dtype and the graph of a tensor."""


def _last_methods(node: cst.BaseExpression) -> list[str]:
    """The methods at the end of a chain, from the last, that change at most the dtype and the graph of a tensor."""
    found: list[str] = []
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and not node.args:
        if node.func.attr.value not in _PLAIN:
            break
        found.append(node.func.attr.value)
        node = node.func.value
    return found


def _sum(model: Model, read: Read) -> _Sum | None:
    statement = statement_of(model, read.node)
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.op, ast.Add):
        return None
    if not isinstance(statement.target, ast.Name) or not _is_linear(model, statement.value, read.node):
        return None
    loop = next((o for o in inside(model, statement) if isinstance(o, (ast.For, ast.AsyncFor, ast.While))), None)
    if loop is None or loop.orelse or shares_last_line(model, loop):
        return None
    name = statement.target.id
    if _is_of_others(model, loop, name):
        return None
    others = [n for n in walk(loop) if isinstance(n, ast.Name) and n.id == name and n is not statement.target]
    reads = _rare_reads(model, loop, others)
    start = _start(model, loop, name)
    if reads is None or start is None:
        return None
    kind = None if read.value.tensor is None else read.value.tensor.kind
    is_known = isinstance(start, float) or kind in (Kind.INT, Kind.FLOAT)
    if not is_known and not _may_be_float(model, read, loop, name, reads):
        # It may be a number of elements, which is to stay an `int`.
        return None
    added = "float" if isinstance(start, float) else scalar_type(model.value(statement.value))
    # Truth values add up to whole numbers in Python, to a truth value on the device.
    counts = added == "int" and kind is Kind.INT
    return _Sum(name, loop, added, reads) if added == "float" or counts else None


def _reads_number(model: Model, node: ast.expr) -> bool:
    """True if a part of an expression reads a number from the device."""
    calls = (model.call(each) for each in calls_in(node))
    return any(call.target in NUMBERS and read_at(call) is not None for call in calls)


def _rare_reads(model: Model, loop: ast.stmt, uses: list[ast.Name]) -> tuple[ast.Name, ...] | None:
    """The reads among some uses of a sum; None if one runs in each iteration, or if the sum gets another number."""
    reads: list[ast.Name] = []
    for use in uses:
        statement = model.parent(use)
        if isinstance(use.ctx, ast.Store):
            if not isinstance(statement, ast.Assign) or not _is_number(statement.value):
                return None
        elif (
            model.heat(use) is not Heat.COLD
            or isinstance(statement, (ast.keyword, ast.Starred))
            or not _is_guarded(model, loop, use)
        ):
            return None
        else:
            reads.append(use)
    return tuple(reads)


def _is_guarded(model: Model, loop: ast.stmt, node: ast.AST) -> bool:
    """True if a condition within a loop decides whether a node runs."""
    return any(isinstance(outer, ast.If) for outer in takewhile(lambda outer: outer is not loop, inside(model, node)))


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _may_be_float(model: Model, read: Read, loop: ast.stmt, name: str, reads: tuple[ast.Name, ...]) -> bool:
    """True if a sum is of floats for certain, or if it makes no difference: if it is only divided."""
    if is_of_comparison(read.node):
        return False
    around = model.function(loop) or model.source.tree
    if isinstance(read.tensor, ast.Name):
        called = [called_on(model, each) for each in model.names(around, read.tensor.id)]
        if any(last_name(each) == "backward" for each in called if each is not None):
            # Only floating-point numbers have gradients.
            return True
    return _is_only_divided(model, loop, name, reads)


def _is_only_divided(model: Model, loop: ast.stmt, name: str, reads: tuple[ast.Name, ...]) -> bool:
    """True if a number is divided with `/`, which gives a float anyway, and else only set to other numbers.

    `reads` are its uses in the loop. A number that no code of the file uses may be for its importers.
    """
    block, within = block_of(model, loop), set(walk(loop))
    others = [each for each in model.names(model.function(loop) or model.source.tree, name) if each not in within]
    is_divided = False
    for use in sorted((*others, *reads), key=lambda each: (each.lineno, each.col_offset)):
        statement = statement_of(model, use)
        if statement in block and use.lineno > loop.lineno and _divides(statement, name):
            return True
        if not _is_set(model, use):
            if not _is_divided(model, use):
                return False
            is_divided = True
    return is_divided


def _divides(statement: ast.stmt | None, name: str) -> bool:
    """True for `total /= n` and `total = total / n`."""
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.Div) and isinstance(statement.target, ast.Name)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.BinOp):
        return False
    of_name = isinstance(statement.value.left, ast.Name) and statement.value.left.id == name
    return of_name and isinstance(statement.value.op, ast.Div) and name not in names_in(statement.value.right)


def _is_set(model: Model, name: ast.Name) -> bool:
    """True if a name is set to a constant."""
    outer = model.parent(name)
    return isinstance(outer, ast.Assign) and isinstance(name.ctx, ast.Store) and isinstance(outer.value, ast.Constant)


def _is_divided(model: Model, name: ast.Name) -> bool:
    outer = model.parent(name)
    return isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Div) and outer.left is name


def is_of_comparison(node: ast.expr) -> bool:
    """True if methods make a number of the result of a comparison: `(a == b).sum().item()`, `a.eq(b).sum().item()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _COMPARES:
            return True
        node = node.func.value
    return isinstance(node, ast.Compare)


_COMPARES = frozenset("eq ne lt le gt ge".split())


def _is_of_others(model: Model, loop: ast.stmt, name: str) -> bool:
    """True if other functions may read the name while the loop runs."""
    return model.symbols.declares(model.function(loop), name)


def _is_linear(model: Model, node: ast.expr, read: ast.expr) -> bool:
    """True if a read enters an expression only through arithmetic with numbers that the CPU has."""
    if node is read:
        return True
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Mult, ast.Add, ast.Sub, ast.Div)):
        return False
    left = read in walk(node.left)
    other = node.right if left else node.left
    if model.value(other).tensor is not None or _reads_number(model, other):
        return False
    return _is_linear(model, node.left if left else node.right, read)


def _start(model: Model, loop: ast.stmt, name: str) -> int | float | None:
    """The number that the name holds when the loop begins; None if it may be anything else."""
    before = mention_before(model, loop, name)
    if not isinstance(before, ast.Assign) or name not in {t.id for t in before.targets if isinstance(t, ast.Name)}:
        return None
    value = before.value.value if isinstance(before.value, ast.Constant) else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
