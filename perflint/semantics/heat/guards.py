"""Guards: tests that rarely have one outcome, such as `step % 100 == 0`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import TypeGuard

from perflint.semantics.binders import COMPREHENSIONS
from perflint.semantics.facts import conventions
from perflint.semantics.facts.concepts import Entry
from perflint.semantics.heat.cpu_runs import runs_on_cpu
from perflint.semantics.heat.emptiness import finds_nothing
from perflint.semantics.heat.log_levels import is_low
from perflint.semantics.heat.switches import needs_switch
from perflint.semantics.structure import last_name, walk
from perflint.semantics.values import Const, Device, Scalar, Value

_SHORTEST_INTERVAL = 6
"""Code that runs every fifth step, or more often, still costs a good part of code that runs each step."""
_FIRST_FEW = 10
"""The first steps of a run, or of an epoch, that are few."""

Values = Callable[[ast.expr], Value]
"""The function that evaluates an expression."""


def rarely(test: ast.expr, outcome: bool, values: Values) -> bool:
    """True if a test comes out as `outcome` only now and then: every k steps, on one rank, while tracing."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return rarely(test.operand, not outcome, values)
    if isinstance(test, ast.BoolOp):
        rare = [value for value in test.values if rarely(value, outcome, values)]
        if isinstance(test.op, ast.And) is outcome:
            return bool(rare)
        # `step % k == 0 or is_last` is still rare. But on the GPU, `device == "cpu" or is_small` depends on the rest.
        tells = [value for value in rare if len(rare) == len(test.values) or not runs_on_cpu(value, outcome, values)]
        return bool(tells) and not _is_reached(test, rare, outcome)
    if isinstance(test, ast.NamedExpr):
        return rarely(test.value, outcome, values)
    if isinstance(test, COMPREHENSIONS):
        # `[stage for stage in stages if stage.start == step]`
        return outcome and any(rarely(each, True, values) for part in test.generators for each in part.ifs)
    if runs_on_cpu(test, outcome, values):
        # Code is linted for a machine with a GPU.
        return True
    if needs_switch(test):
        return outcome
    if isinstance(test, ast.Compare):
        return _rare_comparison(test, values) is outcome
    if isinstance(test, ast.BinOp):
        return _is_interval(test, values) and not outcome
    if isinstance(test, ast.Constant):
        # `if 0:` is code that is switched off.
        return bool(test.value) is not outcome
    if _asks_numbers(test, conventions.is_finite):
        return not outcome
    if _asks_for_error(test):
        return outcome
    if not outcome:
        return False
    flag = test.func if isinstance(test, ast.Call) else test
    is_off = _is_rarely_true(flag) and not _is_on_by_default(flag, values)
    return is_off or _asks_numbers(test, conventions.is_not_finite)


def _is_on_by_default(flag: ast.expr, values: Values) -> bool:
    """True if a flag is, or comes from, a parameter that is true by default: `def fit(…, verbose=True)`."""
    value = values(flag)
    return isinstance(value, Scalar) and value.default == Const(True)


def named(test: ast.expr, values: Values) -> tuple[str, Entry] | None:
    """The name by which a test rarely has one outcome, and its convention; None if something else shows it."""
    outcome = next((outcome for outcome in (True, False) if rarely(test, outcome, values)), None)
    return None if outcome is None else _named(test, outcome)


def _named(test: ast.expr, outcome: bool) -> tuple[str, Entry] | None:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _named(test.operand, not outcome)
    if isinstance(test, ast.BoolOp):
        return next(filter(None, (_named(value, outcome) for value in test.values)), None)
    if isinstance(test, ast.NamedExpr):
        return _named(test.value, outcome)
    asked = [last_name(node) for node in walk(test) if isinstance(node, ast.Call)]
    found = [(name, conventions.is_not_finite(name) if outcome else conventions.is_finite(name)) for name in asked]
    if outcome:
        name = _name_of(test.func if isinstance(test, ast.Call) else test)
        found.append((name, conventions.is_rarely_true(name)))
    return next(((name, entry) for name, entry in found if entry is not None), None)


def _asks_numbers(test: ast.expr, means: Callable[[str], Entry | None]) -> bool:
    """True if a test asks for the numbers of a tensor: `x.isnan().any()`, `torch.any(torch.isnan(x)).item()`."""
    return bool(means(last_name(innermost(test, means))))


def innermost(test: ast.expr, means: Callable[[str], object]) -> ast.expr:
    """The part of a test inside of calls that make one number of many: `torch.isnan(x)` of `torch.isnan(x).any()`."""
    while isinstance(test, ast.Call) and not means(last_name(test)) and last_name(test) in _OF_ALL:
        receiver = test.func.value if isinstance(test.func, ast.Attribute) else None
        inner = test.args[0] if test.args and not isinstance(receiver, ast.Call) else receiver
        if inner is None:
            return test
        test = inner
    return test


def _asks_for_error(test: ast.expr) -> bool:
    """True for `isinstance(error, torch.cuda.OutOfMemoryError)`."""
    if not isinstance(test, ast.Call) or last_name(test) != "isinstance" or len(test.args) != 2:
        return False
    types = test.args[1].elts if isinstance(test.args[1], ast.Tuple) else [test.args[1]]
    return all(last_name(each).endswith(("Error", "Exception")) for each in types)


_OF_ALL = frozenset("any all item sum bool".split())
"""Calls that make one number of many, or a number of Python of it."""


def _is_reached(test: ast.BoolOp, rare: list[ast.expr], outcome: bool) -> bool:
    """True if the operands that are not rare lead to an outcome for which one operand is enough.

    The code after `if x.is_cpu and not is_compiling(): return` runs on the GPU.
    """
    others = [value for value in test.values if value not in rare]
    if others and all(_names_mode(value) for value in rare):
        return True
    return any(_means_gpu(value, outcome) for value in others)


def _names_mode(node: ast.expr) -> bool:
    """`torch.jit.is_scripting()`, `not is_compiling()`."""
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    return bool(conventions.is_mode(last_name(node)))


def _means_gpu(test: ast.expr, outcome: bool) -> bool:
    """True if a test that comes out as `outcome` says that data is on the GPU."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _means_gpu(test.operand, not outcome)
    if isinstance(test, ast.Compare):
        words = {node.value for node in walk(test) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        says_gpu = outcome is isinstance(test.ops[0], (ast.Eq, ast.Is, ast.In))
        return ("cuda" in words and says_gpu) or ("cpu" in words and not says_gpu)
    name = last_name(test)
    return (name == "is_cuda" and outcome) or (name == "is_cpu" and not outcome)


def _is_rarely_true(node: ast.expr) -> bool:
    return bool(conventions.is_rarely_true(_name_of(node)))


def _name_of(node: ast.expr) -> str:
    """The last part of a name or attribute; "" for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_interval(node: ast.expr, values: Values) -> bool:
    """`step % k`, where k is not known to be small, nor by default; no formatting of text."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mod) or isinstance(node.left, ast.JoinedStr):
        return False
    if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
        return False
    return is_long(node.right, values)


def is_long(interval: ast.expr, values: Values) -> bool:
    """True if a number of steps is not known to be small, nor by default."""
    known = values(interval)
    # A constant of the file is a setting that users change; most runs keep the default of a parameter.
    default = known.default if isinstance(known, Scalar) else None
    every = interval.value if isinstance(interval, ast.Constant) else default and default.value
    # An interval of 0 is that of something switched off.
    return not isinstance(every, int) or every < 1 or every >= _SHORTEST_INTERVAL


_TRUE_FOR_FEW = (ast.Eq, ast.Is, ast.Lt, ast.LtE)


def _rare_comparison(test: ast.Compare, values: Values) -> bool | None:
    """The outcome of a comparison that is rare, None if there is none."""
    left, operator, right = test.left, test.ops[0], test.comparators[0]
    sides = (left, right)
    if _is_interval(left, values) or _is_interval(right, values):
        return isinstance(operator, _TRUE_FOR_FEW)
    if (low := is_low(left, operator, right)) is not None:
        return low
    if ast.unparse(left) == ast.unparse(right) and isinstance(operator, (ast.NotEq, ast.Eq)):
        # NaN alone differs from itself.
        return isinstance(operator, ast.NotEq)
    if _is_rarely_true(left) or _asks_numbers(left, conventions.is_not_finite):
        is_off = isinstance(right, ast.Constant) and not right.value
        if isinstance(operator, (ast.NotEq, ast.IsNot)):
            return is_off
        return not is_off if isinstance(operator, (ast.Eq, ast.Is)) else isinstance(operator, (ast.Gt, ast.GtE))
    if isinstance(operator, (ast.Eq, ast.NotEq)) and (_is_infinity(left) or _is_infinity(right)):
        # The norm of infinite order, a loss that has overflowed.
        return isinstance(operator, ast.Eq)
    if isinstance(operator, (ast.In, ast.NotIn)) and _counts_steps(left):
        # `if step in save_steps`; a range may hold most steps.
        is_range = isinstance(right, ast.Call) and last_name(right) == "range"
        return None if is_range else isinstance(operator, ast.In)
    if isinstance(operator, (ast.Eq, ast.NotEq)) and any(_counts_steps(each) and not _is_epoch(each) for each in sides):
        # `if step == self.warm_up`: a step of that number comes once.
        return isinstance(operator, ast.Eq)
    if _is_none_in_words(right) and isinstance(operator, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
        # An option that switches off the work of a function.
        return isinstance(operator, (ast.Eq, ast.In))
    if isinstance(operator, (ast.Gt, ast.GtE, ast.Lt, ast.LtE)) and _is_length(left) and _is_longest(right):
        return isinstance(operator, (ast.Gt, ast.GtE))
    number = right.value if isinstance(right, ast.Constant) and type(right.value) is int else None
    if number is not None and _counts_steps(left):
        if number == 0 and isinstance(operator, (ast.Eq, ast.NotEq, ast.Gt)):
            return isinstance(operator, ast.Eq)
        if number <= _FIRST_FEW and isinstance(operator, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) and not _is_epoch(left):
            return isinstance(operator, (ast.Lt, ast.LtE))
    return None


def _is_none_in_words(node: ast.expr) -> bool:
    """True for `"none"` and `("none", "off")`."""
    words = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]
    texts = [word.value for word in words if isinstance(word, ast.Constant)]
    return len(texts) == len(words) > 0 and all(isinstance(text, str) and text.lower() in _NONE for text in texts)


_NONE = frozenset({"none", "null", "off", "disabled", "disable", "no", ""})


def _is_length(node: ast.expr) -> bool:
    """True for `x.shape[1]`, `x.size(1)` and `len(x)`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    return isinstance(node, ast.Call) and last_name(node) in ("len", "size")


def _is_longest(node: ast.expr) -> bool:
    """True for `self.max_seq_len`: inputs that are longer than the longest one are rare."""
    return isinstance(node, ast.Attribute) and bool(conventions.limits_length(node.attr))


def _is_infinity(node: ast.expr) -> bool:
    """True for `math.inf`, `-inf` and `float("inf")`."""
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, ast.Call):
        given = node.args[0] if last_name(node) == "float" and len(node.args) == 1 else None
        return isinstance(given, ast.Constant) and str(given.value).lstrip("+-").lower() in _INFINITIES
    return isinstance(node, (ast.Name, ast.Attribute)) and last_name(node) in _INFINITIES


_INFINITIES = frozenset({"inf", "infinity"})


def _counts_steps(node: ast.expr) -> bool:
    """`step`, `self.global_step`, `batch_idx`: it is 0 once."""
    return bool(conventions.counts_steps(_name_of(node)))


def _is_epoch(node: ast.expr) -> bool:
    """True for `epoch`: a run may have no more than ten."""
    return "epoch" in _name_of(node)


def mends_place(test: ast.expr, outcome: bool, branch: Sequence[ast.AST], values: Values) -> bool:
    """True if a branch moves a tensor only if it is in the wrong place: `if x.device != device: x = x.to(device)`.

    A tensor that is known to be on the CPU is always in the wrong place.
    """
    strayed = {ast.unparse(node) for node in _strayed(test, outcome) if not _is_on_cpu(values(node))}
    if not strayed:
        return False
    moves = (node for part in branch for node in walk(part) if isinstance(node, ast.Call))
    return any(
        last_name(node) in ("to", "cuda")
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value) in strayed
        for node in moves
    )


def _is_on_cpu(value: Value) -> bool:
    return value.tensor is not None and value.tensor.device is Device.CPU


def _strayed(test: ast.expr, outcome: bool) -> Iterator[ast.expr]:
    """The tensors that a test which comes out as `outcome` finds on another device than where they are needed."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _strayed(test.operand, not outcome)
    elif isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _strayed(value, outcome)
    elif isinstance(test, ast.Attribute) and (test.attr, outcome) in (("is_cuda", False), ("is_cpu", True)):
        yield test.value
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        differs = isinstance(test.ops[0], (ast.NotEq, ast.IsNot)) is outcome
        sides = (test.left, test.comparators[0])
        words = {node.value for side in sides for node in walk(side) if isinstance(node, ast.Constant)}
        if differs is ("cpu" not in words) and isinstance(test.ops[0], (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
            yield from filter(None, map(_placed, sides))


def _placed(node: ast.expr) -> ast.expr | None:
    """The tensor in `x.device`, `x.device.type` and `x.get_device()`."""
    if isinstance(node, ast.Call) and last_name(node) == "get_device" and isinstance(node.func, ast.Attribute):
        return node.func.value
    if isinstance(node, ast.Attribute) and node.attr in ("type", "index"):
        node = node.value
    return node.value if isinstance(node, ast.Attribute) and node.attr == "device" else None


def leaves(body: list[ast.stmt]) -> bool:
    """True if a branch ends by leaving the function or this iteration of the loop."""
    return isinstance(body[-1], (ast.Return, ast.Continue))


def fails(body: list[ast.stmt]) -> bool:
    """True if a branch is the way to an exception."""
    return bool(body) and isinstance(body[-1], ast.Raise)


def asks_state(test: ast.expr) -> bool:
    """True if a test asks for earlier results: `self.table is None`, `not hasattr(x, "y")`, `key not in known`."""
    return any(map(_is_of_state, walk(test)))


def _is_of_state(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr != "training" and isinstance(node.value, ast.Name) and node.value.id == "self"
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[0], ast.NotIn)
    return isinstance(node, ast.Call) and last_name(node) in ("hasattr", "getattr")


def fills_cache(branch: ast.If, before: Callable[[ast.If], list[ast.stmt]]) -> bool:
    """True if the body of a branch runs once, or once for each key, because it makes the missing value of the test.

    `if key not in cache: … cache[key] = …`, `if self.table is None: … self.table = …`, `if self.first: …
    self.first = False`, and the same of a name that `cache.get(key)` was assigned to. `before` gives the statements
    before a branch.
    """
    found = any(_stores(branch.body, made) for made in _missed(branch.test, lambda: before(branch)))
    return found or _drops(branch) or _fills_empty(branch)


def _fills_empty(branch: ast.If) -> bool:
    """True for `if len(state) == 0: state["step"] = …`, the state that an optimizer makes in its first step."""
    test = branch.test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and isinstance(test.operand, ast.Name):
        holder: ast.expr | None = test.operand
    else:
        sizes = (node for node in walk(test) if isinstance(node, ast.Call) and last_name(node) == "len" and node.args)
        size = next(sizes, None) if finds_nothing(test, True, lambda name: []) else None
        holder = None if size is None else size.args[0]
    if holder is None:
        return False
    stored = (target for each in branch.body if isinstance(each, ast.Assign) for target in each.targets)
    return any(isinstance(each, ast.Subscript) and ast.unparse(each.value) == ast.unparse(holder) for each in stored)


def _drops(branch: ast.If) -> bool:
    """True if the body of a branch turns the flag of its test over: `if self.first: … self.first = False`.

    The same of `if not self.is_set_up:`, and of `if self.state == 0: … self.state.fill_(1)`.
    """
    flag, is_on = _flag(branch.test)
    return _is_of_self(flag.value if isinstance(flag, ast.Subscript) else flag) and any(
        _sets(statement, ast.unparse(flag), not is_on) for statement in branch.body
    )


def _flag(test: ast.expr) -> tuple[ast.expr, bool]:
    """The flag that a test reads, and its value where the test is true: (`f`, False) of `not f` and of `f == 0`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand, False
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Eq, ast.Is)):
        value = test.comparators[0]
        if isinstance(value, ast.Constant) and value.value in (0, 1):
            return test.left, bool(value.value)
    return test, True


def _sets(statement: ast.stmt, flag: str, value: bool) -> bool:
    """True if a statement gives a flag a value: `self.first = False`, `self.state[0] = 1`, `self.state.fill_(1)`."""
    given: ast.expr | None = None
    if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == flag:
        given = statement.value
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and statement.value.args:
        given = statement.value.args[0] if ast.unparse(statement.value.func) == f"{flag}.fill_" else None
    return isinstance(given, ast.Constant) and given.value in (0, 1) and bool(given.value) is value


def returns_kept(branch: ast.If, block: list[ast.stmt]) -> bool:
    """True if a branch returns a kept value that the rest of the block makes once, or once for each key.

    `if key in cache: return cache[key]`, `if self.table is not None: return self.table`, and the same of a
    name that `cache.get(key)` was assigned to.
    """
    if not isinstance(branch.body[-1], ast.Return):
        return False
    index = block.index(branch)
    return any(_stores(block[index + 1 :], made) for made in _found(branch.test, block[:index]))


def _missed(test: ast.expr, before: Callable[[], list[ast.stmt]]) -> Iterator[str]:
    """The key that a test finds missing, as the code that would store it."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for value in test.values:
            yield from _missed(value, before)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _attribute_asked_for(test.operand)
    elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn):
        yield _entry(test.comparators[0], test.left)
    elif _is_to_none(test, ast.Is) and (attribute := _kept_by_self(test.left)):
        yield attribute
    elif _is_to_none(test, ast.Is) and isinstance(test.left, ast.Name):
        yield from _asked_of(before(), test.left.id)


def _found(test: ast.expr, before: list[ast.stmt]) -> Iterator[str]:
    """The key that a test finds present, as the code that would store it; `before`: the statements before it."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In):
        yield _entry(test.comparators[0], test.left)
    elif _is_to_none(test, ast.IsNot) and (attribute := _kept_by_self(test.left)):
        yield attribute
    elif _is_to_none(test, ast.IsNot) and isinstance(test.left, ast.Name):
        yield from _asked_of(before, test.left.id)
    else:
        yield from _attribute_asked_for(test)


def _asked_of(before: list[ast.stmt], name: str) -> Iterator[str]:
    """The entry that the statement before asks a dict for: `name = cache.get(key)`."""
    last = before[-1] if before else None
    call = last.value if isinstance(last, ast.Assign) and last_name(last.targets[0]) == name else None
    if isinstance(call, ast.Call) and last_name(call) == "get" and isinstance(call.func, ast.Attribute):
        yield from (_entry(call.func.value, key) for key in call.args[:1])


def _is_to_none(test: ast.expr, operator: type[ast.cmpop]) -> TypeGuard[ast.Compare]:
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], operator):
        return False
    other = test.comparators[0]
    return isinstance(other, ast.Constant) and other.value is None


def _is_of_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _kept_by_self(node: ast.expr) -> str:
    """`self.table`, also for `getattr(self, "table", None)`; "" for anything else."""
    if _is_of_self(node):
        return ast.unparse(node)
    return _named_of_self(node.args) if isinstance(node, ast.Call) and last_name(node) == "getattr" else ""


def _attribute_asked_for(node: ast.expr) -> Iterator[str]:
    """`hasattr(self, "table")`."""
    if isinstance(node, ast.Call) and last_name(node) == "hasattr" and (attribute := _named_of_self(node.args)):
        yield attribute


def _named_of_self(arguments: list[ast.expr]) -> str:
    """`self.table` for the arguments `self, "table"`; "" for others."""
    owner, name = arguments[:2] if len(arguments) > 1 else (None, None)
    is_own = isinstance(owner, ast.Name) and owner.id == "self"
    return f"self.{name.value}" if is_own and isinstance(name, ast.Constant) and isinstance(name.value, str) else ""


def _entry(cache: ast.expr, key: ast.expr) -> str:
    return ast.unparse(ast.Subscript(cache, key, ast.Load()))


def _stores(body: list[ast.stmt], target: str) -> bool:
    return any(
        isinstance(node, (ast.Subscript, ast.Attribute))
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node) == target
        for statement in body
        for node in walk(statement)
    )


def warns(call: ast.Call) -> bool:
    """True if a call reports a warning or an error: `warnings.warn(…)`, `logger.error(…)`."""
    return bool(conventions.reports(last_name(call))) and isinstance(call.func, ast.Attribute)
