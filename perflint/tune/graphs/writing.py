"""Writes a region as a function of its own, wrapped in the helper that replays it."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from perflint.findings import Edit, Span
from perflint.fixes.edits import indentation, insert, one_level
from perflint.fixes.imports import import_edits
from perflint.frozen import dataclass
from perflint.semantics.structure import path_of
from perflint.source.text import Source
from perflint.tune.edited import edited
from perflint.tune.graphs.names import Names, free
from perflint.tune.graphs.parts import Function, Moved, Region
from perflint.tune.graphs.reached import first_line
from perflint.tune.refused import Refused


@dataclass(frozen=True, slots=True)
class Helper:
    """A class that the patch writes into the program, and the names of what is made with it."""

    name: str
    file: str
    function: str
    graphed: str


STEP = Helper("GraphedStep", "helper.py", "training_step", "graphed_step")
BACKWARD = Helper("GraphedBackward", "backward_helper.py", "forward_backward", "graphed_backward")
HELPERS = (STEP, BACKWARD)
_UNIT = "    "
_WIDTH = 110

_GIVEN, _COPIED = "x.grad = new if old is None", "x.grad = new.clone() if old is None and new is not None"
"""The gradients of a replay, and copies of them for code that holds them longer than a step."""
_WAITING = "x.is_cuda or not x.is_pinned()"
"""The condition in the helpers under which a copy of an input need not end before the call does."""


class Writer:
    """Writes one region of a file."""

    def __init__(
        self,
        source: Source,
        region: Region,
        names: Names,
        holders: Sequence[ast.expr],
        helper: Helper,
        once: Collection[str] = (),
        keeps_gradients: bool = False,
    ) -> None:
        """`holders` are what the helper gets besides the function: optimizers or models.

        `once` are methods that only constructors call. `keeps_gradients` is true if code may hold gradients.
        """
        self._once = once
        self._keeps_gradients = keeps_gradients
        self._source = source
        self._helper_class = helper
        self._region = region
        self._names = names
        self._holders = list(dict.fromkeys(map(path_of, holders)))
        self._known = {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)}
        self._known |= {node.arg for node in ast.walk(source.tree) if isinstance(node, ast.arg)}
        self._known |= {node.attr for node in ast.walk(source.tree) if isinstance(node, ast.Attribute)}
        self._known |= {getattr(node, "name", "") for node in ast.walk(source.tree)}
        self._function = free(helper.function, self._known)
        self._graphed = free(helper.graphed, self._known)
        self._lifts: dict[ast.expr, str] = {}
        for moved in region.behind:
            for part in moved.lifted:
                name = free(_name_for(moved.statement), self._known)
                self._known.add(name)
                self._lifts[part] = name

    def text(self) -> str:
        """The new text of the file. Raises Refused."""
        self._require_own_lines()
        first, last = self._region.whole[0], self._region.whole[-1]
        whole = Span(first.lineno, 1, _end(last) + 1, 1)
        edits = [Edit(whole, self._call()), *self._helper(), *self._definition()]
        text = edited(self._source, edits)
        if all(line.endswith("\r\n") for line in self._source.lines[:-1]):
            text = re.sub(r"\r?\n", "\r\n", text)
        ast.parse(text)
        return text

    def _require_own_lines(self) -> None:
        lines: set[int] = set()
        for each in _statements(self._region.whole):
            head = range(each.lineno, (each.body[0].lineno if hasattr(each, "body") else _end(each) + 1))
            before = self._source.lines[each.lineno - 1][: self._source.span(each).column - 1]
            if before.strip() or lines & set(head):
                raise Refused("two statements share a line", each)
            lines |= set(head)
            texts = [node for node in ast.walk(each) if isinstance(node, (ast.Constant, ast.JoinedStr))]
            long = [self._source.written(node) for node in texts if node.lineno != node.end_lineno]
            # Parts side by side may have other margins.
            if any(quote in text for text in long for quote in ('"""', "'''")):
                raise Refused("a text of several lines stands in the step", each)

    def _call(self) -> str:
        """The lines that take the place of the region."""
        margin = indentation(self._source, self._region.whole[0].lineno)
        before = [self._moved(each, margin) for each in self._region.before]
        behind = [self._moved(each, margin) for each in self._region.behind]
        results = [*self._names.returned, *self._lifts.values()]
        holder = "" if self._names.anchor is not None else "self."
        target = f"{', '.join(results)} = " if len(results) > 1 else f"({results[0]},) = " if results else ""
        if len(margin + target) > _WIDTH // 2:
            target = f"{_broken('', results, margin, self._unit)} = "
        last = len(target.splitlines()[-1]) if results else 0
        given = [each.text for each in self._names.given]
        called = f"{holder}{self._graphed}"
        if self._region.guards:
            called = f"({holder}{self._function} if {self._condition()} else {called})"
        call = self._bracketed(called, given, margin, _WIDTH - last)
        return "".join([*before, f"{margin}{target}{call}\n", *behind])

    def _condition(self) -> str:
        """The condition with which a step stays eager."""
        texts = []
        for guard in self._region.guards:
            text = ast.unparse(guard.test)
            is_simple = isinstance(guard.test, (ast.Name, ast.Attribute))
            texts.append(text if guard.eager and is_simple else f"({text})" if guard.eager else f"not ({text})")
        return " or ".join(texts)

    def _bracketed(self, head: str, items: Sequence[str], margin: str, width: int = _WIDTH) -> str:
        """A call or the head of a function, on several lines if one is too short."""
        line = f"{head}({', '.join(items)})"
        return line if len(margin + line) <= width else _broken(head, items, margin, self._unit)

    def _moved(self, moved: Moved, margin: str) -> str:
        """The text of a statement that leaves the region, with the names of its lifted parts."""
        lines = _lines(moved.statement)
        edits = [Edit(self._source.span(part), self._lifts[part]) for part in moved.lifted]
        text = edited(self._source, edits, lines)
        return _indented(text, indentation(self._source, moved.statement.lineno), margin)

    def _body(self, margin: str) -> str:
        """The statements of the function."""
        edits = []
        for moved in (*self._region.before, *self._region.behind):
            inside = indentation(self._source, moved.statement.lineno)
            lifted = [f"{inside}{self._lifts[part]} = {self._source.written(part)}\n" for part in moved.lifted]
            edits.append(Edit(_lines(moved.statement), "".join(lifted)))
        for given in self._names.given:
            edits += [Edit(self._source.span(place), given.name) for place in given.places]
        first, last = self._region.whole[0], self._region.whole[-1]
        text = edited(self._source, edits, Span(first.lineno, 1, _end(last) + 1, 1))
        return _indented(text, indentation(self._source, first.lineno), margin)

    def _definition(self) -> Iterator[Edit]:
        parameters = [each.name for each in self._names.given]
        results = [*self._names.returned, *self._lifts.values()]
        returned = f"({results[0]},)" if len(results) == 1 else ", ".join(results) or "()"
        holders = "".join(f", {each}" for each in self._holders)
        moving = [str(at) for at, each in enumerate(self._names.given) if each.moves]
        holders += f", numbers=[{', '.join(moving)}]" if moving else ""
        anchor = self._names.anchor
        if anchor is None:
            yield from self._method(parameters, returned, holders)
            return
        margin = indentation(self._source, anchor.lineno)
        inside = margin + self._unit
        head = self._bracketed(f"def {self._function}", parameters, margin)
        text = f"{margin}{head}:\n{self._body(inside)}{inside}return {returned}\n\n"
        text += f"{margin}{self._graphed} = {self._helper_class.name}({self._function}{holders})\n\n"
        yield insert(first_line(anchor), 1, text)

    def _method(self, parameters: Sequence[str], returned: str, holders: str) -> Iterator[Edit]:
        owner = self._region.owner
        holder = next(
            (
                node
                for node in ast.walk(self._source.tree)
                if isinstance(node, ast.ClassDef) and owner in node.body and isinstance(owner, Function)
            ),
            None,
        )
        if holder is None or not isinstance(owner, Function):
            raise Refused("the loop of the step is in another function", self._region.whole[0])
        made = next((each for each in holder.body if getattr(each, "name", "") == "__init__"), None)
        stored = {path_of(node) for node in ast.walk(made) if _is_stored(node)} if made is not None else set()
        called = {path_of(node.value.func) for node in getattr(made, "body", ()) if _is_call(node)}
        for method in holder.body:
            if getattr(method, "name", "") in self._once and f"self.{getattr(method, 'name', '')}" in called:
                # Not under a condition, which may not hold.
                plain = (each for each in getattr(method, "body", ()) if isinstance(each, (ast.Assign, ast.AnnAssign)))
                stored |= {path_of(node) for each in plain for node in ast.walk(each) if _is_stored(node)}
        missing = next((each for each in self._holders if each not in stored), None)
        if missing is not None or made is None:
            raise Refused(f"`{missing}` is not made in `__init__`", self._region.whole[0])
        margin = indentation(self._source, owner.lineno)
        inside = margin + self._unit
        head = self._bracketed(f"def {self._function}", ["self", *parameters], margin)
        text = f"{margin}{head}:\n{self._body(inside)}{inside}return {returned}\n\n"
        line = f"{inside}self.{self._graphed} = {self._helper_class.name}(self.{self._function}{holders})\n"
        # First the end of the constructor, as the method may begin on the next line.
        yield insert(_end(made) + 1, 1, line)
        yield insert(first_line(owner), 1, text)

    @property
    def _unit(self) -> str:
        return one_level(indentation(self._source, self._region.whole[0].lineno))

    def _helper(self) -> Iterator[Edit]:
        """The class, in front of the first definition of the file or behind its imports, if it is not there."""
        if self._helper_class.name in self._known:
            return
        tree = self._source.tree
        region = self._region.whole[0].lineno
        outer = next(each for each in tree.body if each.lineno <= region <= _end(each))
        before = tree.body[: tree.body.index(outer) + 1]
        definitions = [each for each in before if isinstance(each, (ast.FunctionDef, ast.ClassDef))]
        imports = [each for each in before if isinstance(each, (ast.Import, ast.ImportFrom))]
        at = _end(imports[-1]) + 1 if imports else outer.lineno
        if definitions:
            at = first_line(definitions[0])
        yield from import_edits(self._source, ["import torch"])
        margin = "" if definitions else "\n\n"
        text = _helper_text(self._helper_class).replace(_UNIT, self._unit)
        if _copies_on(self._region.kept):
            text = text.replace(_WAITING, "True")
        if self._keeps_gradients:
            text = text.replace(_GIVEN, _COPIED)
        yield insert(at, 1, f"{margin}{text}\n\n")


def _copies_on(statements: Sequence[ast.stmt]) -> bool:
    """True if a step goes on while its batch is copied: the program then leaves pinned memory as it is for so long."""
    calls = (node for each in statements for node in ast.walk(each) if isinstance(node, ast.Call))
    copies = [each for each in calls if isinstance(each.func, ast.Attribute) and each.func.attr in ("to", "cuda")]
    given = [{key.arg: ast.unparse(key.value) for key in each.keywords} for each in copies]
    return bool(given) and all(each.get("non_blocking") == "True" for each in given)


def _helper_text(helper: Helper) -> str:
    text = Path(__file__).with_name(helper.file).read_text("utf-8")
    return text[text.index(f"class {helper.name}") :]


def _broken(head: str, items: Sequence[str], margin: str, unit: str) -> str:
    inside = margin + unit
    text = textwrap.fill(", ".join(items), _WIDTH, initial_indent=inside, subsequent_indent=inside)
    return f"{head}(\n{text}\n{margin})"


def _indented(text: str, before: str, after: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(after + line[len(before) :] if line.startswith(before) else line for line in lines)


def _name_for(statement: ast.stmt) -> str:
    """A name for what is added to a list or read: `clipfracs` gets a `clipfrac`."""
    target: ast.expr | None = statement.target if isinstance(statement, ast.AugAssign) else None
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        target = statement.value.func.value if isinstance(statement.value.func, ast.Attribute) else None
    name = path_of(target).rpartition(".")[2] if target is not None else ""
    is_plural = name.endswith("s") and not name.endswith("ss") and len(name) > 2
    return name[:-1] if is_plural else f"{name or 'shown'}_value"


def _statements(block: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for each in block:
        yield each
        parts = [getattr(each, name, ()) for name in ("body", "orelse", "finalbody")]
        for part in (*parts, *(handler.body for handler in getattr(each, "handlers", ()))):
            yield from _statements(part)


def _lines(statement: ast.stmt) -> Span:
    return Span(statement.lineno, 1, _end(statement) + 1, 1)


def _end(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
