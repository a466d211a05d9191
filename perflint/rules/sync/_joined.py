"""Numbers of several tensors that one copy brings to the CPU."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from perflint.findings import Fix, Safety, Span
from perflint.fixes.edits import replace, within
from perflint.fixes.imports import spell
from perflint.frozen import dataclass
from perflint.rules._memory.bodies import Writers, memory_around, writers
from perflint.rules._memory.operators import GATHERS
from perflint.rules._order import has_effects
from perflint.rules._statements import always_runs, block_of, line_before, swallows
from perflint.rules.sync._elements import element_read
from perflint.rules.sync._guards import any_guard
from perflint.rules.sync._nan import checks_for_nan
from perflint.rules.sync._once import (
    is_module,
    is_of_torch,
    is_on_only_gpu,
    is_plain,
    names_of,
    starts_line,
    words,
)
from perflint.rules.sync._scalars import DEVICE_TO_HOST_COPY, NUMBERS, SCALAR_READ, Read, number_at
from perflint.semantics.around import loops_around, parts_cells, statement_of
from perflint.semantics.binders import How
from perflint.semantics.facts import torch_api
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import calls_in, grouped, walk
from perflint.semantics.values import Evidence, Instance, Kind, Tensor, scalar_type

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
_FEWEST, _MOST = 3, 8
_KINDS = frozenset((Kind.FLOAT, Kind.INT, Kind.BOOL))
_SAME_DTYPE = frozenset("max min amax amin mean median std var detach clone abs".split())
"""Functions whose result has the dtype of their operand, or that raise an error, unless the operand is complex."""
_REAL = frozenset("abs std var".split())
"""Functions whose result is real if the operand is complex."""
_ORDERED = frozenset("max min amax amin median".split())
"""Functions that raise an error if the operand is complex."""
_MOVES = frozenset("cpu cuda to type type_as numpy item tolist new_tensor new_zeros new_ones new_full".split())


@dataclass(frozen=True, slots=True)
class _Join:
    """Reads of numbers that one copy can replace, in the order of the source."""

    first: ast.stmt
    reads: tuple[Read, ...]
    names: tuple[str, ...]
    """New names of the numbers, which no other join of the block has: joins may alternate."""


def reads_in(model: Model, statement: ast.stmt) -> list[Read]:
    """The scalar reads that a simple statement makes once when it runs, in the order of the text."""
    return _found_in(model, statement) if isinstance(statement, _SIMPLE) else []


def single_read(site: CallSite) -> Read | None:
    """The read of one number at a call, unless another change removes it: of a loop, a guard or a check for NaN."""
    read = number_at(site)
    if read is None or any_guard(site.model, read.node) is not None:
        return None
    if checks_for_nan(site.model, read.node, read.tensor):
        return None
    return None if element_read(site.model, read.node, read.tensor) is not None else read


@once_per_node
def _found_in(model: Model, statement: ast.stmt) -> list[Read]:
    around = next(loops_around(model, statement), None)
    found = []
    for call in walk(statement):
        if not isinstance(call, ast.Call) or model.target(call) not in NUMBERS:
            continue
        read = single_read(model.call(call))
        if read is not None and next(loops_around(model, call), None) is around:
            found.append(read)
    return sorted(found, key=lambda read: (read.node.end_lineno or 0, read.node.end_col_offset or 0))


def read_together(site: CallSite, read: Read) -> Fix | None:
    """One `torch.stack([…]).tolist()` for the reads around a read that have its device and dtype; None for a few."""
    model, statement = site.model, statement_of(site.model, read.node)
    if statement is None or not isinstance(statement, _SIMPLE) or not _is_fit(model, read, statement):
        return None
    join = _joins(model, block_of(model, statement)[0]).get(read.node)
    stack = None if join is None else spell(model.symbols, "torch.stack", join.first)
    if join is None or stack is None:
        return None
    source = model.source
    listed = ", ".join(source.written(each.tensor) for each in join.reads)
    fetched = f"{stack.text}([{listed}]).tolist()"
    leaves = (DEVICE_TO_HOST_COPY, SCALAR_READ)
    targets = _targets(model, join)
    if targets is not None:
        edit = replace(source, _whole(model, join), f"{', '.join(targets)} = {fetched}")
        return Fix(_MESSAGE, Safety.UNSAFE, (edit,), stack.imports, leaves=leaves)
    edits = [line_before(source, join.first.lineno, f"{', '.join(join.names)} = {fetched}")]
    for each, name in zip(join.reads, join.names, strict=True):
        # `int(x)` keeps its conversion; `x.item()` is the number itself.
        old = each.node if _is_method(each) else each.tensor
        edits.append(replace(source, _with_brackets(model, old), name))
    return Fix(_MESSAGE, Safety.UNSAFE, tuple(edits), stack.imports, leaves=leaves)


def _with_brackets(model: Model, value: ast.expr) -> Span:
    """The span of an expression, with the brackets that only let the value of an assignment begin on a new line."""
    source, statement, span = model.source, model.parent(value), model.source.span(value)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return span
    target, whole = source.span(statement.targets[0]), source.span(statement)
    found = _BRACKETED.fullmatch(
        source.segment(Span(target.end_line, target.end_column, whole.end_line, whole.end_column))
    )
    if found is None or found["value"] != source.segment(span):
        return span
    return within(
        source, Span(target.end_line, target.end_column, whole.end_line, whole.end_column), *found.span("all")
    )


_BRACKETED = re.compile(r"\s*=\s*(?P<all>\(\s*(?P<value>\S.*\S)\s*\))", re.DOTALL)
_MESSAGE = "Read all numbers at once"


def _is_method(read: Read) -> bool:
    return isinstance(read.node, ast.Call) and isinstance(read.node.func, ast.Attribute) and not read.node.args


@once_per_node
def _joins(model: Model, first: ast.stmt) -> dict[ast.expr, _Join]:
    """The joins of the reads of a block, which begins with a statement, by the nodes of the reads."""
    found: dict[ast.expr, _Join] = {}
    names: set[str] = set()
    run: list[tuple[Read, ast.stmt]] = []
    for statement in [*block_of(model, first), None]:
        reads = [] if statement is None else [(each, statement) for each in reads_in(model, statement)]
        if run and (not reads or parts_cells(model, run[-1][1], reads[0][1])):
            for join in _of_run(model, run, names):
                found.update((each.node, join) for each in join.reads)
            run = []
        run += reads
    return found


def _of_run(model: Model, run: list[tuple[Read, ast.stmt]], names: set[str]) -> Iterator[_Join]:
    """The joins of the reads of neighbouring statements: those of one device and one dtype belong together.

    Adds their names to `names`, the names that other joins of the block have.
    """
    fit = [each for each in run if _is_fit(model, *each)] if len(run) >= _FEWEST else []
    classes = grouped((key, each) for each in fit for key in _keys(model, each[0]))
    taken: set[ast.expr] = set()
    for members in sorted(classes.values(), key=len, reverse=True):
        together: list[tuple[Read, ast.stmt]] = []
        for member in members:
            if member[0].node not in taken and len(together) < _MOST and _keeps(model, [*together, member]):
                together.append(member)
        reads = tuple(read for read, _ in together)
        if len(reads) >= _FEWEST and starts_line(model, together[0][1]) and _are_of_one_dtype(model, reads):
            taken.update(read.node for read in reads)
            yield _Join(together[0][1], reads, tuple(_named(model, reads, names)))


def _is_fit(model: Model, read: Read, statement: ast.stmt) -> bool:
    """True if a read of a tensor without dimensions may be made before its statement."""
    if not _is_number_of_tensor(model, read):
        return False
    if not _is_method(read) and not (isinstance(read.node, ast.Call) and read.node.args == [read.tensor]):
        return False
    if not always_runs(model, read.node, statement) or swallows(model, statement):
        return False
    if has_effects(model, read.tensor, but_for=GATHERS):
        return False
    if any(model.target(each) in GATHERS and not _gathers(model, each) for each in _calls(read)):
        return False
    gatherers = _gatherers(model, read.tensor)
    parts = (each for each in walk(read.tensor) if isinstance(each, (ast.expr, ast.keyword)))
    return all(each in gatherers or is_plain(model, each) for each in parts)


def _gatherers(model: Model, node: ast.expr) -> set[ast.expr]:
    """The parts of an expression that name the functions that gather: all of `self.accelerator.gather`."""
    calls = (each for each in calls_in(node) if _gathers(model, each))
    return {part for call in calls for part in walk(call.func) if isinstance(part, ast.expr)}


def _gathers(model: Model, call: ast.Call) -> bool:
    """True for a method of an object of Accelerate that the project makes or annotates: names alone prove nothing."""
    if model.target(call) not in GATHERS or not isinstance(call.func, ast.Attribute):
        return False
    owner = call.func.value
    value = model.value(owner)
    if not isinstance(value, Instance) or value.cls != "accelerate.Accelerator":
        return False
    bindings = model.symbols.variable(owner).bindings if isinstance(owner, ast.Name) else ()
    annotated = [isinstance(each.node, ast.arg) and each.node.annotation is not None for each in bindings]
    return value.origin is not None or (bool(annotated) and all(annotated))


def _operands(model: Model, node: ast.expr) -> list[ast.Name]:
    """The names in an expression that stand for no module, and for none of the objects that gather."""
    gatherers = _gatherers(model, node)
    return [each for each in names_of(node) if each not in gatherers and not is_module(model, each)]


def _is_number_of_tensor(model: Model, read: Read) -> bool:
    """True if a value is certainly a tensor without dimensions."""
    value = read.value
    if isinstance(value, Tensor) and value.rank == 0:
        if value.evidence >= Evidence.ANNOTATION or is_of_torch(model, read.tensor):
            return not _computes_with_unknown(model, read.tensor)
    return _is_reduced(read.tensor)


def _computes_with_unknown(model: Model, node: ast.expr, levels: int = 4) -> bool:
    """True if an operand is unknown, and may have dimensions: `loss + model.penalty`."""
    if isinstance(node, ast.BinOp):
        return any(_computes_with_unknown(model, each, levels) for each in (node.left, node.right))
    if isinstance(node, ast.UnaryOp):
        return _computes_with_unknown(model, node.operand, levels)
    value = model.value(node)
    if not isinstance(value, Tensor):
        return scalar_type(value) not in ("int", "float", "bool")
    bindings = model.symbols.variable(node).bindings if isinstance(node, ast.Name) and levels else ()
    sources = (each.value for each in bindings if each.how in (How.ASSIGNED, How.AUGMENTED) and each.whole)
    return any(_computes_with_unknown(model, each, levels - 1) for each in sources if isinstance(each, ast.BinOp))


def _is_reduced(node: ast.expr) -> bool:
    """True for `x.float().mean()`: only tensors have the first method, and the second leaves one number."""
    names: list[str] = []
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
        names.append(node.func.attr)
        node = node.func.value
    at = next((index for index, name in enumerate(names) if name in _REDUCES), None)
    return at is not None and _OF_TENSORS.issuperset(names[:at]) and not _OF_TENSORS.isdisjoint(names)


_REDUCES = frozenset("max min mean median std var sum prod any all".split())
_OF_TENSORS = frozenset("float double half long int bool detach".split())
"""Methods that change at most the dtype, and that arrays of NumPy lack."""


def _keys(model: Model, read: Read) -> Iterator[object]:
    """Keys of a read: reads with a common key are certainly of one device and one dtype."""
    kind = read.value.kind if isinstance(read.value, Tensor) else Kind.UNKNOWN
    known = kind in _KINDS
    if known and is_on_only_gpu(model, read.value):
        yield kind
    calls, functions = _calls(read), _functions(model, read)
    roots = {each.id for each in _operands(model, read.tensor) if not _is_number(model, each)}
    if len(roots) == 1 and not functions & _MOVES and not any(_says_device(each) for each in calls):
        (root,) = roots
        if known:
            yield root, kind
        if any(isinstance(each, _COMPUTED) for each in walk(read.tensor)):
            return
        if functions <= _SAME_DTYPE:
            yield root, None
        elif functions - {"float"} <= _SAME_DTYPE:
            yield root, "float32"


_COMPUTED = (ast.BinOp, ast.UnaryOp, ast.Compare)


def _calls(read: Read) -> list[ast.Call]:
    return [*calls_in(read.tensor)]


def _functions(model: Model, read: Read) -> set[str]:
    """The names of the functions in an expression."""
    return {torch_api.canonical(model.target(each)).rpartition(".")[2] for each in _calls(read)}


def _are_of_one_dtype(model: Model, reads: Iterable[Read]) -> bool:
    """True unless some numbers of a tensor may be complex and others real."""
    functions = [_functions(model, each) for each in reads if not _is_of_known_kind(model, each)]
    return not any(each & _REAL for each in functions) or any(
        each & _ORDERED and not each & _REAL for each in functions
    )


def _is_of_known_kind(model: Model, read: Read) -> bool:
    """True if an expression is made of tensors of known dtypes. `x.mean()` is a floating-point number or complex."""
    if "float" in _functions(model, read):
        return True
    values = [model.value(each) for each in _operands(model, read.tensor)]
    return all(each.tensor is None or each.tensor.kind in _KINDS for each in values)


def _is_number(model: Model, name: ast.Name) -> bool:
    return scalar_type(model.value(name)) in ("int", "float", "bool")


def _says_device(call: ast.Call) -> bool:
    return any(item.arg in ("device", "dtype", "out", None) for item in call.keywords)


def _keeps(model: Model, members: list[tuple[Read, ast.stmt]]) -> bool:
    """True if the tensor of the last read has its value already before the statement of the first read."""
    first, (read, last) = members[0][1], members[-1]
    begin, start = (first.lineno, first.col_offset), (last.lineno, last.col_offset)
    end = (last.end_lineno or 0, last.end_col_offset or 0)
    if _runs_last(model, last, [each.node for each, statement in members if statement is last]):
        end = (last.lineno, last.col_offset - 1)
    appends = _only_appends(model, members)
    for name in _operands(model, read.tensor):
        bindings = model.symbols.variable(name).bindings
        if any(begin <= (each.line, getattr(each.node, "col_offset", 0)) < start for each in bindings):
            return False
        worst = writers(model, name, begin, end)
        if worst > Writers.KNOWING or memory_around(model, name).is_written(name, begin, end):
            return False
        if not appends and worst > Writers.NONE and not memory_around(model, name).is_own(name):
            # `log(x.max().item())` may write to a tensor that the caller knows.
            return False
    return not any(isinstance(each, ast.NamedExpr) for _, statement in members for each in walk(statement))


def _only_appends(model: Model, members: list[tuple[Read, ast.stmt]]) -> bool:
    """True if statements do no more than to append numbers to lists: `log["loss"].append(loss.item())`."""
    reads = {read.node for read, _ in members}
    for statement in {statement for _, statement in members}:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "append":
            return False
        if call.keywords or len(call.args) != 1 or call.args[0] not in reads or has_effects(model, call.func.value):
            return False
    return True


def _runs_last(model: Model, statement: ast.stmt, reads: list[ast.expr]) -> bool:
    """True if a statement makes some reads before it calls anything else, as in `log(x.min().item(), y.item())`."""
    within = {inner for read in reads for inner in walk(read)}
    around = [set(model.ancestors(read)) for read in reads]
    calls = [each for each in calls_in(statement) if each not in within]
    return all(call in each or not has_effects(model, call) for call in calls for each in around)


def _targets(model: Model, join: _Join) -> list[str] | None:
    """The names that get the numbers, if the statements of the join do nothing else and follow each other.

    None, too, if there are comments between them, which would be lost.
    """
    names: list[str] = []
    block = block_of(model, join.first)
    start = block.index(join.first)
    for read, expected in zip(join.reads, block[start:], strict=False):
        statement = model.parent(read.node)
        if statement is not expected or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        target = statement.targets[0]
        if not isinstance(target, ast.Name) or not _is_method(read) or target.id in names:
            return None
        names.append(target.id)
    whole = len(names) == len(join.reads) and not _has_comments(model, block[start : start + len(names)])
    return names if whole else None


def _has_comments(model: Model, statements: list[ast.stmt]) -> bool:
    """True if there is a comment between two of some statements that follow each other."""
    spans = [model.source.span(each) for each in statements]
    gaps = (Span(one.end_line, one.end_column, other.line, other.column) for one, other in pairwise(spans))
    return any("#" in model.source.segment(gap) for gap in gaps)


def _whole(model: Model, join: _Join) -> Span:
    """The span from the first read's statement to the end of the last one's."""
    last = statement_of(model, join.reads[-1].node)
    assert last is not None
    start, end = model.source.span(join.first), model.source.span(last)
    return Span(start.line, start.column, end.end_line, end.end_column)


def _named(model: Model, reads: tuple[Read, ...], taken: set[str]) -> Iterator[str]:
    """New names for the numbers: `loss_value` for `loss`, `x_max` for `x.max()`. Adds them to `taken`."""
    for read in reads:
        roots = [each.id for each in _operands(model, read.tensor)]
        node: ast.expr = read.tensor
        while _called(model, node) in ("detach", "float", "double", "clone", "cpu"):
            assert isinstance(node, ast.Call)
            node = node.func.value if isinstance(node.func, ast.Attribute) and not node.args else node.args[0]
        base = f"{roots[0]}_{_called(model, node) or 'value'}"
        number, name = 1, base
        while name in words(model) or name in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name)
        yield name


def _called(model: Model, node: ast.expr) -> str:
    """The name of the function of torch that an expression calls."""
    return torch_api.canonical(model.target(node)).rpartition(".")[2] if isinstance(node, ast.Call) else ""
