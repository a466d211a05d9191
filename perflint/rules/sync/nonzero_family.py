"""TPF110: results whose size depends on the data."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Need, Safety, Severity
from perflint.fixes.edits import replace
from perflint.fixes.imports import spell
from perflint.rules._methods import is_false
from perflint.rules._statements import outward
from perflint.rules.base import Calls, CallSite, Group, Rule, SubscriptSite, device_confidence, often, shown
from perflint.rules.sync._asked import follows_wait
from perflint.rules.sync._data_sized import SELECTIONS, data_sized, selected
from perflint.rules.sync._same_shape import has_shape_of, is_of_part
from perflint.rules.sync._searched import searched_once
from perflint.semantics.dataflow.definitions import excludes
from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.purpose.need import need_of_selection
from perflint.semantics.structure import walk
from perflint.semantics.values import Evidence, Kind, scalar_type
from perflint.source.concrete import code, cst
from perflint.source.quoting import quoted

_POSITIONS = frozenset({"torch.where", "torch.nonzero", "torch.Tensor.nonzero"})
_NUMBERS = ("int", "float", "bool", "complex")


class NonzeroFamily(Rule):
    """
    ## What it does
    Finds operations on GPU tensors whose result size depends on the data: `nonzero`, `argwhere`,
    `masked_select`, `torch.where` with a condition alone, `x[mask]` with a boolean tensor, and
    `x[mask] = tensor`.

    ## Why is this bad
    The CPU must know the size to allocate the result, so it waits until the GPU has counted.
    The backward of `x[mask]` counts again. The varying size also breaks CUDA graphs and makes
    `torch.compile` break or recompile. On an H200 `x[mask].sum()` takes about twice as long as
    `torch.where(mask, x, 0).sum()`, and a boolean mask in each of twelve layers adds 9 percent to
    a GPT training step.

    ## When it is fine
    `x[mask] = number` is `masked_fill_` and does not wait; so does three-argument `torch.where`.
    Preprocessing, masks on the CPU, and code that needs the smaller result to save much work.
    Results that are copied to the CPU at once, and functions that convert a model's results into
    arrays: the copy waits anyway, so these are reported as info only. So are selections before or
    after a loop that runs a model: they run once for all of its steps. `if mask.any(): y = x[mask]` waits
    at the test, and the selection right after it costs little more: it is reported as info only, unless
    the function selects with the same mask several times. Positions whose number a test asks for
    (`found = mask.nonzero()`, `if len(found) == 0`) are info, too, since the CPU needs the number. So are
    selections in the loops of a function that the project calls only outside of trainings, unless these decode.
    `cross_entropy(x[mask], y[mask])` is TPF111.

    ## Bad
    ```python
    import torch

    def step(model: torch.nn.Module, x: torch.Tensor, mask: torch.Tensor):
        out = model(x.cuda())
        return out[out > 0].sum()
    ```

    ## Good
    ```python
    import torch

    def step(model: torch.nn.Module, x: torch.Tensor, mask: torch.Tensor):
        out = model(x.cuda())
        return torch.where(out > 0, out, 0).sum()
    ```

    ## Fix safety
    `x[torch.where(m)] = number` and `x[m.nonzero(as_tuple=True)] = number` become `x[m] = number`.
    It is safe if `m` is certainly boolean, is computed element by element from `x` (`x > 0`), and
    is not written afterwards. It is unsafe if `m` is boolean and has dimensions, but may be shorter
    than `x`, which raises an error, or is written before `backward()`, which raises one there. It
    is risky elsewhere, also in a file that gives any tensor another shape in place: an integer `m`
    would be taken as positions, and a boolean `m` without
    dimensions as all of `x`. A mask of a slice of `x` (`x[:5] > 0`) gets no fix. Masked reductions
    change the order of summation and get no fix either.

    `x / m.nonzero().size(0)` becomes `x / torch.count_nonzero(m)` if x is certainly on the GPU. That is unsafe: in
    float16 a count above 65,504 becomes infinite.

    If a boolean mask selects several times in a block (`a[m]`, then `b[m]`) and nothing writes to it in between,
    `m_at = m.nonzero(as_tuple=True)` in front of them searches it once, and each `[m]` becomes `[m_at]`, which is the
    search that torch itself makes, at each use and again in `backward()`. That is unsafe: the positions take more
    memory than the mask, and a mask that is shorter than the tensor raises no error any more. A mask without dimensions
    selects otherwise, and so do positions that are called a mask. If the source does not show which it is, the new line
    asks: `m_at = m.nonzero(as_tuple=True) if m.dtype == torch.bool and m.ndim else m`. For a mask without
    a name (`x > 0`) the fix is risky instead. The mask may be computed by functions of torch (`torch.isfinite(x)`,
    `m.any(dim=1)`); code in a `try` block, TorchScript and projects
    with `symbolic_trace` get no fix.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line; a trace has `aten::nonzero` with a
    `Memcpy DtoH` of one number and the `cudaStreamSynchronize` after it.

    ## References
    - [torch.nonzero](https://docs.pytorch.org/docs/stable/generated/torch.nonzero.html): "causes
      host-device synchronization"
    """

    code, name = "TPF110", "nonzero-family"
    effect, severity = Effect.SYNC, Severity.WARNING
    group = Group.SELECTION
    measured = ("nonzero-family-gpt", "nonzero-family-gpt-host-work", "nonzero-family-policy")
    listens = (Calls(*SELECTIONS), SubscriptSite)

    def need(self, site: SubscriptSite | CallSite) -> Need:
        return Need.BESIDE if follows_wait(site) else need_of_selection(site)

    def check(self, site: CallSite | SubscriptSite) -> Iterator[Finding]:
        if (confidence := data_sized(site)) is not None:
            yield self.finding(
                site,
                f"{_what(site)}: the CPU waits while the GPU counts{often(site)}",
                confidence=confidence,
                help=_cure(site),
                fix=_fix(site) or _counted(site) if isinstance(site, CallSite) else searched_once(site),
            )


def _what(site: CallSite | SubscriptSite) -> str:
    text = shown(site)
    if isinstance(site, CallSite) and "nonzero" in site.target:
        return f"The size of {text} depends on the data"
    return f"{'storing in ' * (isinstance(site, SubscriptSite) and site.mode == 'store')}{text} calls nonzero()"


def _cure(site: CallSite | SubscriptSite) -> str:
    if isinstance(site, SubscriptSite) and site.mode != "load":
        return "Write the whole tensor: `torch.where(mask, new, old)`, or `masked_fill_` for a number."
    if isinstance(site, CallSite) and _row_count(site) is not None:
        return "Count on the GPU: `torch.count_nonzero` needs no search."
    outer = site.model.parent(site.node)
    if isinstance(outer, ast.Attribute) and outer.attr == "sum":
        return "Sum without the mask: `torch.where(mask, x, 0).sum()`."
    if isinstance(outer, ast.Attribute) and outer.attr == "mean":
        return "Divide two sums: `torch.where(mask, x, 0).sum() / mask.sum()`."
    uses = _selections(site)
    if uses > 1:
        assert isinstance(site, SubscriptSite)
        mask, whole = site.text(site.node.slice), site.text(site.node.value)
        return (
            f"Search `{mask}` once, not {uses} times: `found = {mask}.nonzero(as_tuple=True)`, "
            f"then {quoted(f'{whole}[found]')}. Or keep all rows, with a weight of 0: that needs no search."
        )
    return "Keep the size: `torch.where(mask, x, 0)`, a weight of 0, `ignore_index`, or `topk` with a known k."


def _selections(site: CallSite | SubscriptSite) -> int:
    """The number of times that one run of a function selects with the mask of a site, a name that is bound once."""
    if not isinstance(site, SubscriptSite) or not isinstance(site.node.slice, ast.Name):
        return 0
    function = site.model.function(site.node)
    loads = [] if function is None else _selections_in(site.model, function).get(site.node.slice.id, [])
    around = dict(outward(site.model, site.node))
    return sum(not _is_apart(site.model, load, around) for load in loads)


def _is_apart(model: Model, load: ast.Subscript, around: dict[ast.AST, ast.AST]) -> bool:
    """True if a load stands in another branch than the place whose surroundings are given."""
    return any(outer in around and excludes(outer, inner, around[outer]) for outer, inner in outward(model, load))


@once_per_node
def _selections_in(model: Model, function: ast.AST) -> dict[str, list[ast.Subscript]]:
    """The loads `x[name]` of a function for each name that it binds at most once and stores nothing with."""
    found: dict[str, list[ast.Subscript]] = {}
    bound: set[str] = set()
    left_out: set[str] = set()
    for node in walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name):
            if isinstance(node.ctx, ast.Load):
                found.setdefault(node.slice.id, []).append(node)
            else:
                left_out.add(node.slice.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            (left_out if node.id in bound else bound).add(node.id)
    return {name: loads for name, loads in found.items() if name not in left_out}


def _fix(site: CallSite) -> Fix | None:
    """The mask itself as the index of a store of a number."""
    operand = selected(site)
    index = site.model.parent(site.node)
    if operand is None or site.target not in _POSITIONS or not isinstance(index, ast.Subscript):
        return None
    if index.slice is not site.node or not _takes_number(site, index) or not _as_tuple(site):
        return None
    mask = site.value(operand).tensor
    if mask is None or mask.rank == 0 or is_of_part(site.model, operand, index.value):
        return None
    node = site.concrete
    new = node.args[0].value if site.target != "torch.Tensor.nonzero" else _receiver(node)
    edit = replace(site.model.source, site.span, new)
    if mask.kind is not Kind.BOOL or mask.evidence < Evidence.ANNOTATION:
        return Fix("Index with the mask itself", Safety.RISKY, (edit,))
    if has_shape_of(site.model, operand, index.value):
        return Fix("Index with the mask itself", Safety.SAFE, (edit,))
    return Fix("Index with the mask itself", Safety.RISKY if mask.rank is None else Safety.UNSAFE, (edit,))


def _counted(site: CallSite) -> Fix | None:
    """`x / torch.count_nonzero(m)` for `x / m.nonzero().size(0)`: a tensor on the GPU takes the count from there."""
    operand, count = selected(site), _row_count(site)
    around = None if count is None else site.model.parent(count)
    if operand is None or count is None or not isinstance(around, ast.BinOp) or not isinstance(around.op, ast.Div):
        return None
    name = spell(site.model.symbols, "torch.count_nonzero", site.node)
    if name is None or around.right is not count or device_confidence(site.value(around.left)) is not Confidence.HIGH:
        return None
    source = site.model.source
    edit = replace(source, source.span(count), f"{name.text}({source.written(operand)})")
    return Fix("Count on the GPU", Safety.UNSAFE, (edit,), name.imports)


def _row_count(site: CallSite) -> ast.expr | None:
    """The expression around a search that takes nothing but the number of rows: `.size(0)`, `.shape[0]`, `len()`."""
    if "nonzero" not in site.target or any(
        each.arg == "as_tuple" and not is_false(each.value) for each in site.node.keywords
    ):
        return None
    around = site.model.parent(site.node)
    outer = site.model.parent(around) if isinstance(around, ast.Attribute) else around
    match outer:
        case ast.Call(func=ast.Name(id="len"), args=[each]) if each is site.node:
            return outer
        case ast.Call(func=ast.Attribute(attr="size") as read, args=[ast.Constant(value=0)]) if read is around:
            return outer
        case ast.Subscript(value=ast.Attribute(attr="shape") as read, slice=ast.Constant(value=0)) if read is around:
            return outer
    return None


def _receiver(node: cst.Call) -> cst.BaseExpression:
    assert isinstance(node.func, cst.Attribute)
    receiver = node.func.value
    return receiver if "\n" in code(receiver) else receiver.with_changes(lpar=[], rpar=[])


def _takes_number(site: CallSite, index: ast.Subscript) -> bool:
    statement = site.model.parent(index)
    if not isinstance(statement, ast.Assign) or index not in statement.targets:
        return False
    return scalar_type(site.value(statement.value)) in _NUMBERS


def _as_tuple(site: CallSite) -> bool:
    """True if the call gives a tuple of positions, one tensor for each dimension."""
    if site.target == "torch.where":
        return True
    given = site.argument("as_tuple")
    return isinstance(given, ast.Constant) and given.value is True and len(site.node.keywords) == 1
