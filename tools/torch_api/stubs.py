"""torch's own stub files, read as overloads."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

Parameters = tuple[tuple[str, str | None], ...]
"""Names with defaults as source text, None where required."""

ROOT = Path(torch.__file__).parent


@dataclass(frozen=True)
class Overload:
    """One signature of a function: its parameters, its result's annotation, whether it is an attribute."""

    positional: Parameters
    keywords: Parameters
    result: str
    attribute: bool = False


@cache
def overloads(namespace: str) -> dict[str, list[Overload]]:
    """The overloads that torch's stubs give for a namespace."""
    if namespace == "torch":
        return _read(_body("_C/_VariableFunctions.pyi"))
    if namespace == "torch.Tensor":
        return _read(_class(_body("_C/__init__.pyi"), "TensorBase")) | _own_methods()
    if namespace == "torch.nn.functional":
        return _read(_body("nn/functional.pyi"))
    return {}


def _own_methods() -> dict[str, list[Overload]]:
    """Methods that `torch/_tensor.py` defines with an annotated result."""
    found = _read(_class(_body("_tensor.py"), "Tensor"))
    return {name: group for name, group in found.items() if all(item.result for item in group)}


def _body(path: str) -> list[ast.stmt]:
    return ast.parse((ROOT / path).read_text()).body


def _class(body: list[ast.stmt], name: str) -> list[ast.stmt]:
    return next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == name)


def _read(body: list[ast.stmt]) -> dict[str, list[Overload]]:
    found: dict[str, list[Overload]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            attribute = any(isinstance(item, ast.Name) and item.id == "property" for item in node.decorator_list)
            result = ast.unparse(node.returns) if node.returns else ""
            found.setdefault(node.name, []).append(Overload(*parameters(node.args), result, attribute))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).append(Overload((), (), ast.unparse(node.annotation), True))
    return found


def parameters(arguments: ast.arguments) -> tuple[Parameters, Parameters]:
    """Those that go by position, and those that go by keyword alone; without `self`."""
    names = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(names) - len(arguments.defaults)) + [ast.unparse(item) for item in arguments.defaults]
    positional = [(name.arg, default) for name, default in zip(names, defaults, strict=True)]
    if arguments.vararg:
        positional.append(("*" + arguments.vararg.arg, None))
    keywords = tuple(
        (name.arg, ast.unparse(default) if default else None)
        for name, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    )
    return tuple(item for item in positional if item[0] != "self"), keywords
