"""Rewrites a file so that the step of its training loop is replayed as a CUDA graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence

from perflint.frozen import dataclass, field
from perflint.source.text import Source
from perflint.tune.graphs.names import Sorter
from perflint.tune.graphs.purity import Imports, Purity, is_gradient
from perflint.tune.graphs.reached import Called, Reached, changed, first_line, numbers
from perflint.tune.graphs.region import Finder, Region
from perflint.tune.graphs.writing import HELPER, Writer
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


def outlined(path: str, texts: Mapping[str, str], seen: Seen) -> str:
    """The new text of a file. `texts` are the files of the project that ran. Raises Refused."""
    source = Source(path, texts[path])
    if seen.distributed:
        raise Refused("the process is one of a group", 1)
    if seen.reduces:
        raise Refused("hooks that add up gradients run in each step, as of DistributedDataParallel", 1)
    if any(each.copies > 1 for each in seen.models):
        raise Refused("the model is replicated", 1)
    if HELPER in source.text:
        raise Refused("the file has a graph of its step", 1)
    trees = {name: ast.parse(text) for name, text in texts.items()}
    for name, text in texts.items():
        _require_plain(text, name, path, _idle_lines(trees[name], name, seen))
    reached = Reached(trees, seen.calls)
    lines = set(seen.steps.get(path, ()))

    def is_step(node: ast.AST) -> bool:
        return not lines.isdisjoint(range(getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) + 1))

    purity = Purity(
        source.tree,
        is_step,
        lambda node: reached.require(path, node),
        lambda node: reached.stays_inside(path, node),
        lambda call: reached.is_own(path, call),
    )
    models = {(each.path, each.line) for each in seen.models}
    finder = Finder(
        source,
        purity,
        is_step,
        lambda node: reached.calls(path, node, models),
        lambda block: _is_idle(block, path, seen),
        lambda node, function: reached.reaches(path, node, function),
    )
    region = finder.find()
    optimizers = finder.optimizers(region)
    _require_no_reader(trees, path, region)
    assigned = {attribute for name, tree in trees.items() for attribute, _ in changed(name, tree)}
    switches = any(re.search(r"\.eval\(\)|\.train\(False\)", text) for text in texts.values())
    names = Sorter(source.tree, region, purity, assigned, numbers(trees.values()), optimizers, switches).sort()
    return Writer(source, region, names, optimizers).text()


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


def _require_plain(text: str, name: str, path: str, idle: Collection[int]) -> None:
    for pattern, reason in _OTHERS:
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
