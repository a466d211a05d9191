"""The placement of tensors: the devices of `device=`, moves by `.to(…)` and similar calls, the makers of tensors."""

from __future__ import annotations

import ast
from enum import Enum

from perflint.findings import Confidence, lowered, surest, weakest
from perflint.frozen import dataclass
from perflint.rules._memory.flows import behind
from perflint.rules._operators import operators
from perflint.rules._order import has_effects
from perflint.semantics.facts.devices import same_place
from perflint.semantics.lattice import union
from perflint.semantics.sites import CallSite, Site, device_confidence
from perflint.semantics.structure import keyword, last_name
from perflint.semantics.values import (
    NONE,
    ON_CPU,
    Const,
    Device,
    DeviceValue,
    Dtype,
    Evidence,
    Kind,
    Name,
    Scalar,
    Sequence,
    Tensor,
    Unknown,
    Value,
    scalar_type,
)

_ON_DEVICE = {
    Device.CUDA: Confidence.HIGH,
    Device.MODEL: Confidence.HIGH,
    Device.CALLER: Confidence.MEDIUM,
    Device.UNKNOWN: Confidence.MEDIUM,
}


def place_confidence(value: Value) -> Confidence | None:
    """How sure it is that a `device=` argument means the device; None if it means the CPU.

    Code that passes a device on lets others choose it, so an unknown device is probably not
    the CPU.
    """
    # A device that is not known is not less so because it may be None.
    found = [_place(member) for member in value.members if not (value.is_unknown and member == NONE)]
    places = [confidence for confidence in found if confidence is not None]
    if not places:
        return None
    best = surest(*places)
    return best if len(places) == len(found) else lowered(best)


def _place(value: Value) -> Confidence | None:
    if isinstance(value, (DeviceValue, Tensor)):
        return _ON_DEVICE.get(value.device)
    if isinstance(value, Const):
        if isinstance(value.value, str):
            return Confidence.HIGH if value.value.startswith("cuda") else None
        return Confidence.HIGH if type(value.value) is int else None
    if isinstance(value, Scalar):
        return _scalar_place(value)
    return Confidence.MEDIUM if isinstance(value, Unknown) else None


def _scalar_place(value: Scalar) -> Confidence | None:
    if value.type == "int":
        return Confidence.HIGH
    if value.type != "str":
        return None
    default = value.default.value if value.default is not None else None
    return Confidence.LOW if default == "cpu" else Confidence.MEDIUM


def host_confidence(value: Value, destination: Value | None = None) -> Confidence | None:
    """How sure it is that a value is a tensor on the CPU; None if it is none, or on the device.

    A tensor that a caller has put on some device may be on the CPU if it goes to a
    `destination` of its own.
    """
    tensor = value.tensor
    if tensor is None or tensor.device not in (Device.CPU, Device.UNKNOWN, Device.CALLER):
        return None
    if destination is not None and any(same_place(tensor, member) for member in destination.members):
        return None
    if tensor.device is Device.CALLER and (destination is None or _is_callers(destination)):
        return None
    if tensor.device is not Device.CPU:
        return Confidence.LOW if _may_come_from_elsewhere(tensor, destination) else None
    tensors = [member.tensor for member in value.members]
    sure = [_on_cpu(each) for each in tensors if each is not None and each.device is Device.CPU]
    # A batch is a tensor, or holds some: `batch = batch[0] if isinstance(batch, tuple) else batch`.
    return weakest(*sure) if len(sure) == len(tensors) else lowered(_on_cpu(tensor))


def _on_cpu(tensor: Tensor) -> Confidence:
    return Confidence.HIGH if tensor.evidence >= Evidence.ANNOTATION else Confidence.MEDIUM


def _may_come_from_elsewhere(tensor: Tensor, destination: Value | None) -> bool:
    """True if a tensor of an unknown place is likely to go to another one.

    A result of this code (its dtype is known) is on the device of its operands. And `.to(x)`
    may change the dtype if `x` is not known to be a device.
    """
    if tensor.device is Device.CALLER:
        return True
    if tensor.kind is not Kind.UNKNOWN:
        return False
    return destination is None or all(isinstance(member, (DeviceValue, Tensor)) for member in destination.members)


def operand_confidence(value: Value) -> Confidence | None:
    """How sure it is that an operand of torch is on the device.

    An operand of such a function is a tensor, whatever else its value may be.
    """
    if value.is_unknown:
        return None if value == ON_CPU else Confidence.LOW
    given = [member for member in value.members if member != NONE]
    return device_confidence(union(given) if 0 < len(given) < len(value.members) else value)


def of_computed(value: Value) -> Confidence | None:
    """How sure it is that a mask, or a tensor that is searched, is on the device.

    Such tensors are computed from data, so one on an unknown device is likely on the GPU, if it is a tensor: a mask is
    one if it is used as a tensor.
    """
    confidence = operand_confidence(value)
    if confidence is not Confidence.LOW or not isinstance(value, Tensor):
        return confidence
    return Confidence.MEDIUM if value.kind is Kind.BOOL or value.evidence >= Evidence.ANNOTATION else confidence


def _is_callers(place: Value) -> bool:
    return any(getattr(member, "device", None) is Device.CALLER for member in place.members)


def dtype_name(site: Site, node: ast.expr) -> str:
    """The name of a dtype in `torch`; empty if it is not known."""
    value = site.value(node)
    return value.name if isinstance(value, Dtype) else ""


def creation_confidence(site: CallSite) -> Confidence | None:
    """How sure it is that a call makes its tensor on the device; None if it names no device, or names the CPU.

    Without `device=` it is that of a `functools.partial`, or the default device that the program sets.
    """
    given = keyword(site.node, "device")
    if given is not None:
        return place_confidence(site.value(given))
    made, data = site.value(site.node), site.argument("data", 0)
    if site.target not in _OF_DATA or data is None or site.value(data).tensor is not None:
        return None
    return _ON_DEVICE.get(made.device) if isinstance(made, Tensor) and made.device is not Device.UNKNOWN else None


@dataclass(frozen=True, slots=True)
class Move:
    """The move by `.to(…)`, `.cuda(…)`, `.type_as(…)` or `.type(…)` of a tensor to the GPU.

    `device` is the expression of the device and `other` that of the tensor to follow; both
    are None for `.cuda()`. `proven` says that the argument is certainly a device or a tensor;
    `simple` that no other argument changes the result; `may_be_none` that `.cuda(argument)`
    may get None, which is the current GPU there and the default device in `device=argument`.
    """

    confidence: Confidence
    device: ast.expr | None = None
    other: ast.expr | None = None
    dtype: ast.expr | None = None
    non_blocking: ast.expr | None = None
    proven: bool = True
    simple: bool = True
    may_be_none: bool = False

    @property
    def blocking(self) -> bool:
        """True if the CPU waits for the copy: `non_blocking` is absent or literally False."""
        return self.non_blocking is None or (
            isinstance(self.non_blocking, ast.Constant) and self.non_blocking.value is False
        )


MOVES = ("torch.Tensor.to", "torch.Tensor.cuda", "torch.Tensor.type_as", "torch.Tensor.type")


def as_arguments(site: CallSite, moved: Move) -> list[str] | None:
    """The arguments for device and dtype that stand for a move in the call of a factory; None if they are unknown."""
    if moved.other is not None:
        if not isinstance(moved.other, (ast.Name, ast.Attribute)) or has_effects(site.model, moved.other):
            return None
        other = site.text(moved.other)
        return [f"device={other}.device", f"dtype={other}.dtype"]
    if moved.dtype is not None and site.target.endswith(".type"):
        return None
    device = '"cuda"' if moved.device is None else site.text(moved.device)
    return [f"device={device}"] + ([] if moved.dtype is None else [f"dtype={site.text(moved.dtype)}"])


def move(site: CallSite) -> Move | None:
    """The move to the device that a call of one of `MOVES` is; None if it stays or goes to the CPU."""
    if site.has_unpacking:
        return None
    method = site.target.rpartition(".")[2]
    if method == "cuda":
        return _cuda(site)
    if method == "type":
        return _type(site)
    moved = _follow(site, site.argument("other", 0), None) if method == "type_as" else _to(site)
    return None if moved is not None and _is_like(site, moved) else moved


def _is_like(site: CallSite, moved: Move) -> bool:
    """True for `torch.zeros_like(x).to(x)` and `torch.zeros_like(x).to(x.device)`, which stay on the device of x."""
    place = moved.other
    if isinstance(moved.device, ast.Attribute) and moved.device.attr == "device":
        place = moved.device.value
    made = site.owner
    if place is None or not isinstance(made, ast.Call) or not made.args or keyword(made, "device") is not None:
        return False
    return site.model.target(made).endswith("_like") and site.text(place) == site.text(made.args[0])


def _cuda(site: CallSite) -> Move | None:
    device = site.argument("device", 0)
    if device is not None and site.value(device) == NONE:
        device = None
    return Move(
        Confidence.HIGH,
        device=device,
        non_blocking=site.argument("non_blocking", 1),
        simple=_only(site, "device", "non_blocking"),
        may_be_none=device is not None and not _names_gpu(site, device),
    )


def goes_to_cuda(site: CallSite, moved: Move) -> bool:
    """True if a move certainly goes to a GPU of CUDA, or to the CPU of a machine without one."""
    if moved.other is not None:
        followed = site.value(moved.other)
        return isinstance(followed, Tensor) and followed.device is Device.CUDA
    if moved.device is None:
        return True
    members = site.value(moved.device).members
    return bool(members) and all(is_gpu(member) for member in members)


def _names_gpu(site: CallSite, node: ast.expr) -> bool:
    """True if an expression certainly gives a number, a name or a `torch.device` of a GPU, and never None.

    A parameter with a default proves nothing: None may be passed as well.
    """
    if isinstance(node, ast.Attribute) and node.attr == "device":
        owner = site.value(node.value)
        return isinstance(owner, Tensor) and owner.evidence >= Evidence.ANNOTATION
    members = site.value(node).members
    return bool(members) and all(is_gpu(member) for member in members)


def is_gpu(value: Value) -> bool:
    """True for the number, the name or the `torch.device` of a GPU of CUDA."""
    if isinstance(value, Const):
        return type(value.value) is int or (isinstance(value.value, str) and value.value.startswith("cuda"))
    if isinstance(value, Scalar):
        return value.type == "int" and value.default is None
    return isinstance(value, DeviceValue) and value.device is Device.CUDA


def _type(site: CallSite) -> Move | None:
    given = site.argument("dtype", 0)
    value = None if given is None else site.value(given)
    name = value.name if isinstance(value, Name) else value.value if isinstance(value, Const) else ""
    if not (isinstance(name, str) and name.startswith("torch.cuda.")):
        return None
    return Move(Confidence.HIGH, dtype=given, non_blocking=site.argument("non_blocking", 1), proven=False)


def _follow(site: CallSite, other: ast.expr | None, non_blocking: ast.expr | None) -> Move | None:
    if other is None:
        return None
    value = site.value(other)
    confidence = place_confidence(value)
    if confidence is None:
        return None
    if value.tensor is not None and value.tensor.evidence is Evidence.USE:
        confidence = weakest(confidence, Confidence.MEDIUM)
    return Move(
        confidence,
        other=other,
        non_blocking=non_blocking,
        proven=isinstance(value, Tensor),
        simple=_only(site, "other", "non_blocking", "copy"),
    )


def _to(site: CallSite) -> Move | None:
    by_keyword = keyword(site.node, "device")
    other = keyword(site.node, "other")
    first = site.argument("device", 0)
    if other is not None:
        return _follow(site, other, keyword(site.node, "non_blocking"))
    if first is None:
        return None
    value = site.value(first)
    if by_keyword is None:
        if any(isinstance(member, Tensor) for member in value.members):
            return _follow(site, first, site.argument("non_blocking", 1))
        if all(isinstance(member, Dtype) for member in value.members):
            return None
    confidence = place_confidence(value)
    if confidence is None:
        return None
    proven = by_keyword is not None or all(_is_device(member) for member in value.members)
    if not proven and not names_device(first):
        # It may also be a dtype.
        return None
    # With `device` as a keyword the first position is that of `dtype`.
    shift = 0 if by_keyword is None else 1
    return Move(
        confidence,
        device=first,
        dtype=site.argument("dtype", 1 - shift),
        non_blocking=site.argument("non_blocking", 2 - shift),
        proven=proven,
        simple=_only(site, "device", "dtype", "non_blocking", "copy"),
    )


def _is_device(value: Value) -> bool:
    return isinstance(value, DeviceValue) or value == NONE or scalar_type(value) in ("str", "int")


def names_device(node: ast.expr) -> bool:
    """True if an expression of unknown value calls itself a device."""
    name = last_name(node)
    return "device" in name.lower() or name == "dev"


def _only(site: CallSite, *names: str) -> bool:
    return all(item.arg in names for item in site.node.keywords)


_SIZED = "zeros ones empty full rand randn randint randperm eye arange linspace logspace range normal"
_LIKE = "zeros_like ones_like empty_like full_like rand_like randn_like randint_like"
_WINDOWS = "hann_window hamming_window bartlett_window blackman_window kaiser_window tril_indices triu_indices"
FACTORIES = frozenset(f"torch.{name}" for name in f"{_SIZED} {_LIKE} {_WINDOWS}".split())
"""Functions that fill a new tensor by themselves and take `device=`."""

_DTYPES = """Float:float32 Double:float64 Half:float16 BFloat16:bfloat16 Long:int64 Int:int32 Short:int16 Char:int8
Byte:uint8 Bool:bool"""
CLASSES = {f"{name}Tensor": dtype for name, dtype in (each.split(":") for each in _DTYPES.split())}
"""The classes of torch and torch.cuda that name a dtype, with it."""
CONSTRUCTORS = frozenset(f"torch.{name}" for name in ("tensor", "as_tensor", "asarray", "Tensor", *CLASSES))
"""Functions that make a tensor of Python data."""

_OF_DATA = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray", "torch.Tensor"})
"""Those that copy Python data to the default device."""

_KEEPS_DEVICE = operators("device", "keeps_device")


def creator(site: Site, node: ast.expr) -> ast.Call | None:
    """The call of a factory or constructor that made a tensor which was only reshaped or cast since.

    None if something else made it, or if the call says on which device.
    """
    while True:
        node = behind(site.model, node)
        if isinstance(node, ast.Subscript) or (
            isinstance(node, ast.Attribute) and node.attr in ("T", "mT", "H", "data")
        ):
            node = node.value
        elif isinstance(node, ast.Call):
            target = site.model.target(node)
            if target in FACTORIES or target in CONSTRUCTORS:
                return node if _on_default_device(site, node) else None
            if not (isinstance(node.func, ast.Attribute) and _keeps(site, node, target)):
                return None
            node = node.func.value
        else:
            return None


def _keeps(site: Site, call: ast.Call, target: str) -> bool:
    head, _, method = target.rpartition(".")
    if head != "torch.Tensor":
        return False
    if method == "to":
        return call.keywords == [] and len(call.args) == 1 and isinstance(site.value(call.args[0]), Dtype)
    operands = (*call.args, *(item.value for item in call.keywords))
    return method in _KEEPS_DEVICE and not any(site.value(operand).tensor for operand in operands)


def _on_default_device(site: Site, call: ast.Call) -> bool:
    if any(item.arg is None for item in call.keywords):
        return False
    given = keyword(call, "device")
    return given is None or place_confidence(site.value(given)) is None


class Content(Enum):
    """The data with which a call that creates a tensor fills it."""

    FILLED = "filled"
    """Values that the device can make by itself."""
    NUMBER = "number"
    """One Python number."""
    DATA = "data"
    """A list, an array, or something else that only the CPU has."""
    TENSOR = "tensor"
    """Another tensor."""
    TENSORS = "tensors"
    """Python numbers read from tensors of the device."""
    NOTHING = "nothing"


LEGACY_CONSTRUCTORS = frozenset(name for name in CONSTRUCTORS if name.endswith("Tensor"))
"""Those that make a tensor on the CPU alone: they accept `device=`, and raise for a GPU."""
LEGACY_ON_DEVICE = frozenset(name.replace("torch.", "torch.cuda.") for name in LEGACY_CONSTRUCTORS)
_NUMBERS = frozenset({"bool", "int", "float", "complex"})


_OF_A_SIZE = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "full", "rand", "randn"))
"""Factories whose first arguments are the size."""


def _is_empty(call: ast.Call, target: str) -> bool:
    """True if the size that a factory is given has a literal 0: the tensor has no elements, and nothing is copied."""
    size = keyword(call, "size")
    sizes = [size] if size is not None else call.args[:1] if target == "torch.full" else call.args
    parts = [part for each in sizes for part in (each.elts if isinstance(each, (ast.Tuple, ast.List)) else [each])]
    return any(isinstance(part, ast.Constant) and part.value == 0 for part in parts)


def content(site: Site, call: ast.Call, target: str) -> Content:
    """The data of the tensor that a factory or constructor creates."""
    if target in FACTORIES:
        return Content.NOTHING if target in _OF_A_SIZE and _is_empty(call, target) else Content.FILLED
    data = call.args[0] if call.args else keyword(call, "data") or keyword(call, "obj")
    if data is None:
        return Content.NOTHING
    value = site.value(data)
    if target in LEGACY_CONSTRUCTORS or target in LEGACY_ON_DEVICE or target == "torch.Tensor.new":
        if isinstance(value, Sequence) and value.type == "size":
            # A `torch.Size` is the shape of a tensor that is left uninitialized.
            return Content.FILLED
        is_size = any(scalar_type(member) == "int" for member in value.members)
        if len(call.args) != 1 or isinstance(data, ast.Starred) or is_size:
            return Content.NOTHING if _is_empty(call, target) else Content.FILLED
    return data_content(value)


def data_content(value: Value) -> Content:
    """The kind of data of a value that becomes a tensor."""
    if value.members and all(scalar_type(member) in _NUMBERS for member in value.members):
        return Content.NUMBER
    if any(isinstance(member, Tensor) for member in value.members):
        return Content.TENSOR
    if any(holds_device_tensors(member) for member in value.members):
        return Content.TENSORS
    if value == NONE or (isinstance(value, Sequence) and value.items == ()):
        return Content.NOTHING
    return Content.DATA


def holds_device_tensors(value: Value) -> bool:
    """True if a list or tuple holds tensors that may be on the device, at any depth."""
    if not isinstance(value, Sequence):
        return False
    elements = value.items if value.items is not None else (value.element,)
    return any(device_confidence(element) is not None or holds_device_tensors(element) for element in elements)
