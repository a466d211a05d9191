"""Masks that select several times, whose true elements are searched once.

`x[mask]` is `x[mask.nonzero(as_tuple=True)]`: torch itself searches the mask, at each use, and again in `backward`.
"""

from __future__ import annotations

import ast
import re

from perflint.findings import Fix, Safety
from perflint.fixes.edits import in_newlines_of, indentation, insert, replace
from perflint.fixes.imports import spell
from perflint.frozen import dataclass
from perflint.rules._memory.bodies import Writers, writers
from perflint.rules._order import has_effects
from perflint.rules._project_text import some_file_says
from perflint.rules._statements import block_of, statement_of, swallows
from perflint.rules._visible import is_private
from perflint.rules.sync._dimensions import has_dimensions
from perflint.rules.sync._indices import Index, Part, parts
from perflint.rules.sync._once import LATER, always_runs, is_module, is_of_torch, is_plain, names_of, starts_line, words
from perflint.semantics.binders import How
from perflint.semantics.memo import once, once_per_node
from perflint.semantics.model import Model
from perflint.semantics.sites import SubscriptSite
from perflint.semantics.structure import names_in, stands_in, walk
from perflint.semantics.values import Evidence, Tensor

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
_TRACED = re.compile(r"symbolic_trace\(|create_feature_extractor\(|fx\.Tracer")
_MOST = 16
"""Uses of one mask that are looked at."""


@dataclass(frozen=True, slots=True)
class _Search:
    """A mask, and the places that select with it from a statement on, while it keeps its value."""

    first: ast.stmt
    places: tuple[ast.Subscript, ...]
    name: str
    """A new name for the positions."""


def searched_once(site: SubscriptSite) -> Fix | None:
    """One search in front of the first use for all uses of a mask in a block; None for a single use."""
    model, function = site.model, site.model.function(site.node)
    if function is None or isinstance(function, ast.Lambda) or _mask(site) is None:
        return None
    if model.is_scripted(site.node.lineno):
        return None
    search = _searches(model, function).get(site.node)
    if search is None:
        return None
    source, line = model.source, search.first.lineno
    mask = _mask(model.subscript(search.places[0]))
    assert mask is not None
    positions = _positions(model, mask, search)
    if positions is None:
        return None
    added = f"{indentation(source, line)}{search.name} = {positions.text}\n"
    uses = [replace(source, source.span(each.slice), search.name) for each in search.places]
    edits = (insert(line, 1, in_newlines_of(source, line, added)), *uses)
    return Fix(_MESSAGE, positions.safety, edits, positions.imports, leaves=("TPF110",))


_MESSAGE = "Search the mask once"


@dataclass(frozen=True, slots=True)
class _Positions:
    """The code that searches a mask, and how far it may change what the program does."""

    text: str
    safety: Safety
    imports: tuple[str, ...] = ()


def _positions(model: Model, mask: Part, search: _Search) -> _Positions | None:
    """The search of a mask. It asks the mask for the facts that the source does not show, if the mask is a name."""
    text = model.source.written(mask.node)
    text = text if isinstance(mask.node, (ast.Name, ast.Call, ast.Subscript)) else f"({text})"
    asked: list[str] = []
    imports: tuple[str, ...] = ()
    if not mask.is_bool:
        # Positions select as they are.
        spelled = spell(model.symbols, "torch.bool", search.first)
        if spelled is None:
            return None
        asked, imports = [f"{text}.dtype == {spelled.text}"], spelled.imports
    if not has_dimensions(model, mask.node):
        # A mask without dimensions selects in its own way.
        asked.append(f"{text}.ndim")
    found = f"{text}.nonzero(as_tuple=True)"
    if not isinstance(mask.node, ast.Name):
        return _Positions(found, Safety.RISKY if asked else Safety.UNSAFE)
    if asked and some_file_says(model, _TRACED):
        # A symbol for a tensor cannot be asked.
        return None
    return _Positions(f"{found} if {' and '.join(asked)} else {text}" if asked else found, Safety.UNSAFE, imports)


def _mask(site: SubscriptSite) -> Part | None:
    """The mask of local names that is the whole index, or that full slices follow."""
    model = site.model
    if site.mode == "delete" or not _is_tensor(model, site.node.value, site.value(site.node.value)):
        return None
    if site.mode == "store" and (site.stored is None or not isinstance(site.value(site.stored), Tensor)):
        # `x[mask] = number` searches nothing, while `x[positions] = number` copies the number.
        return None
    found = parts(site)
    written = site.node.slice.elts if isinstance(site.node.slice, ast.Tuple) else [site.node.slice]
    if len(written) != len(found) or not all(_is_full(each) for each in written[1:]):
        return None
    mask = found[0]
    if mask.kind is not Index.MASK or not _is_tensor(model, mask.node, mask.value):
        return None
    if not mask.is_bool and not isinstance(mask.node, ast.Name):
        return None
    tensor = mask.value.tensor
    parts_of = [each for each in walk(mask.node) if isinstance(each, (ast.expr, ast.keyword))]
    plain = all(is_plain(model, each) for each in parts_of) and not has_effects(model, mask.node)
    return mask if plain and names_in(mask.node) and tensor is not None and tensor.rank != 0 else None


def _is_tensor(model: Model, node: ast.expr, value: object) -> bool:
    """True if a value is certainly a tensor, and no object with an indexing of its own."""
    if not isinstance(value, Tensor):
        return False
    if value.evidence >= Evidence.ANNOTATION or _takes_dim(node) or is_of_torch(model, node):
        return True
    if not isinstance(node, ast.Name):
        return False
    bindings = model.symbols.variable(node).bindings
    return all(
        each.how is How.ASSIGNED and each.value is not None and is_of_torch(model, each.value) for each in bindings
    )


def _takes_dim(node: ast.expr) -> bool:
    """True for `x.any(dim=1)`: only tensors have methods with this argument. Arrays of NumPy have `axis`."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return called and isinstance(node, ast.Call) and any(item.arg == "dim" for item in node.keywords)


def _is_full(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) and node.lower is None and node.upper is None and node.step is None


@once_per_node
def _searches(model: Model, function: ast.AST) -> dict[ast.Subscript, _Search]:
    """The search that each selection of a function belongs to."""
    found: dict[ast.Subscript, _Search] = {}
    taken = set(words(model))
    for places in _by_mask(model, function).values():
        name = ""
        rest = places[:_MOST]
        while len(rest) > 1:
            group = _group(model, rest)
            if len(group) > 1:
                name = name or _free(taken, rest[0])
                first = statement_of(model, group[0])
                assert first is not None
                search = _Search(first, tuple(group), name)
                found.update(dict.fromkeys(group, search))
            rest = [each for each in rest if each not in (group or rest[:1])]
    return found


def _by_mask(model: Model, function: ast.AST) -> dict[str, list[ast.Subscript]]:
    """The indexings of a function by the text of their mask, in the order of the source."""
    found: dict[str, list[ast.Subscript]] = {}
    for node in _by_function(model)[function]:
        mask = _mask(model.subscript(node))
        if mask is not None:
            found.setdefault(ast.dump(mask.node), []).append(node)
    return {key: places for key, places in found.items() if len(places) > 1}


@once
def _by_function(model: Model) -> dict[ast.AST | None, list[ast.Subscript]]:
    """The indexings of a file by their function, in the order of the source."""
    found: dict[ast.AST | None, list[ast.Subscript]] = {}
    for node in sorted(model.nodes(ast.Subscript), key=lambda each: (each.slice.lineno, each.slice.col_offset)):
        found.setdefault(model.function(node), []).append(node)
    return found


def _free(taken: set[str], place: ast.Subscript) -> str:
    """A name for the positions that the file does not use; it is noted as taken."""
    node = place.slice.elts[0] if isinstance(place.slice, ast.Tuple) else place.slice
    base = f"{node.id.removesuffix('_mask')}_at" if isinstance(node, ast.Name) else "found"
    number, name = 1, base
    while name in taken:
        number += 1
        name = f"{base}{number}" if base.endswith("_at") else f"{base}_{number}"
    taken.add(name)
    return name


def _group(model: Model, places: list[ast.Subscript]) -> list[ast.Subscript]:
    """The places from the first on that see the mask of the first one; empty if the first may not run."""
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
        if around is None or swallows(model, place) or not _keeps(model, places[0], first, around):
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


def _keeps(model: Model, place: ast.Subscript, first: ast.stmt, last: ast.stmt) -> bool:
    """True if the mask of a place has the same names and elements from one statement to the end of another."""
    begin, end = (first.lineno, first.col_offset), (last.end_lineno or 0, last.end_col_offset or 0)
    mask = _mask(model.subscript(place))
    assert mask is not None
    for name in names_of(mask.node):
        bindings = model.symbols.variable(name).bindings
        if is_module(model, name):
            continue
        if not is_private(model, name) or any(begin <= _position(each.node) <= end for each in bindings):
            return False
        if writers(model, name, begin, end) > Writers.LAYERS:
            return False
    return True


def _position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
