"""Indexings of a block by one index, while it keeps its value."""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.findings import Edit
from perflint.fixes.edits import replace
from perflint.frozen import dataclass
from perflint.rules._memory.bodies import Writers, position, writers
from perflint.rules._memory.uses import Position
from perflint.rules._statements import LATER, always_runs, block_of, line_before, swallows
from perflint.rules._visible import is_local
from perflint.rules.sync._indices import Part
from perflint.rules.sync._once import is_module, names_of, starts_line, words
from perflint.semantics.around import parts_cells, statement_of
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.sites import SubscriptSite
from perflint.semantics.structure import grouped, stands_in

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
_MOST = 16
"""Uses of one index that are looked at."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """The places that an index selects at from a statement on, while it keeps its value."""

    first: ast.stmt
    places: tuple[ast.Subscript, ...]
    name: str
    """A new name for the index."""


@dataclass(frozen=True, slots=True)
class Sought:
    """The indices that are looked for."""

    part: Callable[[SubscriptSite], Part | None]
    """The part of an index that one name may stand for at all places."""
    group: Callable[[SubscriptSite], object]
    """Places belong together if this is the same for them."""
    fewest: Callable[[Part], int]
    """The number of places that are worth a name."""
    keeps: Callable[[SubscriptSite, Part, Position, Position], bool] | None = None
    """A further condition on the code between two positions."""


def repeated(model: Model, around: ast.AST, sought: Sought) -> dict[ast.Subscript, Repeated]:
    """The places of a function, or of the file's top level, that belong together, by each place."""
    found: dict[ast.Subscript, Repeated] = {}
    taken = set(words(model))
    for part, places in _by_index(model, around, sought):
        name = ""
        fewest = sought.fewest(part)
        rest = places[:_MOST]
        while len(rest) >= fewest:
            group = _group(model, rest, sought)
            if len(group) >= fewest:
                name = name or _free(taken, part)
                first = statement_of(model, group[0])
                assert first is not None
                found.update(dict.fromkeys(group, Repeated(first, tuple(group), name)))
            rest = [each for each in rest if each not in (group or rest[:1])]
    return found


def edits(model: Model, found: Repeated, text: str, indices: list[ast.expr]) -> tuple[Edit, ...]:
    """The edits that give the name to the index, of which `text` is the code, and write it in place of the indices."""
    source = model.source
    uses = (replace(source, source.span(each), found.name) for each in indices)
    return line_before(source, found.first.lineno, f"{found.name} = {text}"), *uses


def _by_index(model: Model, around: ast.AST, sought: Sought) -> list[tuple[Part, list[ast.Subscript]]]:
    """The indexings of a function by the text of their index, in the order of the source."""
    found: dict[object, tuple[Part, list[ast.Subscript]]] = {}
    for node in _by_function(model)[around]:
        site = model.subscript(node)
        part = sought.part(site)
        if part is not None:
            found.setdefault((ast.dump(part.node), sought.group(site)), (part, []))[1].append(node)
    return list(found.values())


@once
def _by_function(model: Model) -> dict[ast.AST, list[ast.Subscript]]:
    """The indexings of a file by their function, or its top level, in the order of the source."""
    nodes = sorted(model.nodes(ast.Subscript), key=lambda each: (each.slice.lineno, each.slice.col_offset))
    return grouped((model.function(node) or model.source.tree, node) for node in nodes)


def _free(taken: set[str], part: Part) -> str:
    """A name for the index that the file does not use; it is noted as taken."""
    node = part.node
    base, parting = "found", "_"
    if isinstance(node, ast.Name):
        base, parting = f"{node.id.removesuffix('_mask')}{'_AT' if node.id.isupper() else '_at'}", ""
    number, name = 1, base
    while name in taken:
        number += 1
        name = f"{base}{parting}{number}"
    taken.add(name)
    return name


def _group(model: Model, places: list[ast.Subscript], sought: Sought) -> list[ast.Subscript]:
    """The places from the first on that see the index of the first one; empty if the first may not run."""
    first = statement_of(model, places[0])
    if not isinstance(first, _SIMPLE) or not always_runs(model, places[0], first) or not starts_line(model, first):
        return []
    block = block_of(model, first)
    if swallows(model, first):
        # A mask that does not fit raises; its positions may fit.
        return []
    group = [places[0]]
    for place in places[1:]:
        around = _within(model, block, place)
        if around is None or swallows(model, place) or not _keeps(model, sought, places[0], first, around):
            break
        group.append(place)
    return group


def _within(model: Model, block: list[ast.stmt], place: ast.expr) -> ast.stmt | None:
    """The statement of a block that a place stands in; None if it may run at another time."""
    for outer in model.ancestors(place):
        if isinstance(outer, LATER):
            return None
        if isinstance(outer, ast.stmt) and stands_in(block, outer):
            return outer
    return None


def _keeps(model: Model, sought: Sought, place: ast.Subscript, first: ast.stmt, last: ast.stmt) -> bool:
    """True if the index of a place has the same names and elements from one statement to the end of another."""
    if parts_cells(model, first, last):
        return False
    begin, end = (first.lineno, first.col_offset), (last.end_lineno or 0, last.end_col_offset or 0)
    site = model.subscript(place)
    part = sought.part(site)
    assert part is not None
    for name in names_of(part.node):
        if is_module(model, name):
            continue
        if not is_local(model, name) or is_bound(model, name, begin, end):
            return False
        if writers(model, name, begin, end) > Writers.LAYERS:
            return False
    return sought.keeps is None or sought.keeps(site, part, begin, end)


def is_bound(model: Model, name: ast.Name, begin: Position, end: Position) -> bool:
    """True if a name gets a value between two positions."""
    return any(begin <= position(each.node) <= end for each in model.symbols.variable(name).bindings)
