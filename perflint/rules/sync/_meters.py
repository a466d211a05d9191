"""Reads for running averages: `meter.update(loss.item(), n)` of a class that only computes with the number."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from string import Formatter

from perflint.findings import Edit, Fix, Heat, Safety
from perflint.fixes.edits import argument, replace
from perflint.frozen import dataclass
from perflint.rules._visible import is_local
from perflint.rules.sync._scalars import SCALAR_READ, Read
from perflint.rules.sync._sums import detached, is_data, is_of_comparison, wide_float
from perflint.semantics.around import loops_around
from perflint.semantics.binders import How
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import ClassInfo, walk
from perflint.semantics.values import Class, Kind
from perflint.source.concrete import cst

_FORMAT = "TPF108"
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_CONVERTS = frozenset(("builtins.float", "builtins.int"))


@dataclass(frozen=True, slots=True)
class _Meter:
    """A class that computes with the numbers that a method gets.

    `numbers` are the attributes and properties that hold them or are made of them. `closed` are the methods that use
    these other than in formatted texts. `prints` is True if its text is made by formatting.
    """

    numbers: frozenset[str]
    closed: frozenset[str]
    prints: bool


_TIMM = _Meter(frozenset({"val", "sum", "avg"}), frozenset(), False)
_KNOWN: Mapping[str, _Meter] = {"timm.utils.AverageMeter": _TIMM, "timm.utils.metrics.AverageMeter": _TIMM}
"""Classes of libraries whose `update(val, n=1)` only computes with `val`."""


def averaged_on_device(site: CallSite, read: Read) -> Fix | None:
    """`.detach()` in place of `.item()` for a meter whose numbers are read less often; None if that is not known."""
    update = site.model.parent(site.node)
    if site.target != "torch.Tensor.item" or site.node.args or not isinstance(update, ast.Call):
        return None
    kind = None if read.value.tensor is None else read.value.tensor.kind
    if kind not in (Kind.FLOAT, Kind.UNKNOWN) or (kind is Kind.UNKNOWN and is_of_comparison(site.node)):
        # The number is to stay an `int`.
        return None
    method = update.func
    if not isinstance(method, ast.Attribute) or not isinstance(method.value, ast.Name) or site.node not in update.args:
        return None
    meter = _meter(site.model, method.value, method.attr, update.args.index(site.node))
    if meter is None:
        return None
    reads = _reads(site.model, method.value, meter, update)
    if reads is None:
        return None
    call = site.concrete
    assert isinstance(call.func, cst.Attribute)
    source, tensor = site.model.source, read.value.tensor
    new = detached(call, wide_float(site.model), is_data=is_data(site.model, read.tensor))
    if tensor is None or tensor.rank != 0:
        # `"{:.3f}".format` takes tensors without dimensions only.
        new = cst.Call(cst.Attribute(new, cst.Name("reshape")), [argument("()")])
    numbers = [replace(source, source.span(each), f"float({source.written(each)})") for each in reads.outside]
    # These stay, as the places of the smaller findings that are left.
    texts = [Edit(source.span(each), source.segment(source.span(each))) for each in reads.formatted]
    edits = (replace(source, source.span(site.node), new), *numbers, *texts)
    leaves = (*[SCALAR_READ, "TPF102"] * len(numbers), *[_FORMAT] * len(texts))
    return Fix("Average on the GPU and read the average when it is shown", Safety.UNSAFE, edits, leaves=leaves)


def _meter(model: Model, name: ast.Name, method: str, position: int) -> _Meter | None:
    """The class of the object that only one statement binds to a name."""
    variable = model.symbols.variable(name)
    if len(variable.bindings) != 1 or not is_local(model, name):
        return None
    (binding,) = variable.bindings
    made = binding.value
    if binding.how is not How.ASSIGNED or not isinstance(made, ast.Call):
        return None
    cls = model.value(made.func)
    full = cls.name if isinstance(cls, Class) else model.target(made)
    if full in _KNOWN:
        return _KNOWN[full] if (method, position) == ("update", 0) else None
    found = model.view.klass(full)
    return None if found is None else _of_class(found[1], method, position)


def _of_class(info: ClassInfo, method: str, position: int) -> _Meter | None:
    node = info.node
    update = info.methods.get(method)
    if node.decorator_list or node.keywords or any(ast.dump(base) != _OBJECT for base in node.bases) or update is None:
        return None
    function = update.node
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return None
    given = function.args
    if given.vararg or given.kwarg or given.kwonlyargs or position + 1 >= len(given.args):
        return None
    numbers = _computed(function.body, given.args[0].arg, {given.args[position + 1].arg})
    if not numbers or _shares(function, given.args[0].arg, given.args[position + 1].arg, numbers):
        return None
    properties, closed = set(numbers), set()
    for name, each in info.methods.items():
        if each.node is function or not isinstance(each.node, ast.FunctionDef):
            continue
        use = _use(each.node, properties)
        if use is _PROPERTY:
            properties.add(name)
        elif use is not _CLEAN:
            closed.add(name)
    prints = "__str__" in info.methods and "__str__" not in closed
    return _Meter(frozenset(properties), frozenset(closed), prints)


_OBJECT = ast.dump(ast.parse("object", mode="eval").body)
_CLEAN, _PROPERTY, _CLOSED = "clean", "property", "closed"


def _shares(function: ast.FunctionDef, me: str, tensor: str, numbers: frozenset[str]) -> bool:
    """True if a tensor would be added to in place that has a second name: numbers are never shared."""
    sums = {_own(each.target, me) for each in walk(function) if isinstance(each, ast.AugAssign)}
    for each in walk(function):
        if isinstance(each, ast.Assign):
            for part in _alternatives(each.value):
                if _own(part, me) in numbers:
                    return True
                if isinstance(part, ast.Name) and part.id == tensor and _own(each.targets[0], me) in sums:
                    return True
    return False


def _alternatives(node: ast.expr) -> list[ast.expr]:
    """The expressions of which one is the value of another."""
    return [*_alternatives(node.body), *_alternatives(node.orelse)] if isinstance(node, ast.IfExp) else [node]


def _computed(body: list[ast.stmt], me: str, tensors: set[str]) -> frozenset[str]:
    """The attributes that are made of a parameter by arithmetic; empty if the body does anything else with it."""
    found: set[str] = set()
    for _ in range(2):
        # `self.avg = self.sum / n` may stand before the statement that makes a number of the sum.
        if not all(_computes(statement, me, tensors, found) for statement in body):
            return frozenset()
    return frozenset(found)


def _computes(statement: ast.stmt, me: str, tensors: set[str], found: set[str]) -> bool:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return True
    if isinstance(statement, ast.If):
        if _holds(statement.test, me, tensors, found):
            return False
        return all(_computes(each, me, tensors, found) for each in (*statement.body, *statement.orelse))
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.op, _ARITHMETIC):
        target = statement.target
    else:
        return isinstance(statement, ast.Pass)
    attribute = _own(target, me)
    if not attribute or not _is_arithmetic(statement.value, me, tensors, found):
        return False
    if _holds(statement.value, me, tensors, found):
        found.add(attribute)
    return True


def _is_arithmetic(node: ast.expr, me: str, tensors: set[str], found: set[str]) -> bool:
    if isinstance(node, (ast.Name, ast.Constant)):
        return not (isinstance(node, ast.Name) and node.id == me)
    if isinstance(node, ast.Attribute):
        return bool(_own(node, me))
    if isinstance(node, ast.BinOp):
        both = (node.left, node.right)
        return isinstance(node.op, _ARITHMETIC) and all(_is_arithmetic(each, me, tensors, found) for each in both)
    if isinstance(node, ast.IfExp):
        both = (node.body, node.orelse)
        return not _holds(node.test, me, tensors, found) and all(_is_arithmetic(x, me, tensors, found) for x in both)
    return False


def _holds(node: ast.expr, me: str, tensors: set[str], found: set[str]) -> bool:
    """True if a tensor takes part in an expression."""
    return any((isinstance(x, ast.Name) and x.id in tensors) or _own(x, me) in found for x in walk(node))


def _own(node: ast.AST, me: str) -> str:
    """The name of an attribute of the object itself, or an empty text."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == me
    return node.attr if is_own and isinstance(node, ast.Attribute) else ""


def _use(function: ast.FunctionDef, numbers: set[str]) -> str:
    """How another method uses the numbers: not or in texts, as a property that is computed, or otherwise."""
    if not function.args.args:
        return _CLEAN
    me = function.args.args[0].arg
    parents = {inner: outer for outer in walk(function) for inner in ast.iter_child_nodes(outer)}
    if not any(isinstance(x, ast.Name) and x.id == me for x in walk(function)):
        return _CLEAN
    if _is_property(function):
        last = [
            each for each in function.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        ]
        if len(last) == 1 and isinstance(last[0], ast.Return) and last[0].value is not None:
            if _is_arithmetic(last[0].value, me, set(), numbers):
                return _PROPERTY if _holds(last[0].value, me, set(), numbers) else _CLEAN
        return _CLOSED
    for node in walk(function):
        if not isinstance(node, ast.Name) or node.id != me:
            continue
        attribute = parents.get(node)
        if not isinstance(attribute, ast.Attribute):
            return _CLOSED
        if attribute.attr == "__dict__":
            # `"{avg:.3f}".format(**self.__dict__)`
            item = parents.get(attribute)
            call = parents.get(item) if isinstance(item, ast.keyword) and item.arg is None else None
            if not isinstance(call, ast.Call) or not _is_format(call):
                return _CLOSED
        elif isinstance(attribute.ctx, ast.Store):
            statement = parents.get(attribute)
            if attribute.attr in numbers and not (
                isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
            ):
                return _CLOSED
        elif attribute.attr in numbers and not _is_formatted(attribute, parents.get(attribute), parents):
            return _CLOSED
    return _CLEAN


def _is_property(function: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "property" for each in function.decorator_list)


def _is_format(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "format"


def _is_formatted(node: ast.expr, parent: ast.AST | None, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """True if a tensor of one number gives the same text as the number: in f-strings, `format` and `%.3f`."""
    if isinstance(parent, ast.FormattedValue):
        return parent.conversion == -1
    if isinstance(parent, ast.keyword):
        node, parent = node, parents.get(parent)
    if isinstance(parent, ast.Call):
        text = parent.func.value if isinstance(parent.func, ast.Attribute) else None
        plain = isinstance(text, ast.Constant) and isinstance(text.value, str) and "!" not in text.value
        return _is_format(parent) and plain and node is not parent.func
    if isinstance(parent, ast.Tuple):
        parent = parents.get(parent)
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mod):
        text = parent.left
        return isinstance(text, ast.Constant) and isinstance(text.value, str) and not {"%s", "%r"} & _pairs(text.value)
    return False


def _pairs(text: str) -> set[str]:
    return {text[at : at + 2] for at in range(len(text) - 1)}


@dataclass(frozen=True, slots=True)
class _Reads:
    """The expressions that read numbers of a meter: for texts, and for anything else."""

    formatted: tuple[ast.expr, ...]
    outside: tuple[ast.expr, ...]


def _reads(model: Model, name: ast.Name, meter: _Meter, update: ast.Call) -> _Reads | None:
    """The reads of a meter's numbers; None if the object is used otherwise.

    None, too, if each iteration of the loop around the update reads a number: nothing would be gained.
    """
    loop = next(loops_around(model, update), None)
    if loop is None:
        return None
    within = set(walk(loop))
    formatted: list[ast.expr] = []
    outside: list[ast.expr] = []
    for use in model.names(model.function(name) or model.source.tree, name.id):
        parent = model.parent(use)
        if isinstance(use.ctx, ast.Store):
            continue
        if not isinstance(parent, ast.Attribute):
            if not _is_shown(model, use, meter) or _is_each_turn(model, use, within):
                return None
            formatted.append(use)
            continue
        if not isinstance(parent.ctx, ast.Load) or parent.attr in meter.closed or parent.attr.startswith("_"):
            return None
        if parent.attr not in meter.numbers:
            continue
        if _is_each_turn(model, use, within):
            return None
        outer = model.parent(parent)
        if _is_formatted(parent, outer, model.module.structure.parents):
            formatted.append(parent)
        elif not _is_converted(model, outer):
            outside.append(parent)
    return _Reads(tuple(formatted), tuple(outside))


def _is_each_turn(model: Model, node: ast.AST, loop: set[ast.AST]) -> bool:
    return node in loop and model.heat(node) is not Heat.COLD


def _is_converted(model: Model, outer: ast.AST | None) -> bool:
    return isinstance(outer, ast.Call) and model.target(outer) in _CONVERTS


def _is_shown(model: Model, node: ast.expr, meter: _Meter) -> bool:
    """True if only the text of an object, or of its numbers, is used."""
    parent = model.parent(node)
    call = model.parent(parent) if isinstance(parent, ast.keyword) else None
    if isinstance(call, ast.Call) and isinstance(parent, ast.keyword) and parent.arg and _is_format(call):
        return _shows(call, parent.arg, meter)
    if isinstance(parent, ast.Call) and model.target(parent) in ("builtins.str", "builtins.print"):
        return meter.prints
    return meter.prints and _is_formatted(node, parent, model.module.structure.parents)


def _shows(call: ast.Call, name: str, meter: _Meter) -> bool:
    """True if a call of `format` shows only numbers of an argument: `"{loss.avg:.3f}".format(loss=losses)`."""
    text = call.func.value if isinstance(call.func, ast.Attribute) else None
    if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        return False
    try:
        fields = list(Formatter().parse(text.value))
    except ValueError:
        return False
    for _, field, format_spec, conversion in fields:
        head, _, rest = (field or "").replace("[", ".[").partition(".")
        if format_spec is not None and "{" in format_spec:
            return False
        if head == name and (
            conversion or rest in meter.closed or not (rest.isidentifier() or (meter.prints and not rest))
        ):
            return False
    return True
