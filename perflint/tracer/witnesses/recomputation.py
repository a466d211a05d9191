"""Activation checkpointing: its calls, and the memory of the activations that are computed again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from perflint.tracer.modules import STEPS
from perflint.tracer.witnesses.base import Call, Handler, Witness


class Recomputation(Witness):
    """Watches checkpoints, and in the first recorded steps the modules that run in a backward pass."""

    def start(self) -> None:
        self._step = 0
        self._depth = 0
        self._before = 0
        self._kept = 0
        self._hooks = ExitStack()
        self._listens = False
        self._listen()

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch.utils.checkpoint

        for name in ("checkpoint", "checkpoint_sequential"):
            yield torch.utils.checkpoint, name, self._checkpointed

    def restart(self) -> None:
        self._step = 0
        self._kept = 0
        self._listen()

    def end_step(self) -> None:
        if not self._listens:
            return
        if self._kept:
            self.observe("recomputation.kept", self._recording.now(None), bytes=self._kept)
        self._kept = 0
        self._step += 1
        if self._step >= STEPS:
            self._note_memory()
            self.stop()

    def stop(self) -> None:
        self._hooks.close()
        self._listens = False

    def _checkpointed(self, call: Call) -> None:
        import torch

        fact = "recomputation.called" if torch.is_grad_enabled() else "recomputation.off"
        self.observe(fact, call.where)

    def _listen(self) -> None:
        if self._listens:
            return
        from torch.compiler import is_compiling
        from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

        self._listens = True
        self._depth = 0
        begin, end = self._guarded(self._begins), self._guarded(self._ends)

        def before(*_: Any) -> None:
            if not is_compiling():
                begin()

        def after(*_: Any) -> None:
            if not is_compiling():
                end()

        self._hooks.callback(register_module_forward_pre_hook(before).remove)
        # Also where `forward` was stopped because all that was needed had been computed.
        self._hooks.callback(register_module_forward_hook(after, always_call=True).remove)

    def _begins(self) -> None:
        if is_in_backward():
            if not self._depth:
                self._before = _allocated()
            self._depth += 1

    def _ends(self) -> None:
        if self._depth and is_in_backward():
            self._depth -= 1
            if not self._depth:
                self._kept += max(_allocated() - self._before, 0)

    def _note_memory(self) -> None:
        import torch

        cuda: Any = torch.cuda
        if cuda.is_initialized():
            whole = cuda.get_device_properties(cuda.current_device()).total_memory
            self.observe("memory.device", self._recording.now(None), bytes=int(whole))


def is_in_backward() -> bool:
    """True while a backward pass runs on this thread, in which checkpoints compute modules again."""
    import torch

    current = getattr(torch._C, "_current_graph_task_id", None)
    return current is not None and current() != -1


def _allocated() -> int:
    """The bytes that tensors on the current GPU take, by the allocator's own count: that needs no wait."""
    import torch

    cuda: Any = torch.cuda
    return int(cuda.memory_allocated()) if cuda.is_initialized() else 0
