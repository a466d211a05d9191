"""Cases of the interpreter's tests: code with markers, and a short notation for values.

A table is Python text. A blank line before an unindented one ends a block; each block is a file
of its own, after the prelude. A marker ends a line and says what holds there:

    y = x > 0       # -> cuda bool 2            the value that the line computes or binds
    x.max()         # calls torch.Tensor.max    the full name of what the line calls last
    x.sum()         # hot                       how often the line runs

`# -> cuda  # fails: reason` marks what is known to be wrong; the test must fail.

Values: a tensor is its device ("cpu", "cuda", "model", "caller", "meta"; "tensor" when unknown;
"tensor@name" when named), then its kind, rank, leaf and "pinned" as far as they are known.
Scalars are their type ("int", "int=3" with a default) or literal; "device cuda", "dtype int64" ("dtype (int)" when only that is known),
"array float 2" (kind and rank as far as they are known), "[1, int]", "list[cuda]", "{a: 1}", "dict[cpu]", "Conv2d(bias=False)", "class Net",
"def Net.forward", the name of anything outside; "?" cannot tell, "never" cannot be.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.values import (
    Array,
    Class,
    Const,
    Device,
    DeviceValue,
    Dtype,
    Function,
    Instance,
    Kind,
    Mapping,
    Name,
    Never,
    Partial,
    Scalar,
    Sequence,
    Super,
    Tensor,
    TypeForm,
    Union,
    Value,
)
from perflint.source.text import Source

PRELUDE = """\
import torch, numpy as np, math, functools, contextlib, dataclasses, typing
import torch.nn.functional as F
from torch import nn, Tensor
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union
host = torch.rand(2, 3)
cuda = torch.rand(2, 3, device="cuda")
ints = torch.randint(9, (2,), device="cuda")
mask = cuda > 0
"""

# Values


def show(value: Value) -> str:
    """A value in the short notation."""
    for kind, form in _FORMS:
        if isinstance(value, kind):
            return form(value)
    return "?"


def _tensor(value: Tensor) -> str:
    device = "tensor" if value.device is Device.UNKNOWN else value.device.value
    place = "@" + value.place.split(":")[0] if value.place else ""
    kind = "" if value.kind is Kind.UNKNOWN else value.kind.value
    rank = "" if value.rank is None else str(value.rank)
    return " ".join(part for part in (device + place, kind, rank, value.leaf, "pinned" * value.pinned) if part)


def _device(value: DeviceValue) -> str:
    return f"device {'?' if value.device is Device.UNKNOWN else value.device.value}" + (
        "@" + value.place.split(":")[0] if value.place else ""
    )


def _held(value: Dtype) -> str:
    return "" if value.kind is Kind.UNKNOWN else f"({value.kind.value})"


_BRACKETS = {"list": "[]", "tuple": "()", "set": "{}"}


def _sequence(value: Sequence) -> str:
    if value.items is None:
        return f"{value.type}[{show(value.element)}]"
    opening, closing = _BRACKETS.get(value.type, (f"{value.type}(", ")"))
    return opening + ", ".join(map(show, value.items)) + closing


def _mapping(value: Mapping) -> str:
    if not value.items and not isinstance(value.element, Never):
        return f"dict[{show(value.element)}]"
    return "{" + ", ".join(f"{key}: {show(item)}" for key, item in value.items) + "}"


def _instance(value: Instance) -> str:
    name = value.cls.rpartition(".")[2]
    if value.arguments is None:
        return name
    given = [show(item) if key.isdigit() else f"{key}={show(item)}" for key, item in value.arguments]
    return f"{name}({', '.join(given)})"


def _union(value: Union) -> str:
    last = ["None", "?"]
    shown = sorted({show(member) for member in value.members}, key=lambda text: (text in last, text))
    return " | ".join(shown)


def _array(value: Array) -> str:
    kind = "" if value.kind is Kind.UNKNOWN else value.kind.value
    rank = "" if value.rank is None else str(value.rank)
    return " ".join(part for part in ("array", kind, rank) if part)


_FORMS = (
    (Never, lambda value: "never"),
    (Tensor, _tensor),
    (Const, lambda value: repr(value.value)),
    (Scalar, lambda value: value.type if value.default is None else f"{value.type}={value.default.value!r}"),
    (DeviceValue, _device),
    (Dtype, lambda value: f"dtype {value.name or _held(value)}".rstrip()),
    (Sequence, _sequence),
    (Mapping, _mapping),
    (Array, _array),
    (Instance, _instance),
    (Class, lambda value: f"class {value.name.rpartition('.')[2]}"),
    (Function, lambda value: f"def {value.qualname}"),
    (Name, lambda value: value.name),
    (Super, lambda value: f"super of {value.owner.rpartition('.')[2]}"),
    (TypeForm, lambda value: f"type {show(value.promised)}"),
    (Partial, lambda value: f"partial {show(value.function)}"),
    (Union, _union),
)

# Cases

_MARKER = re.compile(
    r"^(?P<code>.*?)\s+#\s*(?P<verb>->|calls|hot|warm|cold)(?P<rest>[^#]*)(?:#\s*fails: (?P<why>.*))?$"
)


@dataclass(frozen=True)
class Case:
    """One marked line of a file of a project."""

    files: tuple[tuple[str, str], ...]
    """Names and texts of the project's files."""
    name: str
    """The file that the line is in."""
    line: int
    verb: str
    expected: str

    def found(self, folder: Path | None = None) -> str:
        """What the model says of the line; the project's files are written where it has several."""
        model = _one(*self.files[0]) if folder is None else _of_project(self.files, self.name, folder)
        if self.verb == "->":
            return ", ".join(show(model.value(node)) for node in _expressions(model, self.line))
        if self.verb == "calls":
            return _target(model, self.line)
        statement = _statement(model, self.line)
        return model.heat(statement.test if isinstance(statement, ast.While) else statement).value


@cache
def _one(name: str, text: str) -> Model:
    return Model(Source(name, text), Project())


def _of_project(files: tuple[tuple[str, str], ...], name: str, folder: Path) -> Model:
    for path, text in files:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    text = dict(files)[name]
    return Model(Source(str(folder / name), text), Project(folder / path for path, _ in files))


def _statement(model: Model, line: int) -> ast.stmt:
    """The innermost statement whose last line, or whose header's last line, this is."""
    found: list[ast.stmt] = []
    for node in model.everything():
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = node.end_lineno if not body else max(node.lineno, body[0].lineno - 1)
            if end is not None and node.lineno <= line <= end:
                found.append(node)
    assert found, f"line {line} holds no statement"
    return found[-1]


def _expressions(model: Model, line: int) -> list[ast.expr]:
    node = _statement(model, line)
    if isinstance(node, (ast.Expr, ast.AnnAssign)):
        return [node.value if isinstance(node, ast.Expr) else node.target]
    if isinstance(node, ast.Return):
        assert node.value is not None
        return [node.value]
    if isinstance(node, ast.Assign):
        return _targets(node.targets[0])
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return _targets(node.target)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return [target for item in node.items if item.optional_vars for target in _targets(item.optional_vars)]
    assert isinstance(node, (ast.If, ast.While, ast.Assert)), f"line {line}: nothing to look at in a {type(node)}"
    return [node.test]


def _targets(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [inner for element in target.elts for inner in _targets(element)]
    return [target.value] if isinstance(target, ast.Starred) else [target]


def _target(model: Model, line: int) -> str:
    """The outermost call of the line, in the last place if there are several."""
    statement = _statement(model, line)
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and node.lineno == line]
    assert calls, f"line {line} holds no call"
    return model.target(calls[0])


def table(text: str, prelude: str = PRELUDE) -> pytest.MarkDecorator:
    """The marked lines of a table as a test's parameter `case`."""
    blocks = re.split(r"\n\n+(?=\S)", text.strip("\n"))
    return _parametrized([case for block in blocks for case in _cases((("snippet.py", f"{prelude}{block}\n"),))])


def projects(*texts: str) -> pytest.MarkDecorator:
    """The marked lines of projects as a test's parameter `case`; `# file: path` begins each file."""
    found: list[object] = []
    for text in texts:
        parts = re.split(r"^# file: (\S+)\n", text.lstrip("\n"), flags=re.MULTILINE)
        found += _cases(tuple(zip(parts[1::2], parts[2::2], strict=True)))
    return _parametrized(found)


def _parametrized(cases: list[object]) -> pytest.MarkDecorator:
    assert cases
    return pytest.mark.parametrize("case", cases)


def _cases(files: tuple[tuple[str, str], ...]) -> Iterator[object]:
    """Parameters with the code as their name."""
    plain = tuple((name, _without_markers(text)) for name, text in files)
    for name, text in files:
        for number, line in enumerate(text.splitlines(), start=1):
            match = _MARKER.match(line)
            if match is None:
                assert not re.search(r"#\s*(->|calls|hot|warm|cold)\b", line), f"not a marker: {line}"
                continue
            verb, rest = match["verb"], match["rest"].strip()
            case = Case(plain, name, number, verb, rest if verb in ("->", "calls") else verb)
            fails = [pytest.mark.xfail(strict=True, reason=match["why"])] if match["why"] else []
            shown = match["code"].strip()[:70] if len(files) == 1 else f"{name}: {match['code'].strip()[:60]}"
            yield pytest.param(case, marks=fails, id=shown.encode("ascii", "replace").decode())


def _without_markers(text: str) -> str:
    lines = []
    for line in text.splitlines():
        match = _MARKER.match(line)
        lines.append(match["code"] if match else line)
    return "\n".join(lines) + "\n"


def check(case: Case, folder: Path | None = None) -> None:
    """Compare what the model says with what is expected."""
    found = case.found(folder)
    assert found == case.expected, f"{case.name}:{case.line}"
