"""Parameter names in order, with defaults."""

from __future__ import annotations

import ast
import inspect

import torch

from torch_api import modules, signature_overrides, stubs

_PLAIN = (bool, int, float, str, type(None))


def lines() -> list[str]:
    """The TOML lines: one literal string, one callable a line."""
    found: dict[str, str] = {}
    for name, cls in {**modules.classes(), **modules.others()}.items():
        found[name] = of_callable(name, cls)
    for namespace, names in signature_overrides.FUNCTIONS.items():
        for name in names.split():
            found[f"{namespace}.{name}"] = _function(namespace, name)
    found |= signature_overrides.TEXT
    body = [f"{name} {text}".rstrip() for name, text in sorted(found.items())]
    return ["", "callables = '''", *body, "'''"]


def of_callable(name: str, member: object) -> str:
    """`a b c=1 *args` of a class or Python function."""
    try:
        signature = inspect.signature(member)  # type: ignore[arg-type]
    except ValueError:
        return signature_overrides.UNREADABLE[name]
    return " ".join(filter(None, (_parameter(item) for item in signature.parameters.values())))


def _parameter(parameter: inspect.Parameter) -> str:
    if parameter.name in ("self",):
        return ""
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    if parameter.kind is parameter.VAR_KEYWORD:
        return f"**{parameter.name}"
    star = "" if parameter.kind is not parameter.KEYWORD_ONLY else "!"
    if parameter.default is parameter.empty:
        return f"{star}{parameter.name}"
    return f"{star}{parameter.name}={_default(parameter.default)}"


def _default(value: object) -> str:
    if isinstance(value, _PLAIN) or isinstance(value, (tuple, list)) and all(isinstance(item, _PLAIN) for item in value):
        text = repr(value).replace(" ", "")
        return text if "\n" not in text else "..."
    return "..."


def _function(namespace: str, name: str) -> str:
    overloads = stubs.overloads(namespace).get(name)
    holder = {"torch": torch, "torch.Tensor": torch.Tensor, "torch.nn.functional": torch.nn.functional}[namespace]
    member = getattr(holder, name)
    try:
        return of_callable(f"{namespace}.{name}", member)
    except KeyError:
        pass
    found = max((item.parameters for item in overloads), key=len) if overloads else _documented(member)
    return " ".join(name if default is None else f"{name}={_source(default)}" for name, default in found)


def _documented(member: object) -> tuple[tuple[str, str | None], ...]:
    """The parameters that the head of a docstring gives."""
    line = " ".join((inspect.getdoc(member) or "").partition("->")[0].partition(":\n")[0].split())
    tree = ast.parse(f"def {line}: ...").body[0]
    assert isinstance(tree, ast.FunctionDef), line
    return stubs.parameters(tree.args)


def _source(default: str) -> str:
    return "".join(default.split())
