"""The walk over the tree of one file that finds its structure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, KeysView, Mapping, Sequence
from typing import Any

from perflint.semantics.facts import by_use
from perflint.semantics.structure import (
    CONSTRUCTORS,
    FIELDS,
    FUNCTIONS,
    GROWS,
    ClassInfo,
    FunctionInfo,
    FunctionNode,
    Structure,
    children,
    keyword,
    name_in,
    path_of,
)

_SETS_DEVICE = frozenset({"set_default_device", "set_default_tensor_type"})

_REGISTERS = frozenset({"register_buffer", "register_parameter", "register_module", "add_module", "add_state"})
"""Methods that set the attribute of the object that their first argument names."""


def scan(tree: ast.Module) -> Structure:
    """The structure of a file."""
    walker = _Walker()
    walker.run(tree)
    _mark_constructing(walker.structure)
    if walker.structure.losses:
        _mark_summands(walker.structure)
    return walker.structure


def _mark_summands(structure: Structure) -> None:
    """Enter the parts of losses that a function reads one by one: `loss = a + 2 * b`, `a.item()`."""
    losses = structure.losses
    functions = {function for function, _ in losses if function is not None}
    sums: dict[tuple[FunctionInfo, str], list[ast.Assign | ast.AugAssign]] = {}
    for node in structure.every(ast.Assign, ast.AugAssign):
        target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
        function = _function_around(structure, node) if isinstance(target, ast.Name) else None
        if function in functions and function is not None and isinstance(target, ast.Name):
            sums.setdefault((function, target.id), []).append(node)
    waiting = [(function, name) for function, name in losses if function is not None]
    for function, name in waiting:
        for statement in sums.get((function, name), ()):
            for part in _summands(statement.value):
                if (function, part) not in losses and not _READS.isdisjoint(function.uses.get(part, ())):
                    losses[function, part] = statement.lineno
                    waiting.append((function, part))


_READS = frozenset({"item", "cpu"})
_COMBINES = (ast.Add, ast.Sub, ast.Mult, ast.Div)


def _summands(node: ast.expr) -> Iterator[str]:
    """The names in a sum, with or without factors."""
    waiting = [node]
    for part in waiting:
        if isinstance(part, ast.BinOp) and isinstance(part.op, _COMBINES):
            waiting += [part.left, part.right]
        elif isinstance(part, ast.Name):
            yield part.id


def _mark_constructing(structure: Structure) -> None:
    """Follow the constructors into the methods, and the private functions, that nothing else of the file uses."""
    callers: dict[str, list[FunctionInfo]] = {}
    helpers: dict[str, list[FunctionInfo]] = {}
    changed: list[FunctionInfo] = []
    for info in structure.functions.values():
        for name in info.calls:
            callers.setdefault(name, []).append(info)
        if info.owner and info.name in CONSTRUCTORS:
            info.constructs = True
            changed.append(info)
        elif info.owner or info.name.startswith("_"):
            helpers.setdefault(info.name, []).append(info)
    if not any(info.calls for info in changed):
        return
    otherwise, bound = _used_without_call(structure, helpers.keys())
    for name in otherwise:
        del helpers[name]
    for info, names in bound.items():
        for name in names:
            callers.setdefault(name, []).append(info)
    while changed:
        caller = changed.pop()
        for name in caller.calls | bound.get(caller, set()):
            if name in helpers and all(each.constructs for each in callers[name]):
                for info in helpers.pop(name):
                    info.constructs = True
                    changed.append(info)


def _used_without_call(structure: Structure, names: KeysView[str]) -> tuple[set[str], dict[FunctionInfo, set[str]]]:
    """Those names that stand for more than a call in a function, of a plain name or of `self`.

    Apart from these, the methods that functions bind to a name, which they call: `init = self.compute`. A constructor
    may also call the methods of other objects: `init_weights(module)` calls `module.compute()`.
    """
    found: set[str] = set()
    bound: dict[FunctionInfo, set[str]] = {}
    for node in structure.every(ast.Attribute, ast.Name):
        name = node.attr if isinstance(node, ast.Attribute) else node.id
        if name not in names or name in found:
            continue
        owner = node.value if isinstance(node, ast.Attribute) else None
        parent = structure.parents.get(node)
        of_self = owner is None or (isinstance(owner, ast.Name) and owner.id == "self")
        function = _function_around(structure, node)
        if function is None or not (of_self or function.constructs):
            found.add(name)
        elif isinstance(parent, ast.Call) and parent.func is node:
            if not of_self:
                bound.setdefault(function, set()).add(name)
        elif owner is not None and _name_bound(parent) in function.calls:
            bound.setdefault(function, set()).add(name)
        else:
            found.add(name)
    return found, bound


def _name_bound(statement: ast.AST | None) -> str:
    """The plain name that an assignment binds; empty for anything else."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign):
        target = statement.target
    else:
        return ""
    return target.id if isinstance(target, ast.Name) else ""


def _function_around(structure: Structure, node: ast.AST) -> FunctionInfo | None:
    outer = structure.parents.get(node)
    while outer is not None and not isinstance(outer, FUNCTIONS):
        outer = structure.parents.get(outer)
    return None if outer is None else structure.functions.get((outer.lineno, outer.col_offset))


class _Walker:
    """Walks over a file without recursion: code may be nested deeper than Python's stack."""

    def __init__(self) -> None:
        self.structure = Structure()
        self._stack: list[Any] = []
        """Nodes; a tuple with the context of the nodes below it on the stack."""
        self._context: _Context = ("", None, None, set())
        self._seen = 0
        """Nodes visited before the present context."""

    def run(self, tree: ast.Module) -> None:
        nodes, parents, stack = self.structure.nodes, self.structure.parents, self._stack
        self._push(tree.body, tree)
        seen = 0
        while stack:
            node = stack.pop()
            kind = type(node)
            if kind is tuple:
                self._leave(node, seen)
                continue
            seen += 1
            if kind in nodes:
                nodes[kind].append(node)
            else:
                nodes[kind] = [node]
            if kind is ast.Name:
                self._context[3].add(node.id)
                continue
            if kind in _TELLING:
                if kind in _SCOPES:
                    self._count(seen)
                    self._define(node)
                    continue
                self._note(node, parents[node])
            fields = FIELDS[kind]
            if not fields:
                continue
            if len(fields) == 1:
                # Most nodes hold one other node, or one list of nodes.
                value = getattr(node, fields[0], None)
                inner = value if type(value) is list else (value,) if isinstance(value, ast.AST) else ()
            else:
                inner = children(node)
            for child in reversed(inner):
                parents[child] = node
                stack.append(child)
        self._count(seen)
        self.structure.size = seen

    def _count(self, seen: int) -> None:
        """Add the nodes that were visited in the present context to the size of its function."""
        function = self._context[1]
        if function is not None:
            function.size += seen - self._seen
        self._seen = seen

    def _leave(self, context: _Context, seen: int) -> None:
        """Go on in a context that was entered before the present one."""
        self._count(seen)
        left = self._context[1]
        if left is not None and left.outer is context[1]:
            context[3].update(left.names)
        self._context = context

    def _define(self, node: FunctionNode | ast.ClassDef) -> None:
        prefix, function, owner, _ = self._context
        if isinstance(node, ast.ClassDef):
            self._class(node, prefix, function)
        else:
            self._function(node, prefix, function, owner)

    def _note(self, node: ast.AST, parent: ast.AST) -> None:
        structure = self.structure
        _, function, owner, _ = self._context
        if function is not None:
            _note(node, parent, function, owner)
            if isinstance(node, ast.Call):
                _note_use(node, function, structure.parents)
        if isinstance(node, ast.Call):
            loss = _backpropagated(node)
            if loss:
                structure.losses[function, loss] = max(node.lineno, structure.losses.get((function, loss), 0))
        elif isinstance(node, ast.Attribute) and node.attr in _SETS_DEVICE:
            _note_default(node, parent, structure)

    def _push(self, inner: Sequence[ast.AST], parent: ast.AST) -> None:
        self.structure.parents.update(dict.fromkeys(inner, parent))
        self._stack += reversed(inner)

    def _enter(self, context: _Context) -> None:
        """Visit the nodes that were pushed so far in the present context, and those pushed from now on in another."""
        self._stack.append(self._context)
        self._context = context

    def _function(self, node: FunctionNode, prefix: str, outer: FunctionInfo | None, owner: ClassInfo | None) -> None:
        name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        is_method = owner is not None and (outer is None or outer.owner != owner.qualname)
        info = FunctionInfo(node, f"{prefix}.{name}".lstrip("."), owner.qualname if owner and is_method else "", outer)
        self.structure.functions[node.lineno, node.col_offset] = info
        if owner is not None and is_method and not isinstance(node, ast.Lambda):
            owner.methods.setdefault(name, info)
            self.structure.methods.setdefault(name, []).append(info)
        around = self._context[3]
        self._enter((info.qualname, info, owner if is_method else None, info.names))
        self._push([node.body] if isinstance(node, ast.Lambda) else node.body, node)
        self._enter((prefix, outer, None, around))
        self._push([node.args], node)
        if not isinstance(node, ast.Lambda):
            self._push([*node.decorator_list, *([node.returns] if node.returns else [])], node)

    def _class(self, node: ast.ClassDef, prefix: str, function: FunctionInfo | None) -> None:
        info = ClassInfo(node, f"{prefix}.{node.name}".lstrip("."))
        self.structure.classes[info.qualname] = info
        self.structure.classes_at[node.lineno, node.col_offset] = info
        around = self._context[3]
        self._enter((info.qualname, None, info, around))
        self._push(node.body, node)
        self._enter((prefix, function, None, around))
        self._push([*node.decorator_list, *node.bases, *node.keywords], node)


_SCOPES = frozenset({*FUNCTIONS, ast.ClassDef})
_TELLING = frozenset({*_SCOPES, ast.Attribute, ast.Call, ast.Subscript, ast.Yield, ast.YieldFrom})
"""The types of nodes of which more is kept than their place; most nodes have other types."""

_Context = tuple[str, FunctionInfo | None, ClassInfo | None, set[str]]
"""The qualified name around a node, the function and the class that it is directly in, and the set for its names."""


def _note_default(node: ast.Attribute, parent: ast.AST, structure: Structure) -> None:
    if isinstance(parent, ast.Call) and isinstance(node.value, ast.Name) and node.value.id == "torch":
        structure.default_devices += parent.args[:1]


def _note(node: ast.AST, parent: ast.AST, function: FunctionInfo, owner: ClassInfo | None) -> None:
    if isinstance(node, ast.Attribute):
        if isinstance(node.value, ast.Name):
            uses = function.uses.get(node.value.id)
            if uses is None:
                uses = function.uses[node.value.id] = set()
            uses.add(node.attr)
            if owner is not None and isinstance(node.ctx, ast.Store) and node.value.id == "self":
                value = parent.value if isinstance(parent, ast.Assign) else None
                _assigned(owner, node.attr, function, value if isinstance(value, ast.Constant) else None)
                moves = (f"self.{node.attr}.to", f"self.{node.attr}.cuda")
                if isinstance(value, ast.Call) and path_of(value.func) in moves:
                    owner.moved.add(node.attr)
    elif isinstance(node, ast.Call):
        callee = node.func
        if isinstance(callee, ast.Name):
            function.calls.add(callee.id)
            if callee.id == "setattr" and owner is not None and len(node.args) == 3:
                if isinstance(node.args[0], ast.Name) and node.args[0].id == "self":
                    _assigned(owner, name_in(node.args[1]), function)
        elif isinstance(callee, ast.Attribute):
            _note_method(node, callee, function, owner)
    elif isinstance(node, ast.Subscript):
        if isinstance(node.ctx, ast.Store):
            _note_filled(node.value, function, owner)
        elif isinstance(node.value, ast.Name) and by_use.is_operand(node, parent):
            function.uses.setdefault(node.value.id, set()).add(by_use.PART)
        if isinstance(node.slice, ast.Tuple) and isinstance(node.value, ast.Name) and by_use.shows_array(node.slice):
            function.uses.setdefault(node.value.id, set()).add(by_use.ARRAY)
    elif isinstance(node, (ast.Yield, ast.YieldFrom)):
        function.is_generator = True


def _note_use(node: ast.Call, function: FunctionInfo, parents: Mapping[ast.AST, ast.AST]) -> None:
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(receiver, ast.Name) and by_use.shows_tensor(node, parents):
        function.uses.setdefault(receiver.id, set()).add(by_use.TENSOR)


BACKWARD = ("backward", "manual_backward")
"""The methods that run a backward pass."""


def _backpropagated(call: ast.Call) -> str:
    """The name that a call backpropagates, "" if it does not: `loss.backward()`, `scaler.scale(loss).backward()`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in BACKWARD:
        return ""
    loss = call.func.value
    if isinstance(loss, ast.Call) and isinstance(loss.func, ast.Attribute) and loss.func.attr == "scale" and loss.args:
        loss = loss.args[0]
    elif call.args and keyword(call, "gradient") is None:
        # `accelerator.backward(loss)`, `self.manual_backward(loss)`
        loss = call.args[0]
    return loss.id if isinstance(loss, ast.Name) else ""


def _note_method(node: ast.Call, callee: ast.Attribute, function: FunctionInfo, owner: ClassInfo | None) -> None:
    if not isinstance(callee.value, ast.Name) or callee.value.id != "self":
        function.asks.add(callee.attr)
        if not isinstance(callee.value, ast.Name) and callee.attr in GROWS:
            _note_filled(callee.value, function, owner)
        return
    function.calls.add(callee.attr)
    if owner is not None and callee.attr in _REGISTERS and node.args:
        _assigned(owner, name_in(node.args[0]), function)


def _note_filled(node: ast.expr, function: FunctionInfo, owner: ClassInfo | None) -> None:
    """Note `self.items.append(x)` and `self.items[k] = x`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if owner is not None and isinstance(node, ast.Attribute):
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            _assigned(owner, node.attr, function)


def _assigned(owner: ClassInfo, attribute: str, function: FunctionInfo, literal: ast.Constant | None = None) -> None:
    owner.assigned.setdefault((attribute, function), []).append(literal)
    if attribute[1:].endswith("*") and attribute not in owner.patterns:
        owner.patterns.append(attribute)
    methods = owner.assigned_in.setdefault(attribute, [])
    if not methods or methods[-1] is not function:
        methods.append(function)
