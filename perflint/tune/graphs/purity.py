"""Decides if code may be replayed by a graph: it must have no effect but on tensors, and read nothing but constants.

A graph repeats the work of the GPU and no Python. Code that waits for the GPU fails while it is captured, so a trial
shows it. Code whose Python has an effect is captured in silence, so it must be found here.
"""

from __future__ import annotations

import ast
import builtins
from collections import deque
from collections.abc import Callable, Collection, Container, Iterator

from perflint.semantics.structure import path_of, root_of
from perflint.tune.refused import Refused

_WAITS = frozenset("item tolist numpy cpu".split())
CHANGING = frozenset(
    "append extend insert pop popleft appendleft remove clear update setdefault add discard write writelines".split()
)
"""Methods of containers and files that change them."""
BUILTINS = frozenset(dir(builtins))
_PURE_BUILTINS = frozenset(
    "abs all any bool callable dict divmod enumerate filter float frozenset getattr hasattr int isinstance issubclass "
    "len list map max min pow range reversed round set slice sorted str sum super tuple type zip".split()
)
_VARYING_MODULES = (
    *("numpy.random", "random", "time", "datetime", "secrets", "uuid", "os", "sys", "io", "logging", "warnings"),
    *("subprocess", "threading", "json", "pickle", "shutil", "csv", "wandb", "tqdm", "mlflow", "neptune", "loguru"),
)
"""Modules whose functions have effects outside of tensors, or give another result in each step."""
_GENERATORS = {"random.Random", *(f"numpy.random.{name}" for name in ("default_rng", "RandomState", "Generator"))}
_HOST_MODULES = ("numpy", "pandas", "scipy", "sklearn", "PIL", "cv2", "gym", "gymnasium")
"""Modules that compute on the CPU."""
_FROM_HOST = frozenset(f"torch.{name}" for name in "tensor as_tensor asarray from_numpy".split())
_KINDS = frozenset("isinstance len hasattr callable".split())
"""Functions that tell of a tensor or a container what no work on its values changes."""
_SIZES = frozenset("device dim dtype is_cuda ndim numel shape size".split())
"""Attributes of a tensor that do not depend on its values."""
_WALKS = frozenset(
    f"{named}{part}" for named in ("", "named_") for part in "parameters buffers children modules".split()
)
"""Methods of models whose iterators always give the same objects."""
_CREATORS = frozenset(
    f"torch.{name}" for name in "arange empty eye full linspace logspace ones rand randint randn randperm zeros".split()
)
_NEW = frozenset(
    "abs all any clone dtype device dot isfinite isinf isnan item max mean min norm numel pow shape size square std "
    "sum tolist var".split()
)
"""Attributes and methods of tensors that give no part of their memory."""
_DRAWING = frozenset(
    "rand randn randint randperm rand_like randn_like randint_like normal bernoulli multinomial poisson dropout "
    "alpha_dropout normal_ uniform_ bernoulli_ random_ exponential_ log_normal_ geometric_ cauchy_".split()
)
"""Functions and methods that draw random numbers."""
_DRAWING_METHODS = frozenset("bernoulli multinomial dropout sample rsample".split())
"""Those of tensors, and of distributions, without `_` at the end."""
_ON_OPTIMIZERS = frozenset("backward zero_grad".split())
_CLIPS = frozenset(f"torch.nn.utils.{name}" for name in "clip_grad_norm_ clip_grad_value_".split())
_CONTEXTS = frozenset("no_grad enable_grad set_grad_enabled autocast".split())
_IMPURE_BUILTINS = frozenset(name for name in dir(builtins) if name.islower()) - _PURE_BUILTINS
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.Constant)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BOUND_BY = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


class Imports:
    """The modules and their members that the names of a file stand for, also by `Tensor = torch.FloatTensor`."""

    def __init__(self, tree: ast.Module) -> None:
        self._names: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    self._names[alias.asname or whole] = whole
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self._names[alias.asname or alias.name] = f"{'.' * node.level}{node.module or ''}.{alias.name}"
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                value = statement.value.body if isinstance(statement.value, ast.IfExp) else statement.value
                if name := self.full_name(value):
                    self._names.setdefault(statement.targets[0].id, name)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def top(self, name: str) -> str:
        """The package or module to which an imported name belongs; empty for a relative import."""
        return self._names[name].partition(".")[0]

    def full_name(self, node: ast.AST) -> str:
        """The full name of an imported function or module; empty for anything else."""
        root, dot, rest = path_of(node).partition(".")
        return self._names[root] + dot + rest if root in self._names else ""


class Purity:
    """Judges the statements of a file. `reached` judges the functions of the project that a run saw them call.

    `is_step` is true for calls that the run saw as the step of an optimizer, `begins` for those below which it saw a
    backward pass begin, such as `accelerator.backward(loss)`.
    """

    def __init__(
        self,
        tree: ast.Module,
        is_step: Callable[[ast.AST], bool],
        reached: Callable[[ast.AST], int],
        stays_inside: Callable[[ast.AST | None], bool] = lambda _: False,
        is_own: Callable[[ast.Call], bool] = lambda _: False,
        begins: Callable[[ast.AST], bool] = lambda _: False,
        failing: Collection[int] = (),
    ) -> None:
        """`failing` are lines at which the making of a graph failed."""
        self._failing = failing
        self.stays_inside = stays_inside
        """True for a call of methods of the project that change their own object only, such as a meter."""
        self.imports = Imports(tree)
        self.scalers = set(_scalers(tree))
        """The names of objects of `GradScaler`. With a fused optimizer they do not wait; others fail while captured."""
        self._is_step = is_step
        self._reached = reached
        self.is_own = is_own
        self.begins = begins
        self._aliases = set(_aliases(tree))
        self._advanced = {*advanced(tree), *generators(tree, self.imports)} - self.scalers

    def require(self, statement: ast.stmt, bound: set[str]) -> None:
        """Raise Refused if a graph cannot stand for a statement. Adds the names that it binds to `bound`."""
        if fails(statement, self._failing):
            raise Refused(f"`{short(statement)}` fails while a graph is made", statement)
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self._require_assignment(statement, bound)
        elif isinstance(statement, ast.Expr):
            self._require_effect(statement.value)
        elif isinstance(statement, ast.If):
            self._require_expression(statement.test)
            self._require_host_test(statement.test, bound)
            for inner in (*statement.body, *statement.orelse):
                self.require(inner, bound)
        elif isinstance(statement, ast.With):
            for item in statement.items:
                self.require_context(item)
            for inner in statement.body:
                self.require(inner, bound)
        elif isinstance(statement, ast.For) and not statement.orelse:
            self._require_expression(statement.iter)
            bound |= set(stored_names(statement.target))
            for inner in statement.body:
                self.require(inner, bound)
        elif isinstance(statement, ast.Try):
            # What it catches depends on tensors only if something waits, which fails while the graph is made.
            for inner in (*statement.body, *statement.orelse, *statement.finalbody):
                self.require(inner, bound)
            for handler in statement.handlers:
                if handler.type is not None:
                    self._require_expression(handler.type)
                bound |= {handler.name} if handler.name else set()
                for inner in handler.body:
                    self.require(inner, bound)
        elif isinstance(statement, ast.Assert):
            self._require_expression(statement.test)
            self._require_host_test(statement.test, bound)
        elif isinstance(statement, ast.Raise):
            # A graph is made where it is not reached, and its condition is the same in each replay.
            self._require_expression(statement)
        elif isinstance(statement, ast.Delete) and all(
            isinstance(each, ast.Name) and each.id in bound for each in statement.targets
        ):
            return
        elif not isinstance(statement, ast.Pass):
            raise Refused(f"`{ast.unparse(statement).splitlines()[0]}` cannot be part of a graph", statement)

    def _require_assignment(self, statement: ast.Assign | ast.AnnAssign | ast.AugAssign, bound: set[str]) -> None:
        if statement.value is not None:
            self._require_expression(statement.value)
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            elements = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            for each in elements:
                name = root_of(each)
                is_new = isinstance(each, ast.Name) and not isinstance(statement, ast.AugAssign)
                is_outside = isinstance(each, (ast.Attribute, ast.Starred)) or name not in bound
                # A change of tensors is repeated, one of other objects is not.
                is_object = isinstance(each, ast.Subscript) or isinstance(statement.value, (ast.List, ast.ListComp))
                if not is_new and (is_outside or (is_object and name in self._aliases)):
                    raise Refused(f"`{ast.unparse(each)}` outside of the step is changed", statement)
                self._require_expression(each)
        bound |= {name for target in targets for name in stored_names(target)}

    def _require_effect(self, value: ast.expr) -> None:
        """Raise Refused if a statement does anything but change tensors in place."""
        if isinstance(value, ast.Constant):
            return
        self._require_expression(value)
        function = value.func if isinstance(value, ast.Call) else None
        name = function.attr if isinstance(function, ast.Attribute) else ""
        is_in_place = name.endswith("_") and not name.startswith("_")
        known = is_in_place or name in _ON_OPTIMIZERS or self.imports.full_name(function or value) in _CLIPS
        if known and not (name == "backward" and not self._is_of_tensor(value)):
            return
        if (name == "step" and self._is_step(value)) or (isinstance(value, ast.Call) and self.is_own(value)):
            return
        if self.updates_scale(value) or self.begins(value):
            return
        raise Refused(f"`{short(value)}` has an effect that a graph does not repeat", value)

    def updates_scale(self, node: ast.AST) -> bool:
        """True for `scaler.update()`."""
        return isinstance(node, ast.Call) and path_of(node.func).rpartition(".")[::2] in {
            (name, "update") for name in self.scalers
        }

    @staticmethod
    def _is_of_tensor(call: ast.expr) -> bool:
        """True for `loss.backward()`; false for `engine.backward(loss)`, whose engine may do more."""
        return isinstance(call, ast.Call) and not call.args

    def require_context(self, item: ast.withitem) -> None:
        """Raise Refused if a context of a `with` may do more than compute."""
        expression = item.context_expr
        self._require_expression(expression)
        name = path_of(expression.func if isinstance(expression, ast.Call) else expression).rpartition(".")[2]
        if item.optional_vars is not None or (isinstance(expression, ast.Call) and name not in _CONTEXTS):
            raise Refused(f"`with {short(expression)}` may do more than compute", expression)

    def _require_host_test(self, test: ast.expr, bound: set[str]) -> None:
        """Raise Refused if a branch depends on what the step computes."""
        if _is_none_test(test):
            # Values are no part of it, and a graph repeats the same objects.
            return
        # Sizes and kinds of tensors are the same in each replay.
        sized = {node.value for node in ast.walk(test) if isinstance(node, ast.Attribute) and node.attr in _SIZES}
        asked = [node for node in ast.walk(test) if isinstance(node, ast.Call) and path_of(node.func) in _KINDS]
        sized |= {each for call in asked for each in call.args}
        found = next((name for name in loaded_names(test) if name.id in bound and name not in sized), None)
        if found is not None:
            raise Refused(f"`{short(test)}` branches on `{found.id}`, which the step computes", test)

    def _require_expression(self, expression: ast.AST) -> None:
        self._reached(expression)
        for node in ast.walk(expression):
            reason = self.impure(node)
            if reason:
                raise Refused(reason, node)

    def impure(self, node: ast.AST) -> str:
        """The reason why a node of an expression cannot be part of a graph; empty if it can."""
        if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
            return f"`{short(node)}` cannot be part of a graph"
        if not isinstance(node, ast.Call):
            return ""
        return self._impure_call(node) or uses_generator(node)

    def fails(self, statement: ast.stmt) -> bool:
        """True if the making of a graph failed at a statement, or inside it."""
        nodes = (node for node in ast.walk(statement) if isinstance(node, ast.stmt))
        return any(fails(node, self._failing) for node in nodes)

    def _impure_call(self, call: ast.Call) -> str:
        text = f"`{short(call)}`"
        name = self.imports.full_name(call.func)
        is_constructor = name.startswith("torch.") and name.endswith("Tensor")
        if name in _FROM_HOST or is_constructor or _is_in(name, _HOST_MODULES):
            return f"{text} works on the CPU"
        if reason := varies(call, self.imports) or copies(call, self.imports):
            return reason
        if isinstance(call.func, ast.Attribute):
            if waits(call):
                return f"{text} waits for the GPU"
            if path_of(call.func.value) in self._advanced and call.func.attr not in ("step", *_ON_OPTIMIZERS):
                return f"{text} may give something else in each step"
            if call.func.attr == "pin_memory":
                return f"{text} makes memory on the CPU"
            if changes(call, self.imports) and not self.updates_scale(call) and not self.is_own(call):
                return f"{text} changes a Python object"
        return ""


def _scalers(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            if path_of(node.value.func).rpartition(".")[2] == "GradScaler":
                yield from map(path_of, node.targets)


def advanced(tree: ast.AST) -> Iterator[str]:
    """The objects that code advances, as by `scheduler.step()`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not node.value.args:
            owner, _, name = path_of(node.value.func).rpartition(".")
            if name == "step" and owner:
                yield owner


def generators(tree: ast.AST, imports: Imports) -> Iterator[str]:
    """The names of generators of random numbers of Python and NumPy."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            if imports.full_name(node.value.func) in _GENERATORS:
                yield from map(path_of, node.targets)


def _aliases(tree: ast.Module) -> Iterator[str]:
    """The names that code of a file binds to objects that are there already: elements, attributes, other names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            yield from stored_names(node.target)
        elif isinstance(node, ast.Assign) and not isinstance(
            node.value, (ast.Call, ast.BinOp, ast.UnaryOp, *_DISPLAYS)
        ):
            yield from (name for target in node.targets for name in stored_names(target))


def is_gradient(node: ast.AST, imports: Imports) -> bool:
    """True for the attribute of a parameter; false for `torch.autograd.grad`."""
    return isinstance(node, ast.Attribute) and node.attr == "grad" and not imports.full_name(node).startswith("torch.")


def keeps_gradient(tree: ast.AST, imports: Imports) -> bool:
    """True if code may hold a gradient after it has read it; false for `p.grad is None` and `p.grad.data.norm()`."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not is_gradient(node, imports) or not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        above, names = parents[node], set()
        while isinstance(above, ast.Attribute) or (isinstance(above, ast.Call) and above.func is node):
            names |= {above.attr} if isinstance(above, ast.Attribute) else set()
            node, above = above, parents[above]
        is_test = isinstance(above, ast.Compare) and _is_none_test(above)
        is_new = any(name in _NEW or name.endswith("_") for name in names)
        if not (is_new or is_test or isinstance(above, (ast.BinOp, ast.UnaryOp, ast.BoolOp))):
            return True
    return False


def varies(call: ast.Call, imports: Imports, walks: Container[str] = ()) -> str:
    """The reason why a call has an effect or a new result each time, by its name; empty if there is none.

    `walks` are names of iterators over the parts of a model.
    """
    name = imports.full_name(call.func)
    if isinstance(call.func, ast.Name) and not name and call.func.id in _IMPURE_BUILTINS:
        if call.func.id in ("iter", "next") and call.args and is_walk(call.args[0], walks):
            return ""
        return f"`{short(call)}` has an effect that a graph does not repeat"
    if _is_in(name, _VARYING_MODULES):
        return f"`{short(call)}` may do something else in each step"
    return ""


def fails(statement: ast.stmt, lines: Collection[int]) -> bool:
    """True if a simple statement, or the first line of another, has one of some lines."""
    first = getattr(statement, "lineno", 0)
    last = first if hasattr(statement, "body") else getattr(statement, "end_lineno", first)
    return any(first <= line <= last for line in lines)


def is_walk(node: ast.AST, walks: Container[str] = ()) -> bool:
    """True for a new iterator over the parts of a model, or one of some names."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _WALKS
    if isinstance(node, ast.Call) and path_of(node.func) in ("iter", "next"):
        return bool(node.args) and is_walk(node.args[0], walks)
    return isinstance(node, ast.Name) and node.id in walks


def walks_of(function: ast.AST) -> set[str]:
    """The names that a function only binds to iterators over the parts of a model, made in it, and to those parts."""
    stored = list(stored_names(function))
    bound: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            bound.setdefault(node.targets[0].id, []).append(node.value)
    return {
        name
        for name, values in bound.items()
        if len(values) == stored.count(name) and is_walk(values[0]) and all(is_walk(each, {name}) for each in values)
    }


def draws(call: ast.Call, imports: Imports) -> bool:
    """True for a call that draws random numbers on the GPU; false for a tensor that is made on the CPU."""
    full = imports.full_name(call.func)
    if not full:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        return name in _DRAWING_METHODS or (name in _DRAWING and name.endswith("_"))
    is_host = full in _CREATORS and all(each.arg not in ("device", None) for each in call.keywords)
    return full.startswith("torch.") and full.rpartition(".")[2] in _DRAWING | _DRAWING_METHODS and not is_host


def waits(call: ast.Call) -> bool:
    """True for a read of a tensor, which waits for the GPU."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in _WAITS


def reads_value(call: ast.Call) -> bool:
    """True for a call that makes a number of a tensor, if it gets one."""
    return waits(call) or path_of(call.func) in ("bool", "float", "int")


def is_in_place(node: ast.AST) -> bool:
    """True for a call of a method or function that changes a tensor in place, by its name."""
    function = getattr(node, "func", None)
    name = function.attr if isinstance(function, ast.Attribute) else path_of(function) if function else ""
    return name.endswith("_") and not name.endswith("__")


def makes_memory(node: ast.AST, imports: Imports) -> bool:
    """True for a call that makes a tensor which shares no memory; false for views, and for what is unknown."""
    if not isinstance(node, ast.Call):
        return False
    name = imports.full_name(node.func)
    is_new = isinstance(node.func, ast.Attribute) and (node.func.attr.startswith("new_") or node.func.attr == "clone")
    return is_new or name in _CREATORS or (name.startswith("torch.") and name.endswith("_like"))


def changes(call: ast.Call, imports: Imports) -> bool:
    """True for a method of containers and files that changes them, by its name; false for `torch.add`."""
    is_named = isinstance(call.func, ast.Attribute) and call.func.attr in CHANGING
    return is_named and not imports.full_name(call.func).startswith("torch.")


def copies(call: ast.Call, imports: Imports) -> str:
    """The reason why a call copies from memory of the CPU, which fails while a graph is made; empty if it does not."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("to", "cuda"):
        return ""
    given = [*call.args, *(each.value for each in call.keywords)]
    if given and all(imports.full_name(each).startswith("torch.") for each in given):
        return ""
    for node in ast.walk(call.func.value):
        if isinstance(node, ast.Call) and imports.full_name(node.func) in _CREATORS:
            if all(each.arg not in ("device", None) for each in node.keywords):
                return f"`{short(call)}` copies from the CPU"
    return ""


def uses_generator(call: ast.Call) -> str:
    given = next((each for each in call.keywords if each.arg == "generator"), None)
    if given is None or (isinstance(given.value, ast.Constant) and given.value.value is None):
        return ""
    return f"`{short(call)}` has a generator of its own, which a graph does not advance"


def _is_none_test(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        return False
    return len(test.ops) == 1 and isinstance(test.comparators[0], ast.Constant)


def stored_names(node: ast.AST) -> Iterator[str]:
    """The names that a target, or the targets inside a node, bind, without those that only a comprehension has."""
    waiting = deque([node])
    while waiting:
        each = waiting.popleft()
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id
        waiting.extend([each.iter, *each.ifs] if isinstance(each, ast.comprehension) else ast.iter_child_nodes(each))


def definitions(node: ast.AST) -> Iterator[str]:
    """The names of the functions and classes that code inside a node defines, and of what it imports."""
    for each in ast.walk(node):
        if isinstance(each, (*DEFINITIONS, ast.ClassDef)) and each is not node:
            yield each.name
        elif isinstance(each, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in each.names)


def local_names(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """The names of a function's own."""
    return argument_names(function) | {*stored_names(function), *definitions(function)}


def argument_names(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """The names of a function's parameters."""
    return {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}


def loaded_names(node: ast.AST) -> Iterator[ast.Name]:
    """The names that a node reads, without those that comprehensions and lambdas in it bind."""
    inner: set[str] = set()
    if isinstance(node, _BOUND_BY):
        inner = {name for part in getattr(node, "generators", ()) for name in stored_names(part.target)}
        inner |= {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from (name for name in loaded_names(child) if name.id not in inner)


def _is_in(name: str, modules: tuple[str, ...]) -> bool:
    return any(name == module or name.startswith(module + ".") for module in modules)


def short(node: ast.AST, limit: int = 60) -> str:
    """A node on one line of a message."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
