"""Positions on the CPU that one copy brings to the GPU, for all of their uses in a block."""

from __future__ import annotations

import ast
import re

from perflint.findings import Fix, Safety
from perflint.fixes.imports import spell
from perflint.rules._bindings import alone
from perflint.rules._memory.bodies import Writers, memory_around, writers
from perflint.rules._memory.flows import body_around
from perflint.rules._memory.uses import Position
from perflint.rules._order import has_effects
from perflint.rules._project_text import may_be_traced, some_file_says
from perflint.rules._proven import is_list
from perflint.rules.sync._indices import Index, Part, parts
from perflint.rules.sync._once import is_on_only_gpu, is_tensor
from perflint.rules.sync._repeated import Repeated, Sought, edits, is_bound, repeated
from perflint.semantics.around import statement_of
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.sites import SubscriptSite
from perflint.semantics.structure import calls_in, path_of, walk
from perflint.semantics.values import Array, Kind, Sequence, Tensor, scalar_type

_COPIES = frozenset((Index.LIST, Index.HOST_POSITIONS))
_TRACED = re.compile(r"symbolic_trace\(|create_feature_extractor\(|fx\.Tracer")
_STAYS = frozenset("long int short float double half bfloat16 bool detach clone contiguous t".split())
"""Methods of tensors whose result is on the same device."""
_BOUNDS = 3
"""Arguments of `numpy.arange` in front of its dtype."""
_ASKS = frozenset("len print isinstance enumerate zip range sum min max".split())
"""Functions of Python that leave a list as it is."""


def copied_once(site: SubscriptSite) -> Fix | None:
    """One copy of the positions in front of their first use; None if it would not remove a wait."""
    model, around = site.model, body_around(site.model, site.node)
    if isinstance(around, ast.Lambda) or _positions(site) is None:
        return None
    if model.is_scripted(site.node.lineno) or model.compiled(site.node) is not None:
        return None
    copied = _copies(model, around).get(site.node)
    if copied is None or may_be_traced(model) or some_file_says(model, _TRACED):
        return None
    return _fix(model, copied)


def _fix(model: Model, copied: Repeated) -> Fix | None:
    found = [part for each in copied.places if (part := _positions(model.subscript(each))) is not None]
    part = found[0]
    made = _made(model, part, copied, model.source.written(_root(copied.places[0])))
    if made is None:
        return None
    text, imports = made
    message = "Copy the positions once" if len(found) > 1 else "Copy the positions without blocking the CPU"
    # Callers pass arrays and masks in spite of an annotation.
    is_proven = not isinstance(part.value, Sequence) or is_list(model, part.node)
    safety = Safety.UNSAFE if is_proven else Safety.DISPLAY
    return Fix(
        message, safety, edits(model, copied, text, [each.node for each in found]), imports, leaves=("TPF117", "TPF201")
    )


def _made(model: Model, part: Part, copied: Repeated, indexed: str) -> tuple[str, tuple[str, ...]] | None:
    """The code that copies positions to the device of an indexed tensor, and its imports."""
    name, device = model.source.written(part.node), f"{indexed}.device"
    if isinstance(part.value, Tensor):
        return f"{name}.to({device})", ()
    if isinstance(part.value, Array):
        spelled = spell(model.symbols, "torch.as_tensor", copied.first)
        dtype = spell(model.symbols, "torch.long", copied.first)
        if spelled is None or dtype is None:
            return None
        # As an index, an array of floats is cut to whole numbers.
        cut = "" if part.value.kind is Kind.INT else f"dtype={dtype.text}, "
        return f"{spelled.text}({name}, {cut}device={device})", (*spelled.imports, *(dtype.imports if cut else ()))
    found = [spell(model.symbols, each, copied.first) for each in ("torch.tensor", "torch.long")]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    tensor, long = (each.text for each in known)
    # The process of a loader, which works on the CPU, must not pin memory: CUDA cannot begin in a forked process.
    pinned = f'{tensor}({name}, dtype={long}, device="cpu", pin_memory={indexed}.is_cuda)'
    imports = tuple(dict.fromkeys(text for each in known for text in each.imports))
    # Apple's GPUs may read memory that is free already.
    return f"{pinned}.to({device}, non_blocking={indexed}.is_cuda)", imports


@once_per_node
def _copies(model: Model, around: ast.AST) -> dict[ast.Subscript, Repeated]:
    """The copy that each indexing of a function, or of the file's top level, belongs to."""
    found = repeated(model, around, Sought(_positions, _group, _fewest, _keeps))
    return {
        place: copied for place, copied in found.items() if len(copied.places) > 1 or _runs_first(model, copied, place)
    }


def _fewest(part: Part) -> int:
    """One copy of several is worth a name. A list is worth one alone: it can be copied from pinned memory."""
    return 1 if isinstance(part.value, Sequence) else 2


def _positions(site: SubscriptSite) -> Part | None:
    """The only part of an index that is copied to the device: the name of a list, an array or a tensor."""
    if site.mode == "delete" or (site.mode == "store" and not _stores_tensor(site)):
        return None
    root, found = _root(site.node), parts(site)
    node = site.node.slice
    written = node.elts if isinstance(node, ast.Tuple) else [node]
    if len(written) != len(found) or any(isinstance(each, ast.Starred) for each in written):
        return None
    copied = [each for each in found if each.kind in _COPIES]
    if len(copied) != 1 or not isinstance(copied[0].node, ast.Name) or not path_of(root):
        return None
    if not is_tensor(site.model, root, site.value(root)) or not isinstance(site.value(site.node.value), Tensor):
        return None
    return copied[0] if _is_sure(site.model, copied[0]) else None


def _stores_tensor(site: SubscriptSite) -> bool:
    """True unless a number is stored, which the device has to wait for as well."""
    return site.stored is not None and isinstance(site.value(site.stored), Tensor)


def _root(node: ast.Subscript) -> ast.expr:
    """The tensor that parts are taken from, also behind methods that keep its device: `x` of `x.long()[rows]`."""
    root = node.value
    while True:
        if isinstance(root, ast.Subscript):
            root = root.value
        elif isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute) and root.func.attr in _STAYS:
            if root.args or root.keywords:
                return root
            root = root.func.value
        else:
            return root


def _is_sure(model: Model, part: Part) -> bool:
    """True for a tensor, and an array and a list of integers. A list of booleans is a mask.

    Torch cuts arrays of floats to whole numbers if they are an index, and refuses tensors of them.
    """
    value = part.value
    if isinstance(value, Sequence):
        members = [each for item in (value.items or (value.element,)) for each in item.members]
        return value.type in ("list", "range") and all(scalar_type(each) == "int" for each in members)
    if isinstance(value, Array):
        return value.kind is Kind.INT or _counts(model, part.node)
    return is_tensor(model, part.node, value)


def _counts(model: Model, node: ast.expr, levels: int = 4) -> bool:
    """True for an array that NumPy counts up, or for a slice of one: it holds whole numbers, or floats to be cut."""
    if isinstance(node, ast.Name):
        made = alone(model, node) if levels else None
        return made is not None and _counts(model, made, levels - 1)
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and _counts(model, node.value, levels)
    if not isinstance(node, ast.Call) or node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
        return False
    target = model.target(node)
    if target == "numpy.random.permutation":
        # It shuffles an array, too, which may be one of booleans.
        return len(node.args) == 1 and _is_size(model, node.args[0])
    return target == "numpy.arange" and len(node.args) <= _BOUNDS


def _is_size(model: Model, node: ast.expr) -> bool:
    """True for an integer: `range` takes the same expression elsewhere in the function."""
    if scalar_type(model.value(node)) == "int":
        return True
    path, function = path_of(node), model.function(node)
    calls = (each for each in model.nodes(ast.Call) if path and model.function(each) is function)
    ranges = (each for each in calls if model.target(each) == "builtins.range")
    return any(path_of(given) == path for each in ranges for given in each.args)


def _group(site: SubscriptSite) -> object:
    """The same for tensors that are certainly on one device."""
    if is_on_only_gpu(site.model, site.value(site.node.value)):
        return "GPU"
    root = _root(site.node)
    return root.id if isinstance(root, ast.Name) else site.node


def _keeps(site: SubscriptSite, part: Part, begin: Position, end: Position) -> bool:
    """True if positions stay as they are between two places, and the tensor where it is."""
    model, root = site.model, _root(site.node)
    if _group(site) != "GPU" and isinstance(root, ast.Name) and is_bound(model, root, begin, end):
        return False
    assert isinstance(part.node, ast.Name)
    if isinstance(part.value, Tensor):
        return True
    memory = memory_around(model, part.node)
    if not memory.is_own(part.node) and writers(model, part.node, begin, end) > Writers.NONE:
        # Other code may know the list of a parameter.
        return False
    groups, function = memory.group(part.node), model.function(part.node)
    return all(
        _is_read(model, each)
        for each in model.nodes(ast.Name)
        if begin <= (each.lineno, each.col_offset) <= end and model.function(each) is function
        if not groups.isdisjoint(memory.group(each))
    )


def _is_read(model: Model, name: ast.Name) -> bool:
    """True if the use of a list leaves it as it is, and gives it to no other name."""
    outer = model.parent(name)
    if isinstance(outer, ast.Tuple):
        index = model.parent(outer)
        return isinstance(index, ast.Subscript) and index.slice is outer
    if isinstance(outer, ast.Subscript):
        return outer.slice is name or isinstance(outer.ctx, ast.Load)
    if isinstance(outer, ast.Call):
        return name in outer.args and model.target(outer).removeprefix("builtins.") in _ASKS
    return isinstance(outer, (ast.Compare, ast.comprehension)) or (isinstance(outer, ast.For) and outer.iter is name)


def _runs_first(model: Model, copied: Repeated, place: ast.Subscript) -> bool:
    """True if a statement runs no unknown code before it indexes at a place."""
    statement, around = statement_of(model, place), set(model.ancestors(place))
    if statement is not copied.first:
        return False
    calls = (each for each in calls_in(statement) if each not in around)
    return not any(has_effects(model, each) for each in calls) and not any(
        isinstance(each, ast.NamedExpr) for each in walk(statement)
    )
