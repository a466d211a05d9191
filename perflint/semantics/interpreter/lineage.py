"""Classes of the project by their bases: modules, tensors, enumerations. Nothing here needs a call to be followed."""

from __future__ import annotations

import ast
import sys
from functools import partial

from perflint.semantics.facts import conventions, libraries, torch_api
from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.interpreter.memory import ClassFacts
from perflint.semantics.interpreter.resolve import class_at
from perflint.semantics.structure import ClassInfo, FunctionInfo
from perflint.semantics.values import Class, Name

_MOST_BASES = 64
"""Bases of a class beyond which the rest is left out."""


def facts_of(frame: Frame, name: str) -> ClassFacts | None:
    """A class of the project."""
    return frame.view.memory.classes.get(name)


def lineage(frame: Frame, name: str) -> tuple[str, ...]:
    """Full names of a class and its bases, nearest first, including bases outside the project."""
    memory = frame.view.memory
    known = memory.lineages.get(name)
    if known is not None:
        return known
    if facts_of(frame, name) is None:
        return (name, *libraries.bases(name))
    for cls in _bases_first(frame, name):
        known = memory.remembered(memory.lineages, cls, partial(_merged, frame, cls), (cls,))
    return known or (name,)


def _merged(frame: Frame, name: str) -> tuple[str, ...]:
    """The lineage of a class, from those of its bases."""
    every = [name, *(cls for base in _bases(frame, name) for cls in lineage(frame, base))]
    # A base that several others share comes after all of them.
    found = tuple(dict.fromkeys(reversed(every)))[::-1][:_MOST_BASES]
    by_use = "torch.nn.Module" not in found and _is_used_as_module(frame, found)
    return (*found, "torch.nn.Module") if by_use else found


def _bases_first(frame: Frame, name: str) -> list[str]:
    """A class and those of its bases whose lineage is not known, each after its own bases.

    Without recursion: a chain of bases may be longer than the stack.
    """
    memory = frame.view.memory
    found: list[str] = []
    stack, entered = [name], {name}
    while stack:
        cls = stack[-1]
        waiting = [] if (id(memory.lineages), cls) in memory.open else [
            base for base in _bases(frame, cls)
            if base not in entered and base not in memory.lineages and facts_of(frame, base) is not None
            and (id(memory.lineages), base) not in memory.passing
        ]  # fmt: skip
        entered.update(waiting)
        stack.extend(reversed(waiting))
        if not waiting:
            found.append(stack.pop())
    return found


def _is_used_as_module(frame: Frame, names: tuple[str, ...]) -> bool:
    """True if a class, or a base of it, uses methods that only modules have, and an unknown base may be a module."""
    known = [info for info in (info_of(frame, name) for name in names) if info is not None]
    methods = [method for info in known for method in info.methods.values()]
    if any(not method.calls.isdisjoint(_OF_MODULES) for method in methods):
        return not any(info.methods.keys() & _OF_MODULES for info in known)
    if not any(facts_of(frame, name) is None and _may_be_module(name) for name in names):
        return False
    constructors = [info.methods["__init__"] for info in known if "__init__" in info.methods]
    runs = any("forward" in info.methods and not is_static(info.methods["forward"]) for info in known)
    return runs and any("__init__" in constructor.asks for constructor in constructors)


_OF_MODULES = frozenset({"register_buffer", "register_parameter"})


def is_static(method: FunctionInfo) -> bool:
    """True if a method gets no object as its first argument."""
    return not decorator_names(method.node).isdisjoint({"staticmethod", "classmethod"})


def _may_be_module(name: str) -> bool:
    """True if an unknown class outside the project may be a module of a library on torch."""
    top = name.partition(".")[0]
    return "." in name and top not in sys.stdlib_module_names and not _is_known(top) and not libraries.bases(name)


def _is_known(package: str) -> bool:
    """True for a package whose classes are known, or are not modules of torch."""
    known = package in ("builtins", "torch", "numpy")
    return known or bool(conventions.is_other_framework(package) or conventions.has_environments(package))


def info_of(frame: Frame, name: str) -> ClassInfo | None:
    """The syntax of a class of the project; None for other classes."""
    facts = facts_of(frame, name)
    module = frame.view.loaded(facts.module) if facts is not None else None
    return module.klass(facts.qualname) if module is not None and facts is not None else None


def _bases(frame: Frame, name: str) -> tuple[str, ...]:
    """The full names of the direct bases of a class of the project."""
    bases = frame.view.memory.bases
    known = bases.get(name)
    return known if known is not None else frame.view.memory.remembered(bases, name, partial(_named, frame, name), ())


def _named(frame: Frame, name: str) -> tuple[str, ...]:
    facts, info = facts_of(frame, name), info_of(frame, name)
    module = None if facts is None else frame.view.loaded(facts.module)
    if module is None or info is None:
        return ()
    inner = Frame(frame.view, module, frame.budget, names={})
    plain = (base.value if isinstance(base, ast.Subscript) else base for base in info.node.bases)
    values = map(inner.evaluate, plain)
    return tuple([value.name for value in values if isinstance(value, (Class, Name))])


def is_closed(frame: Frame, name: str) -> bool:
    """True for a class whose bases are of the project, or give objects no attributes of names that it chooses."""
    for cls in lineage(frame, name):
        info = info_of(frame, cls)
        if info is None and cls.partition(".")[0] not in _CLOSED:
            return False
        if info is not None and len(info.node.bases) != len(_bases(frame, cls)):
            return False
    return True


_CLOSED = frozenset({"abc", "builtins", "torch", "typing"})


def is_module(frame: Frame, name: str) -> bool:
    """True if a class is a torch.nn.Module."""
    modules = frame.view.memory.modules
    known = modules.get(name)
    if known is None:
        known = frame.view.memory.remembered(modules, name, partial(_derives_from_module, frame, name), False)
    return known


def _derives_from_module(frame: Frame, name: str) -> bool:
    return any(torch_api.is_module(base) or base == "torch.nn.Module" for base in lineage(frame, name))


def is_module_part(frame: Frame, name: str) -> bool:
    """True if a class is a module, or a base of a module class of the same file."""
    parts = frame.view.memory.module_parts
    return frame.view.memory.remembered(parts, name, partial(_is_part, frame, name), False)


def _is_part(frame: Frame, name: str) -> bool:
    facts = facts_of(frame, name)
    module = None if facts is None else frame.view.loaded(facts.module)
    others = () if module is None else (f"{module.name}.{other}" for other in module.structure.classes)
    return is_module(frame, name) or any(name in lineage(frame, other) and is_module(frame, other) for other in others)


def is_tensor_class(frame: Frame, name: str) -> bool:
    """True if a class is a torch.Tensor."""
    return "torch.Tensor" in lineage(frame, name) or "torch.nn.Parameter" in lineage(frame, name)


def is_property(frame: Frame, cls: str, name: str) -> bool:
    """True if an attribute is a property of a class of the project."""
    for base in lineage(frame, cls):
        info = info_of(frame, base)
        method = info.methods.get(name) if info is not None else None
        if method is not None:
            return "property" in decorator_names(method.node)
    return False


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


def derived(frame: Frame, name: str) -> tuple[str, ...]:
    """The subclasses of a class in its own file, by full name."""
    facts, memory = facts_of(frame, name), frame.view.memory
    if facts is None:
        return ()
    return memory.remembered(memory.derived, facts.module, partial(_all_derived, frame, facts.module), {}).get(name, ())


def _all_derived(frame: Frame, name: str) -> dict[str, tuple[str, ...]]:
    """The subclasses in a module of each of its classes."""
    found: dict[str, tuple[str, ...]] = {}
    module = frame.view.loaded(name)
    for info in () if module is None else module.structure.classes.values():
        if module is not None and info.node.bases:
            full = class_at(frame.view, module, info.node).name
            for base in lineage(frame, full)[1:]:
                if base.startswith(f"{module.name}."):
                    found[base] = (*found.get(base, ()), full)[:_MOST_DERIVED]
    return found


_MOST_DERIVED = 16
"""Subclasses in one file that are asked for an attribute that their base lacks."""


_ENUMERATIONS = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag"})


def is_enumeration(frame: Frame, name: str) -> bool:
    """True if a class of the project is an enumeration."""
    return not _ENUMERATIONS.isdisjoint(lineage(frame, name))
