"""Tensors of one Python number, filled on the device that they are copied to."""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.findings import Fix, Safety
from perflint.fixes.edits import argument, replace
from perflint.fixes.imports import spell
from perflint.frozen import dataclass
from perflint.rules._arguments import with_arguments
from perflint.rules._long_lines import makes_long_line
from perflint.rules._numbers import can_fill
from perflint.rules._order import may_swap
from perflint.rules._proven import is_number
from perflint.rules._since import INFERRED_FULL
from perflint.rules.placement import MOVES, Move, as_arguments, creator, dtype_name, move
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import keyword
from perflint.semantics.values import Evidence, Tensor, scalar_type
from perflint.source.concrete import code, cst

FILLED, COUNTED = "Fill the tensor on the GPU", "Count on the GPU"
"""Messages of fixes."""
NEW_TENSOR = "torch.Tensor.new_tensor"
_NEW = (NEW_TENSOR, "torch.Tensor.new")
_KEPT = frozenset({"dtype", "device", "requires_grad"})
_NUMBERS = frozenset({"bool", "int", "float"})


@dataclass(frozen=True, slots=True)
class Filled:
    """A tensor whose elements are all the same number.

    `shape` is the text of its shape. `sure` is True if the tensor certainly has this shape and holds an element;
    `sized` is True if at least the shape is certain.
    """

    shape: str
    number: ast.expr
    sure: bool = True
    sized: bool = True


def made_by(site: CallSite) -> ast.Call | None:
    """The constructor call whose result goes to the device: the site itself, or the one that is moved there."""
    if site.target not in MOVES:
        return site.node
    return None if site.owner is None else creator(site, site.owner)


def same_number(model: Model, data: ast.expr) -> Filled | None:
    """The number of a list that holds nothing else: `[x]`, `[[0, 0]]`, `[x] * n`; None for other data."""
    found = _repeated(model, data) if isinstance(data, ast.BinOp) else _displayed(data)
    if found is None:
        return None
    members = model.value(found.number).members
    return found if members and all(scalar_type(each) in _NUMBERS for each in members) else None


def _displayed(data: ast.expr) -> Filled | None:
    sizes: list[int] = []
    level = [data]
    while all(isinstance(each, (ast.List, ast.Tuple)) for each in level):
        lengths = {len(each.elts) for each in level if isinstance(each, (ast.List, ast.Tuple))}
        if len(lengths) != 1 or lengths == {0}:
            return None
        sizes += lengths
        level = [item for each in level if isinstance(each, (ast.List, ast.Tuple)) for item in each.elts]
    first = level[0]
    if not sizes or isinstance(first, ast.Starred):
        return None
    if len(level) > 1 and not (_is_literal(first) and {ast.dump(each) for each in level} == {ast.dump(first)}):
        return None
    return Filled(f"({', '.join(map(str, sizes))}{',' * (len(sizes) == 1)})", first)


def _repeated(model: Model, data: ast.BinOp) -> Filled | None:
    """`[x] * n` or `n * [x]`."""
    if not isinstance(data.op, ast.Mult):
        return None
    one, times = (data.left, data.right) if isinstance(data.left, ast.List) else (data.right, data.left)
    if not isinstance(one, ast.List) or len(one.elts) != 1 or scalar_type(model.value(times)) != "int":
        return None
    number = one.elts[0]
    if isinstance(number, (ast.List, ast.Tuple, ast.Starred)) or not may_swap(model, number, times):
        return None
    counted = isinstance(times, ast.Constant) and type(times.value) is int and times.value > 0
    return Filled(f"({model.source.written(times)},)", number, counted, counted or is_size(model, times))


def is_size(model: Model, node: ast.expr) -> bool:
    """True for `len(…)`, `x.shape[…]` and `x.size(…)`, which are never negative."""
    if isinstance(node, ast.Call):
        return model.target(node) in ("builtins.len", "torch.Tensor.size")
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute):
        return False
    return node.value.attr == "shape" and model.value(node.value.value).tensor is not None


def _is_literal(node: ast.expr) -> bool:
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant)


def filled_there(site: CallSite, filled: Filled) -> Fix | None:
    """`torch.full` on the device in place of a constructor of the CPU; None if it does not fit."""
    made = made_by(site)
    if made is None or not _is_plain(site, made):
        return None
    if site.target in _NEW:
        return _new_full(site, filled)
    there = _there(site, made, "torch.full", lambda inner: _arguments(inner, site, filled), filled.number)
    if there is None:
        return None
    given = keyword(made, "dtype")
    # A list without elements holds no integers: its dtype is the default one.
    sure = filled.sure or (filled.sized and given is not None)
    is_same = sure and _infers_same(site, filled.number, given) and not there.typed
    return Fix(
        FILLED,
        _safety(site, filled, is_same),
        (replace(site.model.source, site.span, there.call),),
        there.imports,
        since=None if given is not None or there.casts else INFERRED_FULL,
        by_source=filled.sure and _is_by_source(site, given),
    )


def _is_by_source(site: CallSite, dtype: ast.expr | None) -> bool:
    """True if imports show the constructor and its dtype, and no value of the device decides how it is written."""
    name = site.model.symbols.full_name
    is_known = dtype is None or name(dtype).startswith("torch.")
    return is_known and site.target not in MOVES and name(site.node.func) == site.target


def counted_there(site: CallSite) -> Fix | None:
    """`torch.arange` on the device in place of a constructor of the CPU that gets a `range`; None if it does not fit.

    A negative length gives no elements there, and an error here. Without elements, a constructor without a dtype
    gives floats. Floats hold integers exactly as far as their fraction goes.
    """
    made = made_by(site)
    if made is None or site.target in _NEW or not _is_plain(site, made) or keyword(made, "requires_grad") is not None:
        return None
    stop, given = _counted_to(site.model, made.args[0]), keyword(made, "dtype")
    kind = site.model.target(made).rpartition(".")[2].removesuffix("Tensor")
    dtype = {"": "float32", **_CLASSES}.get(kind, "int64") if given is None else dtype_name(site, given)
    if stop is None or dtype not in (*_COUNTS, *_EXACT_FLOATS):
        return None
    there = _there(
        site, made, "torch.arange", lambda inner: [argument(site.model.source.written(stop)), *inner.args[1:]]
    )
    if there is None or there.casts:
        return None
    counted = isinstance(stop, ast.Constant) and isinstance(stop.value, int) and stop.value > 0
    sure = dtype in _COUNTS and (counted or (given is not None and is_size(site.model, stop)))
    edits = (replace(site.model.source, site.span, there.call),)
    safety = Safety.SAFE if sure and not there.typed else Safety.UNSAFE
    return Fix(COUNTED, safety, edits, there.imports)


_COUNTS = frozenset(("int", "int32", "int64", "long"))
_EXACT_FLOATS = frozenset(("float", "float32", "float64", "double"))
"""Dtypes that hold the integers up to 2^24 at least."""


def _counted_to(model: Model, data: ast.expr) -> ast.expr | None:
    """The end of `range(n)`, or of a list of it; None for other data."""
    while isinstance(data, ast.Call) and model.target(data) in ("builtins.list", "builtins.tuple") and data.args:
        data = data.args[0]
    if not isinstance(data, ast.Call) or model.target(data) != "builtins.range" or len(data.args) != 1:
        return None
    stop = data.args[0]
    members = model.value(stop).members
    return stop if members and all(scalar_type(each) == "int" for each in members) else None


@dataclass(frozen=True, slots=True)
class _There:
    """A constructor on the device in place of another one. `casts` is True if the move changed the dtype.

    `typed` is True if that, or a class such as `torch.LongTensor`, set the dtype.
    """

    call: cst.Call
    imports: tuple[str, ...]
    casts: bool
    typed: bool


def _there(
    site: CallSite,
    made: ast.Call,
    name: str,
    arguments: Callable[[cst.Call], list[cst.Arg]],
    number: ast.expr | None = None,
) -> _There | None:
    """A call of another constructor with the keywords of the one at a site, and the device and dtype of its move.

    `number` is the element of a tensor whose elements are all the same.
    """
    node = site.concrete
    if site.target in MOVES:
        if site.owner is not made or not isinstance(node.func, cst.Attribute):
            return None
        inner, moved = node.func.value, move(site)
        added = None if moved is None or keyword(made, "requires_grad") is not None else _place(site, moved, made)
    else:
        inner, added = node, []
    function = spell(site.model.symbols, name, site.node)
    if not isinstance(inner, cst.Call) or added is None or function is None:
        return None
    # The move rounded once more than the new constructor does.
    casts = any(text.startswith("dtype=") for text in added)
    is_class = site.model.target(made).endswith("Tensor")
    if is_class:
        added = _of_class(site, made, added, number)
        if added is None:
            return None
    new = with_arguments(inner.with_changes(func=cst.parse_expression(function.text), args=arguments(inner)), *added)
    if new is None or makes_long_line(site, code(new)):
        return None
    return _There(new, function.imports, casts, casts or is_class)


def _is_float(site: CallSite, number: ast.expr) -> bool:
    is_float = all(scalar_type(member) == "float" for member in site.value(number).members)
    return is_float and is_number(site.model, number)


_CLASSES = {"Float": "float32", "Double": "float64", "Long": "int64", "Int": "int32", "Bool": "bool"}


def _of_class(site: CallSite, made: ast.Call, added: list[str], number: ast.expr | None) -> list[str] | None:
    """The added arguments with dtype and device of a class such as `torch.cuda.LongTensor`.

    `torch.Tensor` has the default dtype, which `torch.full` gives to a float.
    """
    module, _, name = site.model.target(made).rpartition(".")
    if made.keywords:
        return None
    if module == "torch.cuda":
        added = [*added, 'device="cuda"']
    if any(text.startswith("dtype=") for text in added):
        return added
    if (module, name) == ("torch", "Tensor") and number is not None and _is_float(site, number):
        return added
    is_count = (module, name) == ("torch", "Tensor") and number is None
    known = "float32" if is_count else _CLASSES.get(name.removesuffix("Tensor"))
    dtype = None if known is None else spell(site.model.symbols, f"torch.{known}", site.node)
    return None if dtype is None or dtype.imports else [f"dtype={dtype.text}", *added]


def _new_full(site: CallSite, filled: Filled) -> Fix | None:
    """`x.new_full` in place of `x.new_tensor`: both take dtype and device from x."""
    node = site.concrete
    if not isinstance(node.func, cst.Attribute) or site.receiver is None or site.receiver.tensor is None:
        return None
    function = node.func.with_changes(attr=cst.Name("new_full"))
    new = node.with_changes(func=function, args=_arguments(node, site, filled))
    # The dtype of x is not known, and float16 holds fewer numbers.
    edit = replace(site.model.source, site.span, new)
    given = keyword(site.node, "dtype")
    value = site.value(filled.number)
    is_tensor = isinstance(site.receiver, Tensor) and site.receiver.evidence >= Evidence.ANNOTATION
    fits = can_fill(value, "" if given is None else dtype_name(site, given))
    sure = site.target == NEW_TENSOR and filled.sure and is_tensor and _is_literal(filled.number) and fits
    return Fix(FILLED, _safety(site, filled, sure), (edit,))


def _safety(site: CallSite, filled: Filled, is_same: bool) -> Safety:
    """The degree of a fix that certainly gives the same tensor, or gives it for numbers of Python."""
    if is_same:
        return Safety.SAFE
    # `torch.full` takes neither lists nor arrays, and waits for a tensor of the GPU.
    return Safety.UNSAFE if is_number(site.model, filled.number) else Safety.DISPLAY


def _arguments(call: cst.Call, site: CallSite, filled: Filled) -> list[cst.Arg]:
    """The arguments of a constructor with the shape and the number in place of the data."""
    shape = argument(filled.shape).with_changes(comma=cst.Comma(whitespace_after=_after_first(call)))
    first, *others = call.args
    made = made_by(site)
    if made is not None and made.args[0] is not filled.number:
        first = first.with_changes(value=site.model.source.concrete(filled.number))
    return [shape, first, *others]


def _after_first(call: cst.Call) -> cst.BaseParenthesizableWhitespace:
    """The white space after one more argument at the front: a line of its own if all others have one."""
    comma = call.args[0].comma
    if isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace) and isinstance(comma, cst.Comma):
        after = comma.whitespace_after
        if len(call.args) > 1 and isinstance(after, cst.ParenthesizedWhitespace):
            return after.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[])
    return cst.SimpleWhitespace(" ")


def _is_plain(site: CallSite, made: ast.Call) -> bool:
    """True if the call is a number or list by position and keywords that it and torch.full have."""
    taken = _KEPT - {"requires_grad"} if site.model.target(made) == "torch.as_tensor" else _KEPT
    return len(made.args) == 1 and all(item.arg in taken for item in made.keywords)


def _place(site: CallSite, moved: Move, made: ast.Call) -> list[str] | None:
    """The arguments that stand for the move."""
    if not moved.proven or not moved.simple or moved.may_be_none or site.target.endswith(".type"):
        return None
    casts = moved.other is not None or moved.dtype is not None
    if casts and keyword(made, "dtype") is not None:
        return None
    return as_arguments(site, moved)


def _infers_same(site: CallSite, number: ast.expr, given: ast.expr | None) -> bool:
    """True if torch.full certainly gives the dtype and the number that the constructor gives."""
    if not _is_literal(number):
        return False
    value = site.value(number)
    if given is None and any(scalar_type(member) == "bool" for member in value.members):
        # TorchScript makes an integer tensor of True.
        return False
    return can_fill(value, None if given is None else dtype_name(site, given))
