"""TPF309: a whole sort of which only the first few elements are kept."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules._memory.flows import flow_around, made, uses_of, uses_of_target
from perflint.rules._methods import is_false
from perflint.rules._numbers import integer
from perflint.rules.base import Calls, CallSite, Rule, device_confidence, often, shown
from perflint.rules.worth import cost
from perflint.semantics.model import Model
from perflint.semantics.structure import keyword, walk
from perflint.semantics.values import Const, Tensor

_SORTS = ("torch.argsort", "torch.sort", "torch.Tensor.argsort", "torch.Tensor.sort")
_MANY = 1024
_PRODUCTS = frozenset({"matmul", "mm", "bmm", "mv", "cdist", "cosine_similarity", "einsum"})


class SortForFew(Rule):
    """A tensor is sorted, but only its first or last few elements are used.

    ## What it does
    Finds `argsort` and `sort` whose result is cut to its first or last `k` along the sorted dimension, at once
    or wherever its name is read: `scores.argsort(descending=True)[:k]`, `values[:, :k]` after
    `values, indices = x.sort(…)`, `target[scores.argsort()][:k]`.

    ## Why is this bad
    A sort moves all elements several times. `torch.topk` finds the k greatest or least elements by
    counting, and sorts only these. A search for the best ten of 100,000 documents took 2.2 times as
    long with a sort, on an H200; sorting 50,304 logits for 50 of them made no difference beyond the
    variation between steps of a GPT-2.

    ## When it is fine
    - A few hundred elements: both take a few microseconds.
    - The order of all elements is used as well, or a large part of them is kept (`[: n // 2]`). Not
      reported.
    - `stable=True`: `topk` does not guarantee an order among equal elements. Not reported.
    - NumPy and Python: their sorts are not reported.

    ## Bad
    ```python
    import torch

    class Best(torch.nn.Module):
        def forward(self, queries: torch.Tensor, corpus: torch.Tensor, k: int = 10):
            scores = queries @ corpus.T
            return scores.argsort(dim=-1, descending=True)[:, :k]
    ```

    ## Good
    ```python
    import torch

    class Best(torch.nn.Module):
        def forward(self, queries: torch.Tensor, corpus: torch.Tensor, k: int = 10):
            scores = queries @ corpus.T
            return scores.topk(k, dim=-1).indices
    ```

    ## Fix safety
    No fix: `topk` raises if there are fewer than k elements, while a slice accepts that;
    `min(k, n)` avoids the error. Equal elements may come in another order.

    ## How a GPU shows it
    A profile shows `aten::sort` with several passes of `radixSort` kernels, or of a segmented sort.

    A trace records the size of what is sorted, and how much of it the next index keeps. Half or more
    refutes the finding; no more elements than in the measurement of GPT-2 decoding cost nothing.

    ## References
    - [torch.topk](https://docs.pytorch.org/docs/stable/generated/torch.topk.html)
    """

    code, name = "TPF309", "sort-for-few"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = ("argsort-for-ten-retrieval", "sort-for-fifty-gpt-decoding")
    costs = (
        "100000 scores sorted for the best ten make retrieval {0} slower; logits sorted for 50 cost GPT-2 decoding {1}"
    )
    listens = (Calls(*_SORTS),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        stable = keyword(site.node, "stable")
        if site.has_unpacking or not (stable is None or is_false(stable)):
            return
        found = [*_cuts(site)]
        cuts = [each for each in found if each is not None]
        if not cuts or len(cuts) < len(found):
            return
        yield self.finding(
            site,
            f"{shown(site)} sorts all elements, but {shown(site, cuts[0])} keeps only a few{often(site)}",
            confidence=_confidence(site),
            # The length of other tensors is unknown; a sort of 50,000 logits did not show in its step.
            severity=cost(
                "argsort-for-ten-retrieval" if _is_of_pairs(site) else "sort-for-fifty-gpt-decoding"
            ).severity,
            help="Use `torch.topk`, which looks only for these.",
        )


def _confidence(site: CallSite) -> Confidence:
    data = _sorted(site)
    return (None if data is None else device_confidence(site.value(data))) or Confidence.LOW


def _sorted(site: CallSite) -> ast.expr | None:
    if site.target.startswith("torch.Tensor."):
        return site.owner
    return site.node.args[0] if site.node.args else None


def _is_of_pairs(site: CallSite) -> bool:
    """True if the sorted tensor is a product or distance of two sets: the scores of a search."""
    data = _sorted(site)
    sources = [] if data is None else [made(site.model, data)]
    if isinstance(data, ast.Name):
        function = site.model.function(data)
        sources += [
            each.value
            for each in site.model.nodes(ast.Assign)
            if site.model.function(each) is function
            and any(isinstance(target, ast.Name) and target.id == data.id for target in each.targets)
        ]
    return any(_pairs(site.model, part) for value in sources for part in walk(value))


def _pairs(model: Model, node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    return isinstance(node, ast.Call) and model.target(node).rpartition(".")[2] in _PRODUCTS


def _cuts(site: CallSite) -> Iterator[ast.expr | None]:
    """The expressions that cut the result of a sort to a few; None for each use of all of it."""
    model, call = site.model, site.node
    parent = model.parent(call)
    whole: ast.expr = call
    if site.target.endswith(".sort"):
        if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Tuple):
            for each in parent.targets[0].elts:
                yield from _of_name(site, each)
            return
        uses = uses_of_target(model, parent)
        if uses and isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
            members = [outer for use in uses if _takes_member(outer := model.parent(use), use)]
            for member in members if len(members) == len(uses) else [None]:
                yield from _of(site, member) if isinstance(member, ast.expr) else [None]
            return
        if not _takes_member(parent, call):
            yield None
            return
        assert isinstance(parent, ast.expr)
        whole = parent
    yield from _of(site, whole)


def _takes_member(parent: ast.AST | None, call: ast.expr) -> bool:
    """True if a node takes the values or the indices from the result of a sort."""
    if isinstance(parent, ast.Attribute):
        return parent.attr in ("values", "indices")
    if not isinstance(parent, ast.Subscript) or parent.value is not call:
        return False
    return isinstance(parent.slice, ast.Constant) and parent.slice.value in (0, 1)


def _of(site: CallSite, node: ast.expr) -> Iterator[ast.expr | None]:
    """How the value of an expression is cut."""
    parent = site.model.parent(node)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and parent.value is node:
        yield from _of_name(site, parent.targets[0])
    elif isinstance(parent, ast.Subscript) and parent.value is node:
        yield parent if _is_cut(site, parent.slice) else None
    elif isinstance(parent, ast.Subscript) and parent.slice is node:
        # The rows of another tensor in this order: a slice of them is a slice of the sorted ones.
        around = site.model.parent(parent)
        cut = isinstance(around, ast.Subscript) and around.value is parent and isinstance(around.slice, ast.Slice)
        yield around if cut and isinstance(around, ast.Subscript) and _is_cut(site, around.slice) else None
    else:
        yield None


def _of_name(site: CallSite, target: ast.expr) -> Iterator[ast.expr | None]:
    """How each read of a name cuts it; nothing if it is never read."""
    model = site.model
    uses = uses_of(model, target) if isinstance(target, ast.Name) else None
    if uses is None:
        yield None
    for use in uses or ():
        parent = model.parent(use)
        is_cut = isinstance(parent, ast.Subscript) and parent.value is use and _is_cut(site, parent.slice)
        yield parent if is_cut and isinstance(parent, ast.Subscript) else None


def _is_cut(site: CallSite, index: ast.expr) -> bool:
    """True if an index keeps the first or last few along the dimension that was sorted."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    *before, last = parts
    if isinstance(last, ast.Slice):
        if last.step is not None or not _is_few(site.model, last):
            return False
    elif not before or not _is_rank(site.model, last):
        return False
    value = site.model.value(site.node)
    rank = value.rank if isinstance(value, Tensor) else None
    dim = _dimension(site)
    leads = [part for part in before if isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None]
    ellipsis = [part for part in before if isinstance(part, ast.Constant) and part.value is ...]
    if len(leads) + len(ellipsis) != len(before):
        return False
    if ellipsis:
        return dim == -1
    if rank is not None:
        return dim % rank == len(before) if -rank <= dim < rank else False
    return dim == len(before) or (dim == -1 and len(before) < 2)


def _is_rank(model: Model, at: ast.expr) -> bool:
    """True for the place of the k-th element, `k - 1` or `-k`: no more than the first or last few are needed."""
    if isinstance(at, ast.BinOp) and isinstance(at.op, ast.Sub) and model.value(at.right) == Const(1):
        at = at.left
    elif isinstance(at, ast.UnaryOp) and isinstance(at.op, ast.USub):
        at = at.operand
    else:
        return False
    return _is_number(model, at)


def _dimension(site: CallSite) -> int:
    """The dimension that is sorted, as it is written; -1 by default."""
    given = site.argument("dim", 0 if site.target.startswith("torch.Tensor.") else 1)
    known = -1 if given is None else integer(site.model, given)
    return 99 if known is None else known


def _is_few(model: Model, cut: ast.Slice) -> bool:
    """True if a slice keeps a number of elements that does not grow with all of them."""
    if (cut.lower is None) is (cut.upper is None):
        return False
    if cut.upper is not None:
        return _is_number(model, cut.upper)
    last = cut.lower
    return isinstance(last, ast.UnaryOp) and isinstance(last.op, ast.USub) and _is_number(model, last.operand)


def _is_number(model: Model, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int and 0 < node.value <= _MANY
    if isinstance(node, ast.Call):
        return model.target(node) == "builtins.min"
    return (
        isinstance(node, (ast.Name, ast.Attribute)) and model.value(node).tensor is None and not _is_share(model, node)
    )


def _is_share(model: Model, node: ast.expr) -> bool:
    """True if a name is bound to a part of something: `int(0.25 * n)`, `n // 2`, `n - k`."""
    bounds = flow_around(model, node).origins(node) if isinstance(node, ast.Name) else []
    values = [bound.value for bound in bounds if bound.value is not None]
    return any(isinstance(part, ast.BinOp) for value in values for part in walk(value))
