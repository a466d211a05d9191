"""TPF304: a recurrent cell that a Python loop runs over a sequence."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Severity
from perflint.rules._memory.flows import target_of
from perflint.rules._statements import outward_in_function
from perflint.rules.base import Calls, CallSite, Rule, shown
from perflint.semantics.around import is_inside, statement_of
from perflint.semantics.model import Model
from perflint.semantics.structure import names_in, stands_in, walk
from perflint.semantics.values import Instance

_LAYERS = {f"torch.nn.{name}Cell": f"torch.nn.{name}" for name in ("LSTM", "GRU", "RNN")}


class CellInLoop(Rule):
    """A recurrent cell runs step by step over a sequence that is known as a whole.

    ## What it does
    Finds `nn.LSTMCell`, `nn.GRUCell` and `nn.RNNCell` that a `for` loop calls on each iteration
    with the next part of a sequence, if the input does not depend on earlier outputs of the cell,
    and nothing else changes the state.

    ## Why is this bad
    Each step launches its own small products and element-wise kernels, forward and backward, from
    Python. `nn.LSTM` and `nn.GRU` pass the whole sequence to cuDNN, which multiplies all inputs at
    once, and keeps the weights of the state close to the processor through all steps. A training
    step on 128 steps of width 512 was 5.6 × slower with an LSTMCell in a loop on an H200, and 11 ×
    under bfloat16 autocast; with a GRUCell 5.9 × and 5.7 ×.

    ## When it is fine
    - The input of a step depends on the output of an earlier one: decoders that feed back their
      output, attention that uses the state. Not reported.
    - The state is reset, masked, normalised or dropped out between steps, or the loop ends early. Not reported.
    - A cell of your own class, or one with other weights per step.
    - Code that `torch.compile` unrolls.

    ## Bad
    ```python
    import torch
    from torch import nn

    class Encoder(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.cell = nn.GRUCell(width, width)

        def forward(self, x: torch.Tensor, h: torch.Tensor):
            found = []
            for t in range(x.shape[0]):
                h = self.cell(x[t], h)
                found.append(h)
            return torch.stack(found)
    ```

    ## Good
    ```python
    import torch
    from torch import nn

    class Encoder(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.layer = nn.GRU(width, width)

        def forward(self, x: torch.Tensor, h: torch.Tensor):
            found, _ = self.layer(x, h[None])
            return found
    ```

    ## Fix safety
    No fix: the layer's state has one more dimension, its parameters have other names
    (`weight_ih_l0`), and sums are rounded in another order.

    ## How a GPU shows it
    A timeline shows a row of small `gemm` and element-wise kernels per step, with gaps between
    them, while cuDNN launches a few long ones. `benchmarks/rules/models.py lstm-cell gru-cell`
    times both.

    A trace counts the steps of a cell at each place. More than one in a step of the program confirms
    the finding, one refutes it.

    ## References
    - [torch.nn.LSTM](https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html)
    - [Optimizing recurrent neural networks in cuDNN](https://developer.nvidia.com/blog/optimizing-recurrent-neural-networks-cudnn-5/)
    """

    code, name = "TPF304", "cell-in-loop"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = (
        "lstm-cell-in-loop-float32",
        "lstm-cell-in-loop-bfloat16",
        "gru-cell-in-loop-float32",
        "gru-cell-in-loop-bfloat16",
    )
    costs = "an LSTMCell in a loop makes a training step with 128 steps of width 512 {0} slower"
    listens = (Calls("torch.nn.Module.__call__"),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        model, call = site.model, site.node
        cell = site.value(call.func)
        if not isinstance(cell, Instance) or cell.cls not in _LAYERS or len(call.args) != 2 or site.has_unpacking:
            return
        loop = _loop(model, call)
        if loop is None or not _keeps_to_itself(model, call, loop) or model.compiled(call) is not None:
            return
        layer = _LAYERS[cell.cls]
        yield self.finding(
            site,
            f"{shown(site, call)} runs one step in each iteration, though all inputs are known before the loop",
            confidence=Confidence.HIGH if _reads_sequence(loop, call) else Confidence.MEDIUM,
            help=f"Pass the whole sequence to a `{layer}`.",
        )


def _loop(model: Model, call: ast.Call) -> ast.For | None:
    """The innermost loop, where each of its iterations comes by the call."""
    for outer, inner in outward_in_function(model, call):
        if isinstance(outer, ast.For):
            return outer if stands_in(outer.body, inner) else None
        if isinstance(outer, (ast.If, ast.IfExp, ast.While, ast.Try, ast.BoolOp)) or hasattr(outer, "generators"):
            return None
    return None


def _keeps_to_itself(model: Model, call: ast.Call, loop: ast.For) -> bool:
    """True if the state goes from step to step through the cell alone, and the input comes from elsewhere."""
    target = target_of(model, call)
    statement = None if target is None else statement_of(model, target)
    if target is None or statement is None:
        return False
    state, given = call.args[1], call.args[0]
    made, used = names_in(target), names_in(state)
    if not used or not used <= made or _is_left(loop):
        return False
    for node in walk(loop):
        if isinstance(node, ast.Name) and node.id in used and isinstance(node.ctx, ast.Store):
            if not is_inside(model, node, statement):
                return False
    return made.isdisjoint(_origins(loop, given))


def _is_left(loop: ast.For) -> bool:
    return any(isinstance(node, (ast.Break, ast.Return, ast.Continue)) for node in walk(loop))


def _origins(loop: ast.For, given: ast.expr) -> set[str]:
    """The names that the input of a step depends on, also through assignments of the loop."""
    found: set[str] = set()
    waiting = [given]
    while waiting:
        for name in names_in(waiting.pop()) - found:
            found.add(name)
            for node in walk(loop):
                if isinstance(node, ast.Assign) and any(name in names_in(target) for target in node.targets):
                    waiting.append(node.value)
                elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and name in names_in(node.target):
                    waiting += [node.value] if node.value is not None else []
                elif isinstance(node, ast.For) and node is not loop and name in names_in(node.target):
                    waiting.append(node.iter)
    return found


def _reads_sequence(loop: ast.For, call: ast.Call) -> bool:
    """True if the loop iterates over the sequence that the input is a part of."""
    return bool(names_in(loop.target) & _origins(loop, call.args[0]))
