"""The value of a parameter by its annotation, default, docstring and the conventions."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TypeGuard

from perflint.semantics.facts import by_use, conventions, docstrings, libraries, torch_api
from perflint.semantics.facts.named import LOADER, by_name
from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.interpreter.lineage import info_of, is_tensor_class, lineage
from perflint.semantics.interpreter.replaced import replaced_by_tensor
from perflint.semantics.lattice import union
from perflint.semantics.structure import FunctionInfo, last_name, names_in, root_of
from perflint.semantics.values import (
    NONE,
    PROMISE,
    UNKNOWN,
    Array,
    Class,
    Const,
    Device,
    DeviceValue,
    Dtype,
    Evidence,
    Instance,
    Kind,
    Mapping,
    Name,
    Partial,
    Scalar,
    Sequence,
    Tensor,
    TypeForm,
    Union,
    Unknown,
    Value,
    scalar_type,
)

_SEQUENCES = {
    "list": "list",
    "List": "list",
    "Sequence": "list",
    "MutableSequence": "list",
    "Iterable": "list",
    "Collection": "list",
    "set": "set",
    "Set": "set",
    "frozenset": "set",
    "tuple": "tuple",
    "Tuple": "tuple",
    "Iterator": "iterator",
    "Generator": "iterator",
}
_MAPPINGS = frozenset({"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict"})
_WRAPPERS = frozenset({"Annotated", "Final", "ClassVar", "Required", "NotRequired", "Awaitable", "Coroutine"})
_DEVICE_TYPES = frozenset({"torch.device", "torch.types.Device", "torch.cuda.Device"})
"""The type of devices, and the aliases of torch for all that names one."""
_TENSOR_TYPES = frozenset({"FloatTensor", "LongTensor", "BoolTensor", "IntTensor", "HalfTensor", "ByteTensor"})


def annotated(frame: Frame, node: ast.expr | None, device: Device = Device.CALLER) -> Value:
    """The value that an annotation promises; UNKNOWN if it promises none."""
    if node is None:
        return UNKNOWN
    if isinstance(node, ast.Constant):
        if node.value is None:
            return NONE
        return _quoted(frame, node.value, device) if isinstance(node.value, str) else UNKNOWN
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return union([annotated(frame, node.left, device), annotated(frame, node.right, device)])
    if isinstance(node, ast.Subscript):
        return _generic(frame, node, device)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _plain(frame, frame.evaluate(node), device)
    return UNKNOWN


def _quoted(frame: Frame, text: str, device: Device) -> Value:
    try:
        return annotated(frame, _parsed(text), device)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return UNKNOWN


@cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def spelled(frame: Frame, node: ast.expr, base: Value = UNKNOWN) -> TypeForm:
    """The type that an expression spells out, for where it is bound to a name: an alias."""
    return TypeForm(annotated(frame, node), base)


def _plain(frame: Frame, value: Value, device: Device) -> Value:
    if isinstance(value, Class):
        return instance_of(frame, value.name, device)
    if isinstance(value, TypeForm):
        return placed(value.promised, device)
    if isinstance(value, Instance) and value.cls in ("typing.TypeVar", "typing_extensions.TypeVar"):
        return _bound_of(frame, value, device)
    if isinstance(value, Partial) and value.function == Name("typing.cast"):
        # A `NewType`: at run time it returns its argument.
        return _plain(frame, value.positional[0], device)
    if not isinstance(value, Name):
        return value if isinstance(value, (Sequence, Mapping, Tensor)) else UNKNOWN
    name = value.name
    last = name.rpartition(".")[2]
    if name.startswith("torch."):
        return _torch_type(name, last, device)
    if name.startswith("builtins."):
        return _builtin(last)
    known = libraries.kind_of(name)
    if known == "image":
        return Array(is_image=True)
    if known == "array":
        return Array()
    if known == "tensor":
        return Tensor(device, evidence=Evidence.ANNOTATION)
    if last in _SEQUENCES and name.startswith(("typing.", "collections.")):
        return Sequence(_SEQUENCES[last])
    if last in _MAPPINGS and name.startswith(("typing.", "collections.")):
        return Mapping()
    if name in ("typing.Any", "typing.Callable") or name.startswith(("typing.", "collections.")):
        return UNKNOWN
    if name.startswith("jaxtyping."):
        return UNKNOWN
    if last in _ALIASES and not conventions.has_other_tensors(name.partition(".")[0]):
        return _aliased(last, device)
    return Instance(name) if last[:1].isupper() else UNKNOWN


_ALIASES = (
    frozenset("Tensor OptTensor OptionalTensor PairTensor OptPairTensor PairOptTensor Adj".split()) | _TENSOR_TYPES
)
"""Names for types of tensors that packages export; `Adj` is a tensor or a sparse one of a class of its own."""


def _bound_of(frame: Frame, variable: Instance, device: Device) -> Value:
    """The value that the bound of a `TypeVar` promises; the text of one is read in the file that makes the variable."""
    bound = variable.argument("bound") or UNKNOWN
    if not isinstance(bound, Const) or not isinstance(bound.value, str):
        return _plain(frame, bound, device)
    module = None if variable.origin is None else frame.view.loaded(variable.origin.module)
    home = frame if module is None else Frame(frame.view, module, frame.budget, names={})
    return _quoted(home, bound.value, device)


def _aliased(alias: str, device: Device) -> Value:
    """The value that a name without a known definition stands for, if the name itself shows it."""
    if alias in _TENSOR_TYPES:
        return _torch_type(f"torch.{alias}", alias, device)
    tensor = Tensor(device, evidence=Evidence.ANNOTATION)
    optional = union([tensor, NONE])
    if alias == "Adj":
        return union([tensor, UNKNOWN])
    pairs = {"PairTensor": (tensor, tensor), "OptPairTensor": (tensor, optional), "PairOptTensor": (optional, optional)}
    if alias in pairs:
        return Sequence("tuple", union(pairs[alias]), pairs[alias])
    return optional if alias.startswith("Opt") else tensor


def placed(value: Value, device: Device, before: Device = Device.CALLER) -> Value:
    """A promised value, with its tensors that are on the device `before` on another one."""
    if device is before:
        return value
    if isinstance(value, Tensor):
        return value.with_(device=device) if value.device is before else value
    if isinstance(value, Sequence):
        items = None if value.items is None else tuple([placed(item, device, before) for item in value.items])
        return Sequence(value.type, placed(value.element, device, before), items)
    if isinstance(value, Mapping):
        entries = tuple([(key, placed(held, device, before)) for key, held in value.items])
        return Mapping(placed(value.element, device, before), entries)
    if isinstance(value, Union):
        return union(placed(member, device, before) for member in value.members)
    return value


def _builtin(name: str) -> Value:
    if name in ("int", "float", "bool", "str", "bytes", "complex", "slice"):
        return Scalar(name)
    if name in _SEQUENCES:
        return Sequence(_SEQUENCES[name])
    return Mapping() if name == "dict" else UNKNOWN


def _torch_type(name: str, last: str, device: Device) -> Value:
    if name in ("torch.Tensor", "torch.nn.Parameter", "torch.autograd.Variable"):
        leaf = "parameter" if last == "Parameter" else ""
        return Tensor(Device.MODEL if leaf else device, evidence=Evidence.ANNOTATION, leaf=leaf)
    if last in _TENSOR_TYPES:
        kind = {"Bool": Kind.BOOL, "Long": Kind.INT, "Int": Kind.INT, "Byte": Kind.INT}
        return Tensor(device, kind.get(last.removesuffix("Tensor"), Kind.FLOAT), evidence=Evidence.ANNOTATION)
    if name in _DEVICE_TYPES:
        return DeviceValue(Device.CALLER)
    if name == "torch.dtype":
        return Dtype()
    if name == "torch.Size":
        return Sequence("size", Scalar("int"))
    return Instance(name) if last[:1].isupper() else UNKNOWN


def instance_of(frame: Frame, name: str, device: Device) -> Value:
    """An object of a class; a tensor where the class is one."""
    if is_tensor_class(frame, name):
        return Tensor(device, evidence=Evidence.ANNOTATION)
    if not _TYPED_DICTS.isdisjoint(lineage(frame, name)):
        held = tuple(frame.body(name).items())
        return Mapping(UNKNOWN, tuple([(key, placed(value, device)) for key, value in held]))
    return Instance(name)


def _holds_tensors(value: Value) -> bool:
    return any(isinstance(member, Sequence) and member.element.tensor is not None for member in value.members)


_TYPED_DICTS = frozenset({"typing.TypedDict", "typing_extensions.TypedDict"})


def _generic(frame: Frame, node: ast.Subscript, device: Device) -> Value:
    if last_name(node.value) == "Unpack":
        # It says which keywords a function takes. Packages define it anew in a module that imports many others.
        return UNKNOWN
    base = frame.evaluate(node.value)
    name = base.name if isinstance(base, (Name, Class)) else ""
    last = name.rpartition(".")[2]
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if not inner and last not in ("tuple", "Tuple"):
        return _plain(frame, base, device)
    if name == "typing.Optional":
        return union([annotated(frame, inner[0], device), NONE])
    if name == "typing.Union":
        return union(annotated(frame, part, device) for part in inner)
    if last in _WRAPPERS:
        return annotated(frame, inner[-1 if last == "Coroutine" else 0], device)
    if name.startswith("jaxtyping."):
        return annotated(frame, inner[0], device)
    if last == "Literal":
        return _literal(inner)
    if name in ("typing.Callable", "collections.abc.Callable"):
        result = annotated(frame, inner[-1], Device.UNKNOWN)
        # Numbers are promised by functions that return tensors: a closure, a metric.
        return UNKNOWN if result.tensor is None and not _holds_tensors(result) else Partial(PROMISE, (result,))
    if last in ("tuple", "Tuple"):
        if len(inner) == 2 and isinstance(inner[1], ast.Constant) and inner[1].value is ...:
            return Sequence("tuple", annotated(frame, inner[0], device))
        items = tuple(annotated(frame, part, device) for part in inner)
        return Sequence("tuple", union(items), items)
    if last in _SEQUENCES and (name.startswith(("builtins.", "typing.", "collections."))):
        return Sequence(_SEQUENCES[last], annotated(frame, inner[0], device))
    if last in _MAPPINGS:
        return Mapping(annotated(frame, inner[-1], device))
    if isinstance(base, Class):
        return instance_of(frame, base.name, device)
    return _plain(frame, base, device)


def _literal(parts: list[ast.expr]) -> Value:
    return union(
        Scalar(scalar_type(Const(part.value))) if part.value is not None else NONE
        for part in parts
        if isinstance(part, ast.Constant)
    )


def says_nothing(value: Value) -> bool:
    """True if an annotation does not say what the elements are: `Iterable`, `list[dict]`, `dict[str, Any]`."""
    if isinstance(value, Mapping):
        return not value.items and isinstance(value.element, Unknown)
    if isinstance(value, Sequence) and value.items is None and value.type in ("list", "tuple", "iterator"):
        held = value.element
        return isinstance(held, Unknown) or says_nothing(held)
    return False


# Parameters


def parameter(frame: Frame, info: FunctionInfo, arg: ast.arg, default: Value | None, device: Device) -> Value:
    """The value of a parameter if the arguments of its calls are unknown."""
    if _is_kernel(frame, info):
        return UNKNOWN
    value = annotated(frame, arg.annotation, device)
    if any(isinstance(member, Sequence) for member in value.members) and conventions.is_loader(arg.arg):
        held = annotated(frame, arg.annotation, Device.CPU)
        value = union(LOADER if says_nothing(member) else member for member in held.members)
    if isinstance(value, Unknown):
        value = _from_docstring(frame, info, arg.arg, device)
    if isinstance(value, Unknown) and default is not None and default != NONE:
        return _defaulted(default)
    if isinstance(value, Unknown) and default == NONE and arg.arg in _replaced(frame, info):
        value = Tensor(device, evidence=Evidence.CONVENTION)
    elif isinstance(value, Unknown):
        value = _by_use(info, arg.arg, device)
    elif isinstance(value, Partial):
        # A promised result says less than a module does.
        used = _by_use(info, arg.arg, device)
        value = used if isinstance(used, Instance) else value
    if isinstance(value, Scalar) and isinstance(default, Const) and scalar_type(default) == value.type:
        return Scalar(value.type, default)
    if default == NONE and not isinstance(value, Unknown):
        return union([value, NONE])
    if _is_switch(default) and value.tensor is not None and not any(isinstance(m, Scalar) for m in value.members):
        # The annotation is wrong, unless the function uses the parameter as a tensor.
        switch = _defaulted(default)
        return union([value, switch]) if isinstance(_by_use(info, arg.arg, device), Tensor) else switch
    if isinstance(value, Tensor) and isinstance(default, (Const, Scalar, Sequence)):
        # `mask: Tensor = slice(None)` is not always a tensor.
        return union([value, default])
    return value


def _is_switch(default: Value | None) -> TypeGuard[Const]:
    return isinstance(default, Const) and isinstance(default.value, bool)


def _replaced(frame: Frame, info: FunctionInfo) -> frozenset[str]:
    if info.replaced is None:
        info.replaced = replaced_by_tensor(info, frame.module.imports)
    return info.replaced


def _is_kernel(frame: Frame, info: FunctionInfo) -> bool:
    for node in getattr(info.node, "decorator_list", ()):
        while isinstance(node, (ast.Attribute, ast.Call)):
            node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Name):
            full = frame.module.imports.get(node.id, node.id)
            if conventions.compiles_kernels(full.partition(".")[0]):
                return True
    return False


def _defaulted(default: Value) -> Value:
    if isinstance(default, Const):
        kind = scalar_type(default)
        return Scalar(kind, default) if kind in ("int", "float", "bool", "str") else UNKNOWN
    if isinstance(default, Sequence):
        return Sequence(default.type, _defaulted(default.element) if default.element.members else UNKNOWN)
    return default


_OF_ARRAYS = frozenset(
    "shape ndim reshape transpose squeeze flatten mean sum std var max min argmax argmin any all".split()
)
"""Attributes that tensors and arrays have, and no other objects."""


def local_by_use(info: FunctionInfo, name: str) -> Value:
    """The value of a local name that is unknown otherwise: a tensor or a module, by the methods that it has."""
    uses = info.uses.get(name, set())
    if by_use.is_tensor(uses):
        return Tensor(Device.UNKNOWN, evidence=Evidence.USE)
    return Instance("torch.nn.Module") if by_use.is_module(uses) else UNKNOWN


def _made_anew(info: FunctionInfo) -> frozenset[str]:
    """The names that a function makes something else of before all other uses: `x = torch.tensor(x)`."""
    if info.anew is None:
        seen, found = set[str](), set[str]()
        for statement in [] if isinstance(info.node, ast.Lambda) else info.node.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
                bound = {target.id for target in statement.targets if isinstance(target, ast.Name)}
                found |= bound - seen - {root_of(statement.value)}
            seen |= names_in(statement)
        info.anew = frozenset(found)
    return info.anew


def _by_use(info: FunctionInfo, name: str, device: Device) -> Value:
    uses = info.uses.get(name, set())
    if uses and name in _made_anew(info):
        uses = set()
    if by_use.is_tensor(uses) or uses >= {"shape", "device"}:
        return Tensor(device, evidence=Evidence.USE)
    if uses >= {by_use.PART, "cpu"} or by_use.counts_elements(uses):
        return Tensor(device, evidence=Evidence.USE)
    if device is Device.MODEL and (uses & (_OF_ARRAYS | torch_api.tensor_only_calls()) or by_use.ARRAY in uses):
        # Arrays have these too, but modules do not get arrays.
        return Tensor(device, evidence=Evidence.USE)
    if by_use.is_module(uses):
        return Instance("torch.nn.Module")
    if device is Device.MODEL and "device" in uses and name not in info.calls:
        # A model that is passed to a module has a device, too, but is called.
        return Tensor(device, evidence=Evidence.USE)
    if conventions.is_accelerator(name) and not uses.isdisjoint(by_use.OF_ACCELERATOR):
        return Instance("accelerate.Accelerator")
    if uses >= {"scale", "step", "update"}:
        return Instance("torch.amp.GradScaler")
    if name in ("batch", "outputs") and info.owner and conventions.is_batch_hook(info.name):
        return Sequence("batch", Tensor(Device.MODEL, evidence=Evidence.CONVENTION))
    if name == "batch" and device is Device.MODEL:
        return Sequence("batch", Tensor(device, evidence=Evidence.CONVENTION))
    return by_name(name)


_IS_TENSOR = re.compile(r"(?:^|[\s`~.:|(])(?:torch\.)?(?:Float|Long|Bool|Int)?Tensor\b")
_IS_OTHER = re.compile(
    r"\b(?:list|tuple|dict|sequence|iterable|array|ndarray|str|bool|callable|path|image|module|set)\b", re.IGNORECASE
)


def _from_docstring(frame: Frame, info: FunctionInfo, name: str, device: Device) -> Value:
    text = _documented(frame, info).get(name)
    if text is None:
        return UNKNOWN
    if _IS_TENSOR.search(text) and not _IS_OTHER.search(text):
        tensor = Tensor(device, evidence=Evidence.CONVENTION)
        return union([tensor, NONE]) if "None" in text else tensor
    head = text.split(",")[0].strip(" `")
    return Scalar(head) if head in ("int", "float", "bool", "str") else _documented_class(frame, head, device)


def _documented_class(frame: Frame, text: str, device: Device) -> Value:
    """An object of the class that a docstring names, if the file knows the name."""
    if _CLASS.fullmatch(text) is None:
        return UNKNOWN
    value = _quoted(frame, text, device)
    if isinstance(value, Tensor):
        # A class of tensors with an index of its own takes names of columns, too.
        return UNKNOWN if _has_own_index(frame, text) else value.with_(evidence=Evidence.CONVENTION)
    return value if isinstance(value, (Instance, Array)) else UNKNOWN


def _has_own_index(frame: Frame, name: str) -> bool:
    cls = frame.evaluate(_parsed(name))
    order = lineage(frame, cls.name) if isinstance(cls, Class) else ()
    return any((info := info_of(frame, each)) is not None and "__getitem__" in info.methods for each in order)


_CLASS = re.compile(r"(?:[a-z_]\w*\.)*(?:[A-Z]\w*|ndarray)")


_OF_TYPES = ("ensor", ":type", ":param", "odule", "array")
"""Words of docstrings that are searched for types: a search takes time."""


def _documented(frame: Frame, info: FunctionInfo) -> dict[str, str]:
    """The types that a function's docstring gives, or its class's for `__init__`."""
    if info.documented is None:
        text = "" if isinstance(info.node, ast.Lambda) else ast.get_docstring(info.node, clean=False) or ""
        if info.name == "__init__" and info.owner:
            owner = frame.module.klass(info.owner)
            text += "\n" + (ast.get_docstring(owner.node, clean=False) or "" if owner is not None else "")
        info.documented = docstrings.types(text) if any(word in text for word in _OF_TYPES) else {}
    return info.documented
