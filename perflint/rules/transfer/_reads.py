"""What becomes of a tensor: who reads it, who lays it out anew, who may write to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum

from perflint.rules._methods import is_false
from perflint.rules._statements import block_of, statement_of
from perflint.rules.transfer._loops import body_of, loop_around
from perflint.semantics import torch_api
from perflint.semantics.model import Model
from perflint.semantics.structure import walk
from perflint.semantics.values import Array, Function, Tensor


class Fate(Enum):
    """What one use does with a tensor."""

    READ = "read"
    """Element by element: what comes out is the same, bit for bit, for any strides, and shares no memory."""
    COMPUTED = "computed"
    """By a product or a sum, whose order of additions may depend on strides."""
    COPIED = "copied"
    """It is laid out one element after the other: a tensor that is not so is copied there."""
    PASSED = "passed"
    """It is an argument of a function that this file does not show."""
    LAYER = "layer"
    """It is an argument of a module, which by custom leaves it as it is."""
    KEPT = "kept"
    """It is returned, stored or captured: what becomes of it is shown elsewhere."""
    WRITTEN = "written"


def _of(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FACTS = _of(
    "shape dtype device ndim layout is_cuda is_cpu requires_grad is_leaf grad_fn names itemsize nbytes is_sparse "
    "is_quantized is_meta"
)
_ASKS = _of(
    "size dim numel nelement ndimension stride is_floating_point is_complex is_contiguous element_size get_device "
    "item tolist type_as_ data_ptr storage_offset is_pinned is_inference is_signed"
)
_ALIASES = _of("T mT H mH data real imag values indices")
_VIEWS = _of(
    """unsqueeze squeeze transpose permute movedim moveaxis swapaxes swapdims t detach expand expand_as narrow select
    diagonal unbind chunk split tensor_split hsplit vsplit dsplit split_with_sizes unfold to type type_as float half
    long int bool double bfloat16 short char byte cuda cpu broadcast_to adjoint view_as_real
    view_as_complex as_tensor asarray atleast_1d atleast_2d atleast_3d broadcast_tensors conj resolve_conj positive
    numpy as_strided as_subclass storage untyped_storage pin_memory align_to rename to_dense unsafe_chunk unsafe_split
    dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout real imag identity"""
)
_LAYS_OUT = _of("view reshape flatten contiguous clone view_as reshape_as unflatten ravel")
_ELEMENTWISE = _of(
    """cat concat concatenate stack hstack vstack dstack column_stack row_stack where gather scatter take_along_dim
    take_along_axis index_select add sub subtract mul multiply div divide true_divide eq ne lt le gt ge greater less
    equal maximum minimum fmax fmin logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_not
    masked_fill masked_select abs neg sign floor ceil round clamp clip isnan isinf isfinite zeros_like ones_like
    empty_like full_like rand_like randn_like copy_ add_ sub_ mul_ div_ scatter_ masked_fill_ index_add_ nonzero"""
)
_JOINS = _of("cat concat concatenate stack hstack vstack dstack column_stack row_stack block_diag einsum")
_LAYERS = _of("linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d grid_sample")
"""They lay out what they multiply."""
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
"""What may keep its arguments, change them, or call what does."""
_BINDS = _of("apply_ map_ register_hook backward share_memory_ requires_grad_ retain_grad")
"""What they do holds for this tensor, and for no other of the same values."""
_BUILTINS = _of("len print isinstance float int bool type id str repr range hasattr abs round")
_DEPTH = 3
"""How many functions deep arguments are followed."""
_STEPS = 80
"""Uses to look at before all that follows counts as passed on."""


class Uses:
    """The fates of a tensor and of all that shares its memory."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.fates: set[Fate] = set()
        self.last = (0, 0)
        """Where the last of the uses ends."""
        self._seen: set[ast.AST] = set()

    def follow(self, node: ast.expr, depth: int = _DEPTH) -> None:
        """Note what the node around an expression does with its value."""
        if node in self._seen:
            return
        self._seen.add(node)
        if depth == _DEPTH:
            self.last = max(self.last, _end_of(node))
        if len(self._seen) > _STEPS:
            self.fates.add(Fate.KEPT)
            return
        parent = self.model.parent(node)
        if isinstance(parent, ast.Call):
            self._argument(parent, node, "", depth)
        elif isinstance(parent, ast.keyword):
            call = self.model.parent(parent)
            assert isinstance(call, (ast.Call, ast.ClassDef))
            if isinstance(call, ast.Call) and parent.arg is not None:
                self._argument(call, node, parent.arg, depth)
            else:
                self.fates.add(Fate.KEPT)
        elif isinstance(parent, ast.Attribute):
            self._attribute(parent, node, depth)
        elif isinstance(parent, ast.Subscript):
            self._subscript(parent, node, depth)
        elif isinstance(parent, ast.stmt):
            self._statement(parent, node, depth)
        elif isinstance(parent, (ast.List, ast.Tuple)):
            self._member(parent, node, depth)
        else:
            self._expression(parent, node, depth)

    def name(self, use: ast.Name, depth: int = _DEPTH) -> None:
        """Follow what a name is bound to by the statement that this store stands in."""
        for load in _loads(self.model, use):
            if self.model.function(load) is not self.model.function(use):
                self.fates.add(Fate.KEPT)
            elif isinstance(load.ctx, ast.Store):
                self.fates.add(Fate.WRITTEN)
            else:
                self.follow(load, depth)

    def _expression(self, parent: ast.AST | None, node: ast.expr, depth: int) -> None:
        if isinstance(parent, ast.BinOp):
            self.fates.add(Fate.COMPUTED if isinstance(parent.op, ast.MatMult) else Fate.READ)
        elif isinstance(parent, (ast.IfExp, ast.BoolOp)) and node is not getattr(parent, "test", None):
            self.follow(parent, depth)
        elif isinstance(parent, (ast.Compare, ast.UnaryOp, ast.FormattedValue, ast.Slice, ast.IfExp)):
            self.fates.add(Fate.READ)
        elif isinstance(parent, ast.NamedExpr):
            self.name(parent.target, depth)
            self.follow(parent, depth)
        else:
            self.fates.add(Fate.KEPT)

    def _statement(self, parent: ast.stmt, node: ast.expr, depth: int) -> None:
        if isinstance(parent, (ast.Assign, ast.AnnAssign)):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            for target in targets:
                self._bound(target, depth)
        elif isinstance(parent, ast.AugAssign):
            self.fates.add(Fate.READ if node is parent.value else Fate.WRITTEN)
        elif isinstance(parent, (ast.Assert, ast.If, ast.While)):
            self.fates.add(Fate.READ)
        elif not isinstance(parent, (ast.Expr, ast.Delete)):
            self.fates.add(Fate.KEPT)

    def _bound(self, target: ast.expr, depth: int) -> None:
        if isinstance(target, ast.Name):
            self.name(target, depth)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                self._bound(each, depth)
        elif isinstance(target, ast.Subscript) and isinstance(self.model.value(target.value), (Tensor, Array)):
            self.fates.add(Fate.READ)
        else:
            self.fates.add(Fate.KEPT)

    def _attribute(self, parent: ast.Attribute, node: ast.expr, depth: int) -> None:
        call = self.model.parent(parent)
        name = parent.attr
        if not isinstance(call, ast.Call) or call.func is not parent:
            if name in _ALIASES:
                self.follow(parent, depth)
            else:
                self.fates.add(Fate.READ if name in _FACTS else Fate.PASSED)
        elif _passes(call, "out") or name in _BINDS:
            self.fates.add(Fate.KEPT)
        elif name not in _ASKS:
            self._operation(call, name, True, depth)

    def _operation(self, call: ast.Call, name: str, first: bool, depth: int) -> None:
        """What an operator of torch does with its first operand, or with another one."""
        if name in _LAYS_OUT or name in _VIEWS:
            if not first:
                return
            if name in _LAYS_OUT:
                self.fates.add(Fate.COPIED)
            if name != "clone":
                self.follow(call, depth)
        elif first and name.endswith("_") and not name.endswith("__"):
            self.fates.add(Fate.WRITTEN)
        elif name in _LAYERS:
            self.fates.add(Fate.COPIED)
        elif name in _ELEMENTWISE:
            self.fates.add(Fate.READ)
        elif name.rstrip("_") in torch_api.tensor_methods() or torch_api.result(self.model.target(call)) is not None:
            self.fates.add(Fate.COMPUTED)
        else:
            self.fates.add(Fate.PASSED)

    def _argument(self, call: ast.Call, node: ast.expr, keyword: str, depth: int) -> None:
        target = torch_api.canonical(self.model.target(call))
        head, _, leaf = target.rpartition(".")
        if keyword == "out":
            self.fates.add(Fate.WRITTEN)
        elif head == "builtins" and leaf in _BUILTINS:
            self.fates.add(Fate.READ)
        elif head == "torch.Tensor":
            self._operation(call, leaf, False, depth)
        elif target.startswith("torch.") and not target.startswith(KEEPS):
            first = (bool(call.args) and node is call.args[0]) or keyword in ("input", "self", "data", "tensors")
            in_place = any(each.arg == "inplace" and not is_false(each.value) for each in call.keywords)
            if in_place and first:
                self.fates.add(Fate.KEPT)
            else:
                self._operation(call, leaf, first, depth)
        elif target.startswith("torch.") and not is_layer(self.model, call):
            self.fates.add(Fate.KEPT)
        else:
            self._project(call, node, keyword, depth)

    def _project(self, call: ast.Call, node: ast.expr, keyword: str, depth: int) -> None:
        """Follow an argument into a function of the file."""
        parameter = self._parameter(call, node, keyword) if depth else None
        if parameter is None:
            self.fates.add(Fate.LAYER if is_layer(self.model, call) else Fate.PASSED)
            return
        function, name = parameter
        for each in walk(function):
            if isinstance(each, ast.Name) and each.id == name:
                if self.model.function(each) is not function:
                    self.fates.add(Fate.KEPT)
                elif isinstance(each.ctx, ast.Load):
                    self.follow(each, depth - 1)
                elif isinstance(self.model.parent(each), ast.AugAssign):
                    self.fates.add(Fate.WRITTEN)

    def _parameter(self, call: ast.Call, node: ast.expr, keyword: str) -> tuple[ast.FunctionDef, str] | None:
        value = self.model.value(call.func)
        if not isinstance(value, Function) or value.module != self.model.module.name or value.plain:
            return None
        info = self.model.module.function(value.line, value.column)
        if info is None or not isinstance(info.node, ast.FunctionDef) or info.node.decorator_list:
            return None
        given = info.node.args
        names = [each.arg for each in (*given.posonlyargs, *given.args)]
        if keyword:
            known = keyword in names or any(each.arg == keyword for each in given.kwonlyargs)
            return (info.node, keyword) if known else None
        if any(isinstance(each, ast.Starred) for each in call.args):
            return None
        index = call.args.index(node) + (value.receiver is not None)
        return (info.node, names[index]) if index < len(names) else None

    def _member(self, parent: ast.List | ast.Tuple, node: ast.expr, depth: int) -> None:
        """A tensor that stands in a list or tuple."""
        around = self.model.parent(parent)
        if isinstance(around, ast.Call) and parent in around.args:
            target = torch_api.canonical(self.model.target(around))
            head, _, leaf = target.rpartition(".")
            if head == "torch" and leaf in _JOINS:
                self.fates.add(Fate.READ if leaf in _ELEMENTWISE else Fate.COMPUTED)
                return
        elif isinstance(around, ast.Subscript) and parent is around.slice:
            self.fates.add(Fate.READ)
            return
        elif isinstance(around, ast.Assign) and len(around.targets) == 1:
            (target_,) = around.targets
            if isinstance(target_, (ast.Tuple, ast.List)) and len(target_.elts) == len(parent.elts):
                self._bound(target_.elts[parent.elts.index(node)], depth)
                return
        self.fates.add(Fate.KEPT)

    def _subscript(self, parent: ast.Subscript, node: ast.expr, depth: int) -> None:
        if node is parent.slice:
            self.fates.add(Fate.READ)
        elif not isinstance(parent.ctx, ast.Load):
            self.fates.add(Fate.WRITTEN)
        else:
            self.follow(parent, depth)


def is_layer(model: Model, call: ast.Call) -> bool:
    """Whether a call is one of a module, or of another object that is called as they are."""
    return model.target(call).endswith(".__call__")


def shared(model: Model, node: ast.expr) -> ast.expr:
    """The expression whose memory a view is of: `x` for `x.detach()[0].T`."""
    while True:
        if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in _ALIASES):
            node = node.value
            continue
        if not isinstance(node, ast.Call):
            return node
        head, _, leaf = torch_api.canonical(model.target(node)).rpartition(".")
        if leaf == "clone" or (leaf not in _VIEWS and leaf not in _LAYS_OUT):
            return node
        if head == "torch.Tensor" and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif head in ("torch", "torch.nn.functional") and node.args:
            node = node.args[0]
        else:
            return node


def fates(model: Model, node: ast.expr) -> set[Fate]:
    """What becomes of the value of an expression; empty where nobody uses it."""
    uses = Uses(model)
    uses.follow(node)
    return uses.fates


def _passes(call: ast.Call, name: str) -> bool:
    return any(keyword.arg == name for keyword in call.keywords)


def _loads(model: Model, store: ast.Name) -> Iterator[ast.Name]:
    """Where a name is read, or added to, while it may be bound to what a statement binds it to."""
    statement = statement_of(model, store)
    assert statement is not None
    end = _end(model, statement, store.id)
    loop = None if end is not None else loop_around(model, statement)
    begin = _position(loop) if loop is not None else _end_of(statement)
    for each in walk(body_of(model, statement)):
        if not isinstance(each, ast.Name) or each.id != store.id or isinstance(each.ctx, ast.Del):
            continue
        if isinstance(each.ctx, ast.Store) and not isinstance(model.parent(each), ast.AugAssign):
            continue
        inner = model.function(each) is not model.function(store)
        if inner or (_position(each) >= begin and (end is None or _position(each) <= end)):
            if each not in set(walk(statement)):
                yield each


def _end(model: Model, statement: ast.stmt, name: str) -> tuple[int, int] | None:
    """Where the next statement of the same block ends that binds a name anew."""
    block = block_of(model, statement)
    for after in block[block.index(statement) + 1 :]:
        targets = after.targets if isinstance(after, ast.Assign) else ()
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return _end_of(after)
    return None


def _position(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end_of(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0
