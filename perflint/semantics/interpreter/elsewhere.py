"""Names, attributes and items that other functions of a file may set while a function runs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import takewhile

from perflint.semantics.binders import DEFINITIONS, parameters
from perflint.semantics.facts.conventions import is_device
from perflint.semantics.interpreter.builtin_calls import CHANGES
from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.interpreter.lineage import derived, info_of, lineage
from perflint.semantics.interpreter.members import binds, body_of
from perflint.semantics.lattice import union
from perflint.semantics.module import Module
from perflint.semantics.structure import FUNCTIONS, SetBy, last_name, name_in, path_of, walk
from perflint.semantics.values import UNKNOWN, Const, DeviceValue, Function, Instance, Mapping, Sequence, Value

_SCOPES = (*DEFINITIONS, ast.Lambda)
_OWN = frozenset(("self", "cls"))


def sets_name(frame: Frame, name: str) -> bool:
    """True if a function that may run between two statements sets a name of this code by `global` or `nonlocal`."""
    declared = _set_by(frame.module).declared.get(name)
    if not declared:
        return False
    node = None if frame.function is None else frame.function.node
    for keyword, scope in declared:
        if keyword is ast.Nonlocal:
            if node is not None and scope not in (None, node) and node in _around(frame.module, scope):
                return True
        elif node is None or (scope is not node and (ast.Global, node) in declared):
            return True
    return False


def rebinds(frame: Frame, node: ast.Name) -> bool:
    """True if a name of a function around may have got another value since the function that reads it was made."""
    here = None if frame.function is None else frame.function.node
    if here is None or _scope(frame.module, here) is None:
        return False
    variable = frame.module.symbols.find(node)
    home = None if variable is None else variable.scope.node
    if variable is None or home is here or isinstance(home, ast.Module):
        return False
    if any(binding.line > here.lineno for binding in variable.bindings):
        return True
    declared = _set_by(frame.module).declared.get(node.id, ())
    return any(keyword is ast.Nonlocal and scope is not here for keyword, scope in declared)


def sets_captured(frame: Frame, name: str) -> bool:
    """True if a function sets an attribute of an object that it knows from the function around it."""
    return name in _set_by(frame.module).captured


def beside_outside(frame: Frame, receiver: Value, name: str, value: Value) -> Value:
    """An attribute that the class of `self` has by its own code, beside what other code may have set before."""
    if frame.recorder is None or receiver != frame.receiver or not isinstance(receiver, Instance):
        return value
    outside = _set_by(frame.module).outside
    given = [*outside.get(name, ()), *outside.get("*", ())]
    changed = _intercepts(frame, receiver.cls) or name in _defined(frame, _in_front(frame, receiver.cls))
    if not (given or changed) or not binds(frame, receiver, name):
        return value
    names_device = isinstance(value, DeviceValue) or (isinstance(value, Const) and isinstance(value.value, str))
    return value if names_device and not changed and all(map(_names_device, given)) else union([value, UNKNOWN])


def _intercepts(frame: Frame, cls: str) -> bool:
    """True if a class may keep or give other attributes than its code assigns."""
    methods = [info.methods for each in lineage(frame, cls) if (info := info_of(frame, each)) is not None]
    setters = [found["__setattr__"].node for found in methods if "__setattr__" in found]
    return any("__getattribute__" in found for found in methods) or not all(map(_passes_on, setters))


def _passes_on(setter: ast.AST) -> bool:
    """True if a `__setattr__` raises, or ends with `super().__setattr__(name, value)`."""
    if not isinstance(setter, ast.FunctionDef):
        return False
    *_, name, value = ["", "", *parameters(setter)]
    last = setter.body[-1].value if isinstance(setter.body[-1], ast.Expr) else None
    if not isinstance(last, ast.Call) or last_name(last) != "__setattr__" or last.keywords:
        return False
    passed = [argument.id if isinstance(argument, ast.Name) else "" for argument in last.args[-2:]]
    return passed == [name, value] and not any(
        isinstance(node, ast.Return)
        or (isinstance(node, ast.Attribute) and node.attr == "__dict__")
        or (isinstance(node, ast.Name) and node.id in passed and not isinstance(node.ctx, ast.Load))
        for node in walk(setter)
    )


def _in_front(frame: Frame, cls: str) -> set[str]:
    """The classes whose members the objects of subclasses in the same file have in place of those of a class."""
    return {each for sub in derived(frame, cls) for each in takewhile(lambda one: one != cls, lineage(frame, sub))}


def _defined(frame: Frame, classes: Iterable[str]) -> set[str]:
    """The names of the methods of some classes, and of the attributes that they assign."""
    known = [(cls, info) for cls in classes if (info := info_of(frame, cls)) is not None]
    return {name for cls, info in known for name in (*info.methods, *info.assigned_in, *body_of(frame, cls))}


def _names_device(node: ast.expr | None) -> bool:
    if isinstance(node, ast.IfExp):
        return _names_device(node.body) and _names_device(node.orelse)
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_text or (node is not None and is_device(last_name(node)) is not None)


def sets_without_call(frame: Frame, name: str) -> bool:
    """True if code may set an attribute where no call shows: a nested function, an iterator, a special method."""
    return sets_captured(frame, name) or any(_runs_by_itself(frame.module, scope) for scope in _setters(frame, name))


def _runs_by_itself(module: Module, scope: ast.AST | None) -> bool:
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    info = module.defined_by(scope)
    return scope.name.startswith("__") or bool(scope.decorator_list) or (info is not None and info.is_generator)


def sets_attribute(frame: Frame, name: str) -> bool:
    """True if a function that may run between two statements sets an attribute of a name; constructors run before."""
    return bool(_setters(frame, name))


def _setters(frame: Frame, name: str) -> list[ast.AST | None]:
    """The other functions of the file that set an attribute of a name, but for constructors."""
    here = None if frame.function is None else frame.function.node
    return [scope for scope in _set_by(frame.module).attributes.get(name, ()) if scope is not here]


def as_written(frame: Frame, node: ast.Name | ast.Attribute, value: Value) -> Value:
    """A value that a name or an attribute holds; if other functions may write to it, a container of anything."""
    if not isinstance(value, (Sequence, Mapping)):
        return value
    module = frame.module
    here = None if frame.function is None else frame.function.node
    for root, scope in _set_by(module).written.get(node.id if isinstance(node, ast.Name) else node.attr, ()):
        if scope is not here and _is_same(module, root, node):
            return of_anything(value)
    return value


def may_run_other(frame: Frame, method: Function) -> bool:
    """True if a call of a method may run another one: put in its place, or that of `self` in a subclass of the file."""
    receiver, name = method.receiver, method.qualname.rpartition(".")[2]
    if not isinstance(receiver, Instance):
        return False
    if name in _set_by(frame.module).stored:
        return True
    return receiver == frame.receiver and name in _defined(frame, _in_front(frame, receiver.cls))


def writes_argument(frame: Frame, function: Function) -> bool:
    """True if a function of the project writes to a container that it is passed."""
    module = frame.view.loaded(function.module)
    info = None if module is None else module.function(function.line, function.column)
    if module is None or info is None:
        return False
    return info.node in _set_by(module).writers


def of_anything(value: Value) -> Value:
    """A list or dict after something unknown was put into it; other values as they are."""
    if isinstance(value, Mapping):
        return Mapping(union([value.element, *(each for _, each in value.items), UNKNOWN]))
    if isinstance(value, Sequence) and value.type == "list":
        return Sequence("list", union([value.element, UNKNOWN]))
    return value


def _is_same(module: Module, root: ast.Name | ast.Attribute, node: ast.Name | ast.Attribute) -> bool:
    if isinstance(root, ast.Attribute) or isinstance(node, ast.Attribute):
        return type(root) is type(node)
    return module.symbols.variable(root) is module.symbols.find(node)


def _set_by(module: Module) -> SetBy:
    structure = module.structure
    if structure.set_by is None:
        structure.set_by = found = SetBy()
        for statement in structure.every(ast.Global, ast.Nonlocal):
            for name in statement.names:
                found.declared.setdefault(name, set()).add((type(statement), _scope(module, statement)))
        for node in structure.every(ast.Attribute):
            if isinstance(node.ctx, ast.Store):
                found.stored.add(node.attr)
                scope = _scope(module, node)
                info = module.defined_by(scope)
                if info is not None and not info.constructs:
                    found.attributes.setdefault(node.attr, set()).add(scope)
                root = node.value
                if not isinstance(root, ast.Name) or root.id not in _OWN:
                    around = structure.parents.get(node)
                    given = around.value if isinstance(around, ast.Assign) and node in around.targets else None
                    found.outside.setdefault(node.attr, []).append(given)
                if scope is not None and isinstance(root, ast.Name):
                    if module.symbols.variable(root).scope.node not in (scope, module.symbols.module.node):
                        found.captured.add(node.attr)
        for call in structure.every(ast.Call):
            if last_name(call) not in ("setattr", "__setattr__") or len(call.args) not in (2, 3):
                continue
            *owner, named, given = call.args
            if not owner and isinstance(call.func, ast.Attribute):
                # `super().__setattr__(name, value)`
                owner = [call.func.value]
            found.stored.add(name_in(named))
            is_own = any(path_of(each) in _OWN or last_name(each) == "super" for each in owner)
            if not is_own or not _constructs(module, call):
                found.outside.setdefault(name_in(named), []).append(given)
        for part in structure.every(ast.Subscript, ast.Attribute):
            if not isinstance(part.ctx, ast.Load) or (isinstance(part, ast.Attribute) and part.attr in CHANGES):
                root = part.value
                while isinstance(root, ast.Subscript):
                    root = root.value
                if last_name(root) in ("__dict__", "vars") and not _constructs(module, part):
                    found.outside.setdefault("*", []).append(None)
                if isinstance(root, (ast.Name, ast.Attribute)):
                    name = root.id if isinstance(root, ast.Name) else root.attr
                    found.written.setdefault(name, []).append((root, _scope(module, part)))
                if isinstance(root, ast.Name):
                    home = module.symbols.variable(root).scope.node
                    if isinstance(home, FUNCTIONS) and root.id in parameters(home):
                        found.writers.add(home)
    return structure.set_by


def _constructs(module: Module, node: ast.AST) -> bool:
    """True for code of a constructor or of `__setattr__`, which each assignment to an attribute calls."""
    info = module.defined_by(_scope(module, node))
    return info is not None and (info.constructs or info.name == "__setattr__")


_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


def _around(module: Module, node: ast.AST) -> Iterator[_Scope]:
    """The functions and classes around a node, innermost first."""
    return (outer for outer in module.symbols.ancestors(node) if isinstance(outer, _SCOPES))


def _scope(module: Module, node: ast.AST) -> _Scope | None:
    return next(_around(module, node), None)
