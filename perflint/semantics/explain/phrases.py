"""The operation on its operands in words: the call, the index, the operator."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from perflint.semantics.facts import torch_api
from perflint.semantics.structure import keyword
from perflint.semantics.values import (
    Class,
    Device,
    Dtype,
    Function,
    Instance,
    Name,
    Never,
    Sequence,
    Tensor,
    Unknown,
)
from perflint.source.quoting import LONGEST, quoted

if TYPE_CHECKING:
    from perflint.semantics.inferred import Inferred

Why = tuple[str, ast.expr | None]
"""Words on an expression, and the expression inside it that decides its value."""

_MOVES = frozenset("to cuda cpu type type_as pin_memory".split())
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}


def why(model: Inferred, node: ast.expr) -> Why:
    """Why an expression has its value, given the values inside it; empty if the code shows it plainly."""
    handler = _EXPRESSIONS.get(type(node))
    return ("", None) if handler is None else handler(model, node)


def quote(model: Inferred, node: ast.AST) -> str:
    """The code of an expression, or the first line of a statement, in backquotes and not too long."""
    assert isinstance(node, (ast.expr, ast.stmt, ast.arg))
    text = model.source.written(node).strip()
    if isinstance(node, (ast.expr, ast.arg)):
        return quoted(text)
    first, *more = text.splitlines()
    first = first.rstrip()
    if len(first) > LONGEST:
        return f"`{first[: LONGEST - 1].rstrip()}…`"
    goes_on = bool(more) and not first.endswith(":")
    return f"`{first.removesuffix(':')}{'…' if goes_on else ''}`"


# Calls


def _call(model: Inferred, node: ast.Call) -> Why:
    target, value = model.target(node), model.value(node)
    if not target:
        return _unknown_call(model, node)
    if target in _PASSES and node.args:
        return "", node.args[0]
    if target.startswith("torch.Tensor.") and isinstance(node.func, ast.Attribute):
        return _of_tensors(model, node, target, [node.func.value, *_arguments(node)])
    callee = model.value(node.func)
    if target == "torch.nn.Module.__call__":
        return f"the result of the module {quote(model, node.func)}", node.func
    if isinstance(callee, Function):
        return _project_call(model, node, callee)
    if isinstance(value, Instance) and value.origin is not None and (isinstance(callee, Class) or value.cls == target):
        return "an object made here", None
    if isinstance(value, Unknown):
        return f"the result of {_short(target)}, which is unknown", None
    if target.startswith("torch."):
        return _of_tensors(model, node, target, list(_arguments(node)))
    return f"the result of {_short(target)}", None


_PASSES = frozenset(
    """builtins.enumerate builtins.iter builtins.next builtins.reversed builtins.sorted builtins.list builtins.tuple
    tqdm.tqdm tqdm.auto.tqdm copy.copy copy.deepcopy""".split()
)
"""Functions that return the elements of their first argument."""


def _short(target: str) -> str:
    return target.removeprefix("builtins.")


def _arguments(node: ast.Call) -> Iterator[ast.expr]:
    for arg in node.args:
        yield arg.value if isinstance(arg, ast.Starred) else arg
    for given in node.keywords:
        yield given.value


def _unknown_call(model: Inferred, node: ast.Call) -> Why:
    callee = model.value(node.func)
    if isinstance(callee, Never):
        return f"{quote(model, node.func)} cannot be there", None
    if isinstance(node.func, ast.Attribute) and isinstance(model.value(node.func.value), Unknown):
        return f"a call of `.{node.func.attr}` of something unknown", node.func.value
    return f"a call of {quote(model, node.func)}, which is unknown", node.func


def _project_call(model: Inferred, node: ast.Call, function: Function) -> Why:
    module = model.view.loaded(function.module)
    info = module.function(function.line, function.column) if module is not None else None
    if info is None or isinstance(info.node, ast.Lambda):
        return f"the result of {quote(model, node.func)}", None
    elsewhere = "" if module is model.module else f" of {function.module}"
    words = f"the result of {info.qualname} (line {function.line}{elsewhere})"
    if info.node.returns is not None:
        words += f", annotated {quoted(ast.unparse(info.node.returns))}"
    return f"{words}, which is unknown" if isinstance(model.value(node), Unknown) else words, None


def _of_tensors(model: Inferred, node: ast.Call, target: str, operands: list[ast.expr]) -> Why:
    """A function of torch or a method of a tensor."""
    value = model.value(node)
    tensor = value.tensor
    if tensor is None and isinstance(value, Sequence):
        tensor = value.element.tensor
    name = _short(target)
    method = target.removeprefix("torch.Tensor.") if target.startswith("torch.Tensor.") else ""
    if tensor is None:
        made = f"the result of {name}"
        return (made, operands[0]) if method and isinstance(value, Unknown) else (made, None)
    given = keyword(node, "device")
    if method in _MOVES and isinstance(node.func, ast.Attribute):
        return _moved(model, node.func, node, tensor, given)
    if given is not None:
        return f"the result of {name} with {quoted(f'device={ast.unparse(given)}')}", given if _is_name(given) else None
    deciding = _in_charge(model, tensor, operands)
    if deciding is not None:
        return f"the result of {name}, where {quote(model, deciding)} is", deciding
    facts = torch_api.result(target)
    if facts is not None and facts.device == "cpu-factory" and tensor.device is Device.CPU:
        return f"the result of {name} without `device=`, on the CPU", None
    if tensor.device is Device.CPU and not any(model.value(operand).tensor for operand in operands):
        return f"the result of {name}, on the CPU", None
    return f"the result of {name}", None


def _moved(model: Inferred, method: ast.Attribute, node: ast.Call, result: Tensor, device: ast.expr | None) -> Why:
    """A method that takes a tensor elsewhere, or to another dtype."""
    code = quoted(_call_text(node, method.attr))
    before = model.value(method.value).tensor
    if before is None or (before.device, before.place) == (result.device, result.place):
        return f"the result of {code} on {quote(model, method.value)}", method.value
    place = next(filter(None, [device, *node.args]), None)
    is_dtype = place is None or isinstance(model.value(place), Dtype)
    return f"moved by {code}", None if is_dtype or place is None or not _is_name(place) else place


def _call_text(node: ast.Call, method: str) -> str:
    arguments = ", ".join(ast.unparse(part) for part in (*node.args, *node.keywords))
    return f".{method}({arguments})"


def _is_name(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _in_charge(model: Inferred, result: Tensor, operands: list[ast.expr]) -> ast.expr | None:
    """The operand whose device the result has."""
    for operand in operands:
        value = model.value(operand)
        found = value.tensor
        if found is None and isinstance(value, Sequence):
            found = value.element.tensor
        if found is not None and found.device is result.device and found.place == result.place:
            return operand
    return None


# Operators


def _binary(model: Inferred, node: ast.BinOp) -> Why:
    operator = _OPERATORS[type(node.op)]
    return _computed(model, node, [node.left, node.right], f"`{operator}`")


def _compare(model: Inferred, node: ast.Compare) -> Why:
    return _computed(model, node, [node.left, *node.comparators], "a comparison")


def _unary(model: Inferred, node: ast.UnaryOp) -> Why:
    return "", node.operand if model.value(node).tensor is not None else None


def _computed(model: Inferred, node: ast.expr, operands: list[ast.expr], words: str) -> Why:
    value = model.value(node)
    if value.tensor is not None:
        decides = _in_charge(model, value.tensor, operands) or next(
            (operand for operand in operands if model.value(operand).tensor is not None), None
        )
        return (f"{words} with the tensor {quote(model, decides)}", decides) if decides is not None else ("", None)
    if not isinstance(value, Unknown):
        return "", None
    unknown = next((operand for operand in operands if isinstance(model.value(operand), Unknown)), None)
    if unknown is None:
        return f"{words} of these, which is unknown", None
    return f"{words} with {quote(model, unknown)}, which is unknown", unknown


def _either(model: Inferred, node: ast.expr, branches: list[ast.expr]) -> Why:
    tensor = next((branch for branch in branches if model.value(branch).tensor is not None), None)
    words = " or ".join(quote(model, branch) for branch in branches)
    return f"one of {words}" if len(branches) == 2 else "one of several", tensor


# The rest


def _subscript(model: Inferred, node: ast.Subscript) -> Why:
    receiver = model.value(node.value)
    name = quote(model, node.value)
    if isinstance(receiver, Tensor):
        return f"an index of the tensor {name}", node.value
    if isinstance(receiver, Name):
        return "", None
    if isinstance(receiver, Unknown):
        return f"an element of {name}, which is unknown", node.value
    return f"an element of {name}", node.value


def _element(model: Inferred, node: ast.List | ast.Tuple | ast.Set) -> Why:
    return "", next((element for element in node.elts if model.value(element).tensor is not None), None)


def _comprehension(model: Inferred, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Why:
    return "", node.elt if _is_name(node.elt) else None


def _inner(model: Inferred, node: ast.Await | ast.Starred | ast.NamedExpr) -> Why:
    return "", node.value


def _yielded(model: Inferred, node: ast.expr) -> Why:
    return "values that are sent to a generator are unknown", None


_EXPRESSIONS: dict[type[ast.expr], Callable[[Inferred, Any], Why]] = {
    ast.Call: _call,
    ast.BinOp: _binary,
    ast.Compare: _compare,
    ast.UnaryOp: _unary,
    ast.IfExp: lambda model, node: _either(model, node, [node.body, node.orelse]),
    ast.BoolOp: lambda model, node: _either(model, node, node.values),
    ast.Subscript: _subscript,
    ast.List: _element,
    ast.Tuple: _element,
    ast.Set: _element,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.Await: _inner,
    ast.Starred: _inner,
    ast.NamedExpr: _inner,
    ast.Yield: _yielded,
    ast.YieldFrom: _yielded,
}
"""Names and attributes are looked up in `reasons`."""
