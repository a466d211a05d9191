"""Finds the statements of a training step that can become one graph."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence

from perflint.semantics.structure import block_in, path_of, root_of
from perflint.source.text import Source
from perflint.tune.graphs.moving import Mover
from perflint.tune.graphs.parts import Function, Guard, Moved, Region
from perflint.tune.graphs.purity import BUILTINS, Purity, is_gradient, loaded_names, short, stored_names
from perflint.tune.graphs.reached import Reached
from perflint.tune.graphs.statements import (
    counters_of,
    is_method,
    leaves,
    loaded_outside,
    paths,
    receiver,
    updated,
    written_into,
)
from perflint.tune.refused import Refused

_LOOPS = (ast.For, ast.While)


class Finder:
    """Finds the region of a file around the statements that step an optimizer."""

    may_raise = False
    """True if an exception may also be raised at the end of the region: no parameter has changed by then."""

    def __init__(
        self,
        source: Source,
        purity: Purity,
        is_step: Callable[[ast.AST], bool],
        reaches_model: Callable[[ast.AST], bool] | None = None,
        is_idle: Callable[[Sequence[ast.stmt]], bool] = lambda _: False,
        reaches: Callable[[ast.AST, ast.AST], bool] = lambda *_: False,
        lasts: bool = False,
        makes_gradients: Callable[[ast.AST], bool] = lambda _: False,
        clears: Collection[tuple[int, int]] = (),
        reached: Reached | None = None,
    ) -> None:
        """`reaches_model` is true for code that a run saw call a model, also in a function, if models are known at all,
        `is_idle` for a block that did not run, `reaches` for code and a function that it called, also through others.
        `lasts` is true for a graph that outlives a call of its function, `makes_gradients` for code that a run saw
        begin a backward pass. `clears` are lines of `model.zero_grad()`, each with one that steps an optimizer of it.
        `reached` has the functions that the file called.
        """
        self._source = source
        self._purity = purity
        self._knows_models = reaches_model is not None
        self._reaches_model = reaches_model or (lambda _: False)
        reached = reached or Reached({}, ())
        self._mover = Mover(purity, is_step, self._reaches_model, self.may_raise, makes_gradients, reached, source.path)
        self._is_idle = is_idle
        self._reaches = reaches
        self._lasts = lasts
        self._makes_gradients = makes_gradients
        self._clears_for = clears
        self._parents = {child: node for node in ast.walk(source.tree) for child in ast.iter_child_nodes(node)}

    def find(self) -> Region:
        """The region of the file. Raises Refused."""
        steps = [
            node for node in ast.walk(self._source.tree) if isinstance(node, ast.Call) and self._mover.is_step(node)
        ]
        if not steps:
            raise Refused("no statement of the file steps an optimizer", 1)
        around = {step: self._statement(step) for step in steps}
        depth = {step: len(self._chain(around[step])) for step in steps}
        first = min(steps, key=lambda step: (depth[step], step.lineno))
        statement = around[first]
        if (first.args or first.keywords) and receiver(first) not in self._purity.scalers:
            raise Refused("the step of the optimizer has a closure or other arguments", first)
        if not isinstance(statement, ast.Expr):
            raise Refused("the result of the optimizer's step is used", first)
        for last, conditions in self._levels(statement):
            try:
                region = self._in_block(last, list(around.values()))
            except Refused as refused:
                reason = refused
                continue
            # Where the backward pass is under the condition, too, gradients do not add up.
            region.conditions = [
                each for each in conditions if not any(is_method(node, "backward") for node in ast.walk(each))
            ]
            return region
        raise reason

    def _levels(self, statement: ast.stmt) -> list[tuple[ast.stmt, list[ast.If]]]:
        """The statements that may end the region: one of the step, or the condition or context around it, the outermost
        first, each with the conditions between them.
        """
        conditions: list[ast.If] = []
        found = [(statement, conditions)]
        last: ast.AST = statement
        while True:
            last = self._parents[last]
            if isinstance(last, ast.If) and not self._holds_pass(last):
                conditions = [*conditions, last]
                # Without its condition, a step is not the whole one.
                found[-1] = (last, conditions)
            elif isinstance(last, ast.With) and self._is_plain(last):
                found.append((last, conditions))
            else:
                return found[::-1]

    def _is_plain(self, statement: ast.With) -> bool:
        """True if the contexts of a `with` only say how to compute."""
        try:
            for item in statement.items:
                self._purity.require_context(item)
        except Refused:
            return False
        return True

    def _holds_pass(self, condition: ast.If) -> bool:
        """True if the backward pass under a condition is not that of a model that is called in front of it."""
        if not any(is_method(node, "backward") for node in ast.walk(condition)):
            return False
        block = block_in(self._parents.get(condition), condition)
        return self._reaches_model(condition) or not any(map(self._reaches_model, block[: block.index(condition)]))

    def optimizers(self, region: Region) -> list[ast.expr]:
        """The optimizers that a region steps."""
        calls = (node for each in region.kept for node in ast.walk(each) if isinstance(node, ast.Call))
        return [self._mover.optimizer(call) for call in calls if self._mover.is_step(call)]

    def _in_block(self, step: ast.stmt, all_steps: Sequence[ast.stmt]) -> Region:
        block = block_in(self._parents.get(step), step)
        at = [index for index, each in enumerate(block) if each is step or each in all_steps]
        end = at[-1] + 1
        # A statement may only be movable together with earlier ones, so all starts are tried.
        start = next((each for each in range(at[0]) if self._reason(block[each:end]) is None), at[0])
        stop = self._reason(block[start - 1 : end]) if start else None
        while start < at[0] and self._begins_behind(block[start:end]):
            start += 1
        while end < len(block):
            further = next((to for to in range(end + 1, len(block) + 1) if self._mover.works(block[to - 1])), None)
            if further is None or self._reason(block[start:further]) is not None:
                break
            end = further
        region = self._arranged(block[start:end])
        self._require_whole_step(region, step, stop)
        return region

    def _begins_behind(self, statements: Sequence[ast.stmt]) -> bool:
        """True if the first statement would only move behind the region, so that it may as well stay in front."""
        return any(each.statement is statements[0] and not each.lifted for each in self._arranged(statements).behind)

    def _require_no_counter(self, statement: ast.stmt) -> None:
        """Raise Refused if a statement computes with a number that changes each time. A condition may ask for one."""
        tests = [node.test for node in ast.walk(statement) if isinstance(node, ast.If)]
        counters = {name for each in self._chain(statement) if isinstance(each, _LOOPS) for name in counters_of(each)}
        for name in loaded_outside(statement, tests):
            if name.id in counters:
                raise Refused(f"the step uses `{name.id}`, a number that changes each time", name)

    def _reason(self, statements: Sequence[ast.stmt]) -> Refused | None:
        try:
            self._arranged(statements)
        except Refused as refused:
            return refused
        return None

    def _require_whole_step(self, region: Region, step: ast.stmt, stop: Refused | None) -> None:
        """Raise Refused if a part of the step is not in the region, or a context around the region hinders a graph.

        `stop` is the reason why the region does not begin earlier.
        """
        calls = [node for each in region.kept for node in ast.walk(each) if isinstance(node, ast.Call)]
        names = {node.func.attr for node in calls if isinstance(node.func, ast.Attribute)}
        if "backward" not in names:
            if any(isinstance(each, ast.If) for each in self._chain(step)):
                raise Refused("the optimizer steps only if a condition holds, so gradients may add up", step)
            for each in region.behind:
                if any(is_method(node, "backward") for node in ast.walk(each.statement)):
                    raise each.reason
            raise stop or Refused("the backward pass is not in the block of the optimizer's step", step)
        if not self._calls_model(region):
            moved = next((each.reason for each in reversed(region.before)), None)
            raise moved or stop or Refused("the model is called outside of the block of the optimizer's step", step)
        bound = {name for each in region.kept for name in stored_names(each)}
        for call in (call for call in calls if is_method(call, "backward")):
            loss = call.func.value if isinstance(call.func, ast.Attribute) else call
            if isinstance(loss, ast.Name) and loss.id not in bound:
                # The graph gets a copy of the loss, without what it was computed of.
                reason = stop or next((each.reason for each in reversed(region.before)), None)
                raise reason or Refused(f"`{loss.id}` is computed outside of the graph", call)
        block = block_in(self._parents.get(region.whole[0]), region.whole[0])
        self._require_gradless_inputs(region, block[: block.index(region.whole[0])])
        calls += self._cleared_in_front(region)
        self._require_cleared(calls)
        self._require_own_gradients(region, calls)

    def _require_gradless_inputs(self, region: Region, earlier: Sequence[ast.stmt]) -> None:
        """Raise Refused if the backward pass goes on to what a model computed in front of the region."""
        computed = self._computed(earlier)
        for statement in region.kept:
            if used := carrier(statement, computed):
                raise Refused(f"the backward pass goes on through `{used}`, in front of the graph", statement)
            computed -= {*stored_names(statement)}

    def _computed(self, statements: Sequence[ast.stmt]) -> set[str]:
        """The names of what statements computed with models, so that gradients may go through it."""
        computed: set[str] = set()
        for statement in statements:
            calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
            ends = {each for node in filter(_ends_gradients, ast.walk(statement)) for each in ast.walk(node)}
            is_new = any(map(self._reaches_model, {*calls} - ends)) or carrier(statement, computed)
            is_replay = any(map(self._is_replay, calls))
            stores = {*stored_names(statement)}
            computed = computed | stores if is_new and not is_replay else computed - stores
        return computed

    def _is_replay(self, call: ast.Call) -> bool:
        """True for a call that replays a graph of the file, whose results have no gradients."""
        return False

    def _calls_model(self, region: Region) -> bool:
        """True if the loss comes from a call of something that the statements before the region did not compute."""
        block = block_in(self._parents.get(region.whole[0]), region.whole[0])
        earlier = [*block[: block.index(region.whole[0])], *(each.statement for each in region.before)]
        computed = {name for each in earlier for name in stored_names(each)}
        calls = [node for each in region.kept for node in ast.walk(each) if isinstance(node, ast.Call)]
        passes = [call for call in calls if is_method(call, "backward") or self._purity.begins(call)]
        wanted = {name.id for call in passes for name in loaded_names(call)} - self._purity.scalers
        for statement in reversed(region.kept):
            if wanted.isdisjoint(stored_names(statement)):
                continue
            wanted |= {name.id for name in loaded_names(statement)}
            for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
                root = root_of(call.func)
                bound = {name for each in region.kept for name in stored_names(each)}
                if self._reaches_model(call):
                    return True
                if self._knows_models:
                    continue
                if root and root not in self._purity.imports and root not in computed | bound and root not in BUILTINS:
                    return True
        return False

    def _cleared_in_front(self, region: Region) -> Iterator[ast.Call]:
        """The calls in front of a region, in the same block, that clear gradients, with none made before the region."""
        block = block_in(self._parents.get(region.whole[0]), region.whole[0])
        for each in reversed(block[: block.index(region.whole[0])]):
            if self._makes_gradients(each) or any(is_method(node, "backward") for node in ast.walk(each)):
                return
            if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) and is_method(each.value, "zero_grad"):
                yield each.value

    def _require_cleared(self, calls: Sequence[ast.Call]) -> None:
        """Raise Refused if gradients of one step are used by the next one: a graph would start without them."""
        ordered = sorted(calls, key=lambda call: (call.lineno, call.col_offset))
        backward = [call.lineno for call in ordered if is_method(call, "backward")]
        clearing = [call for call in ordered if is_method(call, "zero_grad")]
        for call in (call for call in ordered if self._mover.is_step(call)):
            name = path_of(self._mover.optimizer(call))
            in_time = [each for each in clearing if each.lineno <= call.lineno or each.lineno >= backward[-1]]
            # Several models may have the parameters of one optimizer.
            models = {line for line, step in self._clears_for if step == call.lineno}
            is_own = any(receiver(each) == name for each in in_time)
            if not is_own and not (models and models.issubset(each.lineno for each in in_time)):
                raise Refused(f"the step does not clear the gradients of `{name}`, so they add up", call)

    def _require_own_gradients(self, region: Region, calls: Sequence[ast.Call]) -> None:
        """Raise Refused if the step reads, clears or gets gradients of other code: a graph has memory of its own."""
        kept = {node for each in region.kept for node in ast.walk(each)}
        backward = sorted(call.lineno for call in calls if is_method(call, "backward"))
        optimizers = {path_of(self._mover.optimizer(call)) for call in calls if self._mover.is_step(call)}
        stepped = {call.lineno for call in calls if self._mover.is_step(call)}
        clearing = [call for call in calls if is_method(call, "zero_grad")]
        for node in ast.walk(self._source.tree):
            if is_gradient(node, self._purity.imports):
                if node not in kept or getattr(node, "lineno", 0) <= backward[0]:
                    raise Refused(f"`{short(node)}` reads a gradient outside of the step that made it", node)
            if not isinstance(node, ast.Call):
                continue
            if is_method(node, "zero_grad") and receiver(node) not in optimizers:
                steps = {step for line, step in self._clears_for if line == node.lineno}
                is_before = node in clearing and node.lineno < backward[0]
                if is_before or self._is_over(node, region) or (steps and steps <= stepped):
                    continue
                if node not in kept or backward[0] < node.lineno < backward[-1]:
                    raise Refused(f"`{short(node)}` frees gradients that a graph may write to", node)
            if is_method(node, "backward") and node not in kept:
                if all(call.lineno >= backward[-1] for call in clearing):
                    raise Refused(f"`{short(node)}` may leave gradients to which the step adds its own", node)

    def _is_over(self, node: ast.Call, region: Region) -> bool:
        """True for code that does not run as long as a graph lives, which is made in front of a loop of its function.

        It is in front of the loops, or in a function that called that function.
        """
        around = next(each for each in self._chain(node) if isinstance(each, (Function, ast.Module, ast.Lambda)))
        if not region.loops or self._lasts or isinstance(around, ast.Lambda):
            return False
        if around is region.owner:
            return node.lineno < region.loops[0].lineno
        return self._reaches(around, region.owner) and not self._reaches(region.loops[0], around)

    def _arranged(self, statements: Sequence[ast.stmt]) -> Region:
        """The statements as a region. Raises Refused if one of them can neither stay nor move."""
        first = statements[0]
        owner = next((each for each in self._chain(first) if isinstance(each, Function)), self._source.tree)
        loops: list[ast.stmt] = []
        for each in self._chain(first):
            if each is owner:
                break
            if isinstance(each, _LOOPS):
                loops.insert(0, each)
        region = Region(owner, tuple(loops), list(statements))
        bound: set[str] = set()
        leaving = self._leaving(statements)
        for index, statement in enumerate(statements):
            if self._clears(region, statement, bound):
                region.before.append(Moved(statement, Refused("gradients are cleared outside of the graph", statement)))
                continue
            # Those that leave, too, stay behind this one if it leaves.
            later = [each for each in statements[index + 1 :] if each not in leaving]
            try:
                attempt = set(bound)
                self._purity.require(statement, attempt)
                self._require_no_counter(statement)
                self._require_in_order(region, statement)
            except Refused as refused:
                try:
                    # What did not run is not moved: no run would prove it.
                    region.guards.append(self._guard(region, statement, bound, refused))
                    region.kept.append(statement)
                except Refused:
                    self._mover.move(region, statement, later, bound, refused)
            else:
                bound |= attempt
                region.kept.append(statement)
        return region

    def _clears(self, region: Region, statement: ast.stmt, bound: set[str]) -> bool:
        """True if a statement clears gradients and is moved in front of the region for it."""
        return False

    def _guard(self, region: Region, statement: ast.stmt, bound: set[str], refused: Refused) -> Guard:
        """The guard of an `if` with one branch that can be part of a graph. Raises Refused if there is none."""
        for eager in (True, False) if isinstance(statement, ast.If) and not leaves(statement) else ():
            assert isinstance(statement, ast.If)
            pure, other = (statement.orelse, statement.body)[:: 1 if eager else -1]
            if not self._is_idle(other):
                continue
            rest = ast.copy_location(ast.If(statement.test, pure or [ast.Pass()], []), statement)
            try:
                attempt = set(bound)
                self._purity.require(rest, attempt)
                self._require_no_counter(rest)
                self._require_in_order(region, statement)
            except Refused:
                continue
            bound |= attempt | set(stored_names(statement))
            return Guard(statement.test, eager, refused)
        raise refused

    def _leaving(self, statements: Sequence[ast.stmt]) -> set[ast.stmt]:
        """The statements that cannot be part of a graph by themselves."""
        names = {name for each in statements for name in stored_names(each)}
        found = set()
        for statement in statements:
            try:
                self._purity.require(statement, set(names))
                self._require_no_counter(statement)
            except Refused:
                found.add(statement)
        return found

    @staticmethod
    def _require_in_order(region: Region, statement: ast.stmt) -> None:
        """Raise Refused if a statement needs a name or an attribute that one behind the region changes."""
        for moved in region.behind:
            stored = set(stored_names(moved.statement))
            if any(name.id in stored for name in loaded_names(statement)) or stored & set(stored_names(statement)):
                raise moved.reason
            changed = {*map(path_of, written_into(moved.statement)), *updated(moved.statement)}
            if any(f"{path}.".startswith(f"{name}.") for path in paths(statement) for name in changed - {"", "self"}):
                raise moved.reason

    def _statement(self, node: ast.AST) -> ast.stmt:
        while not isinstance(node, ast.stmt):
            node = self._parents[node]
        return node

    def _chain(self, node: ast.AST) -> list[ast.AST]:
        """The nodes around a node, the innermost first."""
        found = []
        while (above := self._parents.get(node)) is not None:
            found.append(above)
            node = above
        return found


def carrier(statement: ast.stmt, computed: Collection[str]) -> str:
    """The first of some names that a statement reads with its gradients; empty if it reads none of them so."""
    ends = [*filter(_ends_gradients, ast.walk(statement))]
    return next((name.id for name in loaded_outside(statement, ends) if name.id in computed), "")


def _ends_gradients(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "data"
    if isinstance(node, ast.With):
        calls = [each.context_expr for each in node.items if isinstance(each.context_expr, ast.Call)]
        return any(path_of(call.func).endswith(("no_grad", "inference_mode")) for call in calls)
    called = getattr(node, "func", None)
    name = getattr(called, "attr", "")
    return isinstance(node, ast.Call) and (name in ("detach", "item", "size") or name.endswith("_like"))
