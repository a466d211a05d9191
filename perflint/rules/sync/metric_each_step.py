"""TPF131: metrics that are computed for each batch and not used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.fixes.edits import insert
from perflint.rules.base import CallSite, Files, FileSite, Rule, often, shown
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name, path_of
from perflint.semantics.values import Instance, Value


class MetricEachStep(Rule):
    """A metric of torchmetrics is computed in each step.

    ## What it does
    Finds calls of torchmetrics objects whose result is not used (`metric(prediction, target)` as a
    statement), and `metric.compute()` in code that runs each step.

    ## Why is this bad
    Calling a metric adds the batch to its state and also computes the value for this batch, which
    is thrown away: about twice the work. `compute()` processes everything gathered so far, over all
    processes, and many metrics check values on the CPU. Once per epoch is enough. The cost has not
    been measured here.

    ## When it is fine
    - `metric.update(…)` in each step, and `compute()` after the loop.
    - Lightning logs the object itself (`self.log("accuracy", self.accuracy)`) and needs the call
      for the values of each step: files that pass the metric to `log` are not reported.
    - The value of each batch is shown.

    ## Bad
    ```python
    import torchmetrics

    def evaluate(model, loader):
        accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=10)
        for x, y in loader:
            accuracy(model(x), y)
        return accuracy.compute()
    ```

    ## Good
    ```python
    import torchmetrics

    def evaluate(model, loader):
        accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=10)
        for x, y in loader:
            accuracy.update(model(x), y)
        return accuracy.compute()
    ```

    ## Fix safety
    Unsafe: `metric(…)` becomes `metric.update(…)`. The state is the same for metrics of
    torchmetrics; the value of the last batch is not kept, so code that reads it from the object
    would miss it.

    ## How a GPU shows it
    A trace counts the steps in which the line ran: fewer than half refute the finding. A profile shows
    the kernels of the metric twice in each step, and `cudaStreamSynchronize` if it checks values.

    ## References
    - [Implementing a metric: forward and
      update](https://lightning.ai/docs/torchmetrics/stable/pages/overview.html#metrics-and-differentiability)
    - [torchmetrics#2943](https://github.com/Lightning-AI/torchmetrics/issues/2943)
    """

    code, name = "TPF131", "metric-each-step"
    effect, severity = Effect.SYNC, Severity.INFO
    listens = (Files("torchmetrics"),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        logged = _logged(site.model)
        for node_ in site.model.nodes(ast.Call):
            call = site.model.call(node_)
            if call.target == "torch.nn.Module.__call__" and _is_metric(call.value(call.node.func)):
                yield from self._called(call, logged)
            elif _computes(call) and _owner(call) not in logged:
                yield self.finding(
                    call,
                    f"{shown(call)} computes the metric of all batches so far{often(call)}",
                    confidence=Confidence.MEDIUM,
                    help="Compute it after the loop.",
                )

    def _called(self, call: CallSite, logged: set[str]) -> Iterator[Finding]:
        unused = isinstance(call.model.parent(call.node), ast.Expr)
        if not unused or path_of(call.node.func) in logged or call.heat is Heat.COLD:
            return
        end = call.model.source.span(call.node.func)
        yield self.finding(
            call,
            f"{shown(call)} computes the metric of this batch, and nothing reads it{often(call)}",
            confidence=Confidence.HIGH if call.heat is Heat.HOT else Confidence.MEDIUM,
            help="Call `update`, which only adds the batch.",
            fix=Fix("Only add the batch", Safety.UNSAFE, (insert(end.end_line, end.end_column, ".update"),)),
        )


def _is_metric(value: Value) -> bool:
    return any(isinstance(member, Instance) and member.cls.startswith("torchmetrics.") for member in value.members)


def _computes(call: CallSite) -> bool:
    """True if `metric.compute()` runs each step, and is not how another metric computes itself."""
    if last_name(call.node) != "compute" or call.owner is None or not _is_metric(call.value(call.owner)):
        return False
    is_own = getattr(call.model.function(call.node), "name", "") in ("compute", "forward")
    return call.heat is Heat.HOT and not is_own


def _owner(call: CallSite) -> str:
    return path_of(call.node.func.value) if isinstance(call.node.func, ast.Attribute) else ""


def _logged(model: Model) -> set[str]:
    """The objects that a file passes to `log` or `log_dict`."""
    found: set[str] = set()
    for call in model.nodes(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("log", "log_dict"):
            values = [*call.args, *(item.value for item in call.keywords)]
            values += [value for each in values if isinstance(each, ast.Dict) for value in each.values]
            found |= {path_of(value) for value in values if isinstance(value, (ast.Name, ast.Attribute))}
    return found
