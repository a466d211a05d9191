"""Reads of the contents of a tensor.

The same expression may be wrong in several ways: `if torch.isnan(x[i]).item():` reads a
scalar, per element, to check for NaN. Each rule reports all reads of its kind, and declares
which more general rules it replaces (`rules/precedence.py`), so that no place is reported twice.
"""

from __future__ import annotations

import ast

from perflint.findings import Confidence, Heat
from perflint.frozen import dataclass
from perflint.rules._operators import operators
from perflint.rules.placement import of_computed
from perflint.semantics.facts import conventions
from perflint.semantics.lattice import union
from perflint.semantics.memo import once_per_site
from perflint.semantics.sites import CallSite, Site, TruthSite, device_confidence
from perflint.semantics.structure import calls_in, path_of
from perflint.semantics.values import Const, Device, Evidence, Mapping, Name, Scalar, Sequence, Unknown, Value

SCALAR_READ = "TPF101"
TRUTH_OF_TENSOR = "TPF105"
NAN_CHECK = "TPF107"
DEVICE_TO_HOST_COPY = "TPF109"

NUMBERS = operators("numbers", "reads")
"""Calls that make Python numbers of a tensor."""

_TRUTHS = ("builtins.bool", "operator.truth", "operator.not_", "torch.is_nonzero", "torch.Tensor.is_nonzero")
_ANY_OF = ("builtins.any", "builtins.all")
TRUTHS = (*_TRUTHS, *_ANY_OF)
"""Calls that ask a tensor, or several, for their truth."""

READS = (*NUMBERS, *TRUTHS)
"""All calls that convert the contents of a tensor to Python objects."""

TOLIST = "torch.Tensor.tolist"
MAP = "builtins.map"

_OF_ONE_NUMBER = frozenset(Name(name) for name in NUMBERS if name != TOLIST)

_WITHOUT_METHODS = (Const, Scalar, Sequence, Mapping)
_CONSTRUCTORS = ("__init__", "__new__", "__post_init__")


@dataclass(frozen=True, slots=True)
class Read:
    """A place where the CPU waits for the value of a tensor."""

    node: ast.expr
    """The smallest expression that waits."""
    tensor: ast.expr
    """The tensor that is read."""
    value: Value
    confidence: Confidence


@once_per_site
def read_at(site: Site) -> Read | None:
    """The read at a call or a tested expression; None if it reads no tensor of the device."""
    if isinstance(site, TruthSite):
        return _tested(site)
    if isinstance(site, CallSite):
        return _read_by_method(site) if site.target.startswith("torch.Tensor.") else _read_by_function(site)
    return None


def number_at(site: CallSite) -> Read | None:
    """The read of one number at a call; None for the `.tolist()` of a tensor that may have dimensions."""
    read = read_at(site)
    return None if read is None or (site.target == TOLIST and not _is_scalar(read.value)) else read


def list_at(site: CallSite) -> Read | None:
    """The read at the `.tolist()` of a tensor that may have dimensions, or None."""
    read = read_at(site)
    return None if read is None or site.target != TOLIST or _is_scalar(read.value) else read


def mapped_at(site: CallSite) -> Read | None:
    """The reads at `map(int, x)`, one of each element of `x`; None if it reads no tensors of the device."""
    if len(site.node.args) != 2 or site.has_unpacking or site.value(site.node.args[0]) not in _OF_ONE_NUMBER:
        return None
    whole = site.node.args[1]
    value = _elements(site.value(whole))
    confidence = confidence_at(site, value)
    return None if confidence is None else Read(site.node, whole, value, confidence)


def confidence_at(site: Site, value: Value) -> Confidence | None:
    """How sure it is that a value is a tensor of the device where a site runs; None if it is not.

    A constructor runs before its module is moved, so its tensors are on the CPU, unless it says otherwise. A step
    mostly reads its own results, so a tensor on an unknown device is likely on the GPU, unless its name says CPU.
    """
    function = site.model.function(site.node)
    if isinstance(function, ast.FunctionDef) and function.name in _CONSTRUCTORS:
        tensor = value.tensor
        if tensor is not None and tensor.device is not Device.CUDA:
            return None
    confidence = device_confidence(value)
    if confidence is Confidence.LOW and site.heat is Heat.HOT and _is_off_host(value):
        return confidence if _is_one_of_types(site) or _is_called_cpu(site) else Confidence.MEDIUM
    if confidence is Confidence.LOW and _is_of_mask(site):
        return of_computed(value)
    return confidence


def _is_called_cpu(site: Site) -> bool:
    """True if the tensor that a site reads, or is computed from, has a name that says CPU: `x_cpu.sum().item()`."""
    node: ast.AST = site.node
    while True:
        if isinstance(node, ast.Name):
            return conventions.is_on_cpu(node.id) is not None
        if isinstance(node, ast.Attribute) and conventions.is_on_cpu(node.attr):
            return True
        # `cpu` of `x.cpu()` is the name of no value.
        part = node.func if isinstance(node, ast.Call) else node
        if not isinstance(part, (ast.Attribute, ast.Subscript)):
            return False
        node = part.value


def _is_of_mask(site: Site) -> bool:
    """True for `mask.any()` and `mask.all()`, whose tensors are rarely numbers or data; asserts check data."""
    if isinstance(site, TruthSite) and site.construct == "assert":
        return False
    return isinstance(site.node, ast.Call) and site.model.target(site.node) in _OF_MASKS


_OF_MASKS = frozenset({"torch.any", "torch.all", "torch.Tensor.any", "torch.Tensor.all"})


def _is_off_host(value: Value) -> bool:
    """True if a value is a tensor that is not known to be on the CPU, or something unknown that is used as one."""
    return all(isinstance(member, Unknown) or getattr(member, "off_host", False) for member in value.members)


def _is_one_of_types(site: Site) -> bool:
    """True if a test asked for the type: a value that may also be a number comes from the user, on the CPU.

    One that may be a dict, a list or a tuple does not: `isinstance(loss, dict)` tells several losses from one.
    """
    tests = (outer.test for outer in site.model.ancestors(site.node) if isinstance(outer, (ast.If, ast.IfExp)))
    calls = (node for node in calls_in(*tests) if len(node.args) == 2)
    return any(
        site.model.target(call) == "builtins.isinstance" and not _names_containers(site, call.args[1]) for call in calls
    )


def _names_containers(site: Site, types: ast.expr) -> bool:
    """True if a type, or each type of a tuple, is one of Python's containers."""
    each = types.elts if isinstance(types, ast.Tuple) else [types]
    return all(site.value(one) in _CONTAINERS for one in each)


_CONTAINERS = frozenset(Name(f"builtins.{name}") for name in ("dict", "list", "tuple"))


def _is_scalar(value: Value) -> bool:
    return value.tensor is not None and value.tensor.rank == 0


def _tested(site: TruthSite) -> Read | None:
    node = site.node
    # The operands of these are tested one by one, at sites of their own.
    if isinstance(node, (ast.BoolOp, ast.IfExp)) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return None
    if site.construct == "in":
        return _looked_up(site)
    compared = node.value if isinstance(node, ast.NamedExpr) else node
    if not isinstance(compared, ast.Compare) or len(compared.ops) == 1:
        return _truth(site, node, node)
    # `a < t < b` asks for the truth of `a < t` before it looks at `b`.
    reads = (_truth(site, node, operand) for operand in (compared.left, *compared.comparators))
    return next((read for read in reads if read is not None), None)


def _looked_up(site: TruthSite) -> Read | None:
    """`a in t` and `t in [a, b]` compare on the device, and ask for the outcome.

    `t in {a, b}` compares no values: a set finds a tensor by its identity.
    """
    if not isinstance(site.node, ast.Compare) or len(site.node.ops) != 1:
        return None
    one, many = site.node.left, site.node.comparators[0]
    if _truth(site, site.node, many) is not None:
        return _truth(site, site.node, many)
    compares = any(isinstance(member, Sequence) and member.type != "set" for member in site.value(many).members)
    return _truth(site, site.node, one) if compares else None


def _truth(site: Site, node: ast.expr, tensor: ast.expr) -> Read | None:
    value = site.value(tensor)
    confidence = confidence_at(site, value)
    if confidence is None:
        return None
    return Read(node, tensor, value, _if_one_number(value, confidence) if node is tensor else confidence)


def _if_one_number(value: Value, confidence: Confidence) -> Confidence:
    """LOW for a tensor with dimensions: its truth would mostly be an error, so the value is probably something else."""
    tensor = value.tensor
    return Confidence.LOW if tensor is not None and tensor.rank else confidence


def _read_by_method(site: CallSite) -> Read | None:
    tensor = site.node.func.value if isinstance(site.node.func, ast.Attribute) else site.node.func
    value = _with_methods(site.value(tensor) if site.receiver is None else site.receiver)
    confidence = confidence_at(site, value)
    return None if confidence is None else Read(site.node, tensor, value, confidence)


def _with_methods(value: Value) -> Value:
    """The alternatives of a value that have the methods of tensors; of a batch, this is its tensor.

    Python's numbers, None, lists and dicts have none.
    """
    if value.tensor is None:
        return value
    return union(
        member.tensor or member for member in value.members if member.tensor or not isinstance(member, _WITHOUT_METHODS)
    )


def _read_by_function(site: CallSite) -> Read | None:
    for argument in site.node.args:
        if isinstance(argument, ast.Starred):
            continue
        value = _elements(site.value(argument)) if site.target in _ANY_OF else site.value(argument)
        confidence = confidence_at(site, value)
        if confidence is not None:
            if site.target in _TRUTHS:
                confidence = _if_one_number(value, confidence)
            elif _are_alike(argument) and value.tensor is not None and value.tensor.evidence <= Evidence.CONVENTION:
                confidence = Confidence.LOW
            return Read(site.node, argument, value, confidence)
    return None


def _are_alike(node: ast.expr) -> bool:
    """True for `x == xs[0] for x in xs`, which is mostly written for lists of texts or Python numbers."""
    if not isinstance(node, (ast.GeneratorExp, ast.ListComp)) or not isinstance(node.elt, ast.Compare):
        return False
    loop, sides = node.generators[0], (node.elt.left, *node.elt.comparators)
    whole = loop.iter.value if isinstance(loop.iter, ast.Subscript) else loop.iter
    first = next((each for each in sides if isinstance(each, ast.Subscript)), None)
    if first is None or not isinstance(first.slice, ast.Constant) or first.slice.value != 0:
        return False
    is_same = path_of(whole) != "" and path_of(first.value) == path_of(whole)
    return is_same and path_of(loop.target) in map(path_of, sides) and isinstance(node.elt.ops[0], (ast.Eq, ast.NotEq))


def _elements(value: Value) -> Value:
    """The elements that any(), all() and map() take one by one."""
    for member in value.members:
        if isinstance(member, Sequence) and member.element.tensor is not None:
            return member.element
    return value
