"""Masks that select several times, whose true elements are searched once.

`x[mask]` is `x[mask.nonzero(as_tuple=True)]`: torch itself searches the mask, at each use, and again in `backward`.
"""

from __future__ import annotations

import ast
import re

from perflint.findings import Fix, Safety
from perflint.fixes.imports import spell
from perflint.frozen import dataclass
from perflint.rules._memory.flows import body_around
from perflint.rules._order import has_effects
from perflint.rules._project_text import some_file_says
from perflint.rules.sync._dimensions import has_dimensions
from perflint.rules.sync._indices import Index, Part, parts
from perflint.rules.sync._once import is_plain, is_tensor
from perflint.rules.sync._repeated import Repeated, Sought, edits, repeated
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.sites import SubscriptSite
from perflint.semantics.structure import names_in, walk
from perflint.semantics.values import Tensor

_TRACED = re.compile(r"symbolic_trace\(|create_feature_extractor\(|fx\.Tracer")


def searched_once(site: SubscriptSite) -> Fix | None:
    """One search in front of the first use for all uses of a mask in a block; None for a single use."""
    model, around = site.model, body_around(site.model, site.node)
    if isinstance(around, ast.Lambda) or _mask(site) is None or model.is_scripted(site.node.lineno):
        return None
    search = _searches(model, around).get(site.node)
    mask = None if search is None else _mask(model.subscript(search.places[0]))
    positions = None if search is None or mask is None else _positions(model, mask, search)
    if search is None or positions is None:
        return None
    changes = edits(model, search, positions.text, [each.slice for each in search.places])
    return Fix("Search the mask once", positions.safety, changes, positions.imports, leaves=("TPF110",))


@dataclass(frozen=True, slots=True)
class _Positions:
    """The code that searches a mask, and how far it may change what the program does."""

    text: str
    safety: Safety
    imports: tuple[str, ...] = ()


def _positions(model: Model, mask: Part, search: Repeated) -> _Positions | None:
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
    if site.mode == "delete" or not is_tensor(model, site.node.value, site.value(site.node.value)):
        return None
    if site.mode == "store" and (site.stored is None or not isinstance(site.value(site.stored), Tensor)):
        # `x[mask] = number` searches nothing, while `x[positions] = number` copies the number.
        return None
    found = parts(site)
    written = site.node.slice.elts if isinstance(site.node.slice, ast.Tuple) else [site.node.slice]
    # `x[()]` has no index at all.
    if not written or len(written) != len(found) or not all(_is_full(each) for each in written[1:]):
        return None
    mask = found[0]
    if mask.kind is not Index.MASK or not is_tensor(model, mask.node, mask.value):
        return None
    if not mask.is_bool and not isinstance(mask.node, ast.Name):
        return None
    tensor = mask.value.tensor
    parts_of = [each for each in walk(mask.node) if isinstance(each, (ast.expr, ast.keyword))]
    plain = all(is_plain(model, each) for each in parts_of) and not has_effects(model, mask.node)
    return mask if plain and names_in(mask.node) and tensor is not None and tensor.rank != 0 else None


def _is_full(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) and node.lower is None and node.upper is None and node.step is None


@once_per_node
def _searches(model: Model, around: ast.AST) -> dict[ast.Subscript, Repeated]:
    """The search that each selection of a function, or of the file's top level, belongs to."""
    return repeated(model, around, Sought(part=_mask, group=lambda site: None, fewest=lambda part: 2))
