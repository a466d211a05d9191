"""TPF707: recurrent layers in compiled code."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Severity
from perflint.rules.base import Calls, CallSite, shown
from perflint.rules.compile._breaks import Break, BreakRule, in_compiled
from perflint.semantics.values import Instance

_LAYERS = ("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN")


class RnnInGraph(BreakRule):
    """A compiled function calls an LSTM, GRU or RNN.

    ## What it does
    Finds calls of `nn.LSTM`, `nn.GRU` and `nn.RNN` in functions that run under `torch.compile`.

    ## Why is this bad
    `torch.compile` does not trace these layers: it ends the graph, runs the layer eagerly (by
    cuDNN, which is fast) and begins another graph. The layer itself is not slower, but the code
    before and after it is split into two graphs, and in a loop the whole function stays eager.

    ## When it is fine
    Usually: cuDNN's kernels are hard to beat, and two graphs around one long layer lose little. If
    the file sets `torch._dynamo.config.allow_rnn`. Cells (`nn.LSTMCell`) are traced.

    ## Bad
    ```python
    import torch

    class Tagger(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = torch.nn.LSTM(8, 8)
            self.head = torch.nn.Linear(8, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            hidden, _ = self.rnn(torch.tanh(x))
            return self.head(hidden)

    model = torch.compile(Tagger())
    ```

    ## Good
    ```python
    import torch

    class Tagger(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = torch.nn.Conv1d(8, 8, 3, padding=1)
            self.head = torch.nn.Linear(8, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            hidden = self.mix(torch.tanh(x).transpose(0, 1).mT).mT.transpose(0, 1)
            return self.head(hidden)

    model = torch.compile(Tagger())
    ```

    ## Fix safety
    No fix: a model with another layer is another model.

    ## How a GPU shows it
    A trace confirms the finding if a graph ended at this line, or if torch.compile gave up on the function here. It is
    refuted if torch.compile traced the line and no graph ended there.

    `TORCH_LOGS=graph_breaks` prints "Attempted to wrap RNN, GRU, or LSTM" (GB0014).

    ## References
    - [Graph break GB0014](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0014.html)
    """

    code, name = "TPF707", "rnn-in-graph"
    severity = Severity.INFO
    listens = (Calls("torch.nn.Module.__call__"),)
    mentions = in_compiled(without=("allow_rnn",))

    def at(self, site: CallSite) -> Iterator[Break]:
        called = site.value(site.node.func)
        if isinstance(called, Instance) and called.cls in _LAYERS:
            yield Break(
                site.node,
                f"{shown(site)} runs `{called.cls.replace('torch.', '')}`, which torch.compile does not trace",
                "Compile the code before and after it, or leave it: cuDNN runs the layer.",
                Confidence.HIGH,
            )
