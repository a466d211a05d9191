"""Moves statements of a training step out of the part that one graph replays, where the result stays the same."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from perflint.semantics.structure import path_of, root_of
from perflint.tune.graphs.parts import Moved, Region
from perflint.tune.graphs.purity import (
    BUILTINS,
    Purity,
    draws,
    is_gradient,
    is_in_place,
    loaded_names,
    local_names,
    makes_memory,
    reads_value,
    stored_names,
    waits,
)
from perflint.tune.graphs.reached import Reached
from perflint.tune.graphs.statements import (
    changed_in_place,
    holds_flow,
    is_backward,
    is_method,
    is_movable,
    is_sum,
    loaded_outside,
    paths,
    receiver,
    simple,
    written_into,
)
from perflint.tune.refused import Refused

_SIZES = frozenset("shape dtype device ndim".split())
"""Attributes of a tensor that no work on it changes."""


class Mover:
    """Moves statements in front of a region or behind it. `is_step` is true for code that stepped an optimizer,
    `reaches_model` for code that called a model; with `may_raise` an exception may also be raised behind the region.
    """

    def __init__(
        self,
        purity: Purity,
        is_step: Callable[[ast.AST], bool],
        reaches_model: Callable[[ast.AST], bool],
        may_raise: bool,
        makes_gradients: Callable[[ast.AST], bool],
        reached: Reached,
        path: str,
    ) -> None:
        """`makes_gradients` is true for code that began a backward pass. `reached` has the functions that the file at
        `path` called.
        """
        self._makes_gradients = makes_gradients
        self._reached = reached
        self._path = path
        self._purity = purity
        self._is_step = is_step
        self._reaches_model = reaches_model
        self._may_raise = may_raise

    def _hidden(self, node: ast.AST) -> set[str]:
        return self._reached.hidden(self._path, node)

    def optimizer(self, step: ast.Call) -> ast.expr:
        """The optimizer that a call steps, also by `scaler.step(optimizer)`."""
        assert isinstance(step.func, ast.Attribute)
        return step.args[0] if step.args and receiver(step) in self._purity.scalers else step.func.value

    def is_step(self, call: ast.Call) -> bool:
        """True for a call that steps an optimizer."""
        return isinstance(call.func, ast.Attribute) and call.func.attr == "step" and self._is_step(call)

    def move(
        self, region: Region, statement: ast.stmt, later: Sequence[ast.stmt], bound: set[str], refused: Refused
    ) -> None:
        """Move a statement out of the region, or only the last ones of a `with`. Raises Refused."""
        if holds_flow(statement, self._may_raise) or any(is_method(node, "backward") for node in ast.walk(statement)):
            raise refused
        touched = {name for each in (*region.kept, *later) for name in self._touched(each)}
        if self._makes_gradients(statement) or self._hidden(statement) & touched:
            raise refused
        if self._schedules(statement) and any(self._steps(each) for each in later):
            raise refused
        if self._draws(statement) and any(map(self._may_draw, (*region.kept, *later))):
            # The GPU would give each of them the random numbers of another.
            raise refused
        if (
            self._is_gradless(statement)
            and not region.behind
            and self._moves_in_front(region, statement, bound, refused)
        ):
            return
        if not is_movable(statement, self._may_raise):
            self._move_from_with(region, statement, later, bound, refused)
            return
        stores = set(stored_names(statement))
        if not region.behind and self._can_stand_before(region, statement, stores, bound):
            region.before.append(Moved(statement, refused))
            return
        altered = {name for each in region.behind for name in self._changed_by(each)}
        lifted = [
            part
            for part in self._lifted(statement, bound)
            if altered.isdisjoint(name.id for name in loaded_names(part))
        ]
        moved = Moved(statement, refused, tuple(lifted))
        reads = {name.id for name in loaded_outside(statement, moved.lifted)}
        changed = {name for each in later for name in self._touched(each)} - bound
        changed |= {name for each in later for name in changed_in_place(each)}
        if any(self.works(each) for each in later):
            # The step changes the parameters of the models that it calls.
            used = {name for each in region.kept for name in self._touched(each)} - bound
            whole = loaded_outside(statement, [*moved.lifted, *written_into(statement)])
            changed |= used & {name.id for name in whole}
        if any(map(self._changes_values, later)) and self._computed_with(region, statement, moved.lifted) - bound:
            raise refused
        rebound = {name for each in later for name in stored_names(each)}
        needed = {name.id for each in later for name in loaded_names(each)}
        if reads & (rebound | changed) or stores & (needed | bound) or self._reads_gradient(statement):
            raise refused
        written = {path_of(each) for each in written_into(statement)}
        if self._hands_over(moved, bound, later) or any(written & set(paths(each)) for each in later):
            raise refused
        changes = self._may_change(statement)
        if changes & needed.union(*map(self._hidden, later)):
            raise refused
        if later and self._purity.fails(statement) and (changes or written):
            # It works on tensors, and later statements may read them by views.
            raise refused
        bound |= stores
        region.behind.append(moved)
        region.kept += [ast.copy_location(ast.Expr(part), part) for part in moved.lifted]

    def _schedules(self, statement: ast.stmt) -> bool:
        """True if a statement may change how an optimizer steps, as `scheduler.step()` does."""
        return any(is_method(node, "step") and not self._is_step(node) for node in ast.walk(statement))

    def _steps(self, statement: ast.stmt) -> bool:
        return any(isinstance(node, ast.Call) and self.is_step(node) for node in ast.walk(statement))

    def _hands_over(self, moved: Moved, bound: set[str], later: Sequence[ast.stmt]) -> bool:
        """True if a statement gives a tensor of the step to unknown code, which may do more than show its value.

        What the step only begins its backward pass with may be given to any call, as it gets a copy.
        """
        used = {name.id for each in later for name in loaded_outside(each, [*filter(is_backward, ast.walk(each))])}
        for each in simple(moved.statement):
            value = getattr(each, "value", each)
            is_print = isinstance(value, ast.Call) and path_of(value.func) == "print"
            if is_print or (isinstance(value, ast.Call) and is_method(value, "append")) or isinstance(value, ast.List):
                continue
            if isinstance(each, ast.Expr) and self._purity.stays_inside(value):
                continue
            if isinstance(each, ast.expr) and self._only_tests(each):
                continue
            shown = [node for node in ast.walk(each) if isinstance(node, ast.Call) and waits(node)]
            given = {name.id for name in loaded_outside(each, [*shown, *moved.lifted])} & bound
            if given & used or (given and not isinstance(each, ast.Expr) and not is_sum(each)):
                return True
        return False

    def _only_tests(self, test: ast.expr) -> bool:
        """True if a condition keeps no tensor: it calls functions of torch and builtins only, and reads tensors."""
        calls = [node for node in ast.walk(test) if isinstance(node, ast.Call)]
        names = [self._purity.imports.full_name(call.func).partition(".")[0] for call in calls]
        return all(
            waits(call) or name in ("torch", "math") or path_of(call.func) in BUILTINS
            for call, name in zip(calls, names, strict=True)
        )

    def _can_stand_before(self, region: Region, statement: ast.stmt, stores: set[str], bound: set[str]) -> bool:
        """True if a statement neither needs nor disturbs the statements of the region before it."""
        sizes = {node.value for node in ast.walk(statement) if isinstance(node, ast.Attribute) and node.attr in _SIZES}
        reads = {name.id for name in loaded_names(statement) if name not in sizes}
        touched = {name for each in region.kept for name in self._touched(each)}
        used = {name.id for each in region.kept for name in loaded_names(each)}
        is_new = isinstance(statement, (ast.Assign, ast.AnnAssign)) and bool(stores)
        # What a model computes needs gradients, which end at the inputs of a graph.
        is_new = is_new and not self._reaches_model(statement)
        sized = {node.id for node in sizes if isinstance(node, ast.Name)}
        is_new = is_new and not self._may_change(statement) & used.union(*map(self._hidden, region.kept))
        if any(map(self._writes, region.kept)):
            # What an optimizer steps has other names than its own.
            older = self._computed_with(region, statement) | (reads & used - {*self._purity.imports})
            is_new = is_new and not older
        return is_new and not reads & (bound | touched) and not stores & (used | bound) and not sized & bound

    def _writes(self, statement: ast.stmt) -> bool:
        """True if a statement may change tensors that were there before, also by functions of the project.

        A call of a model changes that model only.
        """
        if self._reached.called(self._path, statement) - {"forward"} or [*written_into(statement)]:
            return True
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        given = {each.arg for call in calls for each in call.keywords}
        is_sum = any(isinstance(node, ast.AugAssign) for node in ast.walk(statement))
        return bool(given & {"out", "inplace"}) or is_sum or self._changes_values(statement)

    def _changes_values(self, statement: ast.stmt) -> bool:
        """True if a statement steps an optimizer or changes tensors in place."""
        return any(
            is_in_place(node) or (isinstance(node, ast.Call) and self.is_step(node)) for node in ast.walk(statement)
        )

    def _computed_with(self, region: Region, statement: ast.stmt, lifted: Sequence[ast.expr] = ()) -> set[str]:
        """The names of tensors, older than the step, whose values a statement reads outside of its lifted parts."""
        hidden: set[str] = set()
        if self._purity.fails(statement):
            parts: list[ast.AST] = [statement]
            hidden |= self._hidden(statement)
        else:
            calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
            parts = [call for call in calls if reads_value(call)]
            for call in calls:
                if kinds := self._reached.values_read(self._path, call):
                    parts += [*call.args, *(each.value for each in call.keywords)]
                    hidden |= self._hidden(call) if False in kinds else set()
                    parts += [call.func.value] if False in kinds and isinstance(call.func, ast.Attribute) else []
        names = {name.id for part in parts for name in loaded_outside(part, lifted)}
        return (names | hidden) - _fresh(region) - {*self._purity.imports} - BUILTINS

    def _may_change(self, statement: ast.stmt) -> set[str]:
        """The names of the tensors that a statement may change in place, also by functions of the project."""
        found = set(changed_in_place(statement))
        if self._reached.writes(self._path, statement) and not self._purity.stays_inside(statement):
            found |= {name.id for name in loaded_names(statement)} - {*self._purity.imports} | self._hidden(statement)
        return found

    def _draws(self, statement: ast.stmt) -> bool:
        """True if a statement, or a function that it calls, draws random numbers on the GPU."""
        calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
        return any(draws(call, self._purity.imports) for call in calls) or self._reached.draws(self._path, statement)

    def _may_draw(self, statement: ast.stmt) -> bool:
        """True if a statement draws random numbers on the GPU, or calls a model, which may have a dropout."""
        return self._draws(statement) or self._reaches_model(statement)

    def _is_gradless(self, statement: ast.stmt) -> bool:
        """True for a `with torch.no_grad()` around simple statements: whatever they compute needs no gradients."""
        if not isinstance(statement, ast.With) or not all(isinstance(each, ast.Assign) for each in statement.body):
            return False
        calls = [item.context_expr for item in statement.items]
        return all(
            isinstance(call, ast.Call) and self._purity.imports.full_name(call.func) == "torch.no_grad"
            for call in calls
        )

    def _moves_in_front(self, region: Region, statement: ast.stmt, bound: set[str], refused: Refused) -> bool:
        """True if a statement moved in front of the region, with the new tensors of the region that it fills."""
        filled = {root_of(each) for each in written_into(statement)}
        makers = [each for each in region.kept if filled & set(stored_names(each))]
        rest = [each for each in region.kept if each not in makers]
        made = {name for each in makers for name in stored_names(each)}
        stores = {*stored_names(statement), *filled}
        reads = {name for each in (*makers, statement) for name in _objects(each)} - stores
        used = {name.id for each in rest for name in loaded_names(each)}
        touched = {name for each in rest for name in self._touched(each)} - {"self"}
        calls = [node for each in rest for node in ast.walk(each) if isinstance(node, ast.Call)]
        touched |= {name for call in calls for name in _objects(call.func) if name.startswith("self.")}
        if any(map(self._writes, rest)):
            return False
        imports = self._purity.imports
        # What is filled behind a view may be read by statements that would come behind it.
        is_new = all(isinstance(each, ast.Assign) and makes_memory(each.value, imports) for each in makers)
        if any(map(self._draws, (*makers, statement))) and any(map(self._may_draw, rest)):
            return False
        if not is_new or made != filled or any(map(self._reaches_model, makers)):
            return False
        if reads & (bound | touched) or stores & (used | touched | (bound - filled)):
            return False
        region.kept = rest
        region.before += [Moved(each, refused) for each in (*makers, statement)]
        bound -= stores
        return True

    def _move_from_with(
        self, region: Region, statement: ast.stmt, later: Sequence[ast.stmt], bound: set[str], refused: Refused
    ) -> None:
        if not isinstance(statement, ast.With):
            raise refused
        for item in statement.items:
            self._purity.require_context(item)
        is_plain = all("no_grad" in ast.unparse(item) for item in statement.items)
        inner, attempt = Region(region.owner, region.loops, []), set(bound)
        for index, each in enumerate(statement.body):
            try:
                self._purity.require(each, attempt)
                inner.kept.append(each)
            except Refused as again:
                self.move(inner, each, [*statement.body[index + 1 :], *later], attempt, again)
                if not (is_plain or self._only_shows(inner.behind[-1] if inner.behind else None)):
                    raise refused from None
        if inner.before or not inner.kept:
            raise refused
        bound |= attempt
        region.behind += inner.behind
        rest = ast.With(items=statement.items, body=inner.kept)
        region.kept.append(ast.copy_location(rest, statement))

    def _only_shows(self, moved: Moved | None) -> bool:
        """True if a statement computes no tensor besides its lifted parts, so that no context changes it."""
        inside = {node for part in moved.lifted for node in ast.walk(part)} if moved is not None else set()
        return moved is not None and all(
            waits(node) for node in ast.walk(moved.statement) if isinstance(node, ast.Call) and node not in inside
        )

    def _lifted(self, statement: ast.stmt, bound: set[str]) -> tuple[ast.expr, ...]:
        """The tensors of a statement that is moved behind the region: what it reads, or adds to a list or a sum."""
        found: list[ast.expr] = []
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.AugAssign) and isinstance(value, ast.List):
            found += [each for each in value.elts if self._can_lift(each)]
        if isinstance(value, ast.Call) and is_method(value, "append") and len(value.args) == 1:
            found += [each for each in value.args if self._can_lift(each)]
        if isinstance(statement, ast.AugAssign) and isinstance(value, ast.Call) and root_of(value.func) in bound:
            found += [value] if self._can_lift(value) else []
        inside = {node for each in found for node in ast.walk(each)}
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and is_method(node, "item") and node not in inside:
                receiver = node.func.value  # type: ignore[attr-defined]
                if self._can_lift(receiver):
                    found.append(receiver)
        return tuple(found)

    def _can_lift(self, expression: ast.expr) -> bool:
        if not isinstance(expression, (ast.Call, ast.BinOp, ast.UnaryOp)):
            return False
        return not any(self._purity.impure(node) for node in ast.walk(expression))

    def works(self, statement: ast.stmt) -> bool:
        """True if a statement behind the step changes tensors."""
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                is_pass = node.func.attr in ("backward", "zero_grad")
                if is_pass or self._purity.updates_scale(node) or self.is_step(node) or is_in_place(node):
                    return True
        return isinstance(statement, ast.Expr) and self._reached.works(self._path, statement)

    def _touched(self, statement: ast.stmt) -> set[str]:
        """The names of objects that a statement may change: those that it binds, calls or whose methods it calls."""
        calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
        # The backward pass leaves the loss as it is.
        roots = {root_of(call.func) for call in calls if not is_method(call, "backward")}
        return set(stored_names(statement)) | {name for name in roots if name not in self._purity.imports}

    def _changed_by(self, moved: Moved) -> set[str]:
        """The names of objects that a statement may change behind the region, but for tensors that it only reads."""
        lifted = {node for part in moved.lifted for node in ast.walk(part)}
        calls = (node for node in ast.walk(moved.statement) if isinstance(node, ast.Call) and node not in lifted)
        return set(stored_names(moved.statement)) | {root_of(each.func) for each in calls if not waits(each)}

    def _reads_gradient(self, statement: ast.stmt) -> bool:
        return any(is_gradient(node, self._purity.imports) for node in ast.walk(statement))


def _fresh(region: Region) -> set[str]:
    """The names that each step binds, also in front of a region."""
    if region.loops or isinstance(region.owner, ast.Module):
        return {name for loop in region.loops for name in stored_names(loop)}
    return local_names(region.owner) - {"self"}


def _objects(node: ast.AST) -> set[str]:
    """The names that a node reads, and the attributes of `self` in place of that name."""
    held = {each.value for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    attributes = {".".join(path_of(each).split(".")[:2]) for each in ast.walk(node) if root_of(each) == "self"}
    names = {name.id for name in loaded_names(node) if name.id != "self" or name not in held}
    return names | {path for path in attributes if "." in path}
