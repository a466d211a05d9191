"""The work of the caching allocator in some steps."""

from __future__ import annotations

from typing import Any

from perflint.tracer.events import AllocatorChurn


class AllocatorWatch:
    """Compares the allocator's own counts, so that it costs nothing between."""

    def __init__(self) -> None:
        self._device = -1
        self._before: dict[str, Any] = {}

    def start(self) -> None:
        """Count from here on, if the program uses a GPU."""
        import torch

        cuda: Any = torch.cuda
        if cuda.is_initialized():
            self._device = cuda.current_device()
            self._before = cuda.memory_stats(self._device)

    def stop(self, steps: int) -> tuple[AllocatorChurn, ...]:
        """The work of the allocator in `steps` steps."""
        if self._device < 0:
            return ()
        import torch

        after = torch.cuda.memory_stats(self._device)

        def grown(name: str) -> int:
            return int(after.get(name, 0)) - int(self._before.get(name, 0))

        churn = AllocatorChurn(
            self._device,
            steps,
            grown("allocation.all.allocated"),
            grown("segment.all.allocated"),
            grown("segment.all.freed"),
            grown("num_alloc_retries"),
            int(after.get("allocated_bytes.all.peak", 0)),
        )
        self._device = -1
        return (churn,)
