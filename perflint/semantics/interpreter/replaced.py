"""Parameters that are tensors, since a tensor beside others replaces them where they are None."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from perflint.semantics.binders import own_nodes
from perflint.semantics.structure import FunctionInfo, last_name, path_of


def replaced_by_tensor(info: FunctionInfo, imports: Mapping[str, str]) -> frozenset[str]:
    """The parameters that a function replaces: `if times is None: times = torch.arange(3, device=x.device)`.

    A default on the CPU does not show the device of an argument, so it does not count. A function that asks for
    the type of an argument, or converts it, takes other types, too.
    """
    if isinstance(info.node, ast.Lambda):
        return frozenset()
    nodes = list(own_nodes(info.node))
    found = {name for node in nodes for name, value in _replaced(node) if _is_beside_others(value, imports)}
    return frozenset(found - {name for node in nodes for name in of_other_types(node)}) if found else frozenset()


def _replaced(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement replaces where they are None, and the values that they get."""
    if isinstance(node, ast.If) and (name := _none(node.test, ast.Is)):
        values = (part for part in node.body if isinstance(part, ast.Assign))
        yield from ((name, part.value) for part in values if last_name(part.targets[0]) == name)
    elif isinstance(node, ast.IfExp) and (name := _none(node.test, ast.Is)) and path_of(node.orelse) == name:
        yield name, node.body
    elif isinstance(node, ast.IfExp) and (name := _none(node.test, ast.IsNot)) and path_of(node.body) == name:
        yield name, node.orelse


def _none(test: ast.expr, operator: type[ast.cmpop]) -> str:
    """The name `x` of `x is None`, or "" for other tests."""
    if (
        not isinstance(test, ast.Compare)
        or not isinstance(test.ops[0], operator)
        or not isinstance(test.left, ast.Name)
    ):
        return ""
    other = test.comparators[0]
    return test.left.id if isinstance(other, ast.Constant) and other.value is None else ""


def _is_beside_others(value: ast.expr, imports: Mapping[str, str]) -> bool:
    """True for a call of torch that makes a tensor on the device of other tensors."""
    places = False
    while isinstance(value, ast.Call):
        name = last_name(value)
        if imports.get(path_of(value.func).partition(".")[0], "").partition(".")[0] == "torch":
            return name in _MAKES and (places or name.endswith("_like") or _names_device(value))
        if not isinstance(value.func, ast.Attribute):
            return False
        if name in _MAKES_BESIDE:
            return True
        places = places or (name in ("to", "type_as") and bool(value.args) and _is_place(value.args[0]))
        value = value.func.value
    return False


_MAKES = frozenset(
    """zeros ones full empty rand randn randint randperm arange linspace logspace eye tensor LongTensor FloatTensor
    zeros_like ones_like full_like empty_like rand_like randn_like randint_like""".split()
)
_MAKES_BESIDE = frozenset("new_zeros new_ones new_full new_empty new_tensor".split())


def _names_device(call: ast.Call) -> bool:
    return any(each.arg == "device" and _is_place(each.value) for each in call.keywords)


def _is_place(node: ast.expr) -> bool:
    """True for `x.device`, `device` and a tensor, not for a device that is written out."""
    return isinstance(node, (ast.Attribute, ast.Name)) and not path_of(node).startswith("torch.")


def of_other_types(node: ast.AST) -> Iterator[str]:
    """The name in a call that takes an argument of another type: `isinstance(x, list)`, `torch.as_tensor(x)`."""
    if isinstance(node, ast.Call) and node.args and last_name(node) in _ASKS and isinstance(node.args[0], ast.Name):
        yield node.args[0].id


_ASKS = frozenset(
    """isinstance is_tensor type as_tensor tensor asarray array from_numpy float int list tuple LongTensor
    FloatTensor""".split()
)
