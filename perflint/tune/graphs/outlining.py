"""Rewrites a file so that the step of its training loop, or a part of it, is replayed as a CUDA graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from perflint.frozen import dataclass, field
from perflint.source.text import Source
from perflint.tune.graphs.backward import BackwardFinder
from perflint.tune.graphs.names import Sorter
from perflint.tune.graphs.parts import Region
from perflint.tune.graphs.purity import Imports, Purity, is_gradient, keeps_gradient, local_names
from perflint.tune.graphs.reached import Called, Reached, first_line
from perflint.tune.graphs.region import Finder
from perflint.tune.graphs.writing import BACKWARD, HELPERS, STEP, Helper, Writer
from perflint.tune.refused import Refused

_HOOK = re.compile(r"\bregister_(?!buffer|parameter|module)\w*hook\w*\(")
_OTHERS = (
    (_HOOK, "a hook runs Python in each step"),
    (
        re.compile(r"(?<!def )\b(deepcopy|dumps?|save)\(self\s*[,)]"),
        "the holder of the graph is copied or saved",
    ),
    (re.compile(r"\bset_to_none\s*=\s*False"), "gradients are filled with zeros"),
)


@dataclass(frozen=True, slots=True)
class Model:
    """A model with parameters that a line of the step calls, and no other model."""

    path: str
    line: int
    holder: str
    """The file of the outermost function on the stack that holds it by a name."""
    holder_line: int
    """The line there that was running."""
    name: str
    """Its name there; an attribute of `self` in the calling function if none holds it by a name."""
    copies: int = 1
    """The GPUs that `DataParallel` has given it."""
    names: Sequence[tuple[str, int, str]] = ()
    """Its names in all functions on the stack, each with the file and first line of the function."""
    has_images: bool = False
    """True if it has weights like those of convolutions over images."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The facts of a run: the lines that stepped optimizers, by file, and calls between lines of the project."""

    steps: Mapping[str, Collection[int]]
    calls: Collection[Called]
    models: Sequence[Model] = ()
    evaluations: Sequence[tuple[str, int]] = ()
    """The functions that call models without gradients only, by their file and first line."""
    compiles: bool = False
    """True if the program compiles a model."""
    distributed: bool = False
    """True if its process is one of several of a group."""
    lines: Mapping[str, Collection[int]] = field(default_factory=dict)
    """The lines that made calls, by file; none if that is unknown."""
    reduces: bool = False
    """True if hooks of a model add up its gradients, those of all processes."""
    backwards: Sequence[tuple[str, int]] = ()
    """The lines at which backward passes began, each with its file."""
    again: Collection[tuple[str, int]] = ()
    """The functions that the first steps called several times, by their file and first line."""
    clears: Collection[tuple[str, int, str, int]] = ()
    """The lines that clear gradients through a model, each with a line that steps an optimizer of its parameters."""
    logs: Collection[tuple[str, int]] | None = None
    """The lines that logged messages; None if that is unknown."""
    failing: Collection[tuple[str, str]] = ()
    """The sources of lines at which the making of a graph failed, each with its file."""
    moving: Collection[tuple[str, int, str]] = ()
    """The names that were another number in each step, each with the file and first line of its function."""


def outlined(path: str, texts: Mapping[str, str], seen: Seen) -> str:
    """The new text of a file with a graph of its step. `texts` are the files that ran. Raises Refused."""
    return _longest(seen, lambda lasts: _Outliner(path, texts, seen, lasts).step())


def outlined_backward(path: str, texts: Mapping[str, str], seen: Seen) -> str:
    """The new text of a file with a graph of a forward and backward pass. Raises Refused."""
    return _longest(seen, lambda lasts: _Outliner(path, texts, seen, lasts).backward())


def _longest(seen: Seen, write: Callable[[bool], str]) -> str:
    """The text with a graph that outlives a call of its function if that makes few steps. Raises Refused."""
    if seen.again:
        try:
            return write(True)
        except Refused:
            pass
    return write(False)


_Test = Callable[[ast.AST], bool]
_Kind = TypeVar("_Kind", bound=Finder)


def _never(node: ast.AST) -> bool:
    return False


class _Outliner:
    """Rewrites one file. Raises Refused if nothing in it can be a graph.

    `lasts` is true for a graph that is not made in front of a loop of its function, but once for many calls.
    """

    def __init__(self, path: str, texts: Mapping[str, str], seen: Seen, lasts: bool) -> None:
        self._path = path
        self._lasts = lasts
        self._seen = seen
        self._source = Source(path, texts[path])
        if seen.distributed:
            raise Refused("the process is one of a group", 1)
        if seen.reduces:
            raise Refused("hooks that add up gradients run in each step, as of DistributedDataParallel", 1)
        if any(each.copies > 1 for each in seen.models):
            raise Refused("the model is replicated", 1)
        self._texts = texts
        self._trees = {name: ast.parse(text) for name, text in texts.items()}
        steps = {name: {*lines} for name, lines in seen.steps.items()}
        for name, line in seen.backwards:
            steps.setdefault(name, set()).add(line)
        failing = {
            (name, number)
            for name, text in texts.items()
            for number, row in enumerate(text.splitlines(), 1)
            if (name, row.strip()) in seen.failing
        }
        self._failing = {line for name, line in failing if name == path}
        self._reached = Reached(self._trees, seen.calls, seen.lines, steps, seen.again, seen.logs, failing)

    def step(self) -> str:
        """The text with a graph of the step."""
        self._require_no_graph(*HELPERS)
        self._require_plain(_OTHERS)
        finder = self._finder(Finder, self._purity(self._is_step), self._is_step)
        region = finder.find()
        _require_no_reader(self._trees, self._path, region)
        optimizers = finder.optimizers(region)
        if not optimizers:
            raise Refused("the step of the optimizer cannot be part of a graph", region.whole[-1])
        return self._written(STEP, region, optimizers)

    def backward(self) -> str:
        """The text with a graph of the forward and backward pass, or of another one besides those that it has."""
        self._require_no_graph(STEP)
        self._require_plain(_OTHERS[:-1])
        region = self._finder(BackwardFinder, self._purity(_never, self._begins), _never).find()
        return self._written(BACKWARD, region, self._models(region))

    def _require_no_graph(self, *helpers: Helper) -> None:
        if any(each.name in self._source.text for each in helpers):
            raise Refused("the file has a graph of its step", 1)

    def _is_step(self, node: ast.AST) -> bool:
        return _is_at(node, self._seen.steps.get(self._path, ()))

    def _begins(self, node: ast.AST) -> bool:
        lines = {line for path, line in self._seen.backwards if path == self._path}
        named = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr
        return bool(named and named.endswith("backward") and _is_at(node, lines))

    def _purity(self, is_step: _Test, begins: _Test = _never) -> Purity:
        return Purity(
            self._source.tree,
            is_step,
            lambda node: self._reached.require(self._path, node),
            lambda node: self._reached.stays_inside(self._path, node),
            lambda call: self._reached.is_own(self._path, call),
            begins,
            self._failing,
        )

    def _finder(self, kind: type[_Kind], purity: Purity, is_step: _Test) -> _Kind:
        models = {(each.path, each.line) for each in self._seen.models}
        return kind(
            self._source,
            purity,
            is_step,
            (lambda node: self._reached.calls(self._path, node, models)) if models else None,
            lambda block: _is_idle(block, self._path, self._seen),
            lambda node, function: self._reached.reaches(self._path, node, function),
            self._lasts,
            lambda node: self._reached.calls(self._path, node, self._seen.backwards),
            # A line of another file is none of the region.
            [
                (line if name == self._path else 0, step if path == self._path else 0)
                for name, line, path, step in self._seen.clears
            ],
            self._reached,
        )

    def _models(self, region: Region) -> list[ast.expr]:
        """The models that a region calls, by their names in its function."""
        owner, found = region.owner, dict[str, None]()
        for model in self._seen.models:
            place = {(model.path, model.line)}
            if not any(self._reached.calls(self._path, each, place) for each in region.kept):
                continue
            names = {line: name for path, line, name in model.names if path == self._path}
            name = next((names[line] for line in (0, 1) if line in names), "")
            if not isinstance(owner, ast.Module):
                # Names of the module hold in its functions, too.
                is_hidden = name.partition(".")[0] in local_names(owner)
                name = names.get(first_line(owner), "" if is_hidden else name)
            if not name:
                raise Refused(f"the model of {model.path}:{model.line} has no name in the function", region.whole[0])
            found[name] = None
        if not found:
            raise Refused("the step calls no model with parameters", region.whole[0])
        return [ast.parse(name, mode="eval").body for name in found]

    def _written(self, helper: Helper, region: Region, holders: Sequence[ast.expr]) -> str:
        reached, owner = self._reached, region.owner
        if self._lasts and (isinstance(owner, ast.Module) or (self._path, first_line(owner)) not in self._seen.again):
            raise Refused("a call of the function has many steps", owner.body[0])
        switches = any(_switches_mode(node) for tree in self._trees.values() for node in ast.walk(tree))
        purity = self._purity(self._is_step)
        takes_holders = helper is BACKWARD
        lines = (0, 1) if isinstance(owner, ast.Module) else (first_line(owner),)
        moving = {name for path, line, name in self._seen.moving if path == self._path and line in lines}
        names = Sorter(
            self._source.tree, region, purity, reached, holders, switches, takes_holders, self._lasts, moving
        ).sort()
        given = {each.text for each in names.given if takes_holders}
        holders = [each for each in holders if ast.unparse(each) not in given]
        keeps = any(keeps_gradient(tree, Imports(tree)) for tree in self._trees.values())
        return Writer(self._source, region, names, holders, helper, reached.once, keeps).text()

    def _require_plain(self, others: Sequence[tuple[re.Pattern[str], str]]) -> None:
        for name, text in self._texts.items():
            idle = _idle_lines(self._trees[name], name, self._seen)
            _require_plain(text, name, self._path, idle, others)


def _is_at(node: ast.AST, lines: Collection[int]) -> bool:
    return any(getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", 0) or 0) for line in lines)


def _switches_mode(node: ast.AST) -> bool:
    """True for code that may turn the training mode of a module off: `.eval()`, `.train(x)`, `.training = x`."""
    if isinstance(node, ast.Attribute):
        return node.attr == "training" and isinstance(node.ctx, ast.Store)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    given = [*node.args, *(each.value for each in node.keywords)]
    if node.func.attr == "eval":
        return not given
    return node.func.attr == "train" and len(given) == 1 and ast.unparse(given[0]) != "True"


def _is_idle(block: Sequence[ast.stmt], path: str, seen: Seen) -> bool:
    """True if the run did not execute a block that makes calls, as far as is known."""
    lines = {node.lineno for each in block for node in ast.walk(each) if isinstance(node, ast.Call)}
    return bool(lines) and path in seen.lines and lines.isdisjoint(seen.lines[path])


def _idle_lines(tree: ast.Module, name: str, seen: Seen) -> set[int]:
    """The lines of functions that the run did not call."""
    called = {each.first for each in seen.calls if each.callee == name}
    idle: set[int] = set()
    for node in ast.walk(tree) if seen.calls else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and first_line(node) not in called:
            idle |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return idle


def _require_plain(
    text: str, name: str, path: str, idle: Collection[int], others: Sequence[tuple[re.Pattern[str], str]]
) -> None:
    for pattern, reason in others:
        for found in pattern.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            if line in idle:
                continue
            place = "" if name == path else f" ({name}:{line})"
            raise Refused(reason.format(f"`{found[0]}`") + place, line if name == path else 1)


def _require_no_reader(trees: Mapping[str, ast.Module], path: str, region: Region) -> None:
    """Raise Refused if other files read gradients: after a replay they are those of the graph's own memory."""
    for name, tree in trees.items():
        imports = Imports(tree)
        for node in ast.walk(tree):
            if name != path and is_gradient(node, imports):
                raise Refused(f"a gradient is read ({name}:{getattr(node, 'lineno', 1)})", region.whole[0])
