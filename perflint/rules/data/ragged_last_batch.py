"""TPF407: a last batch of another size, in code that is specialised on one size."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Safety, Severity
from perflint.rules._methods import is_true
from perflint.rules.base import Calls, CallSite, Mentions, Rule, shown
from perflint.rules.data._loaders import LOADERS, added, is_given, is_off, loops_in_callees, loops_over, passed
from perflint.semantics.heat.training import goes_backward, takes_steps
from perflint.semantics.values import Const

_GRAPHS = r"make_graphed_callables|CUDAGraph\b|cuda\.graph\(|reduce-overhead|max-autotune[\"']"

_FIX = "Drop the last, smaller batch"
_PROOF = "the loader shuffles, so that other items are left out in each epoch"


class RaggedLastBatch(Rule):
    """A training loader keeps a last, smaller batch, although code is specialised on the batch size.

    ## What it does
    Finds `DataLoader`s without `drop_last` that shuffle, or over which a loop of the file trains, in files that
    capture CUDA graphs or compile with them (`mode="reduce-overhead"`).

    ## Why is this bad
    The last batch of an epoch is smaller than the others. A captured graph cannot run it; with `reduce-overhead`
    the model compiles once more, with dynamic sizes, and records a graph for each of them. The full batches take no
    longer after it, as measured on an H200; it is the compilation that costs: seconds, once.

    ## When it is fine
    - The size of the data set is a multiple of the batch size.
    - `torch.compile` without graphs, and `cudnn.benchmark`: they compile or measure once more for
      the other size, and keep the result. Not reported.
    - Evaluation, which must see every item: loaders that do not shuffle are reported only if the loop over them goes
      backward or steps an optimizer.
    - A small data set, of which the last batch is a large part.

    ## Bad
    ```python
    import torch
    from torch.utils.data import DataLoader

    def train(model, data):
        model = torch.compile(model, mode="reduce-overhead")
        loader = DataLoader(data, batch_size=64, shuffle=True)
        for x in loader:
            model(x.cuda()).sum().backward()
    ```

    ## Good
    ```python
    import torch
    from torch.utils.data import DataLoader

    def train(model, data):
        model = torch.compile(model, mode="reduce-overhead")
        loader = DataLoader(data, batch_size=64, shuffle=True, drop_last=True)
        for x in loader:
            model(x.cuda()).sum().backward()
    ```

    ## Fix safety
    Risky: up to `batch_size - 1` items are left out in each epoch, different ones each time; a data
    set smaller than a batch has no batches at all. `len(loader)` is one less, which schedulers and averages read;
    `batch_sampler` and `batch_size=None` exclude the argument, and are not reported.

    ## How a GPU shows it
    `TORCH_LOGS=recompiles` reports a changed size at the end of the first epoch.

    A trace records the sizes of the first and the last batch of each epoch that ends. Equal sizes refute
    the finding.

    ## References
    - [torch.utils.data.DataLoader](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader):
      `drop_last`
    - [Dynamic shapes](https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html)
    """

    code, name = "TPF407", "ragged-last-batch"
    effect, severity = Effect.RECOMPILE, Severity.INFO
    measured = ("ragged-last-batch",)
    listens = (Calls(*LOADERS),)
    mentions = Mentions(pattern=_GRAPHS)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if not is_off(site, "drop_last"):
            return
        if is_given(site, "batch_sampler") or not is_given(site, "batch_size"):
            return
        size = passed(site, "batch_size")
        if size is None or site.value(size) == Const(1):
            return
        model, shuffles = site.model, is_true(passed(site, "shuffle"))
        loops = (*loops_over(model, site.node), *loops_in_callees(model, site.node, again=False))
        loop = next(
            (each for each in loops if shuffles or goes_backward(model, each) or takes_steps(model, each)), None
        )
        if loop is None:
            return
        yield self.finding(
            site,
            f"{shown(site)} returns a smaller batch at the end of each epoch, but a CUDA graph works for one size only",
            confidence=Confidence.MEDIUM,
            heat=model.heat(loop),
            help="Pass `drop_last=True`.",
            # Without a shuffle the same items are left out in each epoch.
            fix=added(site, "drop_last=True", _FIX, safety=Safety.RISKY, proof=_PROOF if shuffles else None),
        )
