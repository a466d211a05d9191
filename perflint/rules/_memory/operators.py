"""The effect of torch's operators on the memory of their operands: view it, read it, keep it for the backward pass."""

from __future__ import annotations

import ast
import re

from perflint.rules._methods import is_false
from perflint.rules._operators import operators
from perflint.semantics.around import inside
from perflint.semantics.facts import torch_api
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.structure import arguments, last_name
from perflint.semantics.values import Array, Const, Evidence, Instance, Scalar, Tensor

FACTS = operators("memory", "facts")
"""Attributes that are the same for any tensor of the same values."""
ASKS = operators("memory", "asks")
"""Methods that answer the same for any tensor of the same values."""
ASKS_LAYOUT = operators("memory", "asks_layout")
ASKS_IDENTITY = operators("memory", "asks_identity")
"""Attributes that distinguish a tensor from a copy of it."""
ALIASES = operators("memory", "aliases")
"""Attributes that share the tensor's memory."""
_KEEP_ORDER = operators("memory", "keep_order")
VIEWS = _KEEP_ORDER | operators("memory", "other_views")
"""Operators whose result may share the memory of the first operand."""
LAYS_OUT = operators("memory", "lays_out")
"""Operators that need elements that follow one another; all but `clone` may share the memory."""
MOVES = operators("memory", "moves")
ELEMENTWISE = operators("memory", "elementwise")
"""Operators with the same result, bit for bit, for operands of any strides."""
JOINS = operators("memory", "joins")
"""Operators that take their operands in a list."""
MULTIPLIES = operators("memory", "multiplies")
"""Operators that lay out their operands before they multiply them."""
SAVES_NOTHING = operators("memory", "saves_nothing")
"""Operators of which autograd keeps no operand."""
SAVES_OTHERS = operators("memory", "saves_others")
"""Operators of which autograd keeps the index or mask, but not the first operand."""
LAYOUT_OF_FIRST = operators("memory", "layout_of_first")
"""Operators whose result takes its strides from the first operand alone."""
LAYOUT_OF_NONE = operators("memory", "layout_of_none")
"""Operators whose result takes its strides from no operand."""
MODULE_STATE = operators("memory", "module_state")
"""Methods whose results share the memory of a module's parameters and buffers."""
RESHAPES = operators("memory", "reshapes")
"""Methods that give a tensor another shape while it keeps its name."""
_NAMES_RESHAPES = re.compile(rf"\b(?:{'|'.join(sorted(RESHAPES))}|setattr|register\w*_forward\w*_hook)\b")
KEEPS = tuple(sorted(operators("memory", "keeps")))
"""Functions that may keep their arguments, change them, or call functions that do."""
BINDS = operators("memory", "binds")
"""Functions whose effect is on this tensor, and not on others with the same values."""
GROWS = operators("memory", "grows")
"""Methods by which a container takes something in."""
_CHANGES = (*KEEPS, "torch.optim.", "torch._foreach", "torch.Tensor.backward", "torch.Tensor.register_hook")
GATHERS = frozenset(("accelerate.Accelerator.gather", "accelerate.Accelerator.gather_for_metrics"))
"""Functions that join the tensors of all processes. All processes have to call them in one order."""
_KNOWN = (
    *("torch.", "builtins.", "math.", "numpy.", "typing.", "warnings.", "logging.", "operator.", "functools."),
    *GATHERS,
)
_RUNS_OTHERS = operators("memory", "runs_others")
"""Functions of Python that run, or look up, code of others."""
PASSES_ON = operators("memory", "passes_on")
"""Functions whose results hold their arguments or the elements of them. Of one process, nothing is gathered."""
_ARRAY_WRITES = operators("memory", "array_writes")
_ARRAY_FUNCTIONS = operators("memory", "array_functions")
_OPERATOR_WRITES = operators("memory", "operator_writes")
_SPECIAL_WRITES = operators("memory", "special_writes")
FRESH = operators("memory", "fresh")
"""Operators that create a tensor of their own, and do not keep it for the backward pass."""
_DECIDES = operators("memory", "decides")
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.MatMult)


def is_layer(model: Model, call: ast.Call) -> bool:
    """True if a call is one of a module, or of another object that is called as they are."""
    return model.target(call).endswith(".__call__")


def is_known(model: Model, call: ast.Call) -> bool:
    """True for a call of torch, Python or NumPy that writes to none of its arguments, unless its name says so."""
    target = model.target(call)
    return target.startswith(_KNOWN) and not target.startswith(_CHANGES) and target not in _RUNS_OTHERS


def keeps_order(name: str) -> bool:
    """True if a view has its elements in the order of the tensor that it is of."""
    return name in _KEEP_ORDER


def shared(model: Model, node: ast.expr) -> ast.expr:
    """The expression whose memory a view is of: `x` for `x.detach()[0].T`."""
    while True:
        if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in ALIASES):
            node = node.value
            continue
        if not isinstance(node, ast.Call):
            return node
        head, _, leaf = torch_api.canonical(model.target(node)).rpartition(".")
        if leaf == "clone" or (leaf not in VIEWS and leaf not in LAYS_OUT):
            return node
        if head == "torch.Tensor" and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif head in ("torch", "torch.nn.functional") and node.args:
            node = node.args[0]
        else:
            return node


def is_fresh(model: Model, node: ast.expr, *, surely: bool = True) -> bool:
    """True if an expression makes a tensor with memory of its own, which autograd does not keep.

    Unless `surely`, unknown operands count as tensors or numbers: an object of another class
    may return anything.
    """
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, _ARITHMETIC) and _are_numbers(model, [node.left, node.right], surely)
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and _are_numbers(model, [node.left, *node.comparators], surely)
    if not isinstance(node, ast.Call):
        return False
    if any(keyword.arg in ("requires_grad", "out", None) for keyword in node.keywords):
        return False
    target = model.target(node)
    head, _, leaf = target.rpartition(".")
    if target in FRESH:
        return target != "torch.where" or len(node.args) != 1
    return head in ("torch", "torch.Tensor") and leaf in _DECIDES


def _are_numbers(model: Model, operands: list[ast.expr], surely: bool) -> bool:
    """True if operands are tensors, one at least, and numbers."""
    values = [model.value(each) for each in operands]
    tensors = [value for value in values if isinstance(value, Tensor)]
    if not tensors or any(isinstance(value, Instance) for value in values):
        return False
    if not surely:
        return True
    return all(
        isinstance(value, (Array, Const, Scalar)) or (isinstance(value, Tensor) and value.evidence > Evidence.USE)
        for value in values
    )


def written(model: Model, node: ast.AST) -> list[ast.expr]:
    """The targets to which a node writes: stores, methods and functions that end in "_", `out` and `inplace`."""
    if isinstance(node, ast.Subscript):
        return [node.value] if isinstance(node.ctx, ast.Store) else []
    if isinstance(node, ast.AugAssign):
        return [] if isinstance(node.target, ast.Subscript) else [node.target]
    if isinstance(node, ast.Attribute):
        return [node.value] if node.attr in ALIASES and isinstance(node.ctx, ast.Store) else []
    if not isinstance(node, ast.Call):
        return []
    found = [keyword.value for keyword in node.keywords if keyword.arg == "out"]
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    in_place = any(keyword.arg == "inplace" and not is_false(keyword.value) for keyword in node.keywords)
    if in_place or (name.endswith("_") and not name.endswith("__")):
        found += node.args[:1]
        if isinstance(node.func, ast.Attribute):
            found.append(node.func.value)
    elif name in _ARRAY_WRITES and isinstance(node.func, ast.Attribute):
        if model.value(node.func.value).tensor is None:
            found.append(node.func.value)
    elif name in _SPECIAL_WRITES and isinstance(node.func, ast.Attribute):
        found.append(node.func.value)
    elif model.target(node) in _ARRAY_FUNCTIONS or model.target(node) in _OPERATOR_WRITES:
        found += node.args[:1]
    return found


def is_bound_write(model: Model, node: ast.AST) -> bool:
    """True if a node takes a method that writes, to call it later: `step = x.add_`."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return False
    parent = model.parent(node)
    called = isinstance(parent, ast.Call) and parent.func is node
    writes = node.attr.endswith("_") and not node.attr.endswith("__")
    return not called and (writes or node.attr in _SPECIAL_WRITES)


@once
def reshapes_somewhere(model: Model) -> bool:
    """True if any code of the file may give a tensor, or the result of a layer, another shape, type or class.

    Other names of the tensor reach too far to follow: containers, exceptions, hooks, defaults of parameters.
    """
    return (
        model.matches(_NAMES_RESHAPES)
        or any(each.attr in _SWAPS and isinstance(each.ctx, ast.Store) for each in model.nodes(ast.Attribute))
        or any(each.arg == "out" for each in model.nodes(ast.keyword))
    )


_SWAPS = ("data", "__class__")


def inference_around(model: Model, node: ast.AST) -> ast.AST | None:
    """The innermost `with torch.inference_mode():` around a node in its function."""
    for outer in inside(model, node):
        for item in outer.items if isinstance(outer, (ast.With, ast.AsyncWith)) else ():
            if "inference_mode" in model.source.written(item.context_expr):
                return outer
    return None


def records(model: Model, node: ast.AST) -> bool:
    """True if autograd may record operations at a node: no `no_grad` or `inference_mode` is around it."""
    for outer in model.ancestors(node):
        contexts: list[ast.expr] = []
        if isinstance(outer, (ast.With, ast.AsyncWith)):
            contexts = [item.context_expr for item in outer.items]
        elif isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            contexts = outer.decorator_list
        for context in contexts:
            name = last_name(context)
            if name in ("no_grad", "inference_mode"):
                given = context.args if isinstance(context, ast.Call) else []
                return bool(given)
            if name in ("enable_grad", "set_grad_enabled"):
                return not (isinstance(context, ast.Call) and any(map(is_false, arguments(context))))
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return True
    return True
