"""The reasons for the value of an expression, found afterwards.

Inference keeps values only. Here the way back is walked: from a name to its assignments, from a
parameter to its annotation, docstring, default, use or callers, from an attribute to the method that
sets it, from an operation to the operand that decides.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from perflint.frozen import dataclass, replace
from perflint.semantics.binders import Binding, How, binding_of, defaults, own_nodes
from perflint.semantics.dataflow.definitions import Definitions, definitions, tests_before
from perflint.semantics.explain import by_name
from perflint.semantics.explain.phrases import quote, why
from perflint.semantics.facts import named, torch_api
from perflint.semantics.facts.concepts import Entry
from perflint.semantics.interpreter.annotations import annotated
from perflint.semantics.interpreter.frame import Budget, Frame
from perflint.semantics.interpreter.lineage import decorator_names, facts_of, lineage
from perflint.semantics.interpreter.resolve import resolve
from perflint.semantics.lattice import union
from perflint.semantics.module import Module
from perflint.semantics.structure import FUNCTIONS, ClassInfo, FunctionInfo, FunctionNode, last_name, path_of, walk
from perflint.semantics.values import (
    UNKNOWN,
    Class,
    Const,
    Device,
    Dtype,
    Instance,
    Name,
    Scalar,
    Sequence,
    Tensor,
    Unknown,
    Value,
)
from perflint.source.quoting import quoted

if TYPE_CHECKING:
    from perflint.semantics.callers.summary import Call
    from perflint.semantics.inferred import Inferred

_MOST_STEPS = 4
_MOST_BINDINGS = 3
_WORK = 10_000
"""Nodes that may be run to look up annotations and bases of classes."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the way back: words on the code at a line, in another file if `path` is set.

    `line` is None if the words are about the expression itself.
    """

    text: str
    line: int | None = None
    path: Path | None = None
    entries: tuple[Entry, ...] = ()
    """The conventions that it rests on."""


Steps = tuple[list[Step], ast.expr | None]
"""Steps, and the expression that goes on to explain them."""


class Reasons:
    """The reasons behind the values of one file."""

    def __init__(self, model: Inferred) -> None:
        self._model = model

    def of(self, node: ast.expr, told: Collection[ast.AST] = ()) -> list[Step]:
        """Why an expression has its value, nearest step first; empty if the code shows it plainly.

        The way ends at expressions that are explained by themselves, those of `told`.
        """
        return self._follow(node, node, told)

    def of_parameter(self, function: FunctionNode, arg: ast.arg) -> list[Step]:
        """Why a parameter has its value."""
        found, decides = self._parameter(function, arg)
        return [*found, *self._follow(decides, None, ())][:_MOST_STEPS]

    def imported(self, statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> Value:
        """The value of an imported name."""
        if not isinstance(statement, ast.ImportFrom):
            name = alias.name if alias.asname else alias.name.split(".", 1)[0]
        elif alias.name == "*":
            return UNKNOWN
        else:
            name = f"{self._model.module.absolute(statement.module, statement.level)}.{alias.name}"
        return resolve(self._frame, self._model.module, Name(name))

    def function_of(self, arg: ast.arg) -> FunctionNode | None:
        """The function that has a parameter."""
        arguments = self._model.parent(arg)
        function = None if arguments is None else self._model.parent(arguments)
        return function if isinstance(function, FUNCTIONS) else None

    def _follow(self, current: ast.expr | None, asked: ast.expr | None, told: Collection[ast.AST]) -> list[Step]:
        steps: list[Step] = []
        seen: set[ast.AST] = set()
        while current is not None and current not in seen and len(steps) < _MOST_STEPS:
            if current is not asked and current in told:
                break
            seen.add(current)
            if current is asked and isinstance(getattr(current, "ctx", None), ast.Store):
                found, following = self._stored(current)
            elif isinstance(current, (ast.Name, ast.Attribute)):
                found, following = self._path(current)
                found = [*self._by_name(current), *found]
            else:
                text, following = why(self._model, current)
                entries = by_name.of_call(self._model, current)
                found = [Step(text, None if current is asked else current.lineno, entries=entries)] if text else []
                if current is not asked and not isinstance(following, ast.Name | ast.Attribute | None):
                    # The code shows the operations one after the other; only the place where they begin matters.
                    found = []
            if current is not asked:
                if isinstance(current, ast.Attribute) and following is not None and self._is_known(current):
                    # The next step is about its owner.
                    found = [step for step in found if step.line is not None or step.entries]
                found = [step if step.line is not None else replace(step, line=current.lineno) for step in found]
            steps += [step for step in found if step not in steps]
            current = None if steps and asked is not None and self._is_plain(asked) else following
        return steps[:_MOST_STEPS]

    def _is_known(self, node: ast.expr) -> bool:
        return not isinstance(self._model.value(node), Unknown)

    def _is_plain(self, node: ast.expr) -> bool:
        """True if one step is enough: a number's way does not matter."""
        members = self._model.value(node).members
        return bool(members) and all(isinstance(member, (Const, Scalar, Dtype)) for member in members)

    # Names

    def _stored(self, node: ast.expr) -> Steps:
        """A target: the assigned value stands beside it and is explained there."""
        binding = binding_of(node, self._model.ancestors(node))
        if binding is None or binding.value is None:
            return [], None
        if binding.how is How.AUGMENTED:
            return self._path(node)
        text = self._part(binding)
        return ([Step(text)], binding.value) if text else ([], None)

    def _path(self, node: ast.expr) -> Steps:
        path = path_of(node)
        found = definitions(self._model.symbols, node, path) if path else Definitions()
        if found.bindings:
            return self._bindings(node, path, found)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        value = self._model.value(node)
        if isinstance(value, Name) and value.name.startswith("builtins."):
            return [Step("a builtin of Python")], None
        return [Step("nothing in this file binds it" if isinstance(value, Unknown) else "from an `import *`")], None

    def _bindings(self, node: ast.expr, path: str, found: Definitions) -> Steps:
        value = self._model.value(node)
        bindings = [b for b in found.bindings if b.how is not How.GROWN or not isinstance(value, Tensor)]
        steps = self._narrowed(node, path, bindings)
        follow: ast.expr | None = None
        for binding in bindings[:_MOST_BINDINGS]:
            more, decides = self._binding(binding, found)
            steps += more
            if follow is None and (len(bindings) == 1 or self._is_tensor(decides)):
                follow = decides
        if len(bindings) > _MOST_BINDINGS:
            lines = sorted({binding.line for binding in bindings[_MOST_BINDINGS:]})
            steps.append(Step(f"also bound on line {', '.join(map(str, lines[:3]))}", node.lineno))
        return steps, follow

    def _is_tensor(self, node: ast.expr | None) -> bool:
        return node is not None and self._model.value(node).tensor is not None

    def _binding(self, binding: Binding, found: Definitions) -> Steps:
        """A binding's code, and words on where its value comes from."""
        if isinstance(binding.node, ast.arg):
            assert isinstance(found.scope, FUNCTIONS)
            return self._parameter(found.scope, binding.node)
        code = self._code_of(binding.node)
        words, decides = self._part(binding), binding.value
        if decides is not None and not isinstance(decides, (ast.Name, ast.Attribute)):
            if not words:
                words, decides = why(self._model, decides)
            elif binding.how is How.ASSIGNED:
                text, decides = why(self._model, decides)
                words = f"a part of it: {text}" if text else words
        entries = by_name.of_binding(self._model, binding)
        return [Step(f"{code}: {words}" if words else code, binding.line, entries=entries)], decides

    def _code_of(self, node: ast.AST) -> str:
        """The code that binds: the statement, the comprehension or the pattern that a node belongs to."""
        if isinstance(node, ast.pattern):
            case = next(outer for outer in self._model.ancestors(node) if isinstance(outer, ast.match_case))
            return quoted(f"case {ast.unparse(case.pattern)}")
        if isinstance(node, ast.ExceptHandler):
            return quoted(f"except {'' if node.type is None else ast.unparse(node.type)} as {node.name}")
        around = [node, *self._model.ancestors(node)]
        statements = (ast.stmt, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
        return quote(self._model, next((outer for outer in around if isinstance(outer, statements)), node))

    def _part(self, binding: Binding) -> str:
        """The part of its value that a binding takes; empty if it takes all."""
        if binding.value is None or binding.how in (How.AUGMENTED, How.GROWN):
            return ""
        source = quote(self._model, binding.value)
        if binding.how in (How.LOOP, How.COMPREHENSION):
            if self._yields_batches(binding.value):
                return f"{'a batch' if binding.whole else 'part of a batch'}, on the CPU until it is moved"
            return f"{'an element' if binding.whole else 'part of an element'} of {source}"
        if binding.how is How.WITH:
            return f"the value of entering {source}"
        return "" if binding.whole else f"part of {source}"

    def _yields_batches(self, node: ast.expr) -> bool:
        """True if a loop over something iterates over the batches of a loader."""
        for member in self._model.value(node).members:
            if isinstance(member, Instance) and "torch.utils.data.DataLoader" in self._lineage(member.cls):
                return True
            if isinstance(member, Sequence) and member.type == "iterator":
                items = member.element.items if isinstance(member.element, Sequence) else None
                if any(isinstance(item, Sequence) and item.type == "batch" for item in items or (member.element,)):
                    return True
        return False

    # Tests that narrow

    def _narrowed(self, node: ast.expr, path: str, bindings: list[Binding]) -> list[Step]:
        """The test that leaves less of a name than was assigned to it."""
        known = [self._value_of(binding) for binding in bindings]
        found = [value for value in known if value is not None]
        if len(found) < len(known) or union(found) == self._model.value(node):
            return []
        for test, truth in tests_before(node, self._model.ancestors(node)):
            part = next((part for part in walk(test) if _narrows(part, path)), None)
            if part is not None:
                words = "holds" if truth else "does not hold"
                return [Step(f"{quote(self._model, test)} {words} here", test.lineno)]
        return []

    def _value_of(self, binding: Binding) -> Value | None:
        if isinstance(binding.node, ast.arg):
            function = self.function_of(binding.node)
            return None if function is None else self._model.parameters(function)[1].get(binding.node.arg)
        if binding.how in (How.GROWN, How.AUGMENTED) or not isinstance(binding.node, ast.expr):
            return None
        return self._model.value(binding.node)

    # Parameters

    def _parameter(self, function: FunctionNode, arg: ast.arg) -> Steps:
        alone, called = self._model.parameters(function)
        assumed, value = alone.get(arg.arg, UNKNOWN), called.get(arg.arg, UNKNOWN)
        info = self._model.module.defined_by(function)
        if info is None:
            return [], None
        if value != assumed:
            passed = list(self._passed(info, function, arg))
            if passed:
                words = f"parameter `{arg.arg}`: the call passes"
                steps = [Step(f"{words} {quote(self._model, node)}", node.lineno) for node in passed[:2]]
                return steps, next(filter(self._is_tensor, passed), passed[0])
            outside = self._model.passing(info)
            if outside:
                return [_passing(arg, call) for call in outside[:2]], None
            if self._model.is_passed_by_bases(info):
                return [Step(f"parameter `{arg.arg}`: a method of a base class passes it", arg.lineno)], None
        words = self._said_of(function, info, arg, assumed)
        entries = by_name.of_parameter(info, arg, assumed)
        if assumed.tensor is not None and assumed.tensor.device is Device.MODEL and not assumed.tensor.leaf:
            words += f"; what a module's `{info.name}` gets is on its device"
        return [Step(f"parameter `{arg.arg}`: {words}", arg.lineno, entries=entries)], None

    def _said_of(self, function: FunctionNode, info: FunctionInfo, arg: ast.arg, value: Value) -> str:
        if info.owner and isinstance(value, (Instance, Class)) and arg is next(iter(_ordered(function)), None):
            return "the object itself" if isinstance(value, Instance) else "the class itself"
        item = by_name.of_schedule(arg, value)
        if item is not None:
            return f"by its name, it {item.why}"
        if arg.annotation is not None:
            told = annotated(self._frame, arg.annotation)
            if not isinstance(told, Unknown) or isinstance(value, Unknown):
                return f"annotated {quote(self._model, arg.annotation)}"
        if arg in (function.args.vararg, function.args.kwarg):
            return "all further arguments"
        documented, default = (info.documented or {}).get(arg.arg), defaults(function).get(arg.arg)
        if documented is not None and not isinstance(value, Unknown):
            return f"the docstring says {quoted(documented)}"
        if default is not None and not (isinstance(default, ast.Constant) and default.value is None):
            return f"{quote(self._model, default)} by default"
        if arg.arg in (info.replaced or ()):
            return "a tensor replaces it if it is None"
        if value.tensor is not None and arg.arg in (info.passed or ()):
            return "passed to a function of torch"
        if value.tensor is not None:
            return self._used_as_tensor(function, arg.arg)
        if not isinstance(value, Unknown):
            entry = named.entry_behind(arg.arg, value)
            return f"by its name, it {entry.why}" if entry is not None else "known by its name"
        return "no annotation, default, docstring, use or call in this file says what it is"

    def _used_as_tensor(self, function: FunctionNode, name: str) -> str:
        body: list[ast.AST] = [function.body] if isinstance(function, ast.Lambda) else list(function.body)
        for node in (node for part in body for node in walk(part)):
            if isinstance(node, ast.Attribute) and path_of(node.value) == name:
                if node.attr in torch_api.tensor_only_calls():
                    return f"used as tensors are, by {quote(self._model, node)} on line {node.lineno}"
        return "used as tensors are"

    def _passed(self, info: FunctionInfo, function: FunctionNode, arg: ast.arg) -> Iterator[ast.expr]:
        """The arguments of the calls in this file for a parameter."""
        module = self._model.module.name
        names = [one.arg for one in _ordered(function)]
        is_bound = info.owner and "staticmethod" not in decorator_names(info.node)
        position = names.index(arg.arg) - bool(is_bound) if arg.arg in names else -1
        for call in self._model.nodes(ast.Call):
            callee = self._model.value(call.func)
            is_object = isinstance(callee, Instance) and callee.cls == f"{module}.{info.owner}"
            if self._model.target(call) == f"{module}.{info.qualname}" or (is_object and info.name == "forward"):
                keyword = next((item.value for item in call.keywords if item.arg == arg.arg), None)
                if keyword is not None:
                    yield keyword
                elif 0 <= position < len(call.args):
                    if not any(isinstance(one, ast.Starred) for one in call.args[: position + 1]):
                        yield call.args[position]

    # Attributes

    def _attribute(self, node: ast.Attribute) -> Steps:
        receiver = self._model.value(node.value)
        for member in receiver.members:
            if isinstance(member, (Instance, Class)):
                found = self._member(member, node.attr)
                if found is not None:
                    return found
        text, decides = self._attribute_words(node, receiver)
        return [Step(text)] if text else [], decides

    def _by_name(self, node: ast.Name | ast.Attribute) -> list[Step]:
        entries = by_name.of_attribute(self._model, node)
        return [Step(f"by its name, `{last_name(node)}` {entry.why}", entries=(entry,)) for entry in entries]

    def _attribute_words(self, node: ast.Attribute, receiver: Value) -> tuple[str, ast.expr | None]:
        name = quote(self._model, node.value)
        if isinstance(receiver, Name) and receiver.receiver is None:
            value = self._model.value(node)
            is_known = not isinstance(value, Unknown) and not (
                isinstance(value, Name) and not value.name.startswith("torch.")
            )
            return "" if is_known else f"from {quoted(receiver.name)}, outside of the project", None
        if isinstance(receiver, Unknown):
            return f"an attribute of {name}, which is unknown", node.value
        kind = "tensor" if isinstance(receiver, Tensor) else "batch" if receiver.tensor is not None else ""
        if kind:
            return f"an attribute of the {kind} {name}", node.value
        value = self._model.value(node)
        return (f"perflint does not know `.{node.attr}` of {name}" if isinstance(value, Unknown) else ""), node.value

    def _member(self, value: Instance | Class, name: str) -> Steps | None:
        """The steps by which a class of the project, or a base of it, gets an attribute; None for other classes."""
        for base in self._lineage(value.cls if isinstance(value, Instance) else value.name):
            facts = facts_of(self._frame, base)
            module = self._model.view.loaded(facts.module) if facts is not None else None
            info = module.klass(facts.qualname) if module is not None and facts is not None else None
            if module is not None and info is not None:
                sets = list(self._set_in_class(module, info, name))[:_MOST_BINDINGS]
                if sets:
                    decides = [node for _, node in sets]
                    return [step for step, _ in sets], next(filter(self._is_tensor, decides), decides[0])
            elif torch_api.is_module(base):
                found = _of_torch(value, base, name)
                if found is not None:
                    return found
        return None

    def _set_in_class(self, module: Module, info: ClassInfo, name: str) -> Iterator[tuple[Step, ast.expr | None]]:
        """The definitions of an attribute in one class."""
        is_here = module is self._model.module
        path = None if is_here else module.path
        method = info.methods.get(name)
        if method is not None:
            kind = "property" if decorator_names(method.node) & {"property", "cached_property"} else "method"
            yield Step(f"{kind} `{name}` of {info.qualname}", method.node.lineno, path), None
        for setter in info.assigned_in.get(name, ()):
            for statement, value in _sets(setter.node, name):
                words, decides = "", value if is_here else None
                if decides is not None and not isinstance(decides, (ast.Name, ast.Attribute)):
                    words, decides = why(self._model, decides)
                yield Step(self._code(statement, is_here, words), statement.lineno, path), decides
        for statement in info.node.body:
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                yield Step(self._code(statement, is_here), statement.lineno, path), None

    def _code(self, statement: ast.stmt, is_here: bool, words: str = "") -> str:
        code = quote(self._model, statement) if is_here else quoted(ast.unparse(statement))
        return f"{code}: {words}" if words else code

    # Looking things up in the interpreter's memory

    @cached_property
    def _frame(self) -> Frame:
        module = self._model.module
        return Frame(self._model.view, module, Budget(_WORK), names=self._model.view.state(module).names or {})

    def _lineage(self, name: str) -> tuple[str, ...]:
        return lineage(self._frame, name)


def _of_torch(value: Instance | Class, base: str, name: str) -> Steps | None:
    if name in ("weight", "bias", "in_proj_weight", "in_proj_bias"):
        return [Step(f"a parameter of {base}")], None
    if name in ("running_mean", "running_var", "num_batches_tracked"):
        return [Step(f"a buffer of {base}")], None
    origin = value.origin if isinstance(value, Instance) else None
    if isinstance(value, Instance) and value.argument(name) is not None and origin is not None:
        return [Step(f"an argument of {base}", origin.line)], None
    return None


def _passing(arg: ast.arg, call: Call) -> Step:
    around = "the top level" if call.caller is None else quoted(call.caller.qualname)
    return Step(f"parameter `{arg.arg}`: passed by {around}", call.line, call.path)


def _narrows(node: ast.AST, path: str) -> bool:
    """True if a part of a test says something of a path."""
    if isinstance(node, ast.Compare):
        return path_of(node.left) == path
    if isinstance(node, ast.Call):
        return bool(node.args) and path_of(node.args[0]) == path
    return isinstance(node, (ast.Name, ast.Attribute)) and path_of(node) == path


def _ordered(function: FunctionNode) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args]


def _sets(function: FunctionNode, name: str) -> Iterator[tuple[ast.stmt, ast.expr | None]]:
    """The statements of a method that set an attribute of `self`, and the values that they set."""
    if isinstance(function, ast.Lambda):
        return
    for node in own_nodes(function):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(path_of(part) == f"self.{name}" for target in targets for part in walk(target)):
                yield node, node.value if any(path_of(target) == f"self.{name}" for target in targets) else None
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            is_register = path_of(call.func) in ("self.register_buffer", "self.register_parameter")
            if is_register and call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value == name:
                yield node, call.args[1] if len(call.args) > 1 else None
