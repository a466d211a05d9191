"""TPF191: a module computes the same more than once in each step."""

from __future__ import annotations

from perflint.findings import Effect, Severity
from perflint.rules.base import TracedRule


class RepeatedForward(TracedRule):
    """
    ## What it does
    Reports calls of a module with the very same tensors as an earlier call of the same step. It
    needs `perflint check --trace FILE`; without a trace it reports nothing.

    ## Why is this bad
    The second call computes what the first one has computed: the result could be kept. For a whole
    model that is the time of a forward pass, and if gradients are needed, the memory of its
    activations and the time of another backward pass.

    ## When it is fine
    None of these is reported: calls between which an argument, a parameter, a buffer or an
    attribute of the module was changed; modules that use random numbers, such as dropout in
    training mode, or that change their own state, such as batch normalisation in training mode;
    calls in another mode (`train`, `no_grad`, autocast); calls that activation checkpointing repeats
    in the backward pass; a call after a backward pass, which frees the graph of the first one;
    modules with hooks; modules without parameters; calls that are not repeated in each step.

    ## Bad
    ```python
    import torch

    def step(policy: torch.nn.Module, head: torch.nn.Module, state: torch.Tensor):
        values = head(policy(state))
        actions = policy(state).softmax(-1)
        return values, actions
    ```

    ## Good
    ```python
    import torch

    def step(policy: torch.nn.Module, head: torch.nn.Module, state: torch.Tensor):
        features = policy(state)
        return head(features), features.softmax(-1)
    ```

    ## Fix safety
    No fix: the result may be needed far from the first call, and code that changes it in place needs
    a copy of it.

    ## How a GPU shows it
    `perflint trace` compares the calls of modules in a few recorded steps: the tensors and how often
    they were written to, the parameters, buffers and attributes, and the state of the random number
    generators. It reads no values. A repetition in each of these steps is reported.

    ## References
    - [torch.Tensor: in-place correctness checks](https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks)
    """

    code, name = "TPF191", "repeated-forward"
    effect, severity = Effect.COMPUTE, Severity.INFO
