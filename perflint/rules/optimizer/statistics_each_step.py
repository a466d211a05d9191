"""TPF605: histograms and other statistics of all parameters that are gathered each step."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._turns import heads, places
from perflint.rules.base import Calls, CallSite, Option, Rule, often, shown
from perflint.rules.optimizer._parameters import goes_over_parameters
from perflint.semantics.around import loops_around
from perflint.semantics.values import Const, scalar_type

_WRITERS = ("torch.utils.tensorboard.SummaryWriter", "tensorboardX.SummaryWriter")
_HISTOGRAMS = (*(f"{writer}.add_histogram" for writer in _WRITERS), "wandb.Histogram")
_WATCH = "wandb.watch"


class StatisticsEachStep(Rule):
    """Histograms or other statistics of parameters and gradients are collected each step.

    ## What it does
    Finds `add_histogram` and `wandb.Histogram` in code that runs each step, and
    `wandb.watch` of gradients or parameters with a `log_freq` under 100.

    ## Why is this bad
    A histogram copies its tensor to the CPU, waits for the copy and counts there: for all
    parameters of a model, that moves the whole model over the bus. `wandb.watch` installs a hook on
    every parameter that does this every `log_freq` batches. A histogram of every gradient in each
    step made training of a 124 M parameter GPT 59 times slower on an H200; the cost of a single one
    is proportional to the size of its tensor, and it is reported as info.

    ## When it is fine
    - Under an interval: `if step % 500 == 0`, once per epoch.
    - Small models in experiments that are about these statistics.
    - `add_scalar` of Python numbers costs little: it is not reported here.

    ## Bad
    ```python
    from torch.utils.tensorboard import SummaryWriter

    def train(model, loader, optimizer):
        writer = SummaryWriter()
        for step, x in enumerate(loader):
            model(x).sum().backward()
            optimizer.step()
            for name, p in model.named_parameters():
                writer.add_histogram(name, p.grad, step)
    ```

    ## Good
    ```python
    from torch.utils.tensorboard import SummaryWriter

    def train(model, loader, optimizer):
        writer = SummaryWriter()
        for step, x in enumerate(loader):
            model(x).sum().backward()
            optimizer.step()
            if step % 500 == 0:
                for name, p in model.named_parameters():
                    writer.add_histogram(name, p.grad, step)
    ```

    ## Fix safety
    No fix: the source does not show how often the numbers are needed.

    ## How a GPU shows it
    A trace confirms the finding if the CPU waited here, or in wandb for `wandb.watch`, and refutes it
    if nothing was read from the GPU. A profile shows a `Memcpy DtoH` as large as each parameter between
    two steps, and no kernels while the CPU counts.

    ## References
    - [torch.utils.tensorboard](https://docs.pytorch.org/docs/stable/tensorboard.html)
    - [wandb.watch](https://docs.wandb.ai/ref/python/watch/)
    """

    code, name = "TPF605", "statistics-each-step"
    effect, severity = Effect.TRANSFER, Severity.ERROR
    measured = ("histograms-step-gpt",)
    costs = "a histogram of every gradient in each step makes GPT-2 training {0} slower"
    listens = (Calls(*_HISTOGRAMS, _WATCH),)
    options = (Option("interval", 100, "A `log_freq` of `wandb.watch` below this is reported.", least=1),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        watch = site.target == _WATCH
        if not (_watches_often(site, self.option("interval")) if watch else site.heat is Heat.HOT):
            return
        of_all = _is_for_each_parameter(site)
        does = "copies all that it watches to the CPU every few batches" if watch else "copies its data to the CPU"
        yield self.finding(
            site,
            f"{shown(site)} {does}{'' if watch else often(site)}",
            severity=None if of_all else Severity.INFO,
            confidence=Confidence.MEDIUM,
            heat=Heat.HOT,
            help="Pass a greater `log_freq`." if watch else "Collect it every few hundred steps.",
        )


def _is_for_each_parameter(site: CallSite) -> bool:
    """True if a loop over parameters runs a call: for one tensor it costs as much less as that is smaller."""
    return any(
        goes_over_parameters(site.model, over)
        for place in places(site.model, site.node)
        for loop in loops_around(site.model, place)
        for _, over in heads(site.model, loop)
    )


def _watches_often(site: CallSite, interval: int) -> bool:
    log = site.argument("log", 2)
    if log is not None and site.value(log) == Const(None):
        return False
    every = site.argument("log_freq", 3)
    if every is None or site.has_unpacking:
        return False
    value = site.value(every)
    if not isinstance(value, Const) or scalar_type(value) != "int":
        return False
    return isinstance(value.value, int) and value.value < interval
