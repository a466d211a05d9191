"""Expressions that are certainly a Python number, a list of Python, or a device.

An annotation, a default and the name of a parameter say which values a function is made for. Its callers may pass
others: tensors, arrays and lists for a `float`, None for a device. So only the code that makes a value proves its type.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator

from perflint.rules._memory.flows import flow_around
from perflint.rules._operators import operators
from perflint.rules._statements import outward_in_function
from perflint.semantics.binders import Binding, How
from perflint.semantics.dataflow.flow import Bound
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.structure import path_of, stands_in
from perflint.semantics.values import Const, Evidence, Sequence, Tensor, scalar_type

_Proof = Callable[[ast.expr], bool]
_NUMBERS = (bool, int, float, complex)
_NAMES = frozenset(kind.__name__ for kind in _NUMBERS)
_GIVE_NUMBERS = operators("numbers", "give_numbers")
"""Functions whose result is a number, whatever they are called with."""
_KEEP_NUMBERS = operators("numbers", "keep_numbers")
"""Functions whose result is a number if all arguments are."""
_CONSTANTS = ("math.", "torch.inf", "torch.nan", "torch.pi", "numpy.inf", "numpy.nan", "numpy.pi", "sys.maxsize")
_LIMITS = ("torch.finfo", "torch.iinfo")
_GIVE_LISTS = frozenset(("builtins.list", "builtins.tuple", "builtins.sorted", "builtins.range"))
_DISPLAYS = (ast.List, ast.Tuple, ast.ListComp)
_TESTS = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
_GIVE_DEVICES = ("torch.device", "torch.get_default_device")


def is_number(model: Model, node: ast.expr) -> bool:
    """True if an expression is a Python number, or has the type that a number has in NumPy."""
    return _Prover(model).number(node)


def is_list(model: Model, node: ast.expr) -> bool:
    """True if an expression is a list, a tuple, a range or a shape."""
    return _Prover(model).listed(node)


def is_device(model: Model, node: ast.expr) -> bool:
    """True if an expression is a device, or the name or number of one, and not None."""
    return _Prover(model).device(node)


def is_device_object(model: Model, node: ast.expr) -> bool:
    """True if an expression is a `torch.device`."""
    return _Prover(model).device_object(node)


def is_of_tensor(model: Model, node: ast.Attribute) -> bool:
    """True for `x.device` of a tensor `x`."""
    owner = model.value(node.value)
    return node.attr == "device" and isinstance(owner, Tensor) and owner.evidence >= Evidence.ANNOTATION


def names_cuda(device: ast.expr) -> bool:
    """True for a literal that names a GPU. A variable may hold `"cuda" if torch.cuda.is_available() else "cpu"`."""
    if not isinstance(device, ast.Constant):
        return False
    return type(device.value) is int or (isinstance(device.value, str) and device.value.startswith("cuda"))


class _Prover:
    """One proof. A value that goes round a loop is proven by its other sources."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._seen: set[object] = set()

    def number(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, _NUMBERS)
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.Not) or self.number(node.operand)
        if isinstance(node, ast.BinOp):
            return self.number(node.left) and self.number(node.right)
        if isinstance(node, ast.Compare):
            operands = (node.left, *node.comparators)
            return all(isinstance(each, _TESTS) for each in node.ops) or all(map(self.number, operands))
        if isinstance(node, ast.BoolOp):
            return all(map(self.number, node.values))
        if isinstance(node, ast.Call):
            return self._gives_number(node)
        if isinstance(node, ast.Subscript):
            return self._is_shape(node.value) and scalar_type(self._model.value(node)) == "int"
        return self._elsewhere(node, self.number)

    def listed(self, node: ast.expr) -> bool:
        if isinstance(node, _DISPLAYS) or self._is_shape(node):
            return True
        if isinstance(node, ast.BinOp):
            sides = (self.listed(node.left), self.listed(node.right))
            return all(sides) if isinstance(node.op, ast.Add) else isinstance(node.op, ast.Mult) and any(sides)
        if isinstance(node, ast.Call):
            target = self._model.target(node)
            return target in _GIVE_LISTS or (isinstance(node.func, ast.Attribute) and node.func.attr == "tolist")
        if isinstance(node, ast.Subscript):
            return isinstance(node.slice, ast.Slice) and self.listed(node.value)
        return self._elsewhere(node, self.listed)

    def device(self, node: ast.expr) -> bool:
        if isinstance(node, (ast.Constant, ast.JoinedStr)):
            return not isinstance(node, ast.Constant) or type(node.value) in (int, str)
        if isinstance(node, ast.Call) and self._model.target(node) == "torch.cuda.current_device":
            return True
        return self._is_made_device(node) or self._elsewhere(node, self.device)

    def device_object(self, node: ast.expr) -> bool:
        return self._is_made_device(node) or self._elsewhere(node, self.device_object)

    def _is_made_device(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            return self._model.target(node) in _GIVE_DEVICES
        return isinstance(node, ast.Attribute) and is_of_tensor(self._model, node)

    def _gives_number(self, call: ast.Call) -> bool:
        target = self._model.target(call)
        if target in _GIVE_NUMBERS:
            return True
        if target == "torch.Tensor.size":
            return bool(call.args or call.keywords)
        if target in _KEEP_NUMBERS:
            return bool(call.args) and not call.keywords and all(map(self.number, call.args))
        if not target.startswith("torch.") or target.startswith("torch.Tensor."):
            return False
        members = self._model.value(call).members
        return bool(members) and all(scalar_type(each) in _NAMES for each in members)

    def _is_shape(self, node: ast.expr) -> bool:
        """True for `x.shape` and `x.size()`, whole or in part."""
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return self._is_shape(node.value)
        if isinstance(node, ast.Call):
            return self._model.target(node) == "torch.Tensor.size" and not (node.args or node.keywords)
        if not isinstance(node, ast.Attribute) or node.attr != "shape":
            return False
        return isinstance(self._model.value(node), Sequence) or self._model.value(node.value).tensor is not None

    def _elsewhere(self, node: ast.expr, proof: _Proof) -> bool:
        """The proof for an expression that passes on a value that was made elsewhere."""
        if isinstance(node, ast.IfExp):
            return proof(node.body) and proof(node.orelse)
        if isinstance(node, ast.NamedExpr):
            return proof(node.value)
        if isinstance(node, ast.Name):
            return self._is_tested(node, proof) or self._of_name(node, proof)
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node, proof)
        return False

    def _of_name(self, node: ast.Name, proof: _Proof) -> bool:
        origins = flow_around(self._model, node).origins(node)
        if origins:
            return all(self._of_bound(each, proof) for each in origins if self._is_new(each))
        bindings = self._model.symbols.variable(node).bindings
        return bool(bindings) and all(self._of_binding(node, each, proof) for each in bindings if self._is_new(each))

    def _is_new(self, place: object) -> bool:
        """True if the proof has not come by a place before."""
        is_new = place not in self._seen
        self._seen.add(place)
        return is_new

    def _of_bound(self, bound: Bound, proof: _Proof) -> bool:
        assert bound.node is not None
        statement = self._model.parent(bound.node)
        if isinstance(statement, ast.AugAssign) and statement.target is bound.node:
            # A list stays one.
            return proof != self.number or self.number(statement.value)
        if isinstance(bound.node, ast.arg):
            return proof == self.listed and isinstance(statement, ast.arguments) and bound.node is statement.vararg
        if bound.value is None:
            return False
        return proof(bound.value) if bound.whole else proof == self.number and self._counts(bound.node, bound.value)

    def _of_binding(self, use: ast.Name, binding: Binding, proof: _Proof) -> bool:
        """The proof for one binding of a name that belongs to code around the function."""
        if binding.how is How.GROWN:
            return proof == self.listed
        if binding.how is How.IMPORT:
            value = self._model.value(use)
            return proof == self.number and isinstance(value, Const) and isinstance(value.value, _NUMBERS)
        if binding.how is How.AUGMENTED and binding.value is not None:
            return proof != self.number or self.number(binding.value)
        if binding.how not in (How.ASSIGNED, How.NAMED) or binding.value is None:
            return False
        return proof(binding.value) if binding.whole else proof == self.number and self._is_shape(binding.value)

    def _counts(self, target: ast.AST, source: ast.expr) -> bool:
        """True if a target gets one of the numbers of a shape, or counts the iterations of a loop."""
        outer = self._model.parent(target)
        if isinstance(outer, (ast.For, ast.comprehension)):
            return self._is_call(source, "builtins.range")
        if not isinstance(outer, (ast.Tuple, ast.List)):
            return False
        around = self._model.parent(outer)
        if isinstance(around, (ast.For, ast.comprehension)):
            return outer.elts[0] is target and self._is_call(source, "builtins.enumerate")
        return isinstance(around, ast.Assign) and self._is_shape(source)

    def _is_call(self, node: ast.expr, target: str) -> bool:
        return isinstance(node, ast.Call) and self._model.target(node) == target

    def _is_tested(self, node: ast.Name, proof: _Proof) -> bool:
        """True if the node runs only for a value that `isinstance` found to be right, and that the name still has."""
        if proof not in (self.number, self.listed):
            return False
        types = _NAMES if proof == self.number else frozenset(("list", "tuple", "range"))
        flow = flow_around(self._model, node)
        for outer, inner in outward_in_function(self._model, node):
            if isinstance(outer, (ast.If, ast.IfExp)) and _is_guarded(outer, inner):
                for name in _tested(self._model, outer.test, types):
                    if name.id == node.id and name in flow.used and flow.used[name] is flow.used.get(node):
                        return True
        return False

    def _of_attribute(self, node: ast.Attribute, proof: _Proof) -> bool:
        if proof == self.number:
            if self._model.symbols.full_name(node).startswith(_CONSTANTS):
                return True
            if isinstance(node.value, ast.Call) and self._model.target(node.value) in _LIMITS:
                return node.attr != "dtype"
            if node.attr == "ndim":
                return scalar_type(self._model.value(node)) == "int"
        if not self._is_new(node.attr):
            return True
        stored = list(self._stored(node))
        return bool(stored) and all(each is not None and proof(each) for each in stored)

    def _stored(self, node: ast.Attribute) -> Iterator[ast.expr | None]:
        """The values of an attribute of `self`, of all objects with such an attribute; None for an unknown one."""
        if path_of(node) != f"self.{node.attr}":
            yield None
            return
        name = re.escape(node.attr)
        if self._model.matches(_COMPUTED) or self._model.matches(re.compile(_QUOTED % name)):
            yield None
        others = self._model.view.matching(re.compile(f"{_STORED}|{_QUOTED}" % (name, name)))
        if any(file.path != self._model.module.path for file in others):
            yield None
        yield from _values_stored(self._model).get(node.attr, ())


@once
def _values_stored(model: Model) -> dict[str, list[ast.expr | None]]:
    """The values that the attributes of the classes of a file get, by name; None for an unknown one."""
    found: dict[str, list[ast.expr | None]] = {}
    begun: set[str] = set()
    for function in model.nodes(ast.FunctionDef):
        # A property gives something else than its setter gets.
        found.setdefault(function.name, []).append(None)
    for each in model.nodes(ast.Attribute):
        if not isinstance(each.ctx, ast.Load):
            found.setdefault(each.attr, []).append(_assigned(model.parent(each), each))
            if not isinstance(model.parent(each), ast.AugAssign):
                begun.add(each.attr)
    for name in model.nodes(ast.Name):
        if isinstance(name.ctx, ast.Store) and isinstance(model.symbols.scope_around(name).node, ast.ClassDef):
            found.setdefault(name.id, []).append(_assigned(model.parent(name), name, is_field=True))
            begun.add(name.id)
    for added in found.keys() - begun:
        # It begins in another file, as a buffer, or as a field.
        found[added].append(None)
    return found


_STORED = r"\.%s\s*(?:,|:[^=\n]+=|(?:[-+*/%%@&|^]|//|\*\*|<<|>>)?=(?!=))"
"""Code that may store an attribute of this name."""
_QUOTED = r"[\"']%s[\"']"
"""The name of an attribute as text: `register_buffer("scale", scale)`."""
_COMPUTED = re.compile(r"\bsetattr\(|\b__dict__\b|\bvars\(")
"""Code that sets attributes by names that only a run knows."""


def _is_guarded(outer: ast.If | ast.IfExp, inner: ast.AST) -> bool:
    """True if a part of a conditional runs only if its test is true."""
    return outer.body is inner if isinstance(outer, ast.IfExp) else stands_in(outer.body, inner)


def _assigned(statement: ast.AST | None, target: ast.expr, is_field: bool = False) -> ast.expr | None:
    """The value that a statement gives to a target; None if it is unknown. A field may get others from its callers."""
    if isinstance(statement, ast.Assign) and target in statement.targets:
        return statement.value
    if isinstance(statement, ast.AugAssign) or (isinstance(statement, ast.AnnAssign) and not is_field):
        return statement.value
    return None


def _tested(model: Model, test: ast.expr, types: Iterable[str]) -> Iterator[ast.Name]:
    """The names that have one of some types of Python if a test is true."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for part in test.values:
            yield from _tested(model, part, types)
    if isinstance(test, ast.Call) and model.target(test) == "builtins.isinstance" and len(test.args) == 2:
        name, kinds = test.args
        every = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
        allowed = {f"builtins.{each}" for each in types} | set(types)
        if isinstance(name, ast.Name) and all(isinstance(each, ast.Name) and each.id in allowed for each in every):
            yield name
