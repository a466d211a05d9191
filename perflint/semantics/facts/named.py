"""Values by the conventions for names and docstrings: devices, loaders, tensors on the CPU."""

from __future__ import annotations

import ast
import re

from perflint.semantics.facts import conventions
from perflint.semantics.facts.concepts import Entry
from perflint.semantics.lattice import union
from perflint.semantics.structure import FunctionInfo
from perflint.semantics.values import (
    BOOL,
    UNKNOWN,
    Device,
    DeviceValue,
    Evidence,
    Instance,
    Mapping,
    Sequence,
    Tensor,
    Union,
    Unknown,
    Value,
)

LOADER = Instance("torch.utils.data.DataLoader")
_LOADERS = union([Sequence("list", LOADER), Mapping(LOADER)])


def by_name(name: str, value: Unknown = UNKNOWN) -> Value:
    """The value of a variable, an attribute or an item of which only the name is known."""
    if conventions.is_device(name):
        return DeviceValue(Device.CALLER)
    if conventions.is_loader(name):
        return LOADER
    if conventions.holds_loaders(name):
        return _LOADERS
    is_near_gpu = value.near not in (Device.UNKNOWN, Device.CPU)
    return UNKNOWN if is_near_gpu and conventions.is_on_cpu(name) else value


def entry_behind(name: str, value: Value) -> Entry | None:
    """The convention by which a variable or attribute may have a value, or None if its name does not say so."""
    if isinstance(value, DeviceValue):
        return conventions.is_device(name) if value.device is Device.CALLER else None
    if isinstance(value, Tensor):
        by_convention = value.device is Device.CPU and value.evidence is Evidence.CONVENTION
        return conventions.is_on_cpu(name) if by_convention else None
    if value == LOADER:
        return conventions.is_loader(name)
    return conventions.holds_loaders(name) if value == _LOADERS else None


def maker_behind(name: str, value: Value) -> Entry | None:
    """The convention by which the result of an unknown function may be a value, or None."""
    if isinstance(value, DeviceValue):
        return conventions.gives_device(name) if value.device is Device.CALLER else None
    return conventions.gives_loader(name) if value == LOADER else None


def made_by(name: str, value: Unknown) -> Value:
    """The result of a function of which only the name is known."""
    if conventions.gives_device(name):
        return DeviceValue(Device.CALLER)
    return LOADER if conventions.gives_loader(name) else value


def placed(name: str, value: Value) -> Value:
    """The value of a variable or attribute: on the CPU if its name says so and nothing else is known."""
    return on_cpu(value) if conventions.is_on_cpu(name) else value


def on_cpu(value: Value) -> Value:
    """A value whose tensors of unknown places are held to be on the CPU, by convention."""
    if isinstance(value, Tensor):
        if value.device not in (Device.CALLER, Device.UNKNOWN):
            return value
        return value.with_(device=Device.CPU, place="", evidence=min(value.evidence, Evidence.CONVENTION))
    if isinstance(value, Sequence):
        items = None if value.items is None else tuple(map(on_cpu, value.items))
        return Sequence(value.type, on_cpu(value.element), items)
    if isinstance(value, Mapping):
        return Mapping(on_cpu(value.element), tuple([(key, on_cpu(held)) for key, held in value.items]))
    return union(map(on_cpu, value.members)) if isinstance(value, Union) else value


def entry(mapping: Mapping, key: str) -> Value:
    """The value of a key of a dict: a flag by its name, if nothing but a dict of tensors says that it is a tensor."""
    value = mapping.get(key)
    if value.tensor is None or any(name == key for name, _ in mapping.items):
        return value
    return BOOL if conventions.is_flag(key) else value


# Docstrings


def parameter_placed(info: FunctionInfo, name: str, value: Value) -> Value:
    """The value of a parameter: on the CPU if its name, its function's name or the docstring says so."""
    if info.on_cpu is None:
        info.on_cpu = _on_cpu(info)
    return on_cpu(value) if name in info.on_cpu else placed(name, value)


def _on_cpu(info: FunctionInfo) -> frozenset[str]:
    """The parameters that a function's name or docstring puts on the CPU."""
    node = info.node
    names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    if conventions.works_on_cpu(info.name):
        return frozenset(names)
    text = "" if isinstance(node, ast.Lambda) else ast.get_docstring(node, clean=True) or ""
    if "cpu" not in text.lower() and "host" not in text.lower():
        return frozenset()
    if _says_cpu(text.partition("\n\n")[0]):
        return frozenset(names)
    described = _described(text, frozenset(names))
    return frozenset(name for name, words in described.items() if _says_cpu(words))


def _described(text: str, names: frozenset[str]) -> dict[str, str]:
    """The words that a docstring has for each parameter: its line, and the lines below that are indented more."""
    found: dict[str, str] = {}
    current, depth = "", 0
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        head = _PARAMETER.match(line)
        if head is not None and head.group(1) in names:
            current, depth = head.group(1), indent
            found[current] = line
        elif current and line.strip() and indent > depth:
            found[current] += f" {line.strip()}"
        elif line.strip():
            current = ""
    return found


_PARAMETER = re.compile(r"\s*(?::param\s+(?:[\w.]+\s+)?|\*{1,2}|[-*]\s+)?`{0,2}(\w+)`{0,2}\s*[:(]")


def _says_cpu(words: str) -> bool:
    words = words.lower()
    return _ON_CPU.search(words) is not None and _ELSEWHERE_TOO.search(words) is None


_ON_CPU = re.compile(r"\b(?:on|in) (?:the )?(?:cpu|host)(?: memory)?\b|\b(?:cpu|host)[- ](?:side )?tensors?\b")
_ELSEWHERE_TOO = re.compile(
    r"gpu|cuda|device|\bif\b|whether|when|\bmov|\bcop[iy]|offload|transfer|load|save|\b(?:or|not|to|than|even|both)\b"
)
