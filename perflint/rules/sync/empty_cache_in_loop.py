"""TPF123: emptying the allocator's cache, or collecting garbage, over and over."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Need, Safety, Severity
from perflint.rules._methods import serves_tests
from perflint.rules._operators import operators
from perflint.rules._statements import block_of, removal
from perflint.rules.base import Calls, CallSite, ExpressionSite, Group, Rule, device_confidence, often, shown
from perflint.rules.worth import cost, sentence
from perflint.semantics.around import Loop, inside, loops_around, repeats, targets
from perflint.semantics.binders import LOOPS
from perflint.semantics.facts import rule_conventions
from perflint.semantics.model import Model
from perflint.semantics.purpose.need import need_of_cleaning
from perflint.semantics.structure import calls_in, last_name, names_in, walk
from perflint.semantics.values import Instance

_HOUSEKEEPING = ("gc.", "time.", "logging.", "psutil.", "os.", "ctypes.", "torch.cuda.", "torch.accelerator.")
_MEASURES = operators("waits", "measures_memory")
_LEAVE = (ast.Return, ast.Break)
_COLLECT = "gc.collect"
_OF_TENSORS = frozenset("forward backward argmax softmax log_softmax matmul unsqueeze squeeze permute item".split())
"""Methods that hardly anything but tensors and modules has."""


class EmptyCacheInLoop(Rule):
    """
    ## What it does
    Finds `torch.cuda.empty_cache()` and `gc.collect()` in loops and on hot paths. An
    `empty_cache()` between two computations, in a function without callers in the file, is reported
    by the audit profile only.

    ## Why is this bad
    `empty_cache` gives cached blocks back to the driver, which waits for the GPU; the next step
    asks the driver for the same blocks again. It frees nothing that is in use, and PyTorch empties
    the cache by itself before it runs out of memory. One call per step made training of a 124 M
    parameter GPT 17% slower on an H200. A garbage collection walks all Python objects, and torch
    alone creates many: it took 86 ms each time there, so that a step of 26 ms took 112.

    ## When it is fine
    At a change of phase (after training, before evaluation, after a large model is deleted or moved to the CPU), in the
    handler of an out-of-memory error, every 100 steps, once at a certain step, in a branch that
    leaves the loop, or when a measurement shows that memory is nearly full. In a retry loop after a
    failure, and in a function that only frees memory, unless a training loop calls it. When several
    processes share a GPU. Calls beside the loops of a function that evaluates, and calls behind a loop that
    calls the same, are reported as info.

    ## Bad
    ```python
    import torch

    def train(model: torch.nn.Module, loader, optimizer):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            torch.cuda.empty_cache()
    ```

    ## Good
    ```python
    import torch

    def train(model: torch.nn.Module, loader, optimizer):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
        torch.cuda.empty_cache()
    ```

    ## Fix safety
    Unsafe: removing the call lets the cache grow, so that the process holds more memory at its
    peak; other processes on the GPU may miss it. No fix is offered in tests, if the line is not
    known to run in each step, if a comment in the line or above it says why the call is there, if a statement
    before it gives up an object (`parts[k] = None`), if the function measures memory or handles the lack of it,
    or if a block or function would be left empty.
    An `if` that only checked for a GPU, and imports that served the call, are removed with it.

    ## How a GPU shows it
    A trace records the waits of `empty_cache`, and the time of full garbage collections. A profile
    shows `cudaFree` and `cudaMalloc` each step; `torch.cuda.memory_stats()` counts them in
    `num_device_free` and `num_device_alloc`.

    ## References
    - [Memory management](https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management)
    - [torch.cuda.empty_cache](https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.empty_cache.html)
    """

    code, name = "TPF123", "empty-cache-in-loop"
    group = Group.CLEANING
    effect, severity = Effect.ALLOCATION, Severity.ERROR
    measured = ("empty-cache-gpt", "empty-cache-policy", "gc-collect-gpt")
    costs = "`empty_cache()` in each step makes GPT-2 training {0} slower, and that of a small MLP {1}"
    listens = (
        Calls(
            *(f"torch.{owner}.empty_cache" for owner in ("cuda", "cuda.memory", "xpu", "mps", "npu", "accelerator")),
            *("torch.accelerator.memory.empty_cache", _COLLECT),
        ),
    )

    def need(self, site: ExpressionSite) -> Need:
        return need_of_cleaning(site)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if not (repeats(site) or _is_between_work(site)) or _is_meant(site):
            return
        collects = site.target == _COLLECT
        does = "frees memory that the next iteration allocates again: the CPU waits for the GPU and for the driver"
        does = "makes the CPU look at all Python objects" if collects else does
        yield self.finding(
            site,
            f"{shown(site)} {does}{often(site)}",
            confidence=Confidence.HIGH if site.heat is Heat.HOT else Confidence.LOW,
            severity=cost("gc-collect-gpt" if collects and site.heat is Heat.HOT else "empty-cache-gpt").severity,
            help="Remove it. If another phase needs the memory, call it once before that phase.",
            fix=_fix(site),
            cost=sentence("`gc.collect()` in each step makes GPT-2 training {0} slower", "gc-collect-gpt")
            if collects
            else None,
        )


def _is_between_work(site: CallSite) -> bool:
    """True if a function with unknown callers empties the cache between two computations on the GPU."""
    statement = site.model.parent(site.node)
    if site.heat is not Heat.WARM or site.target == _COLLECT or not isinstance(statement, ast.Expr):
        return False
    block = block_of(site.model, statement)
    at = block.index(statement)
    return all(_computes(site.model, part) for part in (block[:at], block[at + 1 :]))


def _computes(model: Model, statements: list[ast.stmt]) -> bool:
    """True if statements make tensors that may be on the device."""
    calls = calls_in(*statements)
    return any(last_name(call) in _OF_TENSORS or device_confidence(model.value(call)) is not None for call in calls)


def _is_meant(site: CallSite) -> bool:
    """True if the call answers an error, a measurement of memory or the end of a large object, or runs once."""
    model = site.model
    for outer in inside(model, site.node):
        if isinstance(outer, ast.ExceptHandler):
            return True
        if isinstance(outer, (ast.If, ast.While)) and _asks_for_memory(model, outer.test):
            return True
        if isinstance(outer, ast.If) and _is_once(model, outer):
            return True
        if isinstance(outer, ast.stmt) and _follows_deletion(site, outer):
            return True
    if site.heat is not Heat.HOT and _frees_memory(model, site.node):
        return True
    if _ends_loop(model, site.node):
        return True
    return any(_is_retry(loop) or _builds_module(model, loop) for loop in loops_around(model, site.node))


def _follows_deletion(site: CallSite, statement: ast.stmt) -> bool:
    """True if a statement before it deletes a module, moves it to the CPU, or off hot paths deletes anything at all."""
    block = block_of(site.model, statement)
    for before in block[: block.index(statement)]:
        if isinstance(before, ast.Delete) and (site.heat is not Heat.HOT or _deletes_module(site.model, before)):
            return True
        if _moves_module_away(site.model, before):
            return True
    return False


def _moves_module_away(model: Model, statement: ast.stmt) -> bool:
    """True for `teacher.to("cpu")` and `teacher.cpu()` as statements: these change a module, not a tensor."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    if model.value(call.func.value).tensor is not None:
        return False
    given = [*call.args, *(each.value for each in call.keywords if each.arg == "device")]
    names_cpu = any(isinstance(part, ast.Constant) and part.value == "cpu" for each in given for part in walk(each))
    return (call.func.attr == "cpu" and not given) or (call.func.attr == "to" and names_cpu)


def _deletes_module(model: Model, statement: ast.Delete) -> bool:
    return any(isinstance(model.value(target), Instance) for target in statement.targets)


def _builds_module(model: Model, loop: ast.AST) -> bool:
    """True if each iteration of a loop constructs a model of its own: then each iteration is a phase."""
    return any(_is_model(model.value(call)) for call in calls_in(loop))


def _is_model(value: object) -> bool:
    return isinstance(value, Instance) and value.arguments is not None and not value.cls.startswith("torch.utils")


def _fix(site: CallSite) -> Fix | None:
    """Where it certainly runs in each step of a program, of a function that does other things."""
    model, statement = site.model, site.model.parent(site.node)
    if site.heat is not Heat.HOT or serves_tests(model) or _frees_memory(model, site.node):
        return None
    if _measures_memory(model, site.node):
        return None
    if not isinstance(statement, ast.Expr) or _is_explained(model, statement) or _follows_release(model, statement):
        return None
    edit = removal(model, statement)
    return None if edit is None else Fix("Remove the call", Safety.UNSAFE, (edit,))


def _follows_release(model: Model, statement: ast.stmt) -> bool:
    """True if a statement before it gives up an object: `x = None`, `outputs[k] = 0`, `parts[k] = torch.empty(0)`."""
    block = block_of(model, statement)
    assigned = [each for each in block[: block.index(statement)] if isinstance(each, ast.Assign)]
    return any(_releases(target, each.value) for each in assigned for target in each.targets)


def _releases(target: ast.expr, value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return value.value is None or isinstance(target, ast.Subscript)
    is_empty = isinstance(value, ast.Call) and [ast.dump(each) for each in value.args] == [ast.dump(ast.Constant(0))]
    return is_empty and isinstance(target, ast.Subscript)


def _is_explained(model: Model, statement: ast.Expr) -> bool:
    """True if a comment in the line of a call, or right above it, says why it is there."""
    span, lines = model.source.span(statement), model.source.lines
    above = lines[span.line - 2].strip() if span.line > 1 else ""
    return above.startswith("#") or "#" in lines[span.end_line - 1][span.end_column - 1 :]


def _frees_memory(model: Model, node: ast.AST) -> bool:
    """True if the function around a call does nothing but free memory, and measure and tell how much it was."""
    function = model.function(node)
    if function is None:
        return False
    return all(_is_housekeeping(model, call) for call in calls_in(function))


def _is_housekeeping(model: Model, call: ast.Call) -> bool:
    if model.target(call).startswith(_HOUSEKEEPING):
        return True
    return bool(rule_conventions.frees_memory(last_name(call)))


def _measures_memory(model: Model, node: ast.AST) -> bool:
    """True if the function around a call measures memory, or handles the lack of it."""
    function = model.function(node)
    if function is None:
        return False
    for part in walk(function):
        if isinstance(part, ast.Call) and model.target(part).rpartition(".")[2] in _MEASURES:
            return True
        if isinstance(part, ast.ExceptHandler) and part.type is not None and "OutOfMemory" in ast.dump(part.type):
            return True
    return False


def _asks_for_memory(model: Model, test: ast.expr) -> bool:
    """True if a test measures memory."""
    return any("mem" in model.target(call) for call in calls_in(test))


def _is_retry(loop: Loop) -> bool:
    """True if a loop tries something again until it succeeds: each further iteration follows a failure."""
    if not isinstance(loop, (ast.For, ast.While)):
        return False
    for statement in loop.body:
        if isinstance(statement, ast.Try) and statement.handlers:
            if any(isinstance(each, (ast.Return, ast.Break)) for each in (*statement.body, *statement.orelse)):
                return True
            if isinstance(loop.body[-1], (ast.Return, ast.Break)):
                return True
    return False


def _ends_loop(model: Model, node: ast.AST) -> bool:
    """True if a branch with a node leaves the loop around it at its end, so that it runs once for the whole loop."""
    if next(loops_around(model, node), None) is None:
        return False
    for outer in (node, *inside(model, node)):
        if isinstance(outer, LOOPS):
            return False
        if isinstance(outer, ast.stmt) and isinstance(block_of(model, outer)[-1], _LEAVE):
            return True
    return False


def _is_once(model: Model, branch: ast.If) -> bool:
    """True if a branch runs when a counter has a certain value: `if step == 1000:`."""
    test = branch.test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = (test.left, test.comparators[0])
    return any(
        _is_number(one) and isinstance(other, (ast.Name, ast.Attribute)) and _counts(model, branch, other)
        for one, other in (sides, sides[::-1])
    )


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _counts(model: Model, branch: ast.If, counter: ast.expr) -> bool:
    """True if the loops around a branch count with a name or attribute."""
    text = ast.unparse(counter)
    for loop in loops_around(model, branch):
        if any(text in names_in(target) for target, _ in targets(loop)):
            return True
    around = model.function(branch) or model.module.tree
    return any(isinstance(each, ast.AugAssign) and ast.unparse(each.target) == text for each in walk(around))
