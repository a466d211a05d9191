"""Other ways to write the same code: other names for imports, calls over several lines, walruses."""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

import libcst as cst

from perflint.findings import Span
from perflint.fixes.rewrite import Offsets
from perflint.source.text import Source

SHORT = {"torch": "th", "nn": "N", "F": "FF", "np": "numpy_", "numpy": "numpy_"}


def with_aliases(text: str) -> str:
    """A text that has other names for all that it imports: `import torch as th`, `from torch import nn as N`."""
    tree = ast.parse(text)
    taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | set(dir(builtins))
    names = {name: _other(name, taken) for name in sorted(_imported(tree) - _rebound(tree))}
    return cst.parse_module(text).visit(_Renamed(names)).code


def _other(name: str, taken: set[str]) -> str:
    new = SHORT.get(name, f"{name}_")
    while new in taken:
        new += "_"
    return new


def _imported(tree: ast.AST) -> set[str]:
    """The names that imports bind, apart from those that stand for a package by one of its modules."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            found.update(alias.asname or alias.name for alias in node.names if alias.name != "*")
        elif isinstance(node, ast.Import):
            found.update(alias.asname or alias.name for alias in node.names if alias.asname or "." not in alias.name)
    return found


def _rebound(tree: ast.AST) -> set[str]:
    """The names that something else binds, and those that strings speak of."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            found.update(node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            found.add(node.value)
    return found


class _Renamed(cst.CSTTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        super().__init__()
        self._names = names

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return updated_node.with_changes(value=self._names.get(original_node.value, original_node.value))

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        if isinstance(updated_node.names, cst.ImportStar):
            return updated_node
        return updated_node.with_changes(names=[self._alias(alias) for alias in updated_node.names])

    def leave_Import(self, original_node: cst.Import, updated_node: cst.Import) -> cst.Import:
        return updated_node.with_changes(names=[self._alias(alias) for alias in updated_node.names])

    def _alias(self, alias: cst.ImportAlias) -> cst.ImportAlias:
        local = alias.evaluated_alias or alias.evaluated_name
        if local not in self._names:
            return alias
        return alias.with_changes(asname=cst.AsName(cst.Name(self._names[local])))


def over_lines(text: str) -> str:
    """A text in which each argument of each call is on a line of its own, with a comment behind it."""
    return cst.parse_module(text).visit(_OverLines()).code


class _OverLines(cst.CSTTransformer):
    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def visit_FormattedString(self, node: cst.FormattedString) -> bool:
        return False

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        args = list(updated_node.args)
        if not args or (len(args) == 1 and isinstance(args[0].value, cst.GeneratorExp)):
            return updated_node
        for index, arg in enumerate(args[:-1]):
            args[index] = arg.with_changes(comma=cst.Comma(whitespace_after=self._line()))
        args[-1] = args[-1].with_changes(comma=cst.Comma(whitespace_after=self._line()))
        return updated_node.with_changes(whitespace_before_args=self._line(), args=args)

    def _line(self) -> cst.ParenthesizedWhitespace:
        self._count += 1
        comment = cst.TrailingWhitespace(cst.SimpleWhitespace("  "), cst.Comment(f"# part {self._count}"))
        return cst.ParenthesizedWhitespace(comment, indent=True, last_line=cst.SimpleWhitespace("    "))


def with_walruses(text: str, spans: Iterable[Span]) -> str:
    """A text in which the expressions at some places also get a name, as far as Python allows that."""
    source = Source("example.py", text)
    offsets = Offsets(source)
    number, outer = 0, len(text) + 1
    for start, end in sorted((offsets.range(span) for span in spans), reverse=True):
        changed = f"{text[:start]}(named_{number} := {text[start:end]}){text[end:]}"
        if end <= outer and _is_expression(text[start:end]) and _compiles(changed):
            text, number, outer = changed, number + 1, start
    return text


def arguments_within(text: str, spans: Iterable[Span]) -> list[Span]:
    """Where the positional arguments are of the calls at some places."""
    source = Source("example.py", text)
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
    wanted = list(spans)
    return [
        source.span(argument)
        for call in calls
        if any(source.span(call).overlaps(span) for span in wanted)
        for argument in call.args
    ]


def with_bare_walruses(text: str, spans: Iterable[Span]) -> str:
    """A text in which the arguments at some places also get a name, without brackets of their own."""
    source = Source("example.py", text)
    offsets = Offsets(source)
    number, outer = 0, len(text) + 1
    for start, end in sorted((offsets.range(span) for span in set(spans)), reverse=True):
        changed = f"{text[:start]}named_{number} := {text[start:end]}{text[end:]}"
        if end <= outer and _compiles(changed):
            text, number, outer = changed, number + 1, start
    return text


def _is_expression(text: str) -> bool:
    try:
        node = ast.parse(f"({text})", mode="eval").body
    except SyntaxError:
        return False
    return isinstance(node, (ast.Call, ast.Attribute, ast.Subscript, ast.Name))


def _compiles(text: str) -> bool:
    try:
        compile(text, "example.py", "exec")
    except SyntaxError:
        return False
    return True


def without_walruses(text: str) -> str:
    """A text without what `with_walruses` added."""
    return cst.parse_module(text).visit(_Unnamed()).code


class _Unnamed(cst.CSTTransformer):
    def leave_NamedExpr(self, original_node: cst.NamedExpr, updated_node: cst.NamedExpr) -> cst.BaseExpression:
        ours = isinstance(original_node.target, cst.Name) and original_node.target.value.startswith("named_")
        return updated_node.value if ours else updated_node


@lru_cache(maxsize=16)
def meaning(text: str) -> str:
    """A text with the full name of all that it imports, and without layout, comments and imports."""
    tree = ast.parse(text)
    rebound = _rebound_by_code(tree)
    names = {local: full for local, full in _bindings(tree) if local not in rebound}
    text = ast.unparse(ast.fix_missing_locations(_Spelled(names).visit(tree)))
    return "\n".join(line for line in text.splitlines() if line != "pass")


def _bindings(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _rebound_by_code(tree: ast.AST) -> set[str]:
    strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return _rebound(tree) - strings


class _Spelled(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Import(self, node: ast.Import) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        full = self._names.get(node.id)
        return node if full is None else ast.copy_location(ast.parse(full, mode="eval").body, node)


def complaints(text: str) -> Counter[str]:
    """What pyflakes says of a text, without places, and without imports and variables that nobody uses."""
    from pyflakes import checker, messages

    quiet = (messages.UnusedImport, messages.UnusedVariable, messages.UnusedAnnotation, messages.RedefinedWhileUnused)
    found = checker.Checker(ast.parse(text)).messages
    return Counter(one.message % one.message_args for one in found if not isinstance(one, quiet))


def comments_for_tests(text: str) -> Counter[str]:
    """The comments of a text that `over_lines` added."""
    return Counter(re.findall(r"# part \d+", text))
