"""The structure of one file: functions, classes, parents, uses; and plain questions about nodes of its tree.

`scanning` makes it in one walk over the tree. It has no values; the interpreter looks up its facts while it runs.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, overload

from perflint.frozen import dataclass, field

_Node = TypeVar("_Node", bound=ast.AST)
_Other = TypeVar("_Other", bound=ast.AST)
_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")

CONSTRUCTORS = frozenset({"__init__", "reset_parameters", "_init_weights", "init_weights", "_reset_parameters"})
"""Methods that make a module, or the values of its parameters."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(slots=True, eq=False)
class FunctionInfo:
    """A `def` or `lambda`: its place and the uses of its names."""

    node: FunctionNode
    qualname: str
    owner: str
    """The class that it is a method of, by qualified name in the file; "" for functions."""
    outer: FunctionInfo | None
    """The function that it is nested in."""
    uses: dict[str, set[str]] = field(default_factory=dict)
    """The attributes read of each plain name in the body."""
    calls: set[str] = field(default_factory=set)
    """The plain names called in the body, and the attributes called of `self`."""
    asks: set[str] = field(default_factory=set)
    """The attributes called of anything else: any method of that name may be meant."""
    is_generator: bool = False
    documented: dict[str, str] | None = None
    """The types that the docstring gives to parameters, once it has been read."""
    on_cpu: frozenset[str] | None = None
    """The parameters that its name or docstring puts on the CPU, once that has been asked."""
    replaced: frozenset[str] | None = None
    """The parameters that it replaces with a tensor if they are None, once that has been asked."""
    anew: frozenset[str] | None = None
    """The names that it makes something else of before all other uses, once that has been asked."""
    passed: frozenset[str] | None = None
    """The names that it passes to functions of torch that take only tensors, once that has been asked."""
    learned: frozenset[str] | None = None
    """The names that a loss which it backpropagates is computed from, once that has been asked."""
    texts: frozenset[str] | None = None
    """The texts that it compares names with, once that has been asked."""
    returns_numbers: bool | None = None
    """True if all that it returns are plain numbers and texts; None until that is asked."""
    size: int = 0
    """Nodes in the body."""
    wrapped: bool | None = None
    """True if decorators may change its result; None until that is asked."""
    constructs: bool = False
    """True if it is a constructor, or only constructors of the file call it."""

    names: set[str] = field(default_factory=set)
    """The plain names in it, and in the functions and classes nested in it."""

    @property
    def name(self) -> str:
        """The function's own name; "<lambda>" for lambdas."""
        return self.qualname.rsplit(".", 1)[-1]


@dataclass(slots=True, eq=False)
class ClassInfo:
    """A class: its methods by name and which methods assign which attributes of `self`."""

    node: ast.ClassDef
    qualname: str
    methods: dict[str, FunctionInfo] = field(default_factory=dict)
    assigned_in: dict[str, list[FunctionInfo]] = field(default_factory=dict)
    patterns: list[str] = field(default_factory=list)
    """The names among these that are computed and begin with a literal: "layer_*"."""
    assigned: dict[tuple[str, FunctionInfo], list[ast.Constant | None]] = field(default_factory=dict)
    """The literals that a method assigns to an attribute; None for anything else."""
    moved: set[str] = field(default_factory=set)
    """The attributes that methods move: `self.x = self.x.to(device)`."""
    _calling: dict[str, list[FunctionInfo]] | None = None

    @property
    def calling(self) -> dict[str, list[FunctionInfo]]:
        """The methods that call each name."""
        if self._calling is None:
            self._calling = {}
            for method in self.methods.values():
                for name in method.calls:
                    self._calling.setdefault(name, []).append(method)
        return self._calling


@dataclass(slots=True)
class SetBy:
    """The functions and classes that set what others see."""

    declared: dict[str, set[tuple[type[ast.AST], ast.AST | None]]] = field(default_factory=dict)
    """By name, those that declare it, each with `ast.Global` or `ast.Nonlocal`."""
    attributes: dict[str, set[ast.AST | None]] = field(default_factory=dict)
    """By the name of an attribute, those that set it, but for constructors."""
    stored: set[str] = field(default_factory=set)
    """The names of all attributes that are set, also by `setattr`."""
    outside: dict[str, list[ast.expr | None]] = field(default_factory=dict)
    """By the name of an attribute, the values that code gives to it of other objects than `self`; None if unknown."""
    captured: set[str] = field(default_factory=set)
    """The attributes that functions set of objects that a function around them has."""
    written: dict[str, list[tuple[ast.Name | ast.Attribute, ast.AST | None]]] = field(default_factory=dict)
    """By the name of a variable or attribute, where a container that it may hold is written to, and by whom."""
    writers: set[ast.AST] = field(default_factory=set)
    """The functions that write to a container that they are passed."""


@dataclass(slots=True)
class Structure:
    """The results of one walk over a file."""

    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    functions: dict[tuple[int, int], FunctionInfo] = field(default_factory=dict)
    """By position of the `def` or `lambda` keyword's node."""
    classes: dict[str, ClassInfo] = field(default_factory=dict)
    """By qualified name in the file."""
    classes_at: dict[tuple[int, int], ClassInfo] = field(default_factory=dict)
    methods: dict[str, list[FunctionInfo]] = field(default_factory=dict)
    """The methods of all classes by name."""
    default_devices: list[ast.expr] = field(default_factory=list)
    """The arguments of `torch.set_default_device` and `set_default_tensor_type` in the file."""
    losses: dict[tuple[FunctionInfo | None, str], int] = field(default_factory=dict)
    """The names that a function, or the file outside of functions, backpropagates, each with the last line of that.

    The parts of such a sum belong to them if the function reads them, each with the line of the sum.
    """
    nodes: dict[type[ast.AST], list[ast.AST]] = field(default_factory=dict)
    """All nodes by type, each list in source order."""
    batches: dict[ast.AST, set[str]] | None = None
    """The names that loops and functions move to a device and run a model on, once that has been asked."""
    set_by: SetBy | None = None
    """The functions that set names and attributes of others, once that has been asked."""
    passing: dict[ast.Attribute, bool] = field(default_factory=dict)
    """The assignments to attributes that were asked about, and whether the same block assigns the attribute again."""
    size: int = 0

    @overload
    def every(self, kind: type[_Node], /) -> list[_Node]: ...

    @overload
    def every(self, kind: type[_Node], other: type[_Other], /) -> list[_Node | _Other]: ...

    @overload
    def every(self, *kinds: type[ast.AST]) -> list[Any]: ...

    def every(self, *kinds: type[ast.AST]) -> list[Any]:
        """All nodes of some types; those of one type are in source order."""
        return [node for kind in kinds for node in self.nodes.get(kind, ())]


_NO_CHILDREN = frozenset(
    """ctx op ops id attr arg kind type_comment name asname module level is_async simple conversion names
    kwd_attrs""".split()
)
"""Fields that hold no statement, expression, argument or pattern that anyone asks for."""

_WITH_GAPS = (ast.Dict, ast.arguments)
"""Nodes with lists in which None stands for a missing part."""

GROWS = frozenset({"append", "appendleft", "add", "insert", "extend", "update"})
"""Methods that put something into the object they are called on."""

_LONGEST_PATH = 16
"""Attributes in a row that are followed by their names."""

FIELDS: Mapping[type[ast.AST], tuple[str, ...]] = {
    kind: () if kind is ast.Constant else tuple(name for name in kind._fields if name not in _NO_CHILDREN)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
"""The fields of each type of node that hold other nodes."""


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly inside a node, in source order; faster than `ast.iter_child_nodes`."""
    kind = type(node)
    found: list[ast.AST] = []
    for field_name in FIELDS[kind]:
        value = getattr(node, field_name, None)
        if not value:
            continue
        if type(value) is not list:
            if isinstance(value, ast.AST):
                found.append(value)
        elif kind in _WITH_GAPS:
            found += [item for item in value if item is not None]
        else:
            found += value
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all nodes inside it, outer ones first; faster than `ast.walk`."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        # Most nodes are names and literals.
        if FIELDS[type(node)]:
            stack += reversed(children(node))


def grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """The second parts of pairs by the first, both in the order of the pairs."""
    found: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def calls_in(*nodes: ast.AST) -> Iterator[ast.Call]:
    """The calls in some nodes, outer ones first."""
    for node in nodes:
        for part in walk(node):
            if isinstance(part, ast.Call):
                yield part


def ancestors(parents: dict[ast.AST, ast.AST], node: ast.AST) -> Iterator[ast.AST]:
    """The nodes around a node, innermost first."""
    around = parents.get(node)
    while around is not None:
        yield around
        around = parents.get(around)


def stands_in(block: list[ast.stmt], node: ast.AST) -> bool:
    """True if a node is one of the statements of a block, found by its position: blocks may be very long."""
    return place_in(block, node) is not None


def place_in(block: list[ast.stmt], node: ast.AST) -> int | None:
    """The index of a node among the statements of a block, found by its position; None if it is not one of them."""
    if not isinstance(node, ast.stmt):
        return None
    at = bisect_left(block, (node.lineno, node.col_offset), key=lambda each: (each.lineno, each.col_offset))
    return at if at < len(block) and block[at] is node else None


def block_in(around: ast.AST | None, statement: ast.AST) -> list[ast.stmt]:
    """The block of a node that a statement stands in; empty if there is none."""
    blocks = (getattr(around, name, None) for name in ("body", "orelse", "finalbody"))
    return next((block for block in blocks if isinstance(block, list) and stands_in(block, statement)), [])


def is_none(node: ast.expr | None) -> bool:
    """True for `None` in the code."""
    return isinstance(node, ast.Constant) and node.value is None


def tested(test: ast.expr) -> Iterator[ast.expr]:
    """The expressions whose truth a test asks for: through `and`, `or` and `not`."""
    stack = [test]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.BoolOp):
            stack += reversed(node.values)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            stack.append(node.operand)
        else:
            yield node


def names_in(node: ast.AST) -> set[str]:
    """The plain names that occur in a node."""
    return {child.id for child in walk(node) if isinstance(child, ast.Name)}


def path_of(node: ast.AST) -> str:
    """ "x", or "self.a.b" for an attribute of names; empty for anything else, and for very long ones."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < _LONGEST_PATH:
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)]) if parts else node.id


def last_name(node: ast.AST) -> str:
    """The name that a call, an attribute or a plain name ends in; empty for anything else."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_of_super(call: ast.AST) -> bool:
    """True for `super().forward(x)`, which runs that very method: none that overrides it."""
    receiver = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    return isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Name) and receiver.func.id == "super"


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The argument that a call passes by this keyword, or None."""
    return next((given.value for given in call.keywords if given.arg == name), None)


def arguments(call: ast.Call) -> list[ast.expr]:
    """The values that a call passes, by position and by keyword."""
    return [*call.args, *(given.value for given in call.keywords)]


def root_of(node: ast.AST) -> str:
    """The plain name that a chain of attributes, items and calls begins with; empty for anything else."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def name_in(node: ast.expr) -> str:
    """The name that an expression gives: "layer", "layer_*" for `f"layer_{i}"`, "*" for any other."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    first = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else None
    return f"{first.value!s}*" if isinstance(first, ast.Constant) else "*"
