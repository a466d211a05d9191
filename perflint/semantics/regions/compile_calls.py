"""The functions that a file passes to torch.compile, and the calls of its functions: the input of compiled regions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from perflint.frozen import dataclass
from perflint.semantics.binders import COMPREHENSIONS, How
from perflint.semantics.dataflow.definitions import tests_before
from perflint.semantics.facts.containers import CONTAINERS, children
from perflint.semantics.interpreter.frame import Budget, Frame
from perflint.semantics.structure import FUNCTIONS, ancestors, keyword, last_name, stands_in
from perflint.semantics.values import Const, Function, Instance, Name, Partial, Value

if TYPE_CHECKING:
    from perflint.semantics.interpreter.frame import Recorder
    from perflint.semantics.module import Module
    from perflint.semantics.structure import FunctionInfo
    from perflint.semantics.view import View

Place = tuple[str, int, int]
"""A function by its module and the position of its `def` or `lambda`."""

_TAKES_FUNCTIONS = ("torch.utils.checkpoint.", "torch.vmap", "torch.func.", "torch.cond", "torch.while_loop")
_OPAQUE = frozenset(
    """script script_if_tracing script_method unused ignore allow_in_graph nonstrict_trace custom_op leaf_function
    assume_constant_result triton_op register_fake""".split()
)
"""Decorators of functions that torch.compile does not look into."""


@dataclass(frozen=True, slots=True)
class Options:
    """The mode that a call of torch.compile requests; None if unknown.

    `mode` is "" by default; `backend` too.
    """

    text: str
    """How the call is written, without its arguments' own lines."""
    line: int
    file: str = ""
    """The name of the file with the call; "" if it is the file of the compiled function."""
    fullgraph: bool | None = False
    dynamic: bool | None = None
    mode: str | None = ""
    backend: str | None = ""

    @property
    def place(self) -> str:
        """The call and its line, for messages: "`torch.compile(f)` (line 3)"."""
        return f"`{self.text}` ({self.file}:{self.line})" if self.file else f"`{self.text}` (line {self.line})"

    @property
    def uses_graphs(self) -> bool:
        """True if the result runs as CUDA graphs."""
        return self.mode in ("reduce-overhead", "max-autotune") or self.backend == "cudagraphs"


@dataclass(frozen=True, slots=True)
class Callee:
    """A function that another one calls.

    `in_loop`: in a loop, a comprehension or a `try` of it. `always`: no test of it decides whether it makes the call.
    """

    place: Place
    in_loop: bool
    always: bool


@dataclass(frozen=True, slots=True)
class Calls:
    """The facts of one file about compiled regions."""

    roots: tuple[tuple[Place, Options], ...]
    """The functions that torch.compile gets."""
    callees: dict[Place, tuple[Callee, ...]]
    """The calls of each function of the file while it is traced."""
    opaque: frozenset[Place]
    """The functions that are kept from torch.compile."""


def calls_of(view: View, module: Module, recorder: Recorder) -> Calls:
    """The facts about compiled regions from the interpretation of a file."""
    return Reader(view, module, recorder).read()


def compile_call(recorder: Recorder, node: ast.expr) -> ast.Call | None:
    """The expression if it is a call of torch.compile, also if its result is a decorator."""
    return node if isinstance(node, ast.Call) and recorder.targets.get(node) == "torch.compile" else None


class Reader:
    """Reads one file."""

    def __init__(self, view: View, module: Module, recorder: Recorder) -> None:
        self._module, self._recorder = module, recorder
        self._parents = module.structure.parents
        self._frame = Frame(view, module, Budget(0), names={})
        self._roots: list[tuple[Place, Options]] = []
        self._callees: dict[Place, list[Callee]] = {}
        self._opaque: set[Place] = set()

    def read(self) -> Calls:
        """All of it."""
        for info in self._module.structure.functions.values():
            self._decorated(info)
        for node in self._module.structure.every(ast.Call):
            self._call(node)
        callees = {place: tuple(dict.fromkeys(called)) for place, called in self._callees.items()}
        return Calls(tuple(self._roots), callees, frozenset(self._opaque))

    def _decorated(self, info: FunctionInfo) -> None:
        place = (self._module.name, info.node.lineno, info.node.col_offset)
        for decorator in getattr(info.node, "decorator_list", ()):
            name = last_name(decorator)
            if name in _OPAQUE or "disable" in name:
                self._opaque.add(place)
            options = self._decorator(decorator)
            if options is not None:
                self._roots.append((place, options))

    def _decorator(self, node: ast.expr) -> Options | None:
        """The options of torch.compile in a decorator; None for other decorators."""
        value = self._recorder.values.get(node)
        if isinstance(value, Name) and value.name == "torch.compile":
            return Options(f"@{ast.unparse(node)}", node.lineno)
        if isinstance(value, Partial) and value.function == Name("torch.compile"):
            return _options(f"@{ast.unparse(node)}", node.lineno, dict(value.keywords))
        call = compile_call(self._recorder, node)
        return None if call is None else self._asked(call, f"@{ast.unparse(node.func)}(…)")  # type: ignore[attr-defined]

    def _asked(self, call: ast.Call, text: str) -> Options | None:
        values = {
            keyword.arg: self._recorder.values.get(keyword.value, None) or _literal(keyword.value)
            for keyword in call.keywords
            if keyword.arg is not None
        }
        if any(keyword.arg is None for keyword in call.keywords):
            values = {"fullgraph": None, "mode": None, "backend": None, "dynamic": None, **values}
        return _options(text, call.lineno, values)

    # Calls

    def _call(self, node: ast.Call) -> None:
        target = self._recorder.targets.get(node, "")
        if target == "torch.compile":
            given = node.args[0] if node.args else keyword(node, "model")
            self._compiled(node, given)
        elif target == "torch.nn.Module.compile" and isinstance(node.func, ast.Attribute):
            self._compiled(node, node.func.value)
        elif isinstance(node.func, ast.Call) and compile_call(self._recorder, node.func) is not None and node.args:
            # `torch.compile(mode="max-autotune")(f)`.
            self._compiled(node.func, node.args[0])
        elif target.endswith(".disable") and target.startswith("torch.") and node.args:
            self._opaque.update(self.functions(self._recorder.values.get(node.args[0])))
        else:
            self._called(node, target)

    def _compiled(self, call: ast.Call, given: ast.expr | None) -> None:
        if given is None or self._is_skipped(call):
            return
        options = self._asked(call, f"{ast.unparse(call.func)}({_short(given)})" if call.args else _short(call))
        if options is not None:
            value = self._recorder.values.get(given)
            self._roots += [(place, options) for place in self.functions(value)]

    def _called(self, node: ast.Call, target: str) -> None:
        around, in_loop = self._around(node)
        if around is None or self._is_skipped(node):
            return
        callees = list(self.functions(self._recorder.values.get(node.func)))
        if target.startswith(_TAKES_FUNCTIONS):
            for argument in node.args:
                callees += self.functions(self._recorder.values.get(argument))
        if callees:
            place = (self._module.name, around.lineno, around.col_offset)
            always = is_untested(self._parents, node)
            self._callees.setdefault(place, []).extend(Callee(callee, in_loop, always) for callee in callees)

    def _around(self, node: ast.AST) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None, bool]:
        """The function around a node, and True if the node is in a loop or a `try` of that function."""
        in_loop = False
        inner, outer = node, self._parents.get(node)
        while outer is not None:
            if isinstance(outer, FUNCTIONS):
                return outer, in_loop
            in_loop = in_loop or gives_up(outer, inner)
            inner, outer = outer, self._parents.get(outer)
        return None, in_loop

    def _is_skipped(self, node: ast.AST) -> bool:
        return is_skipped(self._module, node)

    def functions(self, value: Value | None) -> Iterator[Place]:
        """The functions that a call of a value runs."""
        for member in value.members if value is not None else ():
            if isinstance(member, Function):
                yield member.module, member.line, member.column
            elif isinstance(member, Partial):
                yield from self.functions(member.function)
            elif isinstance(member, Instance):
                yield from self._of_module(member)

    def _of_module(self, value: Instance) -> Iterator[Place]:
        if value.cls in CONTAINERS:
            yield from self.functions(children(value))
        elif not value.cls.startswith("torch."):
            yield from self.functions(self._frame.attribute(value, "forward"))


def is_untested(parents: dict[ast.AST, ast.AST], node: ast.AST) -> bool:
    """True if no test in the function around a node decides whether the node runs; tests that raise do not count."""
    for test, _ in tests_before(node, ancestors(parents, node)):
        branch = parents.get(test)
        if not isinstance(branch, ast.Assert) and not (isinstance(branch, ast.If) and _raises(branch)):
            return False
    return True


def _raises(branch: ast.If) -> bool:
    return isinstance(branch.body[-1], ast.Raise)


def gives_up(outer: ast.AST, inner: ast.AST) -> bool:
    """True if a graph break in a part of a statement makes torch.compile give up the function around it.

    It does in the body of a loop, in a comprehension and in a `try`.
    """
    if isinstance(outer, COMPREHENSIONS):
        return True
    if isinstance(outer, ast.While):
        return True
    if isinstance(outer, (ast.For, ast.AsyncFor)):
        return isinstance(inner, ast.stmt)
    return isinstance(outer, ast.Try) and stands_in(outer.body, inner)


def _options(text: str, line: int, values: dict[str, Value | None]) -> Options | None:
    """None if the call says that nothing is to be compiled."""

    def literal(name: str, default: object) -> object:
        if name not in values:
            return default
        value = values[name]
        return value.value if isinstance(value, Const) else None

    if literal("disable", False) is True:
        return None
    mode, backend = literal("mode", ""), literal("backend", "")
    fullgraph, dynamic = literal("fullgraph", False), literal("dynamic", None)
    return Options(
        text,
        line,
        "",
        fullgraph if isinstance(fullgraph, bool) else None,
        dynamic if isinstance(dynamic, bool) else None,
        ("" if "mode" in values and values["mode"] == Const(None) else None) if mode is None else str(mode),
        None if backend is None else str(backend),
    )


def _literal(node: ast.expr) -> Value | None:
    return Const(node.value) if isinstance(node, ast.Constant) else None


_LONGEST = 40


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= _LONGEST else "…"


# Code that tracing skips

_TRUE_WHILE_TRACING = frozenset({"is_compiling", "is_dynamo_compiling", "is_torchdynamo_compiling"})
_FALSE_WHILE_TRACING = frozenset({"is_scripting", "is_tracing", "is_in_onnx_export", "is_fx_tracing"})
_NEVER_ASKED = frozenset({"is_exporting", "is_torchdynamo_exporting"})


def decided(test: ast.expr, module: Module) -> bool | None:
    """How a test comes out while torch.compile traces it; None if that depends."""
    test = _named(test, module)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = decided(test.operand, module)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        known = [decided(value, module) for value in test.values]
        ends = isinstance(test.op, ast.Or)
        if ends in known:
            return ends
        return (not ends) if all(each is (not ends) for each in known) else None
    if isinstance(test, ast.Name) and test.id == "TYPE_CHECKING":
        return False
    name = last_name(test) if isinstance(test, ast.Call) else ""
    if name in _TRUE_WHILE_TRACING:
        return True
    return False if name in _FALSE_WHILE_TRACING | _NEVER_ASKED else None


def _named(test: ast.expr, module: Module) -> ast.expr:
    """The call, or its opposite, that gives the value of a name which is bound once; any other expression itself."""
    if not isinstance(test, ast.Name):
        return test
    bindings = module.symbols.variable(test).bindings
    only = bindings[0] if len(bindings) == 1 and bindings[0].how is How.ASSIGNED and bindings[0].whole else None
    value = None if only is None else only.value
    asked = value.operand if isinstance(value, ast.UnaryOp) else value
    return value if value is not None and isinstance(asked, ast.Call) else test


def is_skipped(module: Module, node: ast.AST) -> bool:
    """True if torch.compile never comes to a node when it traces the function around it.

    This is code behind a guard such as `is_compiling()`, and code that only runs after a failure.
    """
    parents = module.structure.parents
    inner, outer = node, parents.get(node)
    while outer is not None and not isinstance(inner, FUNCTIONS):
        if isinstance(outer, (ast.Raise, ast.ExceptHandler)) or _is_other_branch(module, outer, inner):
            return True
        if isinstance(inner, ast.stmt) and _is_after_leaving(module, outer, inner):
            return True
        inner, outer = outer, parents.get(outer)
    return False


def _is_other_branch(module: Module, outer: ast.AST, inner: ast.AST) -> bool:
    if isinstance(outer, ast.Assert):
        return inner is outer.msg
    if isinstance(outer, ast.BoolOp):
        ends = isinstance(outer.op, ast.Or)
        before = outer.values[: outer.values.index(inner)] if inner in outer.values else []
        return any(decided(value, module) is ends for value in before)
    if not isinstance(outer, (ast.If, ast.IfExp)) or inner is outer.test:
        return False
    outcome = decided(outer.test, module)
    if outcome is None:
        return False
    body = outer.body if isinstance(outer.body, list) else [outer.body]
    return (inner in body) is not outcome


def _is_after_leaving(module: Module, outer: ast.AST, inner: ast.stmt) -> bool:
    """True if a branch that is taken while tracing leaves the block before a statement."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(outer, name, None)
        if not isinstance(block, list) or inner not in block:
            continue
        for statement in block[: block.index(inner)]:
            if isinstance(statement, ast.If) and (outcome := decided(statement.test, module)) is not None:
                branch = statement.body if outcome else statement.orelse
                if branch and isinstance(branch[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break)):
                    return True
    return False
