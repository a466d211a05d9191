"""Tests that tell a run on the CPU from a run on the GPU: `device_type == "cuda"`, `torch.cuda.is_available()`."""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.semantics.facts import conventions
from perflint.semantics.structure import last_name, path_of
from perflint.semantics.values import Device, Value


def runs_on_cpu(test: ast.expr, outcome: bool, values: Callable[[ast.expr], Value]) -> bool:
    """True if a test that comes out as `outcome` says that the program runs on the CPU, not that one tensor is there.

    A tensor on the device of the model shows it: `if not x.is_cuda:`.
    """
    if isinstance(test, ast.Attribute) and test.attr in ("is_cuda", "is_cpu"):
        return (test.attr == "is_cpu") is outcome and _is_beside_model(values(test.value))
    if isinstance(test, ast.Call):
        return _asks_for_gpu(test, values) and not outcome
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(test, outcome, values)
    name = last_name(test)
    return (bool(conventions.means_gpu(name)) and not outcome) or (bool(conventions.means_no_gpu(name)) and outcome)


def _asks_for_gpu(call: ast.Call, values: Callable[[ast.expr], Value]) -> bool:
    """`torch.cuda.is_available()`, `device.startswith("cuda")`."""
    if conventions.means_gpu(last_name(call)):
        return True
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "is_available":
        return path_of(call.func.value).rpartition(".")[2] == "cuda"
    is_cuda = call.func.attr == "startswith" and len(call.args) == 1 and _is_gpu(call.args[0])
    return is_cuda and _names_device(call.func.value, values)


def _compared(test: ast.Compare, outcome: bool, values: Callable[[ast.expr], Value]) -> bool:
    operator, sides = test.ops[0], (test.left, test.comparators[0])
    kind, device = sides if isinstance(test.left, ast.Constant) else (sides[1], sides[0])
    same = isinstance(operator, (ast.Eq, ast.Is, ast.In)) is outcome
    if not isinstance(operator, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)):
        return False
    if isinstance(kind, ast.Call) and last_name(kind) == "device" and kind.args:
        # `device == torch.device("cpu")`
        kind = kind.args[0]
    if not _names_device(device, values):
        return False
    return same if isinstance(kind, ast.Constant) and kind.value == "cpu" else _is_gpu(kind) and not same


def _is_beside_model(value: Value) -> bool:
    """True for a tensor that is where the model is."""
    return value.tensor is not None and value.tensor.device is Device.MODEL


def _is_gpu(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(("cuda", "gpu"))


def _names_device(node: ast.expr, values: Callable[[ast.expr], Value]) -> bool:
    """True if an expression is the device of a program, by its name: `device_type`, `str(args.device)`."""
    if isinstance(node, ast.Call) and last_name(node) == "str" and node.args:
        node = node.args[0]
    if isinstance(node, ast.Attribute) and node.attr == "type":
        node = node.value
    if isinstance(node, ast.Attribute) and values(node.value).tensor is not None:
        return _is_beside_model(values(node.value))
    return bool(path_of(node)) and bool(conventions.is_device(last_name(node).removesuffix("_type")))
