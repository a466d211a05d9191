"""The effect of torch's operators on the memory of their operands: view it, read it, keep it for the backward pass."""

from __future__ import annotations

import ast

from perflint.rules._methods import is_false
from perflint.semantics.facts import torch_api
from perflint.semantics.model import Model
from perflint.semantics.structure import arguments
from perflint.semantics.values import Array, Const, Evidence, Instance, Scalar, Tensor


def _of(text: str) -> frozenset[str]:
    return frozenset(text.split())


FACTS = _of(
    "shape dtype device ndim layout is_cuda is_cpu requires_grad names itemsize nbytes is_sparse is_quantized is_meta"
)
"""Attributes that are the same for any tensor of the same values."""
ASKS = _of(
    "size dim numel nelement ndimension is_floating_point is_complex element_size get_device item tolist type_as_ "
    "is_inference is_signed"
)
"""Methods that answer the same for any tensor of the same values."""
ASKS_LAYOUT = _of("stride is_contiguous storage_offset")
ASKS_IDENTITY = _of("data_ptr is_pinned is_leaf grad_fn grad retains_grad _version _base is_set_to untyped_storage")
"""Attributes that distinguish a tensor from a copy of it."""
ALIASES = _of("T mT H mH data real imag values indices")
"""Attributes that share the tensor's memory."""
_KEEP_ORDER = _of(
    """unsqueeze detach expand expand_as type to type_as float half long int bool double bfloat16 short char byte cuda
    cpu broadcast_to as_tensor asarray positive numpy conj resolve_conj identity pin_memory dropout dropout1d
    dropout2d dropout3d alpha_dropout feature_alpha_dropout rename"""
)
VIEWS = _KEEP_ORDER | _of(
    """squeeze transpose permute movedim moveaxis swapaxes swapdims t narrow select
    diagonal unbind chunk split tensor_split hsplit vsplit dsplit split_with_sizes unfold adjoint view_as_real
    view_as_complex atleast_1d atleast_2d atleast_3d broadcast_tensors as_strided as_subclass storage align_to
    to_dense unsafe_chunk unsafe_split real imag coalesce values indices _values _indices crow_indices col_indices
    ccol_indices row_indices to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc sum_to_size
    resolve_neg conj_physical dequantize cfloat cdouble chalf resize resize_as sparse_mask align_as refine_names"""
)
"""Operators whose result may share the memory of the first operand."""
LAYS_OUT = _of("view reshape flatten contiguous clone view_as reshape_as unflatten ravel")
"""Operators that need elements that follow one another; all but `clone` may share the memory."""
MOVES = _of("to cuda cpu type_as")
ELEMENTWISE = _of(
    """cat concat concatenate stack hstack vstack dstack column_stack row_stack where gather scatter take_along_dim
    take_along_axis index_select add sub subtract mul multiply div divide true_divide eq ne lt le gt ge greater less
    equal maximum minimum fmax fmin logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_not
    masked_fill masked_select abs neg sign floor ceil round clamp clip isnan isinf isfinite zeros_like ones_like
    empty_like full_like rand_like randn_like copy_ add_ sub_ mul_ div_ scatter_ masked_fill_ index_add_ nonzero
    embedding one_hot any all"""
)
"""Operators with the same result, bit for bit, for operands of any strides."""
JOINS = _of("cat concat concatenate stack hstack vstack dstack column_stack row_stack block_diag einsum")
"""Operators that take their operands in a list."""
MULTIPLIES = _of("linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d grid_sample")
"""Operators that lay out their operands before they multiply them."""
SAVES_NOTHING = _of(
    """cat concat concatenate stack hstack vstack dstack column_stack row_stack add sub subtract eq ne lt le gt ge
    greater less equal logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_not neg sign
    floor ceil round isnan isinf isfinite zeros_like ones_like empty_like full_like rand_like randn_like copy_ add_
    sub_ sum mean any all argmax argmin nonzero flip roll tril triu one_hot allclose count_nonzero clone"""
)
"""Operators of which autograd keeps no operand."""
SAVES_OTHERS = _of("index_select masked_fill masked_fill_ scatter scatter_ index_add_")
"""Operators of which autograd keeps the index or mask, but not the first operand."""
LAYOUT_OF_FIRST = _of("masked_fill masked_fill_ copy_ add_ sub_ mul_ div_ scatter scatter_ index_add_")
"""Operators whose result takes its strides from the first operand alone."""
LAYOUT_OF_NONE = _of("gather take_along_dim index_select masked_select nonzero embedding one_hot any all equal item")
"""Operators whose result takes its strides from no operand."""
RESHAPES = _of("""as_strided_ resize_ resize_as_ set_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_""")
"""Methods that give a tensor another shape while it keeps its name."""
KEEPS = (
    "torch.autograd.",
    "torch.cuda.",
    "torch.distributed.",
    "torch.fx.",
    "torch.func.",
    "torch.jit.",
    "torch.nn.Buffer",
    "torch.nn.Module",
    "torch.nn.Parameter",
    "torch.nn.init.",
    "torch.nn.parallel.",
    "torch.nn.utils.",
    "torch.onnx.",
    "torch.overrides.",
    "torch.save",
    "torch.utils.",
    "torch.vmap",
)
"""Functions that may keep their arguments, change them, or call functions that do."""
BINDS = _of("apply_ map_ register_hook backward share_memory_ requires_grad_ retain_grad")
"""Functions whose effect is on this tensor, and not on others with the same values."""
GROWS = _of("append appendleft add insert extend update setdefault put push")
"""Methods by which a container takes something in."""
_CHANGES = (*KEEPS, "torch.optim.", "torch._foreach", "torch.Tensor.backward", "torch.Tensor.register_hook")
GATHERS = frozenset(("accelerate.Accelerator.gather", "accelerate.Accelerator.gather_for_metrics"))
"""Functions that join the tensors of all processes. All processes have to call them in one order."""
_KNOWN = (
    *("torch.", "builtins.", "math.", "numpy.", "typing.", "warnings.", "logging.", "operator.", "functools."),
    *GATHERS,
)
_RUNS_OTHERS = frozenset(
    f"builtins.{name}" for name in "next map filter exec eval getattr setattr __import__ super".split()
) | {"functools.reduce", "functools.partial", "operator.methodcaller", "operator.call"}
"""Functions of Python that run, or look up, code of others."""
PASSES_ON = frozenset(
    f"builtins.{name}"
    for name in "zip enumerate list tuple iter next reversed dict sorted set frozenset min max".split()
).union(GATHERS)
"""Functions whose results hold their arguments or the elements of them. Of one process, nothing is gathered."""
_ARRAY_WRITES = _of("fill sort partition put itemset resize byteswap setfield")
_ARRAY_FUNCTIONS = frozenset(
    f"numpy.{name}" for name in ("copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis")
) | {"numpy.random.shuffle", "random.shuffle"}
_OPERATOR_WRITES = frozenset(
    f"operator.{name}"
    for name in """setitem delitem iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift imatmul
    iconcat __setitem__ __iadd__ __isub__ __imul__ __itruediv__ __iand__ __ior__ __ixor__""".split()
)
_SPECIAL_WRITES = _of("__setitem__ __iadd__ __isub__ __imul__ __itruediv__ __iand__ __ior__ __ixor__ __imatmul__")
_FACTORIES = "zeros ones full empty eye arange linspace rand randn randint randperm tensor"
_LIKE = "zeros_like ones_like full_like empty_like rand_like randn_like"
_MAKES = "cat concat stack hstack vstack where repeat_interleave index_select gather take_along_dim tile"
FRESH = frozenset(f"torch.{name}" for name in f"{_FACTORIES} {_LIKE} {_MAKES}".split()) | frozenset(
    f"torch.Tensor.{name}" for name in "repeat repeat_interleave index_select gather clone new_zeros new_ones".split()
)
"""Operators that create a tensor of their own, and do not keep it for the backward pass."""
_DECIDES = _of("argmax argmin eq ne lt le gt ge isnan isinf isfinite logical_and logical_or logical_xor logical_not")
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


def inference_around(model: Model, node: ast.AST) -> ast.AST | None:
    """The innermost `with torch.inference_mode():` around a node in its function."""
    for outer in model.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return None
        if isinstance(outer, (ast.With, ast.AsyncWith)):
            if any("inference_mode" in model.source.written(item.context_expr) for item in outer.items):
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
            called = context.func if isinstance(context, ast.Call) else context
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in ("no_grad", "inference_mode"):
                given = context.args if isinstance(context, ast.Call) else []
                return bool(given)
            if name in ("enable_grad", "set_grad_enabled"):
                return not (isinstance(context, ast.Call) and any(map(is_false, arguments(context))))
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return True
    return True
