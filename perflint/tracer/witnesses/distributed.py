"""Collectives, barriers, and models that are spread over processes or GPUs."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from perflint.tracer.events import Place
from perflint.tracer.identity import ByIdentity
from perflint.tracer.optimizer_steps import listen
from perflint.tracer.recording import Where
from perflint.tracer.replacing import replace
from perflint.tracer.witnesses.base import Call, Handler, Witness, size_of

_TENSORS = """
all_reduce reduce broadcast all_gather all_gather_into_tensor reduce_scatter reduce_scatter_tensor gather scatter
all_to_all all_to_all_single
""".split()
_OBJECTS = "all_gather_object gather_object broadcast_object_list scatter_object_list".split()
STEPS = 10
"""Recorded steps in which the statistics of a `DistributedDataParallel` are read: the first ones have some."""


class Collectives(Witness):
    """Watches the collectives that the program or a library calls, by the size of their process group."""

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch.distributed as dist

        if not dist.is_available():
            return
        handlers = dict.fromkeys(_TENSORS, self._sent) | dict.fromkeys(_OBJECTS, self._sent_objects)
        for name, handler in {**handlers, "barrier": self._waited}.items():
            if hasattr(dist, name):
                yield dist, name, handler

    def _sent(self, call: Call) -> None:
        tensor = next((each for each in (*call.args, *call.named.values()) if hasattr(each, "numel")), None)
        is_number = tensor is not None and tensor.numel() == 1
        size = 0 if tensor is None else size_of(tensor)
        self._note("collective.number" if is_number else "collective.tensor", call, size)

    def _sent_objects(self, call: Call) -> None:
        self._note("collective.objects", call)

    def _waited(self, call: Call) -> None:
        self._note("collective.barrier", call)

    def _note(self, fact: str, call: Call, size: int = 0) -> None:
        import torch.distributed as dist

        if not dist.is_initialized():
            return
        given = (*call.args, *call.named.values())
        group = next((each for each in given if isinstance(each, dist.ProcessGroup)), None)
        processes = dist.get_world_size(group)
        # -1 for a process that is not in the group.
        if processes >= 1:
            detail = f"{processes} processes"
            self.observe(
                fact if processes > 1 else "collective.alone", call.where, bytes=size, ms=call.ms, detail=detail
            )


class Replicas(Witness):
    """Watches `DistributedDataParallel` and `DataParallel`, at the places of their construction."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._undo = ExitStack()
        self._wrappers: ByIdentity[bool] = ByIdentity()
        self._unused: dict[Where, int] = {}
        self._steps = 0
        self._reduced: set[Place | None] = set()
        """The places at which backward passes reduced gradients since the last step of an optimizer."""

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch

        yield torch.Tensor, "backward", self._differentiated
        yield torch.autograd, "backward", self._differentiated
        yield torch.nn.parallel, "data_parallel", self._called_function

    def start(self) -> None:
        import torch

        parallel: Any = torch.nn.parallel
        self._after(parallel.DistributedDataParallel, "__init__", self._wrapped)
        self._after(parallel.DataParallel, "__init__", self._spread)
        # A call with one device makes no copies.
        self._after(parallel.DataParallel, "replicate", self._replicated)
        self._undo.callback(listen(self._guarded(self._stepped)))

    def _after(self, owner: Any, name: str, do: Callable[[Any], None]) -> None:
        """Call a function with the wrapper after each call of one of its methods by torch or by the program."""
        from torch.compiler import is_compiling

        original, noted = getattr(owner, name), self._guarded(do)

        @functools.wraps(original)
        def watched(wrapper: Any, *arguments: Any, **named: Any) -> Any:
            result = original(wrapper, *arguments, **named)
            if not is_compiling():
                noted(wrapper)
            return result

        replace(self._undo, owner, name, watched)

    def stop(self) -> None:
        self._undo.close()
        for where, size in self._unused.items():
            self.observe("ddp.unused" if size else "ddp.all-used", where, bytes=size)

    def restart(self) -> None:
        self._steps = 0

    def end_step(self) -> None:
        self._steps += 1
        if self._steps > STEPS:
            return
        for wrapper in self._wrappers:
            where = self.made(wrapper)
            read = getattr(wrapper, "_get_ddp_logging_data", None)
            if where is None or read is None or not wrapper.find_unused_parameters:
                continue
            size = int(read().get("unused_parameter_size", 0))
            key = Where(where.place, 0)
            self._unused[key] = max(self._unused.get(key, 0), size)

    def _wrapped(self, wrapper: Any) -> None:
        self._wrappers[wrapper] = True
        if (where := self.made(wrapper)) is not None:
            is_compiled = type(wrapper.module).__name__ == "OptimizedModule"
            self.observe("ddp.of-compiled" if is_compiled else "ddp.of-plain", where)

    def _spread(self, wrapper: Any) -> None:
        if len(wrapper.device_ids) <= 1 and (where := self.made(wrapper)) is not None:
            self.observe("dataparallel.one-device", where)

    def _replicated(self, wrapper: Any) -> None:
        if (where := self.made(wrapper)) is not None:
            self.observe("dataparallel.replicated", where, detail=f"{len(wrapper.device_ids)} GPUs")

    def _called_function(self, call: Call) -> None:
        import torch

        given = call.argument(2, "device_ids")
        count = len(given) if given is not None else torch.cuda.device_count()
        fact = "dataparallel.replicated" if count > 1 else "dataparallel.one-device"
        self.observe(fact, call.where, detail=f"{count} GPUs")

    def _differentiated(self, call: Call) -> None:
        distributed = sys.modules["torch.distributed"]
        wrappers = [each for each in self._wrappers if each.training]
        if not wrappers or not distributed.is_initialized():
            return
        place, fact = call.where.place, "backward.not-reduced"
        if any(each.require_backward_grad_sync for each in wrappers):
            fact = "backward.reduced-again" if place in self._reduced else "backward.reduced"
            self._reduced.add(place)
        self.observe(fact, call.where, detail=f"{distributed.get_world_size()} processes")

    def _stepped(self, *_: object) -> None:
        self._reduced.clear()
