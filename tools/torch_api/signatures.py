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
    for name, cls in {**modules.classes(), **modules.distributions(), **modules.others()}.items():
        found[name] = "" if _takes_nothing(cls) else of_callable(name, cls)
    for namespace, names in signature_overrides.FUNCTIONS.items():
        for name in names.split():
            found[f"{namespace}.{name}"] = _function(namespace, name)
    for name in filter(_public, dir(torch.nn.init)):
        found[f"torch.nn.init.{name}"] = of_callable(name, getattr(torch.nn.init, name))
    found |= signature_overrides.TEXT
    body = [f"{name} {text}".rstrip() for name, text in sorted(found.items())]
    return ["", "callables = '''", *body, "'''"]


def _takes_nothing(member: object) -> bool:
    """True if it is a module without a constructor of its own."""
    own = isinstance(member, type) and issubclass(member, torch.nn.Module)
    return own and member.__init__ is torch.nn.Module.__init__  # type: ignore[misc]


def _public(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


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
    if parameter.default is parameter.empty:
        return parameter.name
    return f"{parameter.name}={_default(parameter.default)}"


def _default(value: object) -> str:
    items = value if isinstance(value, (tuple, list)) else (value,)
    if all(isinstance(item, _PLAIN) for item in items):
        text = repr(value).replace(" ", "")
        return text if "\n" not in text else "..."
    return "..."


def _function(namespace: str, name: str) -> str:
    overloads = stubs.overloads(namespace).get(name)
    holder = {"torch": torch, "torch.Tensor": torch.Tensor, "torch.nn.functional": torch.nn.functional}[namespace]
    member = getattr(holder, name)
    try:
        text = of_callable(f"{namespace}.{name}", member)
    except KeyError:
        text = ""
    if text and not text.startswith("*args"):
        return text
    return " ".join(_merged(overloads) if overloads else _worded(_documented(member)))


def _worded(found: stubs.Parameters) -> list[str]:
    return [name if default is None else f"{name}={_source(default)}" for name, default in found]


def _merged(overloads: list[stubs.Overload]) -> list[str]:
    """The longest positional list, then all that go by keyword alone; what one overload lacks is optional."""
    group = [item for item in overloads if "names" not in dict(item.keywords)] or overloads
    longest = max((item.positional for item in group), key=len)
    keywords = {name: default for item in group for name, default in item.keywords}
    merged = [*longest, *((name, default) for name, default in keywords.items() if name not in dict(longest))]
    optional = {name for name, _ in merged if any(name not in dict(item.positional + item.keywords) for item in group)}
    renamed = {name for name, _ in longest if all(len(item.positional) >= len(longest) for item in group)}
    return _worded(
        tuple((name, default or ("None" if name in optional - renamed else None)) for name, default in merged)
    )


def _documented(member: object) -> stubs.Parameters:
    """The parameters that the head of a docstring gives."""
    line = " ".join((inspect.getdoc(member) or "").partition("->")[0].partition(":\n")[0].split())
    tree = ast.parse(f"def {line}: ...").body[0]
    assert isinstance(tree, ast.FunctionDef), line
    positional, keywords = stubs.parameters(tree.args)
    return positional + keywords


def _source(default: str) -> str:
    return "".join(default.split())
