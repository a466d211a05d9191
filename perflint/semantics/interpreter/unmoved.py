"""Modules that a file makes and moves nowhere: their parameters and results are on the CPU."""

from __future__ import annotations

import ast
import re
import sys
from functools import partial

from perflint.semantics.binders import How
from perflint.semantics.facts import conventions
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.interpreter.annotations import placed
from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.interpreter.lineage import derived, facts_of, info_of, is_closed, is_module, lineage
from perflint.semantics.module import Module
from perflint.semantics.structure import ClassInfo, ancestors, last_name, path_of, walk
from perflint.semantics.values import (
    ON_CPU,
    UNKNOWN,
    Device,
    Function,
    Instance,
    Mapping,
    Origin,
    Sequence,
    Tensor,
    Union,
    Value,
)

_LEAVES_IT = frozenset(
    "eval train load_state_dict state_dict parameters named_parameters buffers named_buffers modules named_modules"
    " children named_children zero_grad requires_grad_ compile".split()
)
"""Methods of modules that move nothing and keep the module nowhere."""
_NAMES_DEVICE = re.compile(r"(?i)cuda|gpu|device|accelerat|xla|^([xnh]pu|mps|to|load)$")
"""Names of code that may put parameters on a device."""
_MOVES = frozenset({"to", "cuda"})
_SETS_DEFAULT = ("set_default_device", "set_default_tensor_type")
_PLAIN = frozenset({"torch", "numpy", "math", *sys.stdlib_module_names})
"""Packages that put nothing on a device unless they are told to."""
_CONTEXTS = frozenset({"no_grad", "inference_mode", "enable_grad", "set_grad_enabled"})
_MOST_CLASSES = 20


def on_cpu(frame: Frame, module: Instance, arguments: Arguments, result: Value) -> Value:
    """The result of a call of a module, or of its method, on the CPU if nothing moves the module from there."""
    origin = module.origin
    if origin is None or origin.module != frame.module.name or not _holds(result):
        return result
    if any(_is_elsewhere(given.tensor) for given in arguments.values()):
        return result
    known = frame.view.memory.unmoved
    stays = frame.view.memory.remembered(known, origin, partial(_stays, frame, module, origin), False)
    return placed(result, Device.CPU, Device.MODEL) if stays else result


def of_method(frame: Frame, node: ast.Call, callee: Value, arguments: Arguments, result: Value) -> Value:
    """The result of a call of a method that a module of the project defines, on the CPU if nothing moves the module."""
    if not isinstance(callee, Function) or not isinstance(node.func, ast.Attribute) or not _holds(result):
        return result
    # A method does not know which call has made its object.
    made = frame.evaluate(node.func.value)
    return on_cpu(frame, made, arguments, result) if isinstance(made, Instance) else result


def beside_operand(node: ast.Call, target: str, result: Value) -> Value:
    """The result of a call, on the CPU if the call moves the first argument of a model there: `model(x.cpu())`."""
    given = node.args[0] if node.args else None
    if not (isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr == "cpu"):
        return result
    if target == "torch.nn.Module.__call__":
        return placed(result, Device.CPU, Device.MODEL)
    return ON_CPU if result == UNKNOWN and not target and conventions.is_model(last_name(node.func)) else result


def _is_elsewhere(given: Tensor | None) -> bool:
    """True for a tensor on the GPU, and for one on the device of another module."""
    return given is not None and given.device in (Device.CUDA, Device.MODEL)


def _holds(value: Value) -> bool:
    """True if a value is or holds a tensor on the device of a module."""
    if isinstance(value, Tensor):
        return value.device is Device.MODEL
    if isinstance(value, Union):
        return any(map(_holds, value.members))
    if isinstance(value, Sequence):
        return any(map(_holds, (value.element, *(value.items or ()))))
    return isinstance(value, Mapping) and any(map(_holds, (value.element, *(held for _, held in value.items))))


def _stays(frame: Frame, module: Instance, origin: Origin) -> bool:
    """True if a new module is bound to one name or attribute that nothing moves, and its class moves nothing."""
    if not is_module(frame, module.cls) or module.arguments is None:
        return False
    if any(_is_part(given) for _, given in module.arguments):
        return False
    target = _bound_to(frame.module, origin)
    if target is None:
        return False
    classes = (info_of(frame, base) for base in lineage(frame, module.cls))
    leave_it = _LEAVES_IT.union(*(info.methods for info in classes if info is not None))
    if isinstance(target, ast.Name):
        stays = _name_stays(frame, target, leave_it)
    else:
        stays = _attribute_stays(frame, target, leave_it)
    return stays and _moves_nothing(frame, module) and not any(map(frame.view.mentioning, _SETS_DEFAULT))


def _name_stays(frame: Frame, target: ast.Name, leave_it: frozenset[str]) -> bool:
    """True if a name is bound once, and all its uses leave the module where it is, as some methods do."""
    module, variable = frame.module, frame.module.symbols.variable(target)
    if [binding.how for binding in variable.bindings] != [How.ASSIGNED] or variable.is_shared:
        return False
    if _moves_something(variable.scope.node) or not all(_leaves(module, use, leave_it) for use in variable.uses):
        return False
    is_global = isinstance(variable.scope.node, ast.Module)
    return not (is_global and frame.view.importers(module.name, variable.name))


def _attribute_stays(frame: Frame, target: ast.Attribute, leave_it: frozenset[str]) -> bool:
    """True if an attribute of an object other than a module is bound once, and all its uses leave the module."""
    module, name = frame.module, target.attr
    info = _class_around(module, target)
    if info is None or path_of(target.value) not in _receivers(info):
        return False
    full = f"{module.name}.{info.qualname}"
    if not is_closed(frame, full) or is_module(frame, full) or len(lineage(frame, full)) > 1 or derived(frame, full):
        # Code of another class may use the attribute by its own `self`.
        return False
    if _moves_something(info.node):
        return False
    for node in module.structure.every(ast.Attribute):
        if node.attr != name or node is target:
            continue
        other = _class_around(module, node)
        is_of_another = other is not None and other is not info and path_of(node.value) in _receivers(other)
        if not is_of_another and not (isinstance(node.ctx, ast.Load) and _leaves(module, node, leave_it)):
            return False
    own_name = info.qualname.rpartition(".")[2]
    importers = frame.view.importers(module.name, own_name)
    is_base = any(own_name in bases for file in importers for _, bases in frame.view.bases(file.path))
    return not is_base and not frame.view.matching(_other_use(name, leave_it))


def _other_use(name: str, leave_it: frozenset[str]) -> re.Pattern[str]:
    """Text in any file that may move a module which an attribute of an object holds."""
    return re.compile(rf"(?<!\bself)\.{name}\b(?!\()(?!\.(?:{'|'.join(sorted(leave_it))})\()")


def _receivers(info: ClassInfo) -> set[str]:
    """The names by which the methods of a class know their object."""
    return {first.arg for method in info.methods.values() for first in method.node.args.args[:1]}


def _class_around(module: Module, node: ast.AST) -> ClassInfo | None:
    around = ancestors(module.structure.parents, node)
    inner = next((outer for outer in around if isinstance(outer, ast.ClassDef)), None)
    return None if inner is None else module.structure.classes_at.get((inner.lineno, inner.col_offset))


def _moves_something(scope: ast.AST) -> bool:
    """True if code moves anything: a module may follow in a way that is not seen."""
    return any(isinstance(node, ast.Call) and last_name(node) in _MOVES for node in walk(scope))


def _is_part(given: Value) -> bool:
    """True if an argument of a constructor may be a part of the module that is on a device already."""
    return any(member.tensor is not None or isinstance(member, Instance) for member in given.members)


def _bound_to(module: Module, origin: Origin) -> ast.Name | ast.Attribute | None:
    """The name or the attribute to which alone the object that a call makes is bound; None if there is none."""
    made = module.calls_at.get((origin.line, origin.column), [])
    # The call of an attribute of the object begins at the same place: `Model().cuda()`.
    inner = made[0] if len(made) == 1 else None
    statement = None if inner is None else module.structure.parents.get(inner)
    if isinstance(statement, ast.Call) and last_name(statement) == "compile" and statement.args[:1] == [inner]:
        statement = module.structure.parents.get(statement)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    return target if isinstance(target, (ast.Name, ast.Attribute)) and _is_plain(module, statement) else None


def _is_plain(module: Module, statement: ast.AST) -> bool:
    """True if no `with` around a statement may choose a device: `with torch.device("cuda"):`."""
    outer: ast.AST | None = statement
    while outer is not None:
        if isinstance(outer, (ast.With, ast.AsyncWith)):
            if not all(last_name(item.context_expr) in _CONTEXTS for item in outer.items):
                return False
        outer = module.structure.parents.get(outer)
    return True


def _leaves(module: Module, use: ast.expr, leave_it: frozenset[str]) -> bool:
    """True if a use of a module copies it, calls it, or one of some methods."""
    parents = module.structure.parents
    outer = parents.get(use)
    if isinstance(outer, ast.Call):
        return outer.func is use or last_name(outer) == "deepcopy"
    called = parents.get(outer) if isinstance(outer, ast.Attribute) and outer.attr in leave_it else None
    return isinstance(called, ast.Call) and called.func is outer


def _moves_nothing(frame: Frame, module: Instance) -> bool:
    """True if the classes of a module and of its parts name no device, and use nothing but torch and each other."""
    waiting, seen = [module.cls], set[str]()
    for name in waiting:
        if name in seen:
            continue
        seen.add(name)
        info, facts = info_of(frame, name), facts_of(frame, name)
        home = None if facts is None else frame.view.loaded(facts.module)
        if len(seen) > _MOST_CLASSES or info is None or home is None:
            return False
        waiting += [base for base in lineage(frame, name) if info_of(frame, base) is not None]
        used = _used(home, info.node)
        if used is None:
            return False
        waiting += used
    return True


def _used(home: Module, cls: ast.ClassDef) -> list[str] | None:
    """The full names of the classes of its file that a class uses; None if it may use code that moves its parts."""
    found: list[str] = []
    for node in walk(cls):
        named = "" if _asks_where(node) else _name(node)
        if named and _NAMES_DEVICE.search(named):
            return None
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        variable = home.symbols.variable(node)
        if not isinstance(variable.scope.node, ast.Module):
            continue
        for binding in variable.bindings:
            if binding.how is How.IMPORT:
                if home.imports.get(node.id, "").partition(".")[0] not in _PLAIN:
                    return None
            elif binding.how is not How.DEFINITION or node.id not in home.structure.classes:
                return None
            else:
                found.append(f"{home.name}.{node.id}")
    return found


def _asks_where(node: ast.AST) -> bool:
    """True for `x.device` and `device=x.device`, where `x` is a tensor or a part: they choose no device."""
    read = node.value if isinstance(node, ast.keyword) else node
    return isinstance(read, ast.Attribute) and read.attr == "device" and path_of(read) not in ("self.device", "")


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    return (node.arg or "") if isinstance(node, (ast.keyword, ast.arg)) else ""
