"""TPF125: the norm of all gradients, read parameter by parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Heat, Safety, Severity, Span
from perflint.fixes.edits import delete_statement
from perflint.fixes.imports import spell
from perflint.frozen import dataclass
from perflint.rules._memory.flows import behind, uses_of
from perflint.rules._methods import in_tests
from perflint.rules._since import TOTAL_NORM
from perflint.rules._statements import block_of, mention_before
from perflint.rules._turns import nodes_of
from perflint.rules.base import Files, FileSite, Group, Mentions, Rule, Site, shown
from perflint.rules.optimizer._parameters import parameter_loops
from perflint.rules.sync._scalars import SCALAR_READ
from perflint.semantics.model import Model
from perflint.semantics.structure import arguments, calls_in, names_in, walk

_READS = frozenset({"item", "tolist"})


@dataclass(frozen=True, slots=True)
class _Textbook:
    """`for p in …: total += p.grad.norm(2).item() ** 2`, and the statement after it that takes the root."""

    loop: ast.For
    root: ast.Assign
    name: str


class ManualGradientNorm(Rule):
    """The norm of gradients is read from the GPU once for each parameter.

    ## What it does
    Finds loops over parameters that read the norm of each gradient with `.item()` or `float()`.

    ## Why is this bad
    For each parameter the CPU waits until the GPU has computed the norm, and only then launches the
    next small kernel. `clip_grad_norm_` and `get_total_norm` compute all norms in a few kernels
    without a wait. Over 300 parameters the loop took 6.7 times as long on an H200; it made training
    of a 124 M parameter GPT 32% slower.

    ## When it is fine
    - Once per epoch, or under an interval; in tests, which are not reported.
    - Norms that stay on the GPU and are read together: `torch.stack(norms).norm()`.
    - `clip_grad_norm_(…, error_if_nonfinite=True)` waits once; TPF136 reports it.

    ## Bad
    ```python
    import torch

    def gradient_norm(model: torch.nn.Module):
        total = 0.0
        for p in model.parameters():
            total += p.grad.norm(2).item() ** 2
        total = total ** 0.5
        return total
    ```

    ## Good
    ```python
    import torch

    def gradient_norm(model: torch.nn.Module):
        return torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
    ```

    ## Fix safety
    Unsafe, and offered for this form only: the loop and the root become one call of
    `torch.nn.utils.get_total_norm`, which needs torch 2.6. The norm is then a tensor on the GPU,
    and its last bits differ.

    ## How a GPU shows it
    A profile shows one `aten::item` with a `cudaStreamSynchronize` for each parameter.

    ## References
    - [torch.nn.utils.get_total_norm](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.get_total_norm.html)
    - [torch.nn.utils.clip_grad_norm_](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html)
    """

    code, name = "TPF125", "manual-gradient-norm"
    group = Group.MANY
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("manual-gradient-norm-step-gpt",)
    costs = "reading the norm of each gradient makes GPT-2 training {0} slower"
    listens = (Files(".grad", also=("parameters()", "params")),)
    mentions = Mentions("norm")
    replaces = (SCALAR_READ,)

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        if in_tests(model):
            return
        for loop in (found.loop for found in parameter_loops(model)):
            read = next((part for part in nodes_of(model, loop) if _reads_norm(model, part)), None)
            if not isinstance(read, ast.Call) or (isinstance(read.func, ast.Name) and _is_on_host(model, read)):
                continue
            yield self.finding(
                Site(model, read),
                f"{shown(site, read)} makes the CPU wait once for each gradient",
                confidence=Confidence.HIGH if model.heat(read) is Heat.HOT else Confidence.MEDIUM,
                help="Use `torch.nn.utils.get_total_norm`, or the norm that `clip_grad_norm_` returns.",
                fix=_fix(model, loop),
            )


def _reads_norm(model: Model, node: ast.AST) -> bool:
    """`p.grad.norm().item()`, `float(p.grad.data.norm(2))`, `param_norm.item()`."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in _READS:
        return _is_norm(model, node.func.value)
    is_float = isinstance(node.func, ast.Name) and node.func.id == "float"
    return is_float and len(node.args) == 1 and _is_norm(model, node.args[0])


def _is_norm(model: Model, node: ast.expr) -> bool:
    """The norm of a gradient, or a name that says so."""
    if isinstance(node, ast.Name) and "norm" in node.id:
        return True
    node = behind(model, node)
    parts = [part for part in walk(node) if isinstance(part, ast.Attribute)]
    return any(part.attr in ("norm", "vector_norm") for part in parts) and any(part.attr == "grad" for part in parts)


def _is_on_host(model: Model, read: ast.Call) -> bool:
    return model.target(read) != "builtins.float" or model.value(read.args[0]).tensor is None


def _fix(model: Model, loop: ast.For | ast.While) -> Fix | None:
    found = _textbook(model, loop) if isinstance(loop, ast.For) else None
    if found is None or not isinstance(loop, ast.For):
        return None
    source = model.source
    start, end = source.span(loop), source.span(found.root)
    target, over = (source.written(node) for node in (loop.target, loop.iter))
    gradients = f"[{target}.grad for {target} in {over} if {target}.grad is not None]"
    function = spell(model.symbols, "torch.nn.utils.get_total_norm", loop)
    if function is None:
        return None
    span = Span(start.line, start.column, end.end_line, end.end_column)
    edit = Edit(span, f"{found.name} = {function.text}({gradients})")
    edits = (*_without_start(model, loop, found.name), edit)
    return Fix("Compute the norm on the GPU", Safety.UNSAFE, edits, function.imports, since=TOTAL_NORM)


def _without_start(model: Model, loop: ast.For, name: str) -> tuple[Edit, ...]:
    """The edit that deletes `total = 0` in the line above the loop, where nothing reads it any more."""
    source, block = model.source, block_of(model, loop)
    index = block.index(loop)
    start = block[index - 1] if index else None
    if not isinstance(start, ast.Assign) or not isinstance(start.value, ast.Constant) or not _binds(start, name):
        return ()
    alone = source.lines[loop.lineno - 2].strip() == source.segment(source.span(start))
    return (delete_statement(source, start, block),) if alone and name not in names_in(loop.iter) else ()


def _textbook(model: Model, loop: ast.For) -> _Textbook | None:
    """The parts of the loop as it is written everywhere; None if it does anything else."""
    if not isinstance(loop.target, ast.Name) or loop.orelse:
        return None
    block = block_of(model, loop)
    after = block[block.index(loop) + 1 :]
    body = _without_missing(loop.body, loop.target.id)
    if not body or not after or not isinstance(after[0], ast.Assign):
        return None
    total = body[-1]
    if not isinstance(total, ast.AugAssign) or not isinstance(total.target, ast.Name):
        return None
    if len(body) > 2 or (len(body) == 2 and not _names_norm(model, body[0])) or not _adds_square(model, total.value):
        return None
    name = total.target.id
    root = after[0]
    takes_root = _is_root(model, root.value, name) and _binds(root, name)
    if not takes_root or not _is_second(loop) or not _starts_at_zero(model, loop, name):
        return None
    return None if _is_read_later(model, loop, root) else _Textbook(loop, root, name)


def _starts_at_zero(model: Model, loop: ast.For, name: str) -> bool:
    """True if a name holds zero when a loop begins."""
    before = mention_before(model, loop, name)
    value = before.value if isinstance(before, ast.Assign) and _binds(before, name) else None
    return isinstance(value, ast.Constant) and value.value == 0


def _is_read_later(model: Model, loop: ast.For, root: ast.Assign) -> bool:
    """True if code after the loop reads names, other than the sum, with their values from the loop."""
    inside, sums = set(walk(loop)), names_in(root)
    stores = (node for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    found = (uses_of(model, store) for store in stores if store.id not in sums)
    return any(uses is None or any(use not in inside for use in uses) for uses in found)


def _without_missing(body: list[ast.stmt], name: str) -> list[ast.stmt]:
    """The body without its test for a missing gradient."""
    first = body[0]
    if isinstance(first, ast.If) and ast.unparse(first.test) == f"{name}.grad is None" and len(body) > 1:
        return body[1:] if isinstance(first.body[0], ast.Continue) and not first.orelse else []
    if isinstance(first, ast.If) and ast.unparse(first.test) == f"{name}.grad is not None":
        return first.body if len(body) == 1 and not first.orelse else []
    return body


def _names_norm(model: Model, statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and _is_norm(model, statement.value)


def _adds_square(model: Model, node: ast.expr) -> bool:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Pow) or not _reads_norm(model, node.left):
        return False
    return isinstance(node.right, ast.Constant) and node.right.value == 2


def _is_second(loop: ast.For) -> bool:
    """True if the norm is the Euclidean one: `.norm()`, `.norm(2)`."""
    norms = (each for each in calls_in(loop) if isinstance(each.func, ast.Attribute) and each.func.attr == "norm")
    given = [value for norm in norms for value in arguments(norm)]
    return all(isinstance(each, ast.Constant) and each.value == 2 for each in given)


def _is_root(model: Model, node: ast.expr, name: str) -> bool:
    """True if an expression is the square root of a name."""
    if isinstance(node, ast.Call):
        given = node.args[0] if len(node.args) == 1 and not node.keywords else None
        return model.target(node) == "math.sqrt" and isinstance(given, ast.Name) and given.id == name
    forms = (f"{name} ** 0.5", f"{name} ** (1.0 / 2)", f"{name} ** (1. / 2.)", f"{name} ** (1 / 2)")
    return ast.dump(node) in {ast.dump(ast.parse(form, mode="eval").body) for form in forms}


def _binds(statement: ast.Assign, name: str) -> bool:
    return (
        len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name) and statement.targets[0].id == name
    )
