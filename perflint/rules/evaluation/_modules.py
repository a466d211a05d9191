"""The modules of a file, and those whose parameters it trains, copies or freezes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property

from perflint.frozen import dataclass
from perflint.rules._methods import called_on, is_false
from perflint.rules._operators import operators
from perflint.rules.evaluation._scopes import PARAMETERS, OfFile, Survey
from perflint.semantics.around import statement_of
from perflint.semantics.binders import How
from perflint.semantics.facts import rule_conventions
from perflint.semantics.heat.training import is_optimizer
from perflint.semantics.memo import once, once_per_key, once_per_node
from perflint.semantics.structure import calls_in, grouped, last_name, path_of, walk
from perflint.semantics.values import Instance

_COPIES = frozenset({"add_", "copy_", "lerp_", "_foreach_add_", "_foreach_copy_", "_foreach_lerp_"})
_HARMLESS_CALLS = frozenset({"id", "isinstance", "len", "next", "print", "repr", "save", "str", "summary", "type"})
_HARMLESS_METHODS = operators("gradient", "leaves_weights")


@dataclass(frozen=True, slots=True)
class Holder:
    """A variable that may hold a module: its path ("self.actor") and the function, class or file that it belongs to."""

    home: ast.AST
    path: str


class Modules(OfFile):
    """The modules of a file, as its optimizers, copies and switches show them."""

    def __init__(self, survey: Survey) -> None:
        super().__init__(survey)
        self.held: set[Holder] = set()
        """Those that are seen to be modules: their parameters are asked for."""
        self.trained: set[Holder] = set()
        """Those whose parameters an optimizer gets."""
        for call in survey.model.nodes(ast.Call):
            self._note(call)

    def holder(self, node: ast.AST, path: str) -> Holder:
        """The variable that a path means at a node."""
        survey = self._survey
        scope = survey.scope_around(node)
        root = path.partition(".")[0]
        if root in ("self", "cls") and scope.klass is not None:
            return Holder(scope.klass, path)
        symbols = survey.model.symbols
        return Holder(symbols.resolve(symbols.scope_around(node), root).scope.function.node, path)

    def shows(self, node: ast.expr) -> bool:
        """True if an expression is seen to be a module: by its class, or since its parameters are asked for."""
        model, path = self._survey.model, path_of(node)
        if any(isinstance(each, Instance) and model.is_module(each) for each in model.value(node).members):
            return True
        return bool(path) and self.holder(node, path) in self.held

    def _note(self, call: ast.Call) -> None:
        if isinstance(call.func, ast.Attribute) and call.func.attr in PARAMETERS:
            path = path_of(call.func.value)
            if path:
                self.held.add(self.holder(call, path))
        if _makes_optimizer(self._survey, call):
            for node in walk(call):
                if node is not call and isinstance(node, (ast.Name, ast.Attribute)):
                    self._note_trained(call, node)

    def _note_trained(self, call: ast.Call, node: ast.Name | ast.Attribute) -> None:
        """Note the modules in the arguments of an optimizer, also through a name that is an argument."""
        path = path_of(node)
        if isinstance(node, ast.Attribute) and node.attr in PARAMETERS:
            path = path_of(node.value)
            self.trained.add(self.holder(call, path))
        elif isinstance(node, ast.Name) and path:
            for value in self._assigned(node):
                for inner in walk(value):
                    if isinstance(inner, ast.Attribute) and inner.attr in PARAMETERS:
                        self.trained.add(self.holder(call, path_of(inner.value)))

    def _assigned(self, name: ast.Name) -> list[ast.expr]:
        """The values that are assigned or added to the variable of a name."""
        variable = self._survey.model.symbols.variable(name)
        added = (each.value for each in variable.bindings if each.how is How.AUGMENTED)
        return [*variable.assigned, *filter(None, added)]

    @cached_property
    def _by_path(self) -> dict[str, list[ast.expr]]:
        model = self._survey.model
        return grouped((path_of(node), node) for node in (*model.nodes(ast.Name), *model.nodes(ast.Attribute)))

    def uses(self, holder: Holder) -> list[ast.expr]:
        """All places where a variable is read or written."""
        return self._by_holder(holder.path).get(holder, [])

    @once_per_key
    def _by_holder(self, path: str) -> Mapping[Holder, list[ast.expr]]:
        return grouped((self.holder(node, path), node) for node in self._by_path.get(path, ()) if path)

    def is_made(self, holder: Holder) -> bool:
        """True if each assignment to an attribute or to a global name is the result of a call: it has no other name."""
        if not isinstance(holder.home, (ast.ClassDef, ast.Module)):
            return False
        stores = [use for use in self.uses(holder) if isinstance(getattr(use, "ctx", None), ast.Store)]
        around = [self._survey.model.parent(store) for store in stores]
        return bool(around) and all(
            isinstance(each, ast.Assign) and isinstance(each.value, ast.Call) for each in around
        )

    @once_per_key
    def is_frozen(self, holder: Holder) -> bool:
        """True if the file takes the gradients of a module's parameters away somewhere."""
        uses = list(self._uses_to_freeze(holder))
        return any(map(self._freezes, uses)) or self._copies_frozen(uses)

    @once_per_key
    def has_no_gradient(self, holder: Holder) -> bool:
        """True if the file surely takes the gradients of all parameters of a module away, and gives none back."""
        speaking = [use for use in self.uses(holder) if self._freezes(use)]
        return bool(speaking) and all(map(self._freezes_all, speaking))

    def _freezes_all(self, use: ast.expr) -> bool:
        """True if a statement that always runs takes all gradients of a module away."""
        model, scope = self._survey.model, self._survey.scope_around(use)
        statement = statement_of(model, use)
        if statement not in scope.node.body or (scope.owner is not None and scope.name != "__init__"):
            return False
        if isinstance(statement, (ast.For, ast.AsyncFor)):
            iterated = statement.iter
            is_own = isinstance(iterated, ast.Call) and iterated.func is model.parent(use)
            return is_own and last_name(iterated) in PARAMETERS and all(map(_takes_gradient, statement.body))
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.Assign) and use not in statement.targets:
            return False
        return _is_chain_without_gradient(value, None if isinstance(statement, ast.Assign) else use)

    def _copies_frozen(self, uses: list[ast.expr]) -> bool:
        """True if a module is a copy of one that is made without gradients: `ema = deepcopy(net)`."""
        for value in self._made_of(uses):
            for node in walk(value):
                if isinstance(node, ast.Call) and last_name(node) == "deepcopy" and node.args and path_of(node.args[0]):
                    original = self.uses(self.holder(node, path_of(node.args[0])))
                    made = (use for use in original if isinstance(getattr(use, "ctx", None), ast.Store))
                    if any(map(self._freezes, made)):
                        return True
        return False

    def _uses_to_freeze(self, holder: Holder) -> Iterator[ast.expr]:
        for use in self.uses(holder):
            # A method may freeze parts of its object; the constructor would freeze all of it.
            if holder.path != "self" or self._survey.scope_around(use).name == "__init__":
                yield use
        root, _, attribute = holder.path.rpartition(".")
        if root and root not in ("self", "cls"):
            # A part of an object, which its own class may freeze.
            yield from self._by_path.get(f"self.{attribute}", ())

    def _freezes(self, use: ast.expr) -> bool:
        """`m.requires_grad_(False)`, `freeze(m)`, a loop over its parameters, a copy that is made without gradients."""
        statement = statement_of(self._survey.model, use)
        return statement is not None and _freezes_in(self._survey, statement)

    def _is_trained(self, holder: Holder) -> bool:
        """True if an optimizer gets the parameters of a module, or of an object that holds it."""
        parts = holder.path.split(".")
        return any(Holder(holder.home, ".".join(parts[:count])) in self.trained for count in range(1, len(parts) + 1))

    @once_per_key
    def follows(self, holder: Holder) -> bool:
        """True if a module is only ever a copy of another that is trained: no optimizer gets its parameters."""
        uses = self.uses(holder)
        if self._is_trained(holder) or not all(self._is_harmless(use) for use in uses):
            return False
        leaders = {leader for use in uses for leader in self._leaders(use)}
        return bool(leaders & self.trained - {holder})

    @once_per_key
    def stays(self, holder: Holder) -> bool:
        """True if a module keeps the weights that it was loaded with, while the file trains others: a teacher."""
        uses = self.uses(holder)
        if not self.trained or self._is_trained(holder) or not all(self._is_harmless(use) for use in uses):
            return False
        asked = {around.attr for use in uses if isinstance(around := self._survey.model.parent(use), ast.Attribute)}
        made = [node for value in self._made_of(uses) for node in calls_in(value)]
        factories = {last_name(call) for call in made}
        loaded = bool({"load", "from_pretrained"} & factories) or "load_state_dict" in asked
        loaded = loaded or any(is_pretrained(self._survey, call) for call in made)
        return loaded and "train" not in asked and ("eval" in asked or bool({"eval", "from_pretrained"} & factories))

    def stays_by_name(self, holder: Holder) -> bool:
        """True if a module is named as a teacher or reference, and the file trains it nowhere."""
        if not rule_conventions.is_kept_model(holder.path.rpartition(".")[2]) or self._is_trained(holder):
            return False
        uses = self.uses(holder)
        asked = {around.attr for use in uses if isinstance(around := self._survey.model.parent(use), ast.Attribute)}
        return "train" not in asked and all(map(self._is_harmless, uses))

    def _made_of(self, uses: list[ast.expr]) -> Iterator[ast.expr]:
        """The values that are assigned to a variable."""
        for use in uses:
            around = self._survey.model.parent(use)
            if isinstance(around, ast.Assign) and use in around.targets:
                yield around.value

    def _is_harmless(self, use: ast.expr) -> bool:
        """True if a use of a module can train it nowhere: it is run, copied to, saved, switched."""
        model = self._survey.model
        around = model.parent(use)
        if not isinstance(getattr(use, "ctx", None), ast.Load):
            return True
        if isinstance(around, ast.Attribute):
            if around.attr in PARAMETERS:
                return self._is_copied_to(around)
            is_own = called_on(model, use) is not None and not around.attr.endswith("_")
            return around.attr in _HARMLESS_METHODS or is_own
        if isinstance(around, ast.Call) and around.func is use:
            return True
        if isinstance(around, ast.keyword):
            around = model.parent(around)
        return isinstance(around, ast.Call) and _is_harmless_call(around)

    def _is_copied_to(self, parameters: ast.Attribute) -> bool:
        """True if `m.parameters()` stands in a loop, or in a call, that writes other parameters there."""
        for outer in self._survey.model.ancestors(parameters):
            if isinstance(outer, ast.Call) and outer.func is not parameters and last_name(outer) != "zip":
                if last_name(outer) in _COPIES or _is_harmless_call(outer):
                    return True
                if last_name(outer) not in ("list", "enumerate", "tuple", "next"):
                    return False
            if isinstance(outer, (ast.For, ast.AsyncFor)):
                return _copies(self._survey, outer)
            if isinstance(outer, ast.stmt):
                return last_name(getattr(outer, "value", outer)) == "next"
        return False

    def _leaders(self, use: ast.expr) -> Iterator[Holder]:
        """The modules that a use of another copies: by state, as a whole, or by a loop over parameters."""
        model = self._survey.model
        around = model.parent(use)
        if isinstance(around, ast.Attribute) and around.attr == "load_state_dict":
            call = model.parent(around)
            if isinstance(call, ast.Call):
                yield from self._asked(call, frozenset({"state_dict"}))
        elif isinstance(around, ast.Assign) and use in around.targets:
            for node in walk(around.value):
                if isinstance(node, ast.Call) and last_name(node) == "deepcopy" and node.args:
                    yield self.holder(node, path_of(node.args[0]))
        elif isinstance(around, ast.Attribute) and around.attr in PARAMETERS and self._is_copied_to(around):
            statement = next(each for each in model.ancestors(use) if isinstance(each, ast.stmt))
            yield from self._asked(statement, PARAMETERS)
        elif isinstance(around, ast.Call) and use in around.args:
            for argument in around.args if rule_conventions.updates_weights(last_name(around)) else ():
                if path_of(argument):
                    yield self.holder(around, path_of(argument))

    def _asked(self, within: ast.AST, methods: frozenset[str]) -> Iterator[Holder]:
        for node in walk(within):
            if isinstance(node, ast.Attribute) and node.attr in methods and path_of(node.value):
                yield self.holder(node, path_of(node.value))


@once
def modules(survey: Survey) -> Modules:
    """The modules of a file."""
    return Modules(survey)


def _makes_optimizer(survey: Survey, call: ast.Call) -> bool:
    """True if a call makes an optimizer, by its class or by its name."""
    if isinstance(survey.model.value(call), Instance) or rule_conventions.is_scheduler(last_name(call)):
        return is_optimizer(survey.model, call)
    return "optim" in path_of(call.func).split(".") or bool(rule_conventions.makes_optimizer(last_name(call)))


def is_pretrained(survey: Survey, call: ast.Call) -> bool:
    """True if a call makes a model of torchvision or timm with weights."""
    if not survey.model.target(call).startswith(("torchvision.models.", "timm.create_model")):
        return False
    return any(
        keyword.arg in ("pretrained", "weights")
        and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
        for keyword in call.keywords
    )


def _is_harmless_call(call: ast.Call) -> bool:
    name = last_name(call)
    return name in _HARMLESS_CALLS or bool(rule_conventions.updates_weights(name))


@once_per_node
def _freezes_in(_: Survey, statement: ast.stmt) -> bool:
    """True if a statement takes gradients away; the head alone counts if it holds others, but for a loop."""
    parts = walk(statement) if isinstance(statement, (ast.For, ast.AsyncFor)) else _own(statement)
    return any(map(_speaks_of_freezing, parts))


@once_per_node
def _copies(_: Survey, loop: ast.For | ast.AsyncFor) -> bool:
    """True if a loop writes parameters, and not by their gradients."""
    inside = list(walk(loop))
    steps = any(isinstance(node, ast.Attribute) and node.attr == "grad" for node in inside)
    return not steps and any(_writes_parameter(node) for node in inside)


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without the statements in it."""
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, (ast.stmt, ast.ExceptHandler)):
            yield from walk(child)


def _writes_parameter(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return last_name(node) in _COPIES
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(target, ast.Attribute) and target.attr == "data" for target in targets)


def _speaks_of_freezing(node: ast.AST) -> bool:
    """True if a name or an attribute is about gradients that are taken away; `if p.requires_grad` only reads."""
    if isinstance(node, ast.Attribute):
        if node.attr == "requires_grad" and isinstance(node.ctx, ast.Load):
            return False
        return bool(rule_conventions.freezes(node.attr))
    return isinstance(node, ast.Name) and bool(rule_conventions.freezes(node.id))


def _takes_gradient(statement: ast.stmt) -> bool:
    """True for `p.requires_grad = False` and `p.requires_grad_(False)`."""
    if isinstance(statement, ast.Assign):
        return is_false(statement.value) and all(last_name(each) == "requires_grad" for each in statement.targets)
    return isinstance(statement, ast.Expr) and _is_chain_without_gradient(statement.value, None)


def _is_chain_without_gradient(value: ast.expr | None, start: ast.expr | None) -> bool:
    """True if a chain of calls, which begins with `start` if that is given, has `.requires_grad_(False)` in it."""
    taken = False
    while value is not start and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr == "requires_grad_":
            taken = taken or (len(value.args) == 1 and is_false(value.args[0]))
        value = value.func.value
    return taken and (start is None or value is start)
