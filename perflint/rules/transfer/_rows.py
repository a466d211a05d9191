"""Loops over the rows of a tensor that one operation on the whole tensor could replace."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from perflint.findings import Confidence, weakest
from perflint.frozen import dataclass
from perflint.rules._memory.flows import body_around
from perflint.rules._operators import operators
from perflint.rules.placement import FACTORIES
from perflint.rules.transfer._loops import is_bound_before
from perflint.semantics.facts import conventions
from perflint.semantics.model import Model
from perflint.semantics.sites import device_confidence
from perflint.semantics.structure import calls_in, last_name, names_in, path_of, walk
from perflint.semantics.values import Const, Device, Scalar, Tensor, Unknown

FEW = 8
"""Turns of a loop that are hardly worth a thought."""
_JOINS = frozenset({"torch.stack", "torch.cat", "torch.concat", "torch.hstack", "torch.vstack", "builtins.sum"})
_SIZED_BY_DATA = operators("sizes", "by_data")
"""Operations whose result has another size in each iteration, or is on the CPU."""
_BLOCKS = (ast.If, ast.For, ast.With)
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Assert, ast.Pass, ast.Continue, ast.Raise)
_READS_NUMBERS = {name for name in FACTORIES if not name.endswith("_like")} | {
    "builtins.int",
    "builtins.float",
    "builtins.range",
}
"""Functions that take numbers: tensor elements passed to them may be data or sizes."""
_WORK = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare)
_DEEPEST = 3


@dataclass(frozen=True, slots=True)
class Rows:
    """`made` is the result of each iteration, `read` its source; None if it follows from the index alone.

    `by_number` says that each iteration stores one number in a tensor on the CPU.
    """

    made: ast.expr
    read: ast.expr | None
    confidence: Confidence
    by_number: bool = False


@dataclass(frozen=True, slots=True)
class _Turns:
    """The values that differ between iterations: an index ("" if none), and rows by name, with their tensors."""

    index: str
    rows: Mapping[str, ast.expr]

    @property
    def names(self) -> set[str]:
        return {self.index, *self.rows} - {""}


@dataclass(frozen=True, slots=True)
class _Product:
    """The result of a statement on each iteration; `filled` is the tensor that it fills, None for lists and sums."""

    made: ast.expr
    filled: ast.expr | None


def rows(model: Model, loop: ast.For) -> Rows | None:
    """The result that a loop computes row by row; None if iterations are few, depend on others, or differ in size."""
    turns = _turns(model, loop.target, loop.iter)
    if turns is None or loop.orelse:
        return None
    numbers = _filled_by_number(model, loop, turns)
    if not _is_plain(model, loop) or (numbers is not None and numbers.by_number):
        return numbers
    if any(_is_read_too(loop, store, turns) for store in _stores(loop)) or _is_compiled_elsewhere(model, loop):
        return None
    if any(_is_size_of_turn(model, loop, turns, part) for statement in loop.body for part in walk(statement)):
        return None
    reads = [*_reads(model, turns, loop.body)]
    for product in _products(model, loop, turns):
        found = _judged(model, turns, product, reads, loop.body)
        if found is not None:
            return found
    return None


def joined_rows(model: Model, call: ast.Call) -> Rows | None:
    """The result that `torch.stack([f(x[i]) for i in range(n)])` computes row by row."""
    if not call.args or model.target(call) not in _JOINS:
        return None
    made = call.args[0]
    if not isinstance(made, (ast.ListComp, ast.GeneratorExp)) or len(made.generators) != 1 or made.generators[0].ifs:
        return None
    turns = _turns(model, made.generators[0].target, made.generators[0].iter)
    if turns is None or not isinstance(made.elt, _WORK) or not _is_known(model, made.elt, _DEEPEST):
        return None
    return _judged(model, turns, _Product(made, None), [*_reads(model, turns, [made.elt])], [])


def _judged(model: Model, turns: _Turns, product: _Product, reads: list[ast.expr], body: list[ast.stmt]) -> Rows | None:
    """The rows, with the confidence that all tensors that are read or filled are on the device."""
    sources = (each for each in reads if not _is_collected(model, each))
    read = next((each for each in sources if _dump(each) != _dump(product.made)), None)
    if product.filled is not None and not _holds_rows(model, turns, product.filled):
        return None
    if product.filled is None and _is_ragged(model, turns, product.made):
        return None
    if read is None and (product.filled is None or any(_reads_a_list(model, part) for part in _work(body))):
        return None
    tensors = [product.filled] if product.filled is not None else []
    if read is not None and not (tensors and _is_on_host(model, read)):
        # Rows that are stored on the GPU are computed there, even from numbers on the CPU.
        tensors.append(read)
    return Rows(product.made, read, weakest(*(_confidence(model, tensor) for tensor in tensors)))


def _is_on_host(model: Model, tensor: ast.expr) -> bool:
    value = model.value(tensor)
    return value.tensor is not None and device_confidence(value) is None


def _is_collected(model: Model, read: ast.expr) -> bool:
    """True if a row is put into a list as it is: nothing is computed from it."""
    parent = model.parent(read)
    return isinstance(parent, ast.Call) and _is_append(parent)


def _confidence(model: Model, tensor: ast.expr) -> Confidence:
    """Rows on the CPU take only CPU time, which rarely limits a step."""
    value = model.value(tensor)
    if value.is_unknown and Unknown(Device.CALLER) in value.members:
        return Confidence.MEDIUM
    return device_confidence(value) or Confidence.LOW


def _turns(model: Model, target: ast.expr, source: ast.expr) -> _Turns | None:
    """The values that iterations over a source bind; None unless it is a range or a tensor of more than a few."""
    if isinstance(source, ast.Call) and model.target(source) == "builtins.range":
        if isinstance(target, ast.Name) and len(source.args) < 3 and not _is_few(model, source):
            return _Turns(target.id, {})
        return None
    rows = dict(_rows(model, target, source))
    return _Turns("", rows) if rows else None


def _is_few(model: Model, call: ast.Call) -> bool:
    """True if a range is a literal handful, or goes over the dimensions of a tensor."""
    ends = [model.value(end) for end in call.args]
    known = [end.value for end in ends if isinstance(end, Const) and isinstance(end.value, int)]
    if len(known) == len(ends):
        return not known or known[-1] - sum(known[:-1]) <= FEW
    last = call.args[-1]
    if isinstance(last, ast.Attribute):
        return last.attr == "ndim"
    if isinstance(last, ast.Call) and isinstance(last.func, ast.Attribute):
        return last.func.attr in ("dim", "ndimension")
    if isinstance(last, ast.Call) and model.target(last) == "builtins.len" and last.args:
        return isinstance(last.args[0], ast.Attribute) and last.args[0].attr == "shape"
    end = ends[-1]
    return isinstance(end, Scalar) and end.default is not None and _is_small(end.default.value)


def _is_small(value: object) -> bool:
    return isinstance(value, int) and value <= FEW


def _rows(model: Model, target: ast.expr, source: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The names that a loop binds to rows of tensors, with these: `for row in x`, `in zip(x, y)`, `in enumerate(x)`."""
    if isinstance(source, ast.Call) and isinstance(target, ast.Tuple):
        called = model.target(source)
        if called == "builtins.zip" and len(source.args) == len(target.elts):
            pairs = list(zip(target.elts, source.args, strict=True))
            known = [found for part, each in pairs for found in _rows(model, part, each)]
            yield from known
            if known:
                # Unknown values that are zipped with rows of a tensor are assumed to be rows, too.
                names = [(part, each) for part, each in pairs if isinstance(part, ast.Name)]
                yield from ((part.id, each) for part, each in names if model.value(each).is_unknown)
        elif called == "builtins.enumerate" and source.args and len(target.elts) == 2:
            yield from _rows(model, target.elts[1], source.args[0])
    elif isinstance(target, ast.Name):
        members = model.value(source).members
        if members and all(isinstance(member, Tensor) and member.rank != 1 for member in members):
            yield target.id, source


def _filled_by_number(model: Model, loop: ast.For, turns: _Turns) -> Rows | None:
    """`x[i] = next(numbers)`, and nothing else: a tensor that a list would fill at once."""
    statement = loop.body[0]
    if len(loop.body) > 1 or not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
        return None
    made = statement.targets[0]
    if not isinstance(made, ast.Subscript) or not _is_name(made.slice, turns.index):
        return None
    filled = model.value(made.value)
    if not isinstance(filled, Tensor) or filled.rank not in (None, 1):
        return None
    if any(isinstance(part, ast.expr) and model.value(part).tensor is not None for part in walk(statement.value)):
        return None
    on_host = filled.device is Device.CPU
    return Rows(made, None, Confidence.MEDIUM if on_host else Confidence.LOW, by_number=on_host)


def _is_plain(model: Model, loop: ast.For) -> bool:
    """True if a body is Python and torch alone, and no name but a sum is handed from one iteration to the next."""
    parts = [part for statement in loop.body for part in walk(statement)]
    changed = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    sums = changed & _sums(parts)
    return _hands_nothing_on(loop.body, set(names_in(loop.target)), changed - sums) and all(
        _is_known(model, statement, _DEEPEST) for statement in loop.body
    )


def _sums(parts: list[ast.AST]) -> set[str]:
    """The names that a body only adds to, once."""
    uses = Counter(part.id for part in parts if isinstance(part, ast.Name))
    adds = (part.target for part in parts if isinstance(part, ast.AugAssign) and isinstance(part.op, ast.Add))
    return {target.id for target in adds if isinstance(target, ast.Name) and uses[target.id] == 1}


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _hands_nothing_on(body: list[ast.stmt], bound: set[str], changed: set[str]) -> bool:
    """True if each name that a body changes is bound before it is read; adds the names that it binds to `bound`."""
    for statement in body:
        if isinstance(statement, _BLOCKS):
            first = [part for part in (getattr(statement, "test", None), getattr(statement, "iter", None)) if part]
            if any((names_in(part) & changed) - bound for part in first):
                return False
            if isinstance(statement, ast.For):
                bound |= names_in(statement.target)
            branches = [statement.body, getattr(statement, "orelse", [])]
            if not all(_hands_nothing_on(branch, bound, changed) for branch in branches):
                return False
        elif isinstance(statement, _SIMPLE):
            names = [part for part in walk(statement) if isinstance(part, ast.Name)]
            stores = {part.id for part in names if isinstance(part.ctx, ast.Store)}
            reads = {part.id for part in names if isinstance(part.ctx, ast.Load)}
            if isinstance(statement, ast.AugAssign):
                reads |= stores
            if (reads & changed) - bound or any(_stores_outside(part) for part in walk(statement)):
                return False
            bound |= stores
        else:
            return False
    return True


def _stores_outside(node: ast.AST) -> bool:
    """True if an expression changes an object, or leaves the function for a while."""
    if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom)):
        return True
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)


def _is_known(model: Model, node: ast.AST, depth: int) -> bool:
    """True if all calls in it are of Python, of torch, or of functions of the file that do no more.

    Modules and operators of others may know no batches.
    """
    for call in calls_in(node):
        if isinstance(call.func, ast.Attribute) and call.func.attr in _SIZED_BY_DATA:
            return False
        target = model.target(call)
        if target in _READS_NUMBERS and any(_holds_tensor(model, each) for each in call.args):
            return False
        if target.startswith(("torch.", "builtins.", "math.")):
            if target.startswith(("torch.nn.Mod", "torch.ops.", "torch.nn.utils.rnn.")):
                return False
        elif not _is_append(call) and not _is_own(model, call, depth):
            return False
    return True


def _holds_tensor(model: Model, node: ast.expr) -> bool:
    """True if a number, or one in a tuple of them, is a tensor."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return any(_holds_tensor(model, each) for each in node.elts)
    if isinstance(node, ast.BinOp):
        return _holds_tensor(model, node.left) or _holds_tensor(model, node.right)
    return model.value(node).tensor is not None


def _is_append(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "append" and isinstance(call.func.value, ast.Name)


def _is_own(model: Model, call: ast.Call, depth: int) -> bool:
    """True if a call is of a function of the file whose calls are known, too."""
    info = model.function_of(model.value(call.func)) if depth else None
    if info is None or info.is_generator or any(isinstance(part, (ast.For, ast.While)) for part in walk(info.node)):
        return False
    body = [info.node.body] if isinstance(info.node, ast.Lambda) else info.node.body
    return all(_is_known(model, statement, depth - 1) for statement in body)


def _products(model: Model, loop: ast.For, turns: _Turns) -> Iterator[_Product]:
    """The values that the statements of a body fill, collect or add up, if no iteration reads them."""
    parts = [part for statement in loop.body for part in walk(statement)]
    sums = _sums(parts)
    for node in parts:
        if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Assign) and len(node.targets) == 1):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Subscript) and names_in(target) & turns.names:
                yield _Product(target, target.value)
            elif isinstance(node, ast.AugAssign) and isinstance(target, ast.Name) and target.id in sums:
                if isinstance(model.value(node.value), Tensor) and is_bound_before(model, loop, target.id):
                    yield _Product(node.value, None)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if node.func.attr.endswith("_") and not node.func.attr.startswith("_") and names_in(owner) & turns.names:
                if isinstance(owner, ast.Subscript) and not _is_read_too(loop, owner, turns):
                    yield _Product(owner, owner.value)
            elif _is_append(node) and node.args and _is_joined(model, loop, owner):
                yield _Product(node.args[0], None)


def _stores(loop: ast.For) -> Iterator[ast.Subscript]:
    """The elements that a body sets, in objects that exist before the loop."""
    nodes = [part for statement in loop.body for part in walk(statement)]
    own = {part.id for part in nodes if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    for part in nodes:
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store) and path_of(part.value) not in own:
            yield part


def _is_compiled_elsewhere(model: Model, node: ast.AST) -> bool:
    """True if the function is compiled to machine code, as by Numba or Triton: loops are fast there."""
    function = model.function(node)
    decorators = function.decorator_list if isinstance(function, ast.FunctionDef) else []
    return any(conventions.makes_kernel(last_name(each)) for each in decorators)


def _is_joined(model: Model, loop: ast.For, owner: ast.expr) -> bool:
    """True if a list, which the body only appends to, is stacked in the function around the loop."""
    if not isinstance(owner, ast.Name) or not is_bound_before(model, loop, owner.id):
        return False
    if sum(_is_name(part, owner.id) for statement in loop.body for part in walk(statement)) != 1:
        return False
    for call in (part for part in walk(body_around(model, loop)) if isinstance(part, ast.Call)):
        if call.args and _is_name(call.args[0], owner.id) and model.target(call) in _JOINS:
            return True
    return False


def _is_read_too(loop: ast.For, store: ast.Subscript, turns: _Turns) -> bool:
    """True if the body also reads other elements of the tensor that it fills, as recurrences do."""
    owner = store.value
    while isinstance(owner, ast.Subscript):
        owner = owner.value
    if isinstance(owner, ast.Name) and owner.id in turns.rows:
        return False
    wanted, whole = _dump(owner), _dump(store)
    stack: list[ast.AST] = [*loop.body]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.expr):
            text = _dump(node)
            if text == whole:
                continue
            if text == wanted:
                return True
        stack += ast.iter_child_nodes(node)
    return False


def _is_size_of_turn(model: Model, loop: ast.For, turns: _Turns, node: ast.AST) -> bool:
    """True if a node reads the size of an element of a list: of images of several sizes, of texts of several lengths.

    The rows of one tensor are all alike.
    """
    if isinstance(node, ast.Attribute) and node.attr == "shape":
        sized: ast.expr = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("size", "numel"):
        sized = node.func.value
    elif isinstance(node, ast.Call) and _is_name(node.func, "len") and node.args:
        sized = node.args[0]
    else:
        return False
    if isinstance(sized, ast.Subscript):
        return bool(turns.index) and _is_at(sized, turns.index) and not isinstance(model.value(sized.value), Tensor)
    if not isinstance(sized, ast.Name) or sized.id not in names_in(loop.target):
        return False
    source = turns.rows.get(sized.id)
    return source is None or not isinstance(model.value(source), Tensor)


def _dump(node: ast.AST) -> str:
    return ast.dump(node).replace("Store()", "Load()")


def _reads(model: Model, turns: _Turns, body: Sequence[ast.AST]) -> Iterator[ast.expr]:
    """The tensors that the iterations read a row of: `x[i]`, or the row itself."""
    for part in (part for node in body for part in walk(node)):
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load) and turns.index:
            if _is_at(part, turns.index) and model.value(part.value).tensor is not None:
                yield part
        elif isinstance(part, ast.Name) and part.id in turns.rows and isinstance(part.ctx, ast.Load):
            yield part


def _is_at(node: ast.Subscript, index: str) -> bool:
    """True if a tensor is indexed by the loop's variable itself: `x[i]`, `x[:, i]`."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(_is_name(part, index) for part in parts)


def _holds_rows(model: Model, turns: _Turns, filled: ast.expr) -> bool:
    """True if the filled object is a tensor, not a list."""
    value = model.value(filled)
    return isinstance(value, Tensor) or (value.is_unknown and bool(names_in(filled) & set(turns.rows)))


def _work(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The statements of a body and of the blocks in it, without the headers of these blocks."""
    for statement in body:
        if isinstance(statement, _BLOCKS):
            yield from _work([*statement.body, *getattr(statement, "orelse", [])])
        else:
            yield statement


def _reads_a_list(model: Model, statement: ast.AST) -> bool:
    """True if a statement indexes a value that is not a tensor, such as a list of rows or of their lengths."""
    return any(
        isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load) and model.value(part.value).tensor is None
        for part in walk(statement)
    )


def _is_ragged(model: Model, turns: _Turns, made: ast.expr) -> bool:
    """True if rows that are joined may differ in length: by a slice that differs, or by a number out of a list."""
    for part in walk(made):
        if isinstance(part, ast.Slice) and names_in(part) & turns.names:
            return True
        if isinstance(part, ast.Subscript) and names_in(part.slice) & turns.names:
            if model.value(part.value).tensor is None:
                return True
    return False
