"""Lists that become tensors in pinned memory, whose copies to the GPU do not block the CPU.

Arrays of NumPy do not: for them, `torch.tensor(array, pin_memory=True)` raises.
"""

from __future__ import annotations

import ast
import re

from perflint.findings import Fix, Heat, Safety
from perflint.fixes.edits import argument, replace, with_argument
from perflint.fixes.imports import spell
from perflint.frozen import dataclass
from perflint.rules._arguments import with_arguments
from perflint.rules._long_lines import makes_long_line
from perflint.rules._order import has_effects
from perflint.rules._project_text import some_file_says
from perflint.rules._proven import is_device, is_device_object, is_list, is_of_tensor, names_cuda
from perflint.rules.placement import CLASSES, MOVES, Move, move
from perflint.rules.sync._filling import NEW_TENSOR, made_by
from perflint.semantics.sites import CallSite
from perflint.semantics.structure import keyword
from perflint.semantics.values import Evidence, Sequence, Tensor
from perflint.source.concrete import code, cst

_SHARING = frozenset(("torch.as_tensor", "torch.asarray"))
"""Constructors that share the memory of an array, if they can."""
_LISTS = frozenset(("list", "tuple", "size", "range"))
_DTYPES = {"Tensor": "float32", **CLASSES}
_OF_DEFAULT = ("torch.Tensor",)
_SETS_DTYPE = re.compile(r"\bset_default_dtype\(")
_SETS_DEVICE = re.compile(r"set_default_device\(|set_default_tensor_type\(|with torch\.device\(")
_ON_CPU = 'device="cpu"'
_MESSAGE = "Copy from pinned memory without blocking the CPU"


@dataclass(frozen=True, slots=True)
class _Names:
    """How the file writes the names of torch at a place, and the imports that it lacks for them."""

    tensor: str
    is_available: str
    dtype: str
    imports: dict[str, tuple[str, ...]]
    """By the name that needs them."""

    def needed(self, text: str) -> tuple[str, ...]:
        """The imports for the names in a text."""
        found = (each for name, imports in self.imports.items() if name in text for each in imports)
        return tuple(dict.fromkeys(found))

    def is_cuda(self, site: CallSite, device: ast.expr) -> str:
        """The code that says if memory for a device is to be pinned, and copied without blocking the CPU.

        Without CUDA, `pin_memory=True` raises, and Apple's GPUs may read memory that is free already. The process of a
        loader that works on the CPU must not pin memory: CUDA cannot begin in a forked process. So the device decides,
        if it can be asked.
        """
        if names_cuda(device):
            return "True"
        if isinstance(device, ast.Attribute) and is_of_tensor(site.model, device):
            return f"{site.text(device.value)}.is_cuda"
        if isinstance(device, (ast.Name, ast.Attribute)) and is_device_object(site.model, device):
            return f'{site.text(device)}.type == "cuda"'
        return f"{self.is_available}()"


def uploaded_later(site: CallSite) -> Fix | None:
    """The tensor in pinned memory, and a copy that does not block the CPU; None if it does not fit.

    Pinned memory that is freed is used again only after the copy, so nothing has to keep it.
    """
    made = made_by(site)
    if made is None or site.heat is Heat.COLD or site.model.compiled(site.node) is not None:
        return None
    if not _is_plain(site, made) or not _is_host_data(site, made):
        return None
    if site.model.target(made) in _OF_DEFAULT and some_file_says(site.model, _SETS_DTYPE):
        return None
    names = _names(site, made)
    if names is None:
        return None
    if site.target in MOVES:
        new = _moved(site, made, names)
    elif site.target == NEW_TENSOR:
        new = _new(site, names)
    else:
        new = _there(site, names)
    if new is None or makes_long_line(site, code(new)):
        return None
    is_proven = is_list(site.model, made.args[0]) and not _may_be_default(site)
    safety = Safety.UNSAFE if is_proven else Safety.DISPLAY
    return Fix(_MESSAGE, safety, (replace(site.model.source, site.span, new),), names.needed(code(new)))


def _may_be_default(site: CallSite) -> bool:
    """True if the device may be None, for the default device, and that may be another one than the CPU."""
    device = site.argument("device", 0) if site.target in MOVES else keyword(site.node, "device")
    if device is None or is_device(site.model, device) or _is_tensor(site, device):
        return False
    model, module = site.model, site.model.module
    is_own = model.serves_project or (module.is_program and not model.is_imported)
    return not is_own or some_file_says(model, _SETS_DEVICE)


def _is_plain(site: CallSite, made: ast.Call) -> bool:
    """True if the call has its data by position, and keywords whose order of evaluation does not matter."""
    if any(isinstance(each, ast.NamedExpr) for each in ast.walk(site.node)):
        return False
    return len(made.args) == 1 and all(
        item.arg in ("dtype", "device") and not has_effects(site.model, item.value) for item in made.keywords
    )


def _is_host_data(site: CallSite, made: ast.Call) -> bool:
    """True if the data is a list."""
    data = made.args[0]
    if site.model.target(made) in _SHARING:
        # These are called for what may be a tensor, whatever an annotation says.
        return isinstance(data, (ast.List, ast.Tuple, ast.ListComp)) and isinstance(site.value(data), Sequence)
    members = site.value(data).members
    return bool(members) and all(isinstance(each, Sequence) and each.type in _LISTS for each in members)


def _names(site: CallSite, made: ast.Call) -> _Names | None:
    """The names of torch at a place; None if one of them means something else there."""
    dtype = _DTYPES.get(site.model.target(made).rpartition(".")[2], "float32")
    found = [
        spell(site.model.symbols, name, site.node)
        for name in ("torch.tensor", "torch.cuda.is_available", f"torch.{dtype}")
    ]
    spelled = [each for each in found if each is not None]
    if len(spelled) < len(found):
        return None
    tensor, is_available, named = (each.text for each in spelled)
    return _Names(tensor, is_available, named, {each.text: tuple(each.imports) for each in spelled})


def _there(site: CallSite, names: _Names) -> cst.Call | None:
    """For a constructor with `device=`, or of a class of torch.cuda."""
    device, call = keyword(site.node, "device"), _of_list(site.concrete, site.target, names)
    if site.target.startswith("torch.cuda."):
        added = f"dtype={names.dtype}", _ON_CPU, "pin_memory=True"
        return None if site.node.keywords else _sent(with_arguments(call, *added), '"cuda"', "True")
    return None if device is None else _instead_of_device(site, call, device, names)


def _new(site: CallSite, names: _Names) -> cst.Call | None:
    """For `x.new_tensor(data)`, which takes dtype and device from x."""
    if not isinstance(site.owner, (ast.Name, ast.Attribute)) or has_effects(site.model, site.owner):
        return None
    other, device = site.text(site.owner), keyword(site.node, "device")
    call: cst.Call | None = site.concrete.with_changes(func=cst.parse_expression(names.tensor))
    if keyword(site.node, "dtype") is None:
        call = with_arguments(call, f"dtype={other}.dtype")
    if device is not None:
        return None if call is None else _instead_of_device(site, call, device, names)
    pinned = with_arguments(call, _ON_CPU, f"pin_memory={other}.is_cuda")
    return _sent(pinned, f"{other}.device", f"{other}.is_cuda")


def _moved(site: CallSite, made: ast.Call, names: _Names) -> cst.Call | None:
    """For a constructor on the CPU whose result is moved at once."""
    moved, outer = move(site), site.concrete
    if moved is None or not moved.simple or moved.non_blocking is not None or keyword(made, "device") is not None:
        return None
    if site.target not in ("torch.Tensor.to", "torch.Tensor.cuda") or site.owner is not made:
        return None
    if not isinstance(outer.func, cst.Attribute) or not isinstance(outer.func.value, cst.Call):
        return None
    target, is_cuda = site.model.target(made), _goes_to_cuda(site, moved, names)
    is_class = target.rpartition(".")[2] in _DTYPES
    added = [f"dtype={names.dtype}"] * is_class + [_ON_CPU, f"pin_memory={is_cuda}"]
    call = with_arguments(_of_list(outer.func.value, target, names), *added)
    if call is None or (is_class and made.keywords):
        return None
    return with_argument(outer.with_changes(func=outer.func.with_changes(value=call)), f"non_blocking={is_cuda}")


def _goes_to_cuda(site: CallSite, moved: Move, names: _Names) -> str:
    """The code that says if a move goes to a GPU that pinned memory serves."""
    if site.target == "torch.Tensor.cuda":
        return "True"
    if moved.device is not None:
        return names.is_cuda(site, moved.device)
    is_known = moved.other is not None and _is_tensor(site, moved.other)
    return f"{site.text(moved.other)}.is_cuda" if is_known and moved.other else f"{names.is_available}()"


def _is_tensor(site: CallSite, node: ast.expr) -> bool:
    value = site.value(node)
    is_plain = isinstance(node, (ast.Name, ast.Attribute))
    return is_plain and isinstance(value, Tensor) and value.evidence >= Evidence.ANNOTATION


def _of_list(call: cst.Call, target: str, names: _Names) -> cst.Call:
    """A constructor with `torch.tensor` as its function, which stays as it is written if it is that already."""
    return call if target == "torch.tensor" else call.with_changes(func=cst.parse_expression(names.tensor))


def _instead_of_device(site: CallSite, call: cst.Call, device: ast.expr, names: _Names) -> cst.Call | None:
    """The call on the CPU, in memory that is pinned if its device is a GPU of CUDA, and the copy to that device."""
    new, is_cuda = argument(_ON_CPU), names.is_cuda(site, device)
    arguments = [
        each.with_changes(value=new.value) if each.keyword is not None and each.keyword.value == "device" else each
        for each in call.args
    ]
    pinned = with_argument(call.with_changes(args=arguments), f"pin_memory={is_cuda}")
    return _sent(pinned, site.text(device), is_cuda)


def _sent(call: cst.Call | None, place: str, is_cuda: str) -> cst.Call | None:
    """The move of a call's result to a device, which does not block the CPU if an expression is true."""
    if call is None:
        return None
    moved = cst.Call(cst.Attribute(call.with_changes(lpar=[], rpar=[]), cst.Name("to")), [argument(place)])
    return with_argument(moved, f"non_blocking={is_cuda}")
