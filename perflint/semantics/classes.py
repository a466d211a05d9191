"""Names and attributes: what modules, classes and objects of the project hold."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from typing import Any

from perflint.semantics import containers, functions, libraries, tensors, torch_api
from perflint.semantics.arguments import Arguments
from perflint.semantics.frame import Budget, Frame, Names, parts
from perflint.semantics.knowledge import ClassFacts
from perflint.semantics.project import Module, Project
from perflint.semantics.structure import ClassInfo, FunctionInfo
from perflint.semantics.values import (
    FLOAT,
    INT,
    NEVER,
    NONE,
    STR,
    UNKNOWN,
    Array,
    Class,
    Const,
    Device,
    DeviceValue,
    Dtype,
    Evidence,
    Function,
    Instance,
    Mapping,
    Name,
    Partial,
    Scalar,
    Sequence,
    Super,
    Tensor,
    Union,
    Unknown,
    Value,
    join,
    scalar_type,
    union,
    widen,
)

_BUILTINS = frozenset(dir(builtins))
_MOST_STARS = 32
_DTYPES = frozenset(
    """bool uint8 int8 int16 int32 int64 short int long half float double bfloat16 float16 float32
    float64 complex64 complex128 cfloat cdouble uint16 uint32 uint64 float8_e4m3fn float8_e5m2""".split()
)


# Names


def global_name(frame: Frame, module: Module, name: str) -> Value:
    """What a name means at the top level of a module, or as a builtin."""
    value = _own_name(frame, module, name)
    if value is not None:
        return resolve(frame, module, value)
    if name in _BUILTINS:
        return Name(f"builtins.{name}")
    return _from_stars(frame, module, name) or UNKNOWN


def _defined(frame: Frame, module: Module, name: str) -> Value | None:
    own = _own_name(frame, module, name)
    return _from_stars(frame, module, name) if own is None else own


def _own_name(frame: Frame, module: Module, name: str) -> Value | None:
    if module.names is not None and name in module.names:
        return module.names[name]
    statement = module.definitions.get(name)
    if isinstance(statement, ast.ClassDef):
        return class_at(frame.project, module, statement)
    if statement is not None:
        return function_value(module, statement)  # type: ignore[arg-type]
    if name in module.imports:
        return Name(module.imports[name])
    if module.names is None and name in module.assigned:
        found = run_top_level(frame.project, module, frame.budget).get(name)
        if found is not None:
            return found
    return None


def _from_stars(frame: Frame, module: Module, name: str) -> Value | None:
    """A name that `import *` brings; packages that re-export hundreds of modules are not searched."""
    if name.startswith("_") or not 0 < len(module.stars) <= _MOST_STARS:
        return None
    if name not in module.starred:
        module.starred[name] = None
        for star in module.stars:
            source = frame.project.find(star, module)
            found = None if source is None or source is module else _defined(frame, source, name)
            if source is not None and found is not None:
                module.starred[name] = resolve(frame, source, found)
                break
    return module.starred[name]


def run_top_level(project: Project, module: Module, budget: Budget) -> Names:
    """Run a module's top level and keep what it defines."""
    frame = Frame(project, module, budget, names={})
    module.names = frame.names
    frame.run(module.tree.body)
    module.names = frame.names or {}
    return module.names


def resolve(frame: Frame, module: Module, value: Value) -> Value:
    """What an imported name stands for: a definition of the project where there is one."""
    if not isinstance(value, Name) or value.receiver is not None:
        return value
    name = value.name
    known = frame.project.knowledge.resolved.get((module.root, name))
    if known is None:
        # Imports may go round in circles: while one is resolved it is a plain name.
        frame.project.knowledge.resolved[module.root, name] = value
        known = _resolve(frame, module, name)
        frame.project.knowledge.resolved[module.root, name] = known
    return known


def _resolve(frame: Frame, module: Module, name: str) -> Value:
    if name.startswith(("torch.", "builtins.")):
        return _torch_name(torch_api.canonical(name))
    if "." not in name or frame.project.find(name, module) is not None:
        return Name(name)
    base, _, last = name.rpartition(".")
    owner = frame.project.find(base, module)
    if owner is None:
        return _resolve_below(frame, module, base, last)
    found = _defined(frame, owner, last)
    return UNKNOWN if found is None else resolve(frame, owner, found)


def _resolve_below(frame: Frame, module: Module, base: str, last: str) -> Value:
    """A member of a member: `package.module.Class.attribute`."""
    if "." in base and frame.project.find(base.split(".", 1)[0], module) is not None:
        value = resolve(frame, module, Name(base))
        if value != Name(base):
            return attribute(frame, value, last)
    full = f"{base}.{last}"
    return FLOAT if full in _NUMBERS else libraries.public(full)


_NUMBERS = {f"{module}.{name}" for module in ("torch", "math", "numpy") for name in ("inf", "nan", "pi", "e")}


def _torch_name(name: str) -> Value:
    if name in _NUMBERS:
        return FLOAT
    if name.startswith("torch.") and name[6:] in _DTYPES:
        return Dtype(name[6:])
    return Name(name)


def imported(frame: Frame, base: str, name: str) -> Value:
    """What `from base import name` binds; resolved when it is used."""
    return Name(f"{base}.{name}" if base else name)


# Definitions


def function_value(module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Function:
    """The function that a definition makes."""
    info = module.function(node.lineno, node.col_offset)
    qualname = info.qualname if info is not None else "<lambda>"
    owner = f"{module.name}.{info.owner}" if info is not None and info.owner else ""
    return Function(module.name, qualname, node.lineno, node.col_offset, owner)


def class_value(frame: Frame, node: ast.ClassDef) -> Class:
    """The class that a definition makes."""
    return class_at(frame.project, frame.module, node)


def class_at(project: Project, module: Module, node: ast.ClassDef) -> Class:
    """The class defined at a node, entered into the project's knowledge."""
    info = module.structure.classes_at[node.lineno, node.col_offset]
    name = f"{module.name}.{info.qualname}"
    if name not in project.knowledge.classes:
        project.knowledge.classes[name] = ClassFacts(name, module.name, info.qualname)
    return Class(name)


def facts_of(frame: Frame, name: str) -> ClassFacts | None:
    """What is known of a class of the project."""
    return frame.project.knowledge.classes.get(name)


def lineage(frame: Frame, name: str) -> tuple[str, ...]:
    """Full names of a class and its bases, nearest first, those outside the project too."""
    facts = facts_of(frame, name)
    if facts is None:
        return (name, *libraries.bases(name))
    if not facts.lineage:
        facts.lineage = (name,)
        # A base that several others share comes after all of them.
        facts.lineage = tuple(dict.fromkeys(reversed([name, *_base_names(frame, facts)])))[::-1]
    return facts.lineage


def _base_names(frame: Frame, facts: ClassFacts) -> Iterator[str]:
    module = frame.project.loaded(facts.module)
    info = module.klass(facts.qualname) if module is not None else None
    if module is None or info is None:
        return
    inner = Frame(frame.project, module, frame.budget, names={})
    for base in info.node.bases:
        if isinstance(base, ast.Subscript):
            base = base.value
        value = inner.evaluate(base)
        if isinstance(value, (Class, Name)):
            yield from lineage(frame, value.name)


def is_module(frame: Frame, name: str) -> bool:
    """Whether a class is a torch.nn.Module."""
    known = frame.project.knowledge.modules.get(name)
    if known is None:
        found = any(torch_api.is_module(base) or base == "torch.nn.Module" for base in lineage(frame, name))
        known = frame.project.knowledge.modules[name] = found
    return known


def is_tensor_class(frame: Frame, name: str) -> bool:
    """Whether a class is a torch.Tensor."""
    return "torch.Tensor" in lineage(frame, name) or "torch.nn.Parameter" in lineage(frame, name)


# Attributes


def attribute(frame: Frame, value: Value, name: str) -> Value:
    """What `value.name` is."""
    handler = _ATTRIBUTES.get(type(value))
    return UNKNOWN if handler is None else handler(frame, value, name)


def _of_tensor(frame: Frame, value: Tensor, name: str) -> Value:
    return tensors.attribute(value, name)


def _of_unknown(frame: Frame, value: Value, name: str) -> Value:
    if name in torch_api.tensor_only_methods():
        return tensors.attribute(Tensor(evidence=Evidence.USE), name)
    return Dtype() if name == "dtype" else UNKNOWN


def _of_name(frame: Frame, value: Name, name: str) -> Value:
    if value.receiver is not None:
        return UNKNOWN
    return resolve(frame, frame.module, Name(f"{value.name}.{name}"))


def _of_class(frame: Frame, value: Class, name: str) -> Value:
    found = _in_lineage(frame, Instance(value.name), name, bind=False)
    if found is None and name == "apply" and "torch.autograd.Function" in lineage(frame, value.name):
        # It passes `forward` a context first.
        return Partial(_of_class(frame, value, "forward"), (UNKNOWN,))
    return UNKNOWN if found is None else found


def _of_super(frame: Frame, value: Super, name: str) -> Value:
    receiver = value.receiver
    if not isinstance(receiver, Instance):
        return UNKNOWN
    order = lineage(frame, receiver.cls)
    after = order[order.index(value.owner) + 1 :] if value.owner in order else order[1:]
    found = _in_lineage(frame, receiver, name, order=after)
    return UNKNOWN if found is None else found


def _of_instance(frame: Frame, value: Instance, name: str) -> Value:
    found = _in_lineage(frame, value, name)
    if found is not None:
        return as_seen(frame, found)
    if name == "device" and is_module(frame, value.cls):
        return DeviceValue(Device.MODEL)
    if facts_of(frame, value.cls) is not None:
        return _of_unknown(frame, value, name) if is_tensor_class(frame, value.cls) else UNKNOWN
    return Name(f"{value.cls}.{name}", value)


def as_seen(frame: Frame, value: Value) -> Value:
    """An attribute as the code sees it: to a constructor, parameters and buffers are on the host still."""
    if not frame.constructs:
        return value
    if isinstance(value, Union):
        return union(as_seen(frame, member) for member in value.members)
    if isinstance(value, Tensor) and value.device is Device.MODEL:
        return value.with_(device=Device.CPU)
    return DeviceValue(Device.CPU) if value == DeviceValue(Device.MODEL) else value


def _in_lineage(
    frame: Frame, value: Instance, name: str, *, order: tuple[str, ...] | None = None, bind: bool = True
) -> Value | None:
    for cls in order if order is not None else lineage(frame, value.cls):
        facts = facts_of(frame, cls)
        found = (
            libraries.attribute(cls, value, name) if facts is None else _own_attribute(frame, facts, value, name, bind)
        )
        if found is not None:
            return found
    return None


def _own_attribute(frame: Frame, facts: ClassFacts, value: Instance, name: str, bind: bool) -> Value | None:
    module = frame.project.loaded(facts.module)
    info = module.klass(facts.qualname) if module is not None else None
    if module is None or info is None:
        return None
    method = info.methods.get(name)
    if method is not None:
        return _method(frame, module, facts, method, value if bind else None)
    given = value.argument(name)
    if given is not None and not info.methods.get("__init__"):
        return given
    if name in info.assigned_in:
        _run_methods(frame, module, facts, info, name)
        if name in facts.attributes:
            return facts.attributes[name]
    inner = module.klass(f"{facts.qualname}.{name}")
    return class_at(frame.project, module, inner.node) if inner else _class_level(frame, module, facts, info).get(name)


def _method(frame: Frame, module: Module, facts: ClassFacts, method: FunctionInfo, receiver: Value | None) -> Value:
    node = method.node
    function = Function(module.name, method.qualname, node.lineno, node.col_offset, facts.name)
    decorators = decorator_names(node)
    if decorators & {"property", "cached_property"} and receiver is not None:
        return functions.invoke(frame, bound(function, receiver), Arguments())
    if "staticmethod" in decorators:
        return function
    if "classmethod" in decorators:
        return bound(function, Class(facts.name) if not isinstance(receiver, Instance) else Class(receiver.cls))
    return function if receiver is None else bound(function, receiver)


def bound(function: Function, receiver: Value) -> Function:
    """A method bound to its object; which call made the object does not matter to its methods."""
    if isinstance(receiver, Instance):
        receiver = Instance(receiver.cls)
    return Function(function.module, function.qualname, function.line, function.column, function.owner, receiver)


def decorator_names(node: ast.AST) -> set[str]:
    """The last names of a definition's decorators: "property", "no_grad", …"""
    found: set[str] = set()
    for decorator in getattr(node, "decorator_list", ()):
        if isinstance(decorator, ast.Call):
            decorator = decorator.func
        if isinstance(decorator, ast.Attribute):
            found.add(decorator.attr)
        elif isinstance(decorator, ast.Name):
            found.add(decorator.id)
    return found


def _class_level(frame: Frame, module: Module, facts: ClassFacts, info: ClassInfo) -> Names:
    if facts.body is None:
        facts.body = {}
        inner = Frame(frame.project, module, frame.budget, names={}, depth=frame.depth + 1)
        inner.run([s for s in info.node.body if isinstance(s, (ast.Assign, ast.AnnAssign))])
        facts.body = {name: resolve(inner, module, value) for name, value in (inner.names or {}).items()}
        for statement in info.node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                value = facts.body.get(statement.target.id, UNKNOWN)
                facts.body[statement.target.id] = _field(inner, value, statement.annotation)
    return facts.body


def _field(frame: Frame, value: Value, annotation: ast.expr) -> Value:
    """A dataclass's field: its default is one value of several."""
    from perflint.semantics.annotations import annotated

    if value == NONE:
        declared = annotated(frame, annotation)
        return UNKNOWN if isinstance(declared, Unknown) else union([declared, NONE])
    if isinstance(value, Const) and scalar_type(value) in ("int", "float", "bool", "str"):
        return Scalar(scalar_type(value), value)
    return value


def _run_methods(frame: Frame, module: Module, facts: ClassFacts, info: ClassInfo, name: str) -> None:
    for method in info.assigned_in[name]:
        if method.name in facts.methods_run:
            continue
        facts.methods_run.add(method.name)
        node = method.node
        function = Function(module.name, method.qualname, node.lineno, node.col_offset, facts.name)
        # What an object holds must not depend on who asks first, nor from how deep.
        asker = Frame(frame.project, module, frame.budget, names={})
        # Nobody knows what is passed: a default is one value of several.
        functions.activate(asker, bound(function, Instance(facts.name)), Arguments(unpacked=True))


def note_attribute(frame: Frame, name: str, value: Value) -> None:
    """Remember what a method assigns to an attribute of `self`."""
    facts = facts_of(frame, frame.owner)
    if facts is not None:
        known = facts.attributes.get(name)
        facts.attributes[name] = widen(value if known is None else join(known, value))


def _of_sequence(frame: Frame, value: Sequence, name: str) -> Value:
    if value.type == "batch" and isinstance(value.element, Tensor):
        if name in ("keys", "items", "values", "get", "pop", "copy", "update"):
            return Name(f"builtins.dict.{name}", Mapping(value.element))
        if name in ("to", "cuda", "cpu"):
            return Name(f"torch.Tensor.{name}", value)
        known = tensors.attribute(value.element, name)
        return value.element if isinstance(known, Unknown) else known
    if value.type == "named":
        return value.element
    if value.type == "tuple" and value.items and not hasattr(tuple, name):
        return _field_of(value, name)
    if value.type in _TYPES and not hasattr(_TYPES[value.type], name):
        return Name("builtins.size.numel", value) if name == "numel" else NEVER
    return Name(f"builtins.{value.type}.{name}", value)


def _field_of(value: Sequence, name: str) -> Value:
    """A field of the named tuples that torch returns: `x.max(1).values`, `torch.linalg.svd(x).S`."""
    assert value.items is not None
    if not all(isinstance(item, Tensor) for item in value.items):
        return NEVER
    position = {"values": 0, "indices": 1}.get(name, len(value.items))
    return value.items[position] if position < len(value.items) else union(value.items)


_TYPES: dict[str, type] = {"list": list, "tuple": tuple, "set": set, "size": tuple, "range": range, "str": str,
                           "int": int, "float": float, "bool": bool, "bytes": bytes, "complex": complex}  # fmt: skip


def _of_mapping(frame: Frame, value: Mapping, name: str) -> Value:
    return Name(f"builtins.dict.{name}", value)


def _of_scalar(frame: Frame, value: Value, name: str) -> Value:
    kind = scalar_type(value)
    if kind == "None" or (kind in _TYPES and not hasattr(_TYPES[kind], name)):
        return NEVER
    return Name(f"builtins.{kind}.{name}", value)


def _of_array(frame: Frame, value: Array, name: str) -> Value:
    if name in ("shape", "strides"):
        return Sequence("tuple", INT)
    if name in ("ndim", "size", "nbytes", "itemsize"):
        return INT
    if name in ("T", "real", "imag", "flat", "values"):
        return value
    if name == "device":
        return DeviceValue(Device.CPU)
    return Name(f"numpy.ndarray.{name}", value)


def _of_device(frame: Frame, value: DeviceValue, name: str) -> Value:
    return STR if name == "type" else INT if name == "index" else UNKNOWN


def _of_union(frame: Frame, value: Union, name: str) -> Value:
    return union(attribute(frame, member, name) for member in value.members)


def _of_partial(frame: Frame, value: Partial, name: str) -> Value:
    return value.function if name == "func" else UNKNOWN


_ATTRIBUTES: dict[type[Value], Callable[[Frame, Any, str], Value]] = {
    Tensor: _of_tensor,
    Unknown: _of_unknown,
    Name: _of_name,
    Class: _of_class,
    Super: _of_super,
    Instance: _of_instance,
    Sequence: _of_sequence,
    Mapping: _of_mapping,
    Const: _of_scalar,
    Scalar: _of_scalar,
    Array: _of_array,
    DeviceValue: _of_device,
    Union: _of_union,
    Partial: _of_partial,
}


# Protocols of objects


def iterated(frame: Frame, value: Instance) -> Value:
    """What iterating over an object yields."""
    if "torch.utils.data.DataLoader" in lineage(frame, value.cls):
        return batch_of(value)
    if value.cls in ("torch.nn.Sequential", "torch.nn.ModuleList"):
        return containers.children(value)
    method = _in_lineage(frame, value, "__iter__")
    if isinstance(method, Function):
        return frame.iterate(functions.invoke(frame, method, Arguments()))
    return UNKNOWN


def batch_of(loader: Instance) -> Value:
    """A batch of a DataLoader: tensors on the host, in whatever the collate function makes."""
    pinned = loader.argument("pin_memory") == Const(True)
    return Sequence("batch", Tensor(Device.CPU, evidence=Evidence.CONVENTION, pinned=pinned))


def indexed(frame: Frame, value: Instance, index: Value) -> Value:
    """What indexing an object gives."""
    if value.cls in containers.CONTAINERS:
        return containers.child(value, index)
    method = _in_lineage(frame, value, "__getitem__")
    if isinstance(method, Function):
        return functions.invoke(frame, method, Arguments((index,)))
    return libraries.indexed(value)


def entered(frame: Frame, manager: Value) -> Value:
    """What `with manager as name` binds."""
    if isinstance(manager, Instance):
        method = _in_lineage(frame, manager, "__enter__")
        if isinstance(method, Function):
            return functions.invoke(frame, method, Arguments())
        return manager
    return frame.iterate(manager) if isinstance(manager, Sequence) else manager


parts.attribute = attribute
