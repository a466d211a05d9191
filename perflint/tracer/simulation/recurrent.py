"""Recurrent layers as one operator, as a GPU has them.

On the CPU they are made of some operators for each step in time, which to follow takes far longer than
to compute, and none of which waits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from perflint.tracer.simulation.marks import At, is_on_gpu, put

Function = Callable[..., Any]


def install() -> None:
    """Put the functions in place. Needs torch."""
    import torch
    from torch.nn.modules import rnn

    functions: Any = torch._VF
    whole = _whole()
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        setattr(functions, name, whole(getattr(functions, name)))
    by_mode: Any = getattr(rnn, "_rnn_impls", {})
    by_mode |= {mode: getattr(functions, mode.lower()) for mode in by_mode}


def _whole() -> Callable[[Function], Function]:
    import torch
    from torch.autograd.function import once_differentiable
    from torch.utils._python_dispatch import _disable_current_modes
    from torch.utils._pytree import tree_flatten, tree_unflatten

    base: Any = torch.autograd.Function

    class Whole(base):  # type: ignore[misc]
        """Runs a function, and its gradient, unseen."""

        @staticmethod
        def forward(ctx: Any, run: Function, *tensors: Any) -> Any:
            with _disable_current_modes(), torch.enable_grad():
                ctx.inputs = [tensor.detach().requires_grad_(tensor.requires_grad) for tensor in tensors]
                ctx.outputs = run(ctx.inputs)
                return tuple(output.detach() for output in ctx.outputs)

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, *grads: Any) -> Any:
            wanted = [tensor for tensor in ctx.inputs if tensor.requires_grad]
            with _disable_current_modes():
                found = iter(torch.autograd.grad(ctx.outputs, wanted, grads, retain_graph=True, allow_unused=True))
            given = [next(found) if tensor.requires_grad else None for tensor in ctx.inputs]
            _on_gpu([grad for grad in given if grad is not None])
            return None, *given

    def whole(original: Function) -> Function:
        @functools.wraps(original)
        def run(*args: Any) -> Any:
            leaves, spec = tree_flatten(args)
            at = [number for number, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
            tensors = [leaves[number] for number in at]
            if not any(map(is_on_gpu, tensors)):
                return original(*args)

            def call(tensors: Sequence[Any]) -> Any:
                filled = list(leaves)
                for number, tensor in zip(at, tensors, strict=True):
                    filled[number] = tensor
                return original(*tree_unflatten(filled, spec))

            if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
                outputs = Whole.apply(call, *tensors)
            else:
                with _disable_current_modes():
                    outputs = call(tensors)
            _on_gpu(outputs)
            return outputs

        return run

    return whole


def _on_gpu(tensors: Sequence[Any]) -> None:
    for tensor in tensors:
        put(tensor, At.GPU)
