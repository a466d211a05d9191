"""Positions on the CPU that a slice, single integers or a range on the GPU can replace."""

from __future__ import annotations

import ast
from itertools import pairwise

from perflint.findings import Fix, Safety
from perflint.fixes.edits import replace, with_argument
from perflint.fixes.imports import spell
from perflint.rules._long_lines import makes_long_line
from perflint.rules._memory.bodies import Writers, writers_during
from perflint.rules._memory.uses import HARMLESS, Fate, Uses
from perflint.rules._numbers import literal
from perflint.rules._order import has_effects
from perflint.rules.sync._filling import is_size
from perflint.rules.sync._indices import Index, Part, parts
from perflint.semantics.sites import SubscriptSite
from perflint.semantics.structure import keyword, names_in, path_of
from perflint.semantics.values import Evidence, Tensor, scalar_type
from perflint.source.concrete import code

_COPIES = frozenset((Index.LIST, Index.HOST_POSITIONS))
_MOST_STACKED = 4


def on_device(site: SubscriptSite) -> Fix | None:
    """The fix for positions that are a range, or a list of numbers in the source; None for others."""
    written = _written(site)
    copied = [at for at, part in enumerate(parts(site)) if part.kind in _COPIES]
    if written is None or not copied:
        return None
    return _ranged(site, written, copied) or (_sliced(site, written, copied[0]) if len(copied) == 1 else None)


def _written(site: SubscriptSite) -> list[ast.expr] | None:
    """The parts of the index as they are written; None if one of them stands for several."""
    node = site.node.slice
    written = node.elts if isinstance(node, ast.Tuple) else [node]
    whole = len(written) == len(parts(site)) and not any(isinstance(each, ast.Starred) for each in written)
    return list(written) if whole else None


def _is_sure(site: SubscriptSite) -> bool:
    """True if the indexed value is certainly a tensor."""
    value = site.value(site.node.value)
    return isinstance(value, Tensor) and value.evidence >= Evidence.ANNOTATION


# Ranges


def _ranged(site: SubscriptSite, written: list[ast.expr], copied: list[int]) -> Fix | None:
    """`x[torch.arange(n, device=x.device), y]` for ranges of integers."""
    root = site.node.value
    while isinstance(root, ast.Subscript):
        root = root.value
    value = site.value(root)
    if not path_of(root) or (value.tensor is None and not value.is_unknown) or has_effects(site.model, root):
        return None
    name = spell(site.model.symbols, "torch.arange", site.node)
    if name is None:
        return None
    ranges = [_made(site, written[at]) for at in copied]
    made = [_range(site, each, f"{site.text(root)}.device", name.text) for each in ranges]
    found = [each for each in made if each is not None]
    if len(found) < len(made):
        return None
    edits = tuple(
        replace(site.model.source, site.model.source.span(each), text)
        for each, (text, _) in zip(ranges, found, strict=True)
    )
    is_safe = _is_sure(site) and isinstance(site.value(root), Tensor) and all(sure for _, sure in found)
    safety = Safety.SAFE if is_safe else Safety.UNSAFE
    # With positions on the CPU, the copy of a stored number goes unnoticed beside theirs.
    return Fix("Make the range on the GPU", safety, edits, name.imports, leaves=("TPF135",) * (site.mode == "store"))


def _made(site: SubscriptSite, node: ast.expr) -> ast.expr:
    """The range that a position is a view of: `torch.arange(n)` of `torch.arange(n)[:, None].expand(n, m)`."""
    while True:
        if isinstance(node, ast.Subscript) and _only_reshapes(node.slice):
            node = node.value
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _VIEWS
            and all(scalar_type(site.value(each)) == "int" for each in node.args)
        ):
            node = node.func.value
        else:
            return node


_VIEWS = frozenset({"unsqueeze", "view", "reshape", "expand"})


def _only_reshapes(index: ast.expr) -> bool:
    """True for `[:, None]`."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(ast.unparse(each) in (":", "None") for each in parts)


def _range(site: SubscriptSite, node: ast.expr, device: str, arange: str) -> tuple[str, bool] | None:
    """The text of a range on a device, and True if it certainly holds the same numbers."""
    if not isinstance(node, ast.Call):
        return None
    target = site.model.target(node)
    if target == "builtins.list" and len(node.args) == 1 and isinstance(node.args[0], ast.Call):
        node = node.args[0]
        target = site.model.target(node)
    integers = all(scalar_type(site.value(each)) == "int" for each in node.args)
    if target == "builtins.range" and integers and not node.keywords:
        arguments = ", ".join(site.model.source.written(each) for each in node.args)
        # A range may be empty where `torch.arange` raises.
        sure = len(node.args) == 1 and is_size(site.model, node.args[0])
        return f"{arange}({arguments}, device={device})", sure
    if target != "torch.arange" or keyword(node, "device") is not None or keyword(node, "out") is not None:
        return None
    if any(item.arg is None for item in node.keywords) or any(isinstance(each, ast.Starred) for each in node.args):
        return None
    if not integers or keyword(node, "pin_memory") is not None:
        return None
    concrete = site.model.source.concrete(node)
    new = with_argument(concrete, f"device={device}")  # type: ignore[arg-type]
    return None if new is None else (code(new), True)


# Lists of numbers


def _sliced(site: SubscriptSite, written: list[ast.expr], at: int) -> Fix | None:
    """A slice for positions at equal distances, or else the parts one by one."""
    positions = _positions(written[at])
    if positions is None or not all(each.kind in (Index.VIEW, Index.INTEGER) for each in _others(site, at)):
        return None
    slice_ = _slice(positions)
    if slice_ is None:
        return _stacked(site, written, at, positions)
    edit = replace(site.model.source, site.model.source.span(written[at]), slice_)
    message = "Index with a slice"
    if site.mode == "store":
        # A store to a slice of an expanded tensor raises.
        return Fix(message, Safety.UNSAFE, (edit,)) if _is_apart(site) else None
    if site.mode != "load":
        return None
    uses = Uses(site.model, layout=True)
    uses.follow(site.node)
    if not uses.fates or not uses.fates <= HARMLESS | {Fate.LAYER}:
        return None
    if writers_during(site.model, site.node, site.node.value, uses) > Writers.LAYERS:
        return None
    same = _is_sure(site) and uses.fates == {Fate.READ} and not uses.laid_bare
    return Fix(message, Safety.SAFE if same else Safety.UNSAFE, (edit,))


def _others(site: SubscriptSite, at: int) -> list[Part]:
    return [part for number, part in enumerate(parts(site)) if number != at]


def _positions(node: ast.expr) -> list[int] | None:
    """The integers of a list in the source."""
    if not isinstance(node, ast.List) or not node.elts:
        return None
    found = [literal(each) for each in node.elts]
    whole = [each for each in found if each is not None]
    return whole if len(whole) == len(found) else None


def _slice(positions: list[int]) -> str | None:
    """The slice with some positions: `4:9:2` for 4, 6 and 8, `-1:` for -1; None if there is none."""
    first, last = positions[0], positions[-1]
    steps = {after - before for before, after in pairwise(positions)}
    if len(steps) > 1 or (steps and min(steps) < 1) or (first < 0) != (last < 0):
        return None
    step = f":{min(steps)}" if steps and steps != {1} else ""
    return f"{first or ''}:{'' if last == -1 else last + 1}{step}"


def _is_apart(site: SubscriptSite) -> bool:
    """True if a store takes nothing from the tensor that it changes: slices of one tensor may overlap."""
    path = path_of(site.node.value)
    return bool(path) and site.stored is not None and path.partition(".")[0] not in names_in(site.stored)


def _stacked(site: SubscriptSite, written: list[ast.expr], at: int, positions: list[int]) -> Fix | None:
    """`torch.stack([x[:, 2], x[:, 0]], 1)` for `x[:, [2, 0]]`."""
    source, before, after = site.model.source, written[:at], written[at + 1 :]
    if site.mode != "load" or len(positions) > _MOST_STACKED or len(positions) < 2:
        return None
    if not path_of(site.node.value) or site.value(site.node.value).tensor is None:
        return None
    ellipsis = [each for each in before if _is_ellipsis(each)]
    if not all(isinstance(each, ast.Slice) for each in before if each not in ellipsis) or (ellipsis and after):
        return None
    if not all(isinstance(each, ast.Slice) or _is_ellipsis(each) for each in after):
        return None
    if any(
        has_effects(site.model, part)
        for each in (*before, *after)
        for part in ast.walk(each)
        if isinstance(part, ast.expr)
    ):
        return None
    if site.node.lineno != site.node.end_lineno:
        return None
    stack = spell(site.model.symbols, "torch.stack", site.node)
    if stack is None:
        return None
    tensor = source.segment(source.span(site.node.value))
    one = [
        f"{tensor}[{', '.join([*(_text(site, each) for each in before), str(each), *(_text(site, x) for x in after)])}]"
        for each in positions
    ]
    dim = "" if not before else f", {-1 if ellipsis else at}"
    new = f"{stack.text}([{', '.join(one)}]{dim})"
    if makes_long_line(site, new):
        return None
    edit = replace(source, site.span, new)
    return Fix("Stack the parts, which are views on the GPU", Safety.UNSAFE, (edit,), stack.imports)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _text(site: SubscriptSite, node: ast.expr) -> str:
    return site.model.source.segment(site.model.source.span(node))
