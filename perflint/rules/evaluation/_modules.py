"""Which names of a file hold modules, and what it does with their parameters: trains, copies, freezes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from perflint.frozen import dataclass
from perflint.rules._statements import statement_of
from perflint.rules.evaluation._scopes import Scope, Survey, dotted, words
from perflint.semantics.structure import last_name, walk
from perflint.semantics.values import Instance

_PARAMETERS = frozenset({"parameters", "named_parameters"})
_COPIES = frozenset({"add_", "copy_", "lerp_", "_foreach_add_", "_foreach_copy_", "_foreach_lerp_"})
_FREEZES = re.compile(r"freeze|frozen|requires_?grad|no_?grad|disable_?grad", re.IGNORECASE)
_UPDATES = frozenset(
    {"average", "copy", "deepcopy", "ema", "hard", "momentum", "polyak", "smooth", "soft", "sync", "synchronize",
     "target", "targets", "update"}
)  # fmt: skip
_HARMLESS_CALLS = frozenset({"id", "isinstance", "len", "next", "print", "repr", "save", "str", "summary", "type"})
_HARMLESS_METHODS = frozenset(
    {"__call__", "buffers", "cpu", "cuda", "double", "eval", "float", "forward", "half", "load_state_dict",
     "named_buffers", "share_memory", "state_dict", "to", "train", "training"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Holder:
    """A variable that may hold a module: its path ("self.actor") and the function, class or file that it belongs to."""

    home: ast.AST
    path: str


class Modules:
    """The modules of a file, as its optimizers, copies and switches show them."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._bound: dict[Scope, frozenset[str]] = {}
        self._by_path: dict[str, list[ast.expr]] = {}
        self._uses: dict[Holder, list[ast.expr]] = {}
        self.held: set[Holder] = set()
        """What is seen to be a module, by what is asked of it."""
        self.trained: set[Holder] = set()
        """Those whose parameters an optimizer gets."""
        for call in survey.all(ast.Call):
            self._note(call)

    def holder(self, node: ast.AST, path: str) -> Holder:
        """The variable that a path means at a node."""
        survey = self._survey
        scope = survey.scope_around(node)
        root = path.partition(".")[0]
        if root in ("self", "cls") and scope.klass is not None:
            return Holder(scope.klass, path)
        for around in scope.chain:
            if not isinstance(around.node, ast.Module) and root in self._names(around):
                return Holder(around.node, path)
        return Holder(survey.model.source.tree, path)

    def _names(self, scope: Scope) -> frozenset[str]:
        """The names that a function binds."""
        found = self._bound.get(scope)
        if found is None:
            assert not isinstance(scope.node, ast.Module)
            args = scope.node.args
            every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
            names = {arg.arg for arg in every if arg is not None}
            shared: set[str] = set()
            for node in scope.nodes:
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    names.add(node.id)
                elif isinstance(node, (ast.Global, ast.Nonlocal)):
                    shared.update(node.names)
            found = self._bound[scope] = frozenset(names - shared)
        return found

    def _note(self, call: ast.Call) -> None:
        if isinstance(call.func, ast.Attribute) and call.func.attr in _PARAMETERS:
            path = dotted(call.func.value)
            if path:
                self.held.add(self.holder(call, path))
        if is_optimizer(self._survey, call):
            for node in walk(call):
                if node is not call and isinstance(node, (ast.Name, ast.Attribute)):
                    self._note_trained(call, node)

    def _note_trained(self, call: ast.Call, node: ast.Name | ast.Attribute) -> None:
        """Modules in the arguments of an optimizer, or in what was assigned to a name among them."""
        path = dotted(node)
        if isinstance(node, ast.Attribute) and node.attr in _PARAMETERS:
            path = dotted(node.value)
            self.trained.add(self.holder(call, path))
        elif isinstance(node, ast.Name) and path:
            for value in self._assigned(call, path):
                for inner in walk(value):
                    if isinstance(inner, ast.Attribute) and inner.attr in _PARAMETERS:
                        self.trained.add(self.holder(call, dotted(inner.value)))

    def _assigned(self, node: ast.AST, name: str) -> Iterator[ast.expr]:
        for around in self._survey.scope_around(node).chain:
            for inner in around.nodes:
                if isinstance(inner, (ast.Assign, ast.AugAssign)):
                    targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
                    if any(dotted(target) == name for target in targets):
                        yield inner.value

    def uses(self, holder: Holder) -> list[ast.expr]:
        """All places where a variable is read or written."""
        if not self._by_path:
            for node in (*self._survey.all(ast.Name), *self._survey.all(ast.Attribute)):
                self._by_path.setdefault(dotted(node), []).append(node)
        found = self._uses.get(holder)
        if found is None:
            spelled = self._by_path.get(holder.path, ()) if holder.path else ()
            found = self._uses[holder] = [node for node in spelled if self.holder(node, holder.path) == holder]
        return found

    def is_made(self, holder: Holder) -> bool:
        """Whether an attribute, or a name of the file, only ever holds what calls have made: it has no other name."""
        if not isinstance(holder.home, (ast.ClassDef, ast.Module)):
            return False
        stores = [use for use in self.uses(holder) if isinstance(getattr(use, "ctx", None), ast.Store)]
        around = [self._survey.model.parent(store) for store in stores]
        return bool(around) and all(
            isinstance(each, ast.Assign) and isinstance(each.value, ast.Call) for each in around
        )

    def is_frozen(self, holder: Holder) -> bool:
        """Whether the file takes the gradients of a module's parameters away somewhere."""
        uses = list(self.uses(holder))
        if holder.path == "self":
            # A method may freeze parts of it; its constructor would freeze it.
            uses = [use for use in uses if self._survey.scope_around(use).name == "__init__"]
        root, _, attribute = holder.path.rpartition(".")
        if root and root not in ("self", "cls"):
            # A part of an object, which its own class may freeze.
            for other in self._uses:
                if other.path == f"self.{attribute}" and isinstance(other.home, ast.ClassDef):
                    uses += self._uses[other]
        return any(self._freezes(use) for use in uses)

    def _freezes(self, use: ast.expr) -> bool:
        """`m.requires_grad_(False)`, `freeze(m)`, a loop over its parameters, a copy that is made without gradients."""
        model = self._survey.model
        statement = statement_of(model, use)
        if isinstance(statement, (ast.For, ast.AsyncFor)):
            within = any(inner is use for inner in walk(statement.iter))
            return within and any(_speaks_of_freezing(inner) for inner in walk(statement))
        return statement is not None and any(_speaks_of_freezing(inner) for inner in _own(statement))

    def follows(self, holder: Holder) -> bool:
        """Whether a module is only ever a copy of another that is trained: no optimizer gets its parameters."""
        uses = self.uses(holder)
        if holder in self.trained or not all(self._is_harmless(use) for use in uses):
            return False
        leaders = {leader for use in uses for leader in self._leaders(use)}
        return bool(leaders & self.trained - {holder})

    def stays(self, holder: Holder) -> bool:
        """Whether a module keeps the weights that it was loaded with, while the file trains others: a teacher."""
        uses = self.uses(holder)
        if holder in self.trained or not self.trained or not all(self._is_harmless(use) for use in uses):
            return False
        asked = {around.attr for use in uses if isinstance(around := self._survey.model.parent(use), ast.Attribute)}
        made = [node for value in self._made_of(uses) for node in walk(value) if isinstance(node, ast.Call)]
        factories = {last_name(call) for call in made}
        loaded = bool({"load", "from_pretrained"} & factories) or "load_state_dict" in asked
        loaded = loaded or any(is_pretrained(self._survey, call) for call in made)
        return loaded and "train" not in asked and ("eval" in asked or bool({"eval", "from_pretrained"} & factories))

    def _made_of(self, uses: list[ast.expr]) -> Iterator[ast.expr]:
        """The values that are assigned to a variable."""
        for use in uses:
            around = self._survey.model.parent(use)
            if isinstance(around, ast.Assign) and use in around.targets:
                yield around.value

    def _is_harmless(self, use: ast.expr) -> bool:
        """Whether a use of a module can train it nowhere: it is run, copied to, saved, switched."""
        model = self._survey.model
        around = model.parent(use)
        if not isinstance(getattr(use, "ctx", None), ast.Load):
            return True
        if isinstance(around, ast.Attribute):
            if around.attr in _PARAMETERS:
                return self._is_copied_to(around)
            return around.attr in _HARMLESS_METHODS or self._is_method_of_its_own(around)
        if isinstance(around, ast.Call) and around.func is use:
            return True
        if isinstance(around, ast.keyword):
            around = model.parent(around)
        return isinstance(around, ast.Call) and _is_harmless_call(around)

    def _is_method_of_its_own(self, attribute: ast.Attribute) -> bool:
        around = self._survey.model.parent(attribute)
        return isinstance(around, ast.Call) and around.func is attribute and not attribute.attr.endswith("_")

    def _is_copied_to(self, parameters: ast.Attribute) -> bool:
        """Whether `m.parameters()` stands in a loop, or in a call, that writes other parameters there."""
        for outer in self._survey.model.ancestors(parameters):
            if isinstance(outer, ast.Call) and outer.func is not parameters and last_name(outer) != "zip":
                if last_name(outer) in _COPIES or _is_harmless_call(outer):
                    return True
                if last_name(outer) not in ("list", "enumerate", "tuple", "next"):
                    return False
            if isinstance(outer, (ast.For, ast.AsyncFor)):
                inside = list(walk(outer))
                steps = any(isinstance(node, ast.Attribute) and node.attr == "grad" for node in inside)
                return not steps and any(_writes_parameter(node) for node in inside)
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
                    yield self.holder(node, dotted(node.args[0]))
        elif isinstance(around, ast.Attribute) and around.attr in _PARAMETERS and self._is_copied_to(around):
            statement = next(each for each in model.ancestors(use) if isinstance(each, ast.stmt))
            yield from self._asked(statement, _PARAMETERS)
        elif isinstance(around, ast.Call) and use in around.args and _UPDATES & set(words(last_name(around))):
            for argument in around.args:
                if dotted(argument):
                    yield self.holder(around, dotted(argument))

    def _asked(self, within: ast.AST, methods: frozenset[str]) -> Iterator[Holder]:
        for node in walk(within):
            if isinstance(node, ast.Attribute) and node.attr in methods and dotted(node.value):
                yield self.holder(node, dotted(node.value))


@lru_cache(maxsize=1)
def modules(survey: Survey) -> Modules:
    """The modules of a file."""
    return Modules(survey)


def is_optimizer(survey: Survey, call: ast.Call) -> bool:
    """Whether a call makes an optimizer, by its class or by its name."""
    name, target = last_name(call), survey.model.target(call)
    if target.startswith("torch.optim.") and ".lr_scheduler" not in target:
        return True
    value = survey.model.value(call)
    if isinstance(value, Instance):
        return value.cls.startswith("torch.optim.") and ".lr_scheduler" not in value.cls
    parts = words(name)
    if "optim" in dotted(call.func).split(".") and "scheduler" not in parts:
        return True
    return bool({"optim", "optimizer", "adam", "sgd"}.intersection(parts)) and "scheduler" not in parts


def is_pretrained(survey: Survey, call: ast.Call) -> bool:
    """Whether a call makes a model of torchvision or timm with weights."""
    if not survey.model.target(call).startswith(("torchvision.models.", "timm.create_model")):
        return False
    return any(
        keyword.arg in ("pretrained", "weights")
        and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
        for keyword in call.keywords
    )


def _is_harmless_call(call: ast.Call) -> bool:
    name = last_name(call)
    return name in _HARMLESS_CALLS or bool(_UPDATES & set(words(name)))


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
    if isinstance(node, ast.Attribute):
        return _FREEZES.search(node.attr) is not None
    return isinstance(node, ast.Name) and _FREEZES.search(node.id) is not None
