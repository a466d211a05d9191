"""TPF922: a search for unused parameters in each step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.fixes.edits import replace
from perflint.rules._arguments import dropped
from perflint.rules._methods import is_true
from perflint.rules._names import LIGHTNING
from perflint.rules._operators import operators
from perflint.rules.base import Calls, CallSite, Mentions, Rule
from perflint.source.quoting import quoted

_WRAPPERS = operators("distributed", "wrappers")
_ON = "find_unused_parameters_true"
_TRAINS = ("backward", "optim", "Strategy", "strategy", "Accelerat", "accelerat", "wrap")


class FindUnusedParameters(Rule):
    """`find_unused_parameters=True` traverses the graph in each step.

    ## What it does
    Finds `DistributedDataParallel(…, find_unused_parameters=True)`, the same of the wrappers of
    accelerate and Lightning, and `Trainer(strategy="ddp_find_unused_parameters_true")`.

    ## Why is this bad
    Before each backward pass the CPU traverses the whole autograd graph to find parameters that it does not reach,
    and the processes exchange which ones were used. If all parameters are used, this work is wasted, and torch
    warns about it once. A training step of GPT-2 on two H200s took 38.0 ms with it and 37.1 ms without it, which is
    within the variation between runs.

    ## When it is fine
    - Some parameters take no part in some steps: branches, experts, heads that are selected.
      Without the flag the reduction waits for them forever, or raises.
    - `static_graph=True` finds them once.
    - Inference: files without a backward pass and an optimizer are not reported.

    ## Bad
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def wrap(model: torch.nn.Module, rank: int):
        return DistributedDataParallel(model, device_ids=[rank], find_unused_parameters=True)
    ```

    ## Good
    ```python
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def wrap(model: torch.nn.Module, rank: int):
        return DistributedDataParallel(model, device_ids=[rank])
    ```

    ## Fix safety
    No fix is written, but the change is shown: only torch's warning in a run shows whether the
    argument can be removed. perflint does not check whether parameters are unused. If some are, the
    second step raises "Expected to have finished reduction in the prior iteration".

    ## How a GPU shows it
    A trace reads torch's own statistics after the first steps. If all parameters took part, the finding is confirmed;
    unused parameters refute it.

    Torch's own warning says that the flag was not needed. A profile shows the CPU in `prepare_for_backward`
    before each backward pass.

    ## References
    - [DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
    - [Distributed data parallel: internal design](https://docs.pytorch.org/docs/stable/notes/ddp.html)
    """

    code, name = "TPF922", "find-unused-parameters"
    effect, severity = Effect.PIPELINE, Severity.INFO
    measured = ("find-unused-parameters",)
    listens = (Calls(*_WRAPPERS, *LIGHTNING),)
    mentions = Mentions(*_TRAINS)

    def check(self, site: CallSite) -> Iterator[Finding]:
        found = _in_strategy(site) if site.target in LIGHTNING else _in_argument(site)
        if found is None:
            return
        text, edit = found
        yield self.finding(
            site,
            f"{quoted(text)} searches the whole graph after each forward pass for parameters that take no part",
            # Only a run shows whether it is needed.
            confidence=Confidence.LOW,
            heat=Heat.HOT,
            help=(
                "Remove it if all parameters take part; pass `static_graph=True` if the same ones are unused in "
                "each step."
            ),
            fix=Fix("Leave it out", Safety.DISPLAY, (edit,)),
        )


def _in_argument(site: CallSite) -> tuple[str, Edit] | None:
    """The argument that asks for the search as it is written, and the change that drops it."""
    if not is_true(site.argument("find_unused_parameters")) or is_true(site.argument("static_graph")):
        return None
    given = next(item for item in site.node.keywords if item.arg == "find_unused_parameters")
    return "find_unused_parameters=True", dropped(site.model.source, site.node, given)


def _in_strategy(site: CallSite) -> tuple[str, Edit] | None:
    """The same for a strategy that is named after the search."""
    given = site.argument("strategy")
    name = given.value if isinstance(given, ast.Constant) else None
    if given is None or not isinstance(name, str) or not name.endswith(f"_{_ON}"):
        return None
    plain = site.text(given).replace(f"_{_ON}", "")
    return f"strategy={site.text(given)}", replace(site.model.source, site.model.source.span(given), plain)
