"""The type of an unknown object by its use: forms of calls that practically only tensors, or modules, accept.

A name alone is not enough where arrays, series or modules have it too: `x.size(0)` is a tensor's, `queue.size()`
may be anybody's. The names that are enough alone are `torch_api.tensor_only_methods`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from perflint.semantics.facts import conventions, torch_api

TENSOR = "tensor()"
"""Stands among the attributes that a function reads of a name, where one of its calls shows a tensor."""

ARRAY = "[:, None]"
"""Stands there, where an index shows a tensor or an array."""

PART = "[i] * y"
"""Stands there, where an element is an operand: those of modules are modules, and those of arrays are not moved."""

MODULE_ONLY = frozenset("named_parameters named_buffers named_modules named_children register_forward_pre_hook".split())
"""Methods that only modules have."""

ACCELERATOR_ONLY = frozenset("gather_for_metrics pad_across_processes unwrap_model".split())
"""Methods that only objects of `accelerate` have, which return their arguments."""

OF_ACCELERATOR = ACCELERATOR_ONLY | frozenset("prepare accumulate is_main_process sync_gradients gather".split())
"""Attributes that count for an object named `accelerator`, if it is of that class."""

_OF_CALLED = frozenset("train eval state_dict load_state_dict parameters zero_grad to cuda".split())
"""Attributes of modules that no other callable object has: neither tensors nor batches are called."""

_MODULE_AMONG = frozenset("train eval modules children state_dict load_state_dict buffers zero_grad forward".split())


def is_module(uses: set[str]) -> bool:
    """True if the attributes that are read of a name are those of a module."""
    if "parameters" in uses and not uses.isdisjoint(_MODULE_AMONG):
        return True
    return not uses.isdisjoint(MODULE_ONLY) or uses >= {"train", "eval"}


def is_called_module(uses: set[str]) -> bool:
    """True if the attributes that are read of a name which is called, too, are those of a module."""
    return not uses.isdisjoint(_OF_CALLED)


def is_tensor(uses: set[str]) -> bool:
    """True if the attributes that are read of a name are those of a tensor alone."""
    return TENSOR in uses or not uses.isdisjoint(torch_api.tensor_only_methods())


def is_computed(name: str) -> bool:
    """True for an attribute that tensors have and modules do not: something that is moved to a GPU is a tensor then."""
    return name in _REDUCED or name in torch_api.tensor_only_calls()


def is_of_module(name: str) -> bool:
    """True for an attribute that modules have and tensors do not: something that is moved to a GPU is a module then."""
    return name in _MODULE_AMONG or name in MODULE_ONLY or name == "parameters"


def counts_elements(uses: set[str]) -> bool:
    """True if the attributes that are read of a name have `numel` among them, and others that no size has."""
    return "numel" in uses and any(not hasattr(tuple, each) for each in uses - {"numel"})


def shows_array(index: ast.Tuple) -> bool:
    """True if an index of several dimensions is one that only tensors and arrays take: `x[:, None]`, `x[..., 0]`."""
    return any(
        isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value in (None, ...))
        for part in index.elts
    )


def is_operand(part: ast.Subscript, parent: ast.AST) -> bool:
    """True if an element is an operand of arithmetic: `x[i] * y`. Not an entry of a dict: `x["mask"] * y`."""
    key = part.slice
    if isinstance(key, ast.Constant) and not isinstance(key.value, int):
        return False
    return isinstance(parent, ast.BinOp)


def shows_tensor(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """True if practically only tensors have such a method, by its name, its arguments and the use of its result.

    `call.func` is an attribute; `parents` hold the nodes around the call.
    """
    assert isinstance(call.func, ast.Attribute)
    if isinstance(call.func.value, ast.Name) and call.func.value.id in ("self", "cls"):
        return False
    form = _FORMS.get(call.func.attr)
    if form is not None and form(call, parents):
        return True
    return any(map(_names_dimension, call.keywords)) and call.func.attr in torch_api.tensor_methods()


def reads_number(call: ast.Call, packages: frozenset[str]) -> bool:
    """True if `x.item()`, `x.tolist()` or `(x > 0).any()` is of a tensor: an entry of a TensorDict, or anything in a
    file without other arrays.

    `packages` are those that the file imports from.
    """
    assert isinstance(call.func, ast.Attribute)
    entry = call.func.value
    asks_truth = call.func.attr in ("any", "all") and isinstance(entry, ast.Compare)
    if not (call.func.attr in ("item", "tolist") or asks_truth) or call.args or call.keywords:
        return False
    if "torch" in packages and not any(map(conventions.has_other_arrays, packages)):
        return True
    key = entry.slice if isinstance(entry, ast.Subscript) else None
    is_key = isinstance(key, ast.Constant) and isinstance(key.value, str)
    return is_key and not asks_truth and not packages.isdisjoint(("tensordict", "torchrl"))


def _names_dimension(keyword: ast.keyword) -> bool:
    # Labelled arrays name their dimensions: `dim="time"`.
    return keyword.arg == "keepdim" or (keyword.arg == "dim" and _integer(keyword.value) is not None)


def _integer(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return -value if type(value) is int else None
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _follower(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> str:
    """The attribute of a call's result that is read; empty if none is."""
    outer = parents.get(call)
    return outer.attr if isinstance(outer, ast.Attribute) else ""


_Form = Callable[[ast.Call, Mapping[ast.AST, ast.AST]], bool]


def _alone(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> bool:
    return not call.args and not call.keywords


def _operand(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> bool:
    # Loggers and meters have a method `log` too, whose result no operation takes.
    return _alone(call, parents) and isinstance(parents.get(call), ast.BinOp)


def _dimensions(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> bool:
    return bool(call.args) and _integer(call.args[0]) is not None


def _one_dimension(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> bool:
    return len(call.args) == 1 and _integer(call.args[0]) is not None


def _swapped(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> bool:
    # An array's `transpose` takes an order of all its dimensions.
    dimensions = [_integer(arg) for arg in call.args]
    return len(dimensions) == 2 and None not in dimensions and set(dimensions) != {0, 1}


def _sized(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> bool:
    # An array's `view` takes a type.
    return any(_integer(arg) is not None for arg in call.args)


def _open(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> bool:
    return any(_integer(arg) == -1 for arg in call.args)


def _moved(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> bool:
    # Modules are moved and cast as well, but to no integers, nor as a copy; so are results of a kind of their own.
    follower = _follower(call, parents)
    if follower in torch_api.tensor_only_methods() or any(map(_is_integer_type, _given(call))):
        return True
    if any(keyword.arg == "copy" for keyword in call.keywords):
        return True
    to_host = len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == "cpu"
    return to_host and not call.keywords and _is_data(call, parents)


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _is_integer_type(node: ast.expr) -> bool:
    """True for `torch.long` and other types of whole numbers or truth values."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return False
    return node.value.id == "torch" and node.attr in _INTEGERS


_INTEGERS = frozenset("bool int int8 int16 int32 int64 long short uint8".split())


def _to_host(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> bool:
    return _cast(call, parents) or (not call.args and not call.keywords and _is_data(call, parents))


def _is_data(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """True if the result of a call is used in arithmetic, or kept as one of several, which is rare for modules."""
    assert isinstance(call.func, ast.Attribute)
    if isinstance(call.func.value, ast.Attribute) and call.func.value.attr == "data":
        return True
    outer = parents.get(call)
    if isinstance(outer, ast.Call):
        return call in outer.args and isinstance(outer.func, ast.Attribute) and outer.func.attr == "append"
    if isinstance(outer, ast.Assign):
        return all(isinstance(target, ast.Subscript) for target in outer.targets)
    return isinstance(outer, (ast.BinOp, ast.AugAssign, ast.Compare))


def _cast(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> bool:
    if call.args or call.keywords:
        return False
    return is_computed(_follower(call, parents))


def _nonzero(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> bool:
    # An array's gives a tuple.
    follower = _follower(call, parents)
    return bool(follower) and not hasattr(tuple, follower)


_REDUCED = frozenset(
    """sum mean item tolist data max min mul div add sub pow abs view reshape flatten log squeeze argmax argmin any all
    eq norm std var prod cumsum numel nonzero unique gather topk sort""".split()
)
"""Attributes that tensors, arrays and scalars have, but modules do not."""

_FORMS: dict[str, _Form] = {
    **dict.fromkeys("int long short bool isnan isinf isfinite exp sqrt".split(), _alone),
    **dict.fromkeys("sin cos tan tanh relu sigmoid t dim".split(), _alone),
    **dict.fromkeys(("float", "half", "double", "bfloat16"), _cast),
    "cpu": _to_host,
    "log": _operand,
    **dict.fromkeys(("cuda", "to"), _moved),
    "flatten": _dimensions,
    "size": _one_dimension,
    "transpose": _swapped,
    "view": _sized,
    "expand": _open,
    "nonzero": _nonzero,
}
"""Methods that others have too, and how only tensors are called."""
