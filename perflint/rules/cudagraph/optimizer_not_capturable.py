"""TPF809: recording the step of an optimizer that counts on the CPU."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Effect, Finding, Fix, Heat, Safety, Severity
from perflint.fixes.edits import with_one_more
from perflint.rules._arguments import call_of
from perflint.rules._since import CAPTURABLE
from perflint.rules.base import Calls, CallSite, Rule, shown
from perflint.semantics.model import Model
from perflint.semantics.structure import keyword
from perflint.semantics.values import Const, Instance


class OptimizerNotCapturable(Rule):
    """A CUDA graph records the step of an optimizer without `capturable=True`.

    ## What it does
    Finds `optimizer.step()` of `Adam`, `AdamW`, `NAdam`, `RAdam`, `Adamax`, `ASGD`, `Adadelta`,
    `RMSprop` and `Rprop` in code that a CUDA graph records, if the optimizer was created without
    `capturable=True`.

    ## Why is this bad
    These optimizers count their steps, on the CPU by default. A graph does not record CPU code, so
    bias corrections would never change. torch raises an error instead ("Attempting CUDA graph
    capture of step() for an instance of Adam but param_groups' capturable is False"). It is a
    warning because the capture fails, not because of what it costs.

    ## When it is fine
    `SGD` has no counter. The graph ends before the step and `optimizer.step()` follows the replay.

    ## Bad
    ```python
    import torch

    def record(model: torch.nn.Module, static_x: torch.Tensor):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(static_x).sum().backward()
            optimizer.step()
        return graph
    ```

    ## Good
    ```python
    import torch

    def record(model: torch.nn.Module, static_x: torch.Tensor):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(static_x).sum().backward()
            optimizer.step()
        return graph
    ```

    ## Fix safety
    Unsafe: recording the step no longer raises; with `capturable=True` the counters are tensors on the
    GPU, in checkpoints too, the update is computed with tensors in another order of rounding, and
    steps outside of graphs become slower.

    ## How a GPU shows it
    A trace confirms the finding if the capture ended with an error here, and refutes it if the capture ended well.

    The capture raises the error above.

    ## References
    - [torch.optim.AdamW](https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html): `capturable`
    - [CUDA graphs](https://docs.pytorch.org/docs/stable/notes/cuda.html#whole-network-capture)
    """

    code, name = "TPF809", "optimizer-not-capturable"
    effect, severity = Effect.CAPTURE, Severity.WARNING
    listens = (Calls("torch.optim.Optimizer.step"),)
    since = (1, 12)

    def check(self, site: CallSite) -> Iterator[Finding]:
        made = _made(site)
        capture = None if made is None else site.model.captures.of(site.node)
        if made is None or capture is None:
            return
        name = made.cls.rpartition(".")[2]
        yield self.finding(
            site,
            f"{shown(site)} is recorded by the CUDA graph of line {capture.start.lineno}, and `{name}`"
            " counts its steps on the CPU: torch raises an error",
            heat=Heat.WARM,
            help=f"Make it with `{name}(…, capturable=True)`.",
            fix=_fix(site.model, made),
        )


def _made(site: CallSite) -> Instance | None:
    """The optimizer, if its arguments are known and its step counters are on the CPU."""
    value = site.receiver
    if (
        not isinstance(value, Instance)
        or value.cls not in CAPTURABLE
        or value.arguments is None
        or value.origin is None
    ):
        return None
    given = value.argument("capturable")
    return value if given is None or given == Const(False) else None


def _fix(model: Model, made: Instance) -> Fix | None:
    call = call_of(model, made)
    if call is None or any(item.arg is None for item in call.keywords) or keyword(call, "capturable") is not None:
        return None
    edit = with_one_more(model.source, call, "capturable=True")
    return None if edit is None else Fix("Count on the GPU", Safety.UNSAFE, (edit,), since=CAPTURABLE[made.cls])
