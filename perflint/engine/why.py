"""Why a finding is believed, in one clause: where its tensor comes from, and which loop runs its line."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat
from perflint.semantics.binders import LOOPS
from perflint.semantics.callers.incoming import Chain
from perflint.semantics.dataflow.origins import Origin, Source
from perflint.semantics.explain.phrases import quote
from perflint.semantics.explain.reasons import Reasons
from perflint.semantics.heat.heat_map import HeatMap
from perflint.semantics.memo import remembered
from perflint.semantics.model import FunctionNode, Model
from perflint.semantics.purpose.given import given_on_cpu
from perflint.semantics.purpose.unreached import is_dead
from perflint.semantics.sites import device_confidence
from perflint.semantics.structure import FunctionInfo, stands_in, walk
from perflint.semantics.values import Device, Tensor
from perflint.source.quoting import quoted

_OF_TENSORS = frozenset(
    {Effect.SYNC, Effect.TRANSFER, Effect.ALLOCATION, Effect.GRAPH_BREAK, Effect.RECOMPILE, Effect.CAPTURE}
)
"""Effects of operations on tensors: those of the others lie in how a program is set up."""
_PLACES = {
    Device.CPU: "on the CPU",
    Device.CUDA: "on the GPU",
    Device.MODEL: "on the device of the model",
    Device.CALLER: "assumed on the GPU",
    Device.UNKNOWN: "assumed on the GPU",
    Device.META: "on a device other than CUDA",
}
_TO_GPU = "TPF201"
_BATCHES = "iterates over the batches of"
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LONGEST_CHAIN = 4
"""Functions that are named from the loop to the line."""


class Whys:
    """The clauses for the findings of one file."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._reasons = Reasons(model)
        self._heats: dict[ast.AST | None, str] = {}

    def clause(self, finding: Finding, node: ast.expr | ast.stmt) -> str | None:
        """The clause for a finding at a node; None if there is nothing to add to the message."""
        tensor = self._tensor(node, finding.code) if self.is_about_tensors(finding) else ""
        heat = self._heat(finding, node)
        if _BATCHES in heat and "from a batch of" in tensor and heat.rpartition(" of ")[2] in tensor:
            # The batch comes from the loop that runs the line.
            return tensor
        return "; ".join(part for part in (tensor, heat) if part) or None

    def is_about_tensors(self, finding: Finding) -> bool:
        """True if the effect of a finding is that of an operation on tensors."""
        return finding.effect in _OF_TENSORS

    def subject(self, node: ast.AST) -> ast.expr | None:
        """The operand of an expression that is a tensor, one on the device if there is one; else the expression."""
        operands = [operand for operand in _operands(node) if self._model.value(operand).tensor is not None]
        on_device = (each for each in operands if device_confidence(self._model.value(each)) is not None)
        found = next(on_device, operands[0] if operands else None)
        itself = node.value if isinstance(node, ast.Expr) else node
        if found is None and isinstance(itself, ast.expr) and self._model.value(itself).tensor is not None:
            return itself
        return found

    # Tensors

    def _tensor(self, node: ast.AST, code: str) -> str:
        subject = self.subject(node)
        tensor = self._model.value(subject).tensor if subject is not None else None
        if subject is None or tensor is None:
            return self._unknown(node)
        given = given_on_cpu(self._model, subject) if code == _TO_GPU and tensor.device is not Device.CPU else ""
        if given:
            # Other calls pass it on the GPU.
            return f"{quote(self._model, subject)}: {given}, {_PLACES[Device.CPU]}"
        origin = self._model.origins.of(subject)
        words = self._origin(origin, tensor)
        return f"{words}, {_PLACES[tensor.device]}" if words else ""

    def _unknown(self, node: ast.AST) -> str:
        """The object that a rule takes for a tensor, because of the method that is called."""
        call = node.value if isinstance(node, ast.Expr) else node
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return ""
        owner = call.func.value
        if not self._model.value(owner).is_unknown or not self._model.target(call).startswith("torch.Tensor."):
            return ""
        return f"{quote(self._model, owner)}: unknown, taken for a tensor because of `.{call.func.attr}()`"

    def _origin(self, origin: Origin, tensor: Tensor) -> str:
        name = quoted(origin.name) if origin.name else "the tensor"
        if origin.source is Source.PARAMETER:
            assert isinstance(origin.node, ast.arg)
            words = self._parameter(origin.node, tensor)
            if origin.root == origin.name:
                return f"{name}: {words}"
            return f"{name}: computed from {quoted(origin.root)}, {words}"
        words = self._words(origin)
        return f"{name}: {words}" if words else ""

    def _words(self, origin: Origin) -> str:
        assert isinstance(origin.node, ast.expr)
        node = origin.node
        code = quote(self._model, node)
        line = f" on line {node.lineno}"
        computed = "computed from " if origin.is_computed else ""
        if origin.source is Source.BATCH:
            return f"from a batch of {code} (line {origin.line})"
        if origin.source is Source.ELEMENT:
            return f"{computed}an element of {code} (line {origin.line})"
        if origin.source is Source.MODEL and isinstance(node, ast.Call):
            return f"computed from the result of {quote(self._model, node.func)}(…){line}".replace("`(…)", "(…)`")
        if origin.source is Source.MOVED and isinstance(node, ast.Call):
            moved = f"{self._method(node)}{line}"
            return f"computed from a tensor that {moved} moved" if computed else f"moved by {moved}"
        if origin.source is Source.STATE:
            if computed:
                return f"computed from {code}, state of the object"
            return f"{code} is state of the object" if origin.name != origin.root else "state of the object"
        if origin.source is Source.OUTSIDE:
            return self._outside(origin)
        if isinstance(node, ast.Call):
            made = "the result of " if origin.source is Source.CALL else "" if computed else "made by "
            return f"{computed}{made}{quote(self._model, node.func)}(…){line}".replace("`(…)", "(…)`")
        return "" if isinstance(node, ast.Constant) else f"{computed}{code}{line}"

    def _outside(self, origin: Origin) -> str:
        """The words for a way back that ends at a name of another scope, or at one that the file does not bind."""
        symbols = self._model.symbols
        name = origin.root.partition(".")[0]
        scope = symbols.scope_around(origin.node)
        variable = symbols.resolve(scope, name)
        if variable.bindings:
            first, *others = (binding.line for binding in variable.bindings)
            line = max((line for line in others if line <= origin.line), default=first)
            is_here = variable.scope.function is scope.function
            return f"bound on line {line}" if is_here else "bound outside of this function"
        source = "" if origin.root == origin.name else f"comes from {quoted(origin.root)}, which is "
        return f"{source}not bound in this file"

    def _method(self, call: ast.Call) -> str:
        assert isinstance(call.func, ast.Attribute)
        arguments = ", ".join(ast.unparse(part) for part in (*call.args, *call.keywords))
        return quoted(f".{call.func.attr}({arguments})")

    @remembered
    def _parameter(self, arg: ast.arg, tensor: Tensor) -> str:
        function = self._reasons.function_of(arg)
        return self._said_of(function, arg, tensor) if function is not None else ""

    def _said_of(self, function: FunctionNode, arg: ast.arg, tensor: Tensor) -> str:
        steps = self._reasons.of_parameter(function, arg)
        words = steps[0].text.removeprefix(f"parameter `{arg.arg}`: ").partition("; ")[0] if steps else ""
        if words.startswith("the call passes") and steps[0].line is not None:
            return f"line {steps[0].line} passes {words.removeprefix('the call passes ')}"
        if words.startswith("no annotation"):
            return "an unannotated parameter"
        return words.replace("used as tensors are", "used as a tensor")

    # Heat

    def _heat(self, finding: Finding, node: ast.AST) -> str:
        model = self._model
        is_set_by_rule = finding.effect not in _OF_TENSORS
        differs = model.heat(node) is not finding.heat
        if finding.heat is Heat.COLD and (differs or is_set_by_rule) and is_dead(model, node):
            return "no program of the project reaches this code"
        if differs:
            # The rule knows better than the place: a switch holds for the whole program.
            return ""
        block = next((outer for outer in model.ancestors(node) if isinstance(outer, ast.stmt)), None)
        if isinstance(node, ast.stmt):
            block = node
        known = self._heats.get(block) if finding.heat is not Heat.COLD else None
        if known is None:
            known = _HeatWords(model).of(node, finding.heat)
            if finding.heat is not Heat.COLD:
                self._heats[block] = known
        return known


class _HeatWords:
    """The loop, the guard or the name that decides how often a node runs."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._map: HeatMap = model.heat_map

    def of(self, node: ast.AST, heat: Heat) -> str:
        """A clause on a node of that heat; empty if nothing stands out."""
        chain: list[str] = []
        current: ast.AST | None = node
        while current is not None and len(chain) < _LONGEST_CHAIN:
            found = self._in_function(current, heat)
            if isinstance(found, str):
                return _joined(chain, found)
            if found is None:
                return _joined(chain, "at the top level of the module" if heat is Heat.COLD else "")
            words, current = self._function(found, heat)
            if words and current is None:
                return _joined(chain, words)
            chain += [words] if words else []
        return _joined(chain, "")

    def _in_function(self, node: ast.AST, heat: Heat) -> str | ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The code that decides the heat inside the function around a node, or that function."""
        inner = node
        for outer in self._model.ancestors(node):
            test = self._map.guard(outer, inner) if heat is Heat.COLD else None
            if test is not None:
                words = f"{quote(self._model, test)} on line {test.lineno}"
                is_else = isinstance(outer, ast.If) and stands_in(outer.orelse, inner)
                return f"runs only if {words} does not hold" if is_else else f"runs only now and then: {words}"
            if isinstance(inner, (ast.Raise, ast.ExceptHandler)):
                return "runs only when something fails"
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)) and stands_in(outer.body, inner):
                return outer
            if self._map.of(outer) is not heat:
                return self._loop(outer) if isinstance(outer, LOOPS) else ""
            inner = outer
        return None

    def _loop(self, loop: ast.For | ast.AsyncFor | ast.While) -> str:
        if not isinstance(loop, ast.While) and self._model.is_over_batches(loop.iter):
            source = quote(self._model, self._model.origins.iterated(loop.iter))
            return f"the loop on line {loop.lineno} {_BATCHES} {source}"
        call = next(filter(self._map.work.is_work, self._calls_in(loop)), None) or self._map.work.acts(loop)
        return f"the loop on line {loop.lineno} runs {'every step' if call is None else quote(self._model, call.func)}"

    def _calls_in(self, loop: ast.stmt) -> Iterator[ast.Call]:
        for node in walk(loop):
            if isinstance(node, ast.Call):
                between = next(a for a in self._model.ancestors(node) if isinstance(a, (*LOOPS, *_DEFINITIONS)))
                if between is loop:
                    yield node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, heat: Heat) -> tuple[str, ast.AST | None]:
        """The code that decides the heat of a function, or the words on a call of it and that call."""
        info = self._model.module.defined_by(node)
        assert info is not None, "the node is a function of the module"
        named = self._map.named(info)
        if named is not None and named.heat is heat:
            return f"`{info.qualname}` {named.why}{' (by its name)' if named.entry else ''}", None
        return self._called(info, heat)

    def _called(self, info: FunctionInfo, heat: Heat) -> tuple[str, ast.AST | None]:
        callers = self._map.callers(info)
        alike = [call for call in callers if self._map.of(self._map.place(call, info)) is heat]
        chain = self._model.chain(info) if not alike else None
        if chain is not None and chain.heat is heat is not Heat.COLD:
            return _by_other_files(chain, info, self._model), None
        if heat is Heat.WARM:
            if not callers:
                return f"no call of `{info.qualname}` in this file", None
            return ("" if alike else f"other files may call `{info.qualname}`"), None
        if heat is Heat.COLD:
            return f"`{info.qualname}` is only called from code that rarely runs", None
        if not alike:
            work = "takes a step of training" if self._map.training_step(info) is not None else "runs a model"
            return f"`{info.qualname}` {work}", None
        return f"line {alike[0].lineno} calls `{info.qualname}`", self._map.place(alike[0], info)


def _by_other_files(chain: Chain, info: FunctionInfo, model: Model) -> str:
    call, place = chain.calls[0], chain.places(model.module.path)[0]
    caller = place if call.caller is None else f"{quoted(call.caller.qualname)} ({place})"
    if chain.heat is Heat.HOT:
        return f"{caller} calls `{info.qualname}`"
    return f"{caller} calls `{info.qualname}`, not known how often"


def _joined(chain: list[str], last: str) -> str:
    """The calls on the way to a line, and the loop or function that they begin in."""
    calls = ", ".join(chain[:2])
    if calls and last.startswith("`"):
        name, _, rest = last[1:].partition("`")
        return f"{calls} in `{name}`, which{rest}"
    return " and ".join(part for part in (calls, last) if part)


def _operands(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that an operation works on."""
    if isinstance(node, ast.Expr):
        node = node.value
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield node.func.value
        yield from (arg.value if isinstance(arg, ast.Starred) else arg for arg in node.args)
        yield from (keyword.value for keyword in node.keywords)
    elif isinstance(node, ast.Subscript):
        index = node.slice
        yield from index.elts if isinstance(index, ast.Tuple) else [index]
        yield node.value
    elif isinstance(node, (ast.BinOp, ast.BoolOp, ast.Compare, ast.UnaryOp)):
        yield from (part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
