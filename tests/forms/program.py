"""Programs whose expressions carry marks, so that findings are known again after the program was written anew."""

from __future__ import annotations

import ast
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.engine.profiles import shows
from perflint.findings import Finding
from perflint.rules.base import Rule
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.rules.harness import NEWEST, with_replacing

Node = TypeVar("Node", bound=ast.AST)
FOLDER = Path("/forms")
MAIN = "example"
"""The name of the module that is written anew; forms may add modules."""
SETTINGS = Settings(profile=Profile.AUDIT, torch_version=NEWEST)


@dataclass(slots=True)
class Program:
    """The trees of some modules by name. Forms change them in place."""

    modules: dict[str, ast.Module]

    @property
    def main(self) -> ast.Module:
        """The module of the example."""
        return self.modules[MAIN]

    def texts(self) -> dict[str, str]:
        """The source of each module."""
        return {name: ast.unparse(ast.fix_missing_locations(tree)) + "\n" for name, tree in self.modules.items()}


Form = Callable[[Program], None]
"""Writes a program in another way. A program that cannot be written so stays as it is."""


def marks(node: ast.AST) -> set[int]:
    """The marks of a node, to be changed."""
    found: set[int] = node.__dict__.setdefault("marks", set())
    return found


def marked_like(new: Node, old: ast.AST) -> Node:
    """A node that stands for another one: findings may be at either."""
    marks(new).update(marks(old))
    return new


@dataclass(frozen=True, slots=True)
class Found:
    """A finding as far as forms keep it."""

    code: str
    module: str
    line: int
    by_default: bool

    def __str__(self) -> str:
        return f"{self.code} at {self.module}.py:{self.line} {'by default' if self.by_default else 'in audit'}"


@dataclass(frozen=True, slots=True)
class Difference:
    """The findings that a form loses, and those that it adds."""

    lost: tuple[Found, ...] = ()
    new: tuple[Found, ...] = ()

    @property
    def held(self) -> bool:
        """True if all findings are the same."""
        return not self.lost and not self.new


@dataclass(frozen=True, slots=True)
class Example:
    """A program with its findings, each of which has a mark at its node."""

    tree: ast.Module
    rule: type[Rule]
    findings: tuple[Found, ...]
    text: str = field(repr=False)

    @staticmethod
    def of(text: str, rule: type[Rule]) -> Example:
        """An example as `ast` writes it: each statement on a line, without comments."""
        text = Program({MAIN: ast.parse(text)}).texts()[MAIN]
        found = lint({MAIN: text}, rule)
        source = Source("example.py", text)
        for number, (_, finding) in enumerate(found):
            marks(_node(source, finding)).add(number)
        return Example(source.tree, rule, tuple(_found(*each) for each in found), text)

    def written(self, form: Form) -> Program | None:
        """The example in a form, or None if it cannot be written so."""
        program = Program({MAIN: deepcopy(self.tree)})
        form(program)
        return None if program.texts() == {MAIN: self.text} else program

    def difference(self, program: Program) -> Difference:
        """The findings of the example that another form of it does not have, and the other way round."""
        texts = program.texts()
        where = places(program)
        left = [_found(*each) for each in lint(texts, self.rule)]
        lost = []
        # A mark that may be at several places leaves a place that another one needs.
        for number, old in sorted(enumerate(self.findings), key=lambda each: len(where.get(each[0], ()))):
            same = [
                new
                for new in left
                if (new.module, new.line) in where.get(number, ())
                and (new.code, new.by_default) == (old.code, old.by_default)
            ]
            if same:
                left.remove(same[0])
            else:
                lost.append(old)
        return Difference(tuple(lost), tuple(left))


def lint(texts: dict[str, str], rule: type[Rule]) -> list[tuple[str, Finding]]:
    """The findings of a rule in each of the modules of a program, in audit."""
    paths = {FOLDER / f"{name}.py": name for name in texts}
    project = Project(paths)
    if len(texts) > 1:
        project = project.overlay({path: texts[name] for path, name in paths.items()})
    found = []
    for path, name in paths.items():
        report = check_source(Source(str(path), texts[name]), project, with_replacing({rule.code}), SETTINGS)
        assert not report.problems, f"{report.problems[0].message}\n{texts[name]}"
        found += [(name, finding) for finding in report.findings if finding.code == rule.code]
    return found


def _found(module: str, finding: Finding) -> Found:
    return Found(finding.code, module, finding.span.line, shows(Profile.DEFAULT, finding))


def _node(source: Source, finding: Finding) -> ast.AST:
    """The node of a finding: the one at its span, else the largest one that begins there, else the smallest around."""
    spans = [(source.span(node), node) for node in ast.walk(source.tree) if isinstance(node, (ast.expr, ast.stmt))]
    wanted = finding.span
    exact = [node for span, node in spans if span == wanted]
    if exact:
        return exact[-1]
    starts = [node for span, node in spans if (span.line, span.column) == (wanted.line, wanted.column)]
    if starts:
        return starts[0]
    return [node for span, node in spans if span.line <= wanted.line <= span.end_line][-1]


def places(program: Program) -> dict[int, set[tuple[str, int]]]:
    """The module and line of the nodes with each mark, in the texts that a program is written as."""
    found: dict[int, set[tuple[str, int]]] = {}
    texts = program.texts()
    for name, tree in program.modules.items():
        for old, new in zip(ast.walk(tree), ast.walk(ast.parse(texts[name])), strict=True):
            assert type(old) is type(new), f"{ast.dump(old)} is written as {ast.dump(new)}"
            for number in old.__dict__.get("marks", ()):
                found.setdefault(number, set()).add((name, new.lineno))  # type: ignore[attr-defined]
    return found
