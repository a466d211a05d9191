"""Expressions that may be evaluated in front of their statement."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.rules._visible import is_local
from perflint.semantics.binders import How
from perflint.semantics.facts import torch_api
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.structure import walk
from perflint.semantics.values import Device, Evidence, Tensor, Value

_PARTS = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Slice, ast.Tuple, ast.keyword)

_ON_GPU = frozenset((Device.CUDA, Device.MODEL))
_OTHER_GPU = re.compile(r"\bcuda:[1-9]|\.cuda\([1-9]|\bdevice_map\b")


def is_on_only_gpu(model: Model, value: Value) -> bool:
    """True if a tensor is on the GPU, and the file knows one GPU only."""
    return isinstance(value, Tensor) and value.device in _ON_GPU and not knows_several_gpus(model)


def knows_several_gpus(model: Model) -> bool:
    """True if a file names a GPU other than the first one, or spreads a model over devices."""
    return model.matches(_OTHER_GPU)


def starts_line(model: Model, statement: ast.stmt) -> bool:
    """True if nothing but white space stands in front of a statement on its line."""
    line = model.source.lines[statement.lineno - 1]
    return line[: len(line) - len(line.lstrip())] == line[: statement.col_offset]


def names_of(node: ast.expr) -> Iterator[ast.Name]:
    """The plain names in an expression."""
    return (each for each in walk(node) if isinstance(each, ast.Name))


@once
def words(model: Model) -> frozenset[str]:
    """The names that a file uses, binds or takes as parameters."""
    names = {each.id for each in model.nodes(ast.Name)} | {each.arg for each in model.nodes(ast.arg)}
    return frozenset(names | {each.name for each in model.nodes(ast.FunctionDef)})


def is_of_torch(model: Model, node: ast.expr) -> bool:
    """True for `torch.mean(…)`, whose result is a tensor whatever it is given, and for methods of it."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
        node = node.func.value
    target = model.target(node) if isinstance(node, ast.Call) else ""
    return (
        target.startswith("torch.") and not target.startswith("torch.Tensor.") and torch_api.result(target) is not None
    )


def is_tensor(model: Model, node: ast.expr, value: object) -> bool:
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


def is_plain(model: Model, node: ast.AST) -> bool:
    """True for a part of an expression whose value depends on local names and torch alone.

    Names of the top level count as local if no function or class of the file sees them.
    """
    if isinstance(node, ast.Name):
        return is_local(model, node) or is_module(model, node)
    if isinstance(node, ast.Subscript):
        return isinstance(model.value(node.value), Tensor)
    if isinstance(node, ast.Attribute):
        parent, root = model.parent(node), node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        is_called = isinstance(parent, ast.Call) and parent.func is node and root is node.value
        return is_called or (isinstance(root, ast.Name) and is_module(model, root))
    return isinstance(node, (ast.Call, *_PARTS))


def is_module(model: Model, node: ast.Name) -> bool:
    """True for a name that stands for torch or a part of it."""
    bindings = model.symbols.variable(node).bindings
    return node.id in _of_torch(model) and all(each.how is How.IMPORT for each in bindings)


@once
def _of_torch(model: Model) -> frozenset[str]:
    """The names that a file imports torch and its parts by."""
    return frozenset(each.local for each in model.symbols.imports if each.full.partition(".")[0] == "torch")
