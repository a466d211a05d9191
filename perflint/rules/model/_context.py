"""The code around a layer in its file: biases set by hand, norms frozen."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.rules._methods import is_self
from perflint.rules.model._layers import is_norm
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.structure import walk
from perflint.semantics.values import Instance


def freezes_norms(model: Model) -> bool:
    """True if a file puts norms, but not whole models, in evaluation mode: their statistics then stay."""
    for node in model.nodes(ast.Call):
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "eval":
            continue
        value = model.value(node.func.value)
        if isinstance(value, Instance) and is_norm(value):
            return True
        if any("Norm" in ast.unparse(test) for test in _tests_around(model, node)):
            return True
    return False


def touches_bias(model: Model, cls: str) -> bool:
    """True if code of the file needs the bias of some object that may be of a layer class to be a tensor.

    Code that asks first, as in `if m.bias is not None`, does not.
    """
    return any(not _is_another(model, node.value, cls) for node in _needed_biases(model, model.source.tree))


# A pattern that begins with letters finds the files for the slower one.
_BIASES = re.compile(r"bias(?<=\.bias)(?<!\bself\.bias)\b")
_SETS = re.compile(r"(?<![\w.])(?!self\b)\w+(?:\.\w+)*\.bias\.\w|init\.\w+\(\s*(?!self\b)\w+(?:\.\w+)*\.bias\b")
"""`m.bias.data.zero_()` and `nn.init.zeros_(m.bias)`."""
_ASKS = re.compile(r"bias(?<=\.bias)\s+(?:is|and|or)\b|if\s+(?:not\s+)?[\w.]+\.bias\b")


def another_file_sets_biases(model: Model) -> bool:
    """True if a file that may run with this one sets biases of other objects, and nowhere tests if they are there."""
    others = (file.path for file in model.view.beside(model.module, _BIASES) if file.path != model.module.path)
    return any(model.view.finds(path, _SETS) and not model.view.finds(path, _ASKS) for path in others)


@once_per_node
def _needed_biases(model: Model, tree: ast.Module) -> list[ast.Attribute]:
    """The places that use the biases of other objects without a test for None."""
    biases = (node for node in model.nodes(ast.Attribute) if node.attr == "bias")
    return [node for node in biases if not is_self(node.value) and not _is_asked(model, node)]


def _is_another(model: Model, node: ast.expr, cls: str) -> bool:
    """True if an object is known to be of a class other than `cls`, by its value or by an `isinstance` around."""
    value = model.value(node)
    own = cls.rpartition(".")[2]
    if isinstance(value, Instance) and value.cls.startswith("torch.nn."):
        known = value.cls.rpartition(".")[2]
        if known not in ("Module", own) and not known.startswith("_"):
            return True
    for test in _tests_around(model, node):
        # Classes are also recognized by their names: `m.__class__.__name__.find("BatchNorm") != -1`.
        words = {each.value for each in walk(test) if isinstance(each, ast.Constant) and isinstance(each.value, str)}
        if any("Norm" in word for word in words) and not any(word and word in own for word in words):
            return True
        for call in walk(test):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "isinstance" and len(call.args) == 2:
                others = set(_last_names(call.args[1])).isdisjoint({own, "_ConvNd", "Module"})
                if others and ast.unparse(call.args[0]) == ast.unparse(node):
                    return True
    return False


def _is_asked(model: Model, node: ast.Attribute) -> bool:
    """True if a condition around the place, or the place itself, tests whether the bias is there."""
    written = ast.unparse(node)
    parent = model.parent(node)
    if isinstance(parent, (ast.Compare, ast.If, ast.BoolOp, ast.IfExp)):
        return True
    return any(written in ast.unparse(test) for test in _tests_around(model, node))


def _tests_around(model: Model, node: ast.AST) -> Iterator[ast.expr]:
    inner: ast.AST = node
    for around in model.ancestors(node):
        in_block = isinstance(around, (ast.If, ast.While)) and inner in around.body
        if isinstance(around, (ast.If, ast.While, ast.IfExp)) and (in_block or inner is around.body):
            yield around.test
        elif isinstance(around, ast.BoolOp):
            yield around
        inner = around


def _last_names(node: ast.expr) -> Iterator[str]:
    for part in node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]:
        yield ast.unparse(part).rpartition(".")[2]
