"""The functions of the project that the step of a run called, and whether a graph may stand for their Python."""

from __future__ import annotations

import ast
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from perflint.frozen import dataclass
from perflint.semantics.scanning import scan
from perflint.semantics.structure import path_of, root_of
from perflint.semantics.symbols import Symbols
from perflint.tune.graphs.purity import (
    BUILTINS,
    CHANGING,
    Imports,
    advanced,
    argument_names,
    changes,
    copies,
    definitions,
    draws,
    fails,
    generators,
    is_gradient,
    is_in_place,
    loaded_names,
    local_names,
    reads_value,
    short,
    stored_names,
    uses_generator,
    varies,
    walks_of,
)
from perflint.tune.graphs.repeated import Repeated
from perflint.tune.refused import Refused

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Named = ast.FunctionDef | ast.AsyncFunctionDef
_CONSTRUCTORS = frozenset("__init__ __post_init__ __new__ setup_context".split())


@dataclass(frozen=True, slots=True)
class Called:
    """A call from a line to a function, which starts at a line; both by their files."""

    path: str
    line: int
    callee: str
    first: int


class Reached:
    """Judges the functions that lines of a file reached. `trees` are the files of the project that ran."""

    def __init__(
        self,
        trees: Mapping[str, ast.Module],
        calls: Iterable[Called],
        lines: Mapping[str, Collection[int]] | None = None,
        steps: Mapping[str, Collection[int]] | None = None,
        again: Iterable[tuple[str, int]] = (),
        logs: Collection[tuple[str, int]] | None = None,
        failing: Collection[tuple[str, int]] = (),
    ) -> None:
        """`lines` are those that made calls, `steps` those that stepped an optimizer or began a backward pass, by file,
        as far as they are known; `again` are functions that were called several times, by file and first line; `logs`
        are lines that logged messages, if that is known, `failing` those at which the making of a graph failed.
        """
        self._failing: dict[str, set[int]] = defaultdict(set)
        for name, line in failing:
            self._failing[name].add(line)
        self._logs = logs
        self._imports = {path: Imports(tree) for path, tree in trees.items()}
        self._defined = {path: {*definitions(tree)} for path, tree in trees.items()}
        self._functions = {
            (path, first_line(node)): node
            for path, tree in trees.items()
            for node in ast.walk(tree)
            if isinstance(node, Function)
        }
        self._calls: dict[str, list[Called]] = defaultdict(list)
        for call in calls:
            self._calls[call.path].append(call)
        varying = [(*advanced(tree), *generators(tree, self._imports[path])) for path, tree in trees.items()]
        self._advanced = {name.rpartition(".")[2] for names in varying for name in names}
        self.once = _builders(trees.values())
        """The methods that only constructors call."""
        repeated = Repeated(trees, steps or {}, {self._functions[each] for each in again if each in self._functions})
        classes = {node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        stores = [(each, path) for path, tree in trees.items() for each in _changed(tree, self.once, repeated, classes)]
        self.changed = {node.attr: f"{path}:{node.lineno}" for node, path in stores if isinstance(node, ast.Attribute)}
        """The attributes that code assigns between steps, with a place of each."""
        self._elements = {
            _stored_key(node): f"{path}:{node.lineno}" for node, path in stores if isinstance(node, ast.Subscript)
        }
        """The elements that code assigns between steps, by what their expressions show of them."""
        self._symbols = {path: Symbols(tree, scan(tree)) for path, tree in trees.items()}
        self._rebound = {
            self._symbols[path].variable(node): f"{path}:{node.lineno}"
            for node, path in stores
            if isinstance(node, ast.Name)
        }
        """The variables that code binds between steps, with a place of each."""
        self._unread = _unread(trees.values())
        self.numbers = _numbers(trees.values())
        """The attributes that hold numbers only."""
        self._known: dict[tuple[str, int], Refused | None] = {}
        self._lines = lines or {}

    def require(self, path: str, node: ast.AST) -> int:
        """The number of functions that a node of a file reached. Raises Refused if Python in one must run each time."""
        found = self._from(path, *_span(node))
        for where in found:
            if where not in self._known:
                self._known[where] = self._judge(*where)
            if (refused := self._known[where]) is not None:
                raise Refused(refused.reason, node)
        return len(found)

    def calls(self, path: str, node: ast.AST, places: Collection[tuple[str, int]]) -> bool:
        """True if a node of a file, or a function that it reached, made a call at one of these lines."""
        spans = [(path, *_span(node))]
        for where in self._from(*spans[0]):
            function = self._functions[where]
            spans.append((where[0], first_line(function), function.end_lineno or function.lineno))
        return any(name == at and first <= line <= last for name, first, last in spans for at, line in places)

    def hidden(self, path: str, node: ast.AST) -> set[str]:
        """The names of values that the functions which a node of a file reached read outside of themselves."""
        found: set[str] = set()
        for name, first in self._from(path, *_span(node)):
            function = self._functions[name, first]
            known = {*local_names(function), *self._imports[name], *self._defined[name]}
            found |= {each.id for each in loaded_names(function)} - known
        return found - BUILTINS

    def called(self, path: str, node: ast.AST) -> set[str]:
        """The names of the functions that a node of a file called itself, or that torch called for it."""
        first, last = _span(node)
        found = [each for each in self._calls.get(path, ()) if first <= each.line <= last]
        functions = [self._functions.get((each.callee, each.first)) for each in found]
        return {_name(each) for each in functions if each is not None}

    def draws(self, path: str, node: ast.AST) -> bool:
        """True if a function that a node of a file reached draws random numbers on the GPU."""
        for where in self._from(path, *_span(node)):
            calls = (each for each in _own_nodes(self._functions[where]) if isinstance(each, ast.Call))
            if any(draws(call, self._imports[where[0]]) for call in calls):
                return True
        return False

    def values_read(self, path: str, node: ast.AST) -> set[bool]:
        """For the reads of tensors in functions that a node of a file reached: True for arguments, False for others."""
        found = set()
        for where in self._from(path, *_span(node)):
            function, lines = self._functions[where], self._failing[where[0]]
            known = {*self._imports[where[0]], *BUILTINS}
            given = argument_names(function) - {"self"}
            for each in _own_nodes(function):
                if isinstance(each, ast.Call) and reads_value(each):
                    found.add({name.id for name in loaded_names(each)} - known <= given)
                if isinstance(each, ast.stmt) and fails(each, lines):
                    found.add(False)
        return found

    def writes(self, path: str, node: ast.AST) -> bool:
        """True if a function that a node of a file reached may change tensors in place that it did not make."""
        return any(self._writes(path, node))

    def works(self, path: str, node: ast.AST) -> bool:
        """True if the functions that a node of a file reached surely change tensors, and store into nothing else."""
        found = [*self._writes(path, node)]
        return bool(found) and all(map(is_in_place, found))

    def _writes(self, path: str, node: ast.AST) -> Iterator[ast.AST]:
        for where in self._from(path, *_span(node)):
            function = self._functions[where]
            own = {*stored_names(function)} - argument_names(function)
            for each in _own_nodes(function):
                target = each.target if isinstance(each, ast.AugAssign) else each
                is_stored = isinstance(getattr(target, "ctx", None), ast.Store) and root_of(target) not in own
                if is_in_place(each) or (is_stored and (target is not each or isinstance(each, ast.Subscript))):
                    yield each

    def reaches(self, path: str, node: ast.AST, function: ast.AST) -> bool:
        """True if a node of a file, or the file, called one of its functions, also through others."""
        span = (0, sys.maxsize) if isinstance(node, ast.Module) else _span(node)
        return isinstance(function, Function) and (path, first_line(function)) in self._from(path, *span)

    def is_own(self, path: str, call: ast.Call) -> bool:
        """True for a call of a function of the project, which is judged by its code and not by its name.

        A method of torch that calls one, such as a scheduler's `step`, is none.
        """
        names = {path_of(call.func).rpartition(".")[2], "__call__", "forward"}
        return any(
            getattr(self._functions.get((each.callee, each.first)), "name", "") in names
            for each in self._calls.get(path, ())
            if call.lineno <= each.line <= (call.end_lineno or call.lineno)
        )

    def stays_inside(self, path: str, node: ast.AST | None) -> bool:
        """True if a node of a file reached functions, and each changes nothing but attributes of its own object."""
        if node is None:
            return False
        found = self._from(path, *_span(node))
        return bool(found) and all(self._changes_itself(self._functions[where], where[0]) for where in found)

    def _changes_itself(self, function: Function, path: str) -> bool:
        arguments = [each.arg for each in function.args.args]
        for node in _own_nodes(function):
            if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
                if root_of(node) != "self" or arguments[:1] != ["self"]:
                    return False
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                return False
            if isinstance(node, ast.Call):
                imports = self._imports[path]
                called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                is_other = changes(node, imports) and root_of(node.func) != "self"
                if varies(node, imports) or called.endswith("_") or is_other:
                    return False
        return True

    def _from(self, path: str, first: int, last: int) -> list[tuple[str, int]]:
        found: dict[tuple[str, int], None] = {}
        waiting = [(path, first, last)]
        while waiting:
            path, first, last = waiting.pop()
            for call in self._calls.get(path, ()):
                where = call.callee, call.first
                if first <= call.line <= last and where not in found and where in self._functions:
                    found[where] = None
                    node = self._functions[where]
                    waiting.append((call.callee, first_line(node), node.end_lineno or node.lineno))
        return list(found)

    def changes_element(self, node: ast.Subscript) -> str:
        """The place where code between steps assigns the element that a node reads; empty if there is none."""
        return next((self._elements[key] for key in _read_keys(node) if key in self._elements), "")

    def _varying(self, node: ast.AST, function: Function, path: str) -> str:
        """The reason why a function reads a value of code around it that may be another in each step; or empty."""
        if not isinstance(node, (ast.Name, ast.Subscript)) or not isinstance(node.ctx, ast.Load):
            return ""
        name = node if isinstance(node, ast.Name) else node.value
        variable = self._symbols[path].variable(name) if isinstance(name, ast.Name) else None
        if variable is not None and any(scope.node is function for scope in variable.scope.chain):
            return ""
        if isinstance(node, ast.Subscript):
            place = self.changes_element(node)
        else:
            place = "" if variable is None else self._rebound.get(variable, "")
        return f"`{short(node)}` is read, which {place} changes" if place else ""

    def _judge(self, path: str, first: int) -> Refused | None:
        function = self._functions[path, first]
        local = {name for node in ast.walk(function) for name in stored_names(node)}
        constructs, walks = getattr(function, "name", "") in _CONSTRUCTORS, walks_of(function)
        called = {node.func for node in _own_nodes(function) if isinstance(node, ast.Call)}
        never = self._never_runs(function, path)
        for node in _own_nodes(function):
            if node in never:
                continue
            if isinstance(node, ast.Attribute) and node in called and node.attr in self.numbers:
                continue
            reason = self._hazard(node, local, walks, constructs, path) or self._varying(node, function, path)
            if reason:
                return Refused(
                    f"it calls `{_name(function)}`: {reason} ({path}:{getattr(node, 'lineno', first)})", node
                )
        return None

    def _never_runs(self, function: Function, path: str) -> set[ast.AST]:
        """The nodes that did not run, as a condition that stays the same is not met."""
        found: set[ast.AST] = set()
        for node in _own_nodes(function) if path in self._lines else ():
            parts: list[ast.AST] = []
            if isinstance(node, ast.If) and self._stays(node.test):
                parts = [part for block in (node.body, node.orelse) if self._is_idle(block, path) for part in block]
            elif isinstance(node, ast.BoolOp):
                fixed = next((at for at, each in enumerate(node.values) if not self._stays(each)), len(node.values))
                later = node.values[fixed:] if fixed else []
                parts = [*later] if self._is_idle(later, path) else []
            elif isinstance(node, ast.IfExp) and self._stays(node.test):
                parts = [part for part in (node.body, node.orelse) if self._is_idle([part], path)]
            found |= {each for part in parts for each in ast.walk(part)}
        return found

    def _is_idle(self, block: Sequence[ast.AST], path: str) -> bool:
        lines = {node.lineno for each in block for node in ast.walk(each) if isinstance(node, ast.Call)}
        return bool(lines) and lines.isdisjoint(self._lines[path])

    def _stays(self, test: ast.expr) -> bool:
        """True for a condition that reads nothing but attributes of `self` that no code changes, and constants."""
        inner = {node.value for node in ast.walk(test) if isinstance(node, ast.Attribute)}
        for node in ast.walk(test):
            if isinstance(node, ast.Attribute) and node not in inner:
                if root_of(node) != "self" or any(part in self.changed for part in path_of(node).split(".")[1:]):
                    return False
            if isinstance(node, ast.Name) and node not in inner:
                return False
            if isinstance(node, ast.Call) or (isinstance(node, ast.Attribute) and node.attr == "training"):
                return False
        return True

    def _hazard(self, node: ast.AST, local: set[str], walks: set[str], constructs: bool, path: str) -> str:
        imports = self._imports[path]
        if isinstance(node, ast.stmt) and fails(node, self._failing[path]):
            return f"`{short(node)}` fails while a graph is made"
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            return f"`{short(node)}` changes a Python variable"
        if isinstance(node, ast.Attribute):
            if isinstance(node.ctx, ast.Store) and not constructs and node.attr not in self._unread:
                return f"`{short(node)}` is assigned"
            # Models on another device have other memory, and so another graph.
            is_own = node.attr not in {"device", *self._unread} and not imports.full_name(node).startswith("torch.")
            if isinstance(node.ctx, ast.Load) and node.attr in self.changed and is_own:
                return f"`{short(node)}` is read, which {self.changed[node.attr]} changes"
            return "a gradient is read" if is_gradient(node, imports) else ""
        if not isinstance(node, ast.Call):
            return ""
        first, last = _span(node)
        if any(name == path and first <= line <= last for name, line in self._logs or ()):
            return f"`{short(node)}` logs a message"
        if self._logs is not None and imports.full_name(node.func).startswith("logging."):
            # Nothing is logged at its level.
            return ""
        if changes(node, imports) and root_of(node.func) not in local and not self.is_own(path, node):
            return f"`{short(node)}` changes a Python object"
        owner, _, name = path_of(node.func).rpartition(".")
        if owner.rpartition(".")[2] in self._advanced and name not in ("step", "zero_grad", "backward"):
            return f"`{short(node)}` may give something else in each step"
        return varies(node, imports, walks) or copies(node, imports) or uses_generator(node)


def _builders(trees: Iterable[ast.Module]) -> set[str]:
    """The methods that constructors call on `self` and nothing else names, so that they run once."""
    inside: set[str] = set()
    outside: set[str] = set()
    for tree in trees:
        made = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in _CONSTRUCTORS]
        own = {node for each in made for node in ast.walk(each)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                (inside if node in own and path_of(node) == f"self.{node.attr}" else outside).add(node.attr)
    return inside - outside


def _built(function: ast.FunctionDef | ast.AsyncFunctionDef, classes: Collection[str]) -> Iterator[ast.Attribute]:
    """The attributes that a function assigns of objects of the project's classes that it has made: they are new."""
    nodes = [*ast.walk(function)]
    bound = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    made = {
        path_of(node.targets[0])
        for node in nodes
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and path_of(node.value.func).rpartition(".")[2] in classes
    }
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if path_of(node.value) in made and bound[path_of(node.value)] == 1:
                yield node


def _unread(trees: Iterable[ast.Module]) -> set[str]:
    """The attributes that are read in no code but behind their assignment in the same function, such as weights that
    a layer keeps to be shown: each step assigns them anew.
    """
    assigned: set[str] = set()
    read: set[str] = set()
    for tree in trees:
        for function in (node for node in ast.walk(tree) if isinstance(node, _Named)):
            first: dict[str, int] = {}
            for each in function.body:
                for target in (node for node in ast.walk(each) if isinstance(each, ast.Assign)):
                    if isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store):
                        first.setdefault(target.attr, each.end_lineno or each.lineno)
            assigned |= {*first}
            inside = [node for node in ast.walk(function) if isinstance(node, ast.Attribute)]
            behind = {node for node in inside if node.lineno > first.get(node.attr, sys.maxsize)}
            read |= {node.attr for node in {*inside} - behind if isinstance(node.ctx, ast.Load)}
        functions = [node for node in tree.body if not isinstance(node, _Named | ast.ClassDef)]
        read |= {each.attr for node in functions for each in ast.walk(node) if isinstance(each, ast.Attribute)}
        sums = [node.target for node in ast.walk(tree) if isinstance(node, ast.AugAssign)]
        read |= {each.attr for each in sums if isinstance(each, ast.Attribute)}
        # `getattr` may get a name from anywhere.
        read |= {str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    return assigned - read


def _changed(
    tree: ast.Module, once: Collection[str], repeated: Repeated, classes: Collection[str]
) -> Iterator[ast.Attribute | ast.Subscript | ast.Name]:
    """The targets that code assigns outside of constructors and of what only runs before the steps.

    `once` are methods that only constructors call.
    """
    # Each node with the line of its function from which on it repeats, and whether that is a constructor.
    waiting: list[tuple[ast.AST, float, bool]] = [(tree, repeated.began(tree), False)]
    built = {node for function in ast.walk(tree) if isinstance(function, _Named) for node in _built(function, classes)}
    while waiting:
        node, start, constructs = waiting.pop()
        target = _target(node)
        if target is not None and target.lineno >= start and target not in built:
            yield target
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            constructs = node.name in _CONSTRUCTORS or node.name in once
            start = math.inf if constructs else 0 if repeated.runs(node) else repeated.began(node)
        if isinstance(node, (ast.For, ast.While)) and not constructs and repeated.repeats(node):
            start = 0
        waiting.extend((child, start, constructs) for child in ast.iter_child_nodes(node))


def _target(node: ast.AST) -> ast.Attribute | ast.Subscript | ast.Name | None:
    """The attribute, element or name that a node assigns, also by a call; None if it assigns nothing."""
    if isinstance(node, (ast.Attribute, ast.Subscript, ast.Name)):
        return node if isinstance(node.ctx, ast.Store) else None
    if not isinstance(node, ast.Call):
        return None
    made: ast.Attribute | ast.Subscript | None = None
    match node:
        case ast.Call(func=ast.Name("setattr"), args=[holder, ast.Constant(str(name)), *_]):
            made = ast.Attribute(holder, name, ast.Store())
        case ast.Call(func=ast.Attribute(holder, "register_buffer"), args=[ast.Constant(str(name)), *_]):
            made = ast.Attribute(holder, name, ast.Store())
        case ast.Call(func=ast.Attribute(holder, called)) if called in CHANGING and (node.args or node.keywords):
            # Any element may be another one.
            made = ast.Subscript(holder, ast.Slice(), ast.Store())
    return None if made is None else ast.copy_location(made, node)


def _stored_key(node: ast.AST) -> tuple[str, object]:
    """The key of an assigned element, if that is a text; else the container, with the number if it is known."""
    key = _constant(node)
    return ("", key) if isinstance(key, str) else (_container(node), key)


def _read_keys(node: ast.Subscript) -> list[tuple[str, object]]:
    """The assignments that may be of an element that is read by a constant key, as `_stored_key` gives them."""
    key, name = _constant(node), _container(node)
    if key is None or not name:
        return []
    return [("", key) if isinstance(key, str) else (name, key), (name, None)]


def _constant(node: ast.AST) -> str | int | None:
    key = node.slice.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) else None
    return key if isinstance(key, (str, int)) else None


def _container(node: ast.AST) -> str:
    return path_of(node.value).rpartition(".")[2] if isinstance(node, ast.Subscript) else ""


def _numbers(trees: Iterable[ast.Module]) -> set[str]:
    """The attributes that are assigned results of arithmetic only, such as the `sum` of a meter: none can be called."""
    found: dict[str, bool] = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        is_number = isinstance(value, (ast.Constant, ast.BinOp)) or isinstance(node, ast.AugAssign)
        for target in (each for part in targets if part is not None for each in ast.walk(part)):
            if isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store):
                found[target.attr] = found.get(target.attr, True) and is_number and target in targets
    return {name for name, are_numbers in found.items() if are_numbers}


def _span(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0


def first_line(code: Function | ast.stmt) -> int:
    """The line on which a statement begins; for a function that of its first decorator, as its code object says."""
    decorators: list[ast.expr] = getattr(code, "decorator_list", [])
    return min([code.lineno, *(each.lineno for each in decorators)])


def _name(function: Function) -> str:
    return getattr(function, "name", "<lambda>")


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without the functions inside it, which are judged when they run."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))
