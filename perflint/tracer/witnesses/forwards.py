"""Calls of modules: whether autograd recorded them, whether a backward pass used the graph, and in which mode they ran.

A call counts at its place in the user's code. A call outside of other modules counts in the functions around it, too:
at the places where the program called these.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, is_dataclass, replace
from enum import Enum
from functools import cache
from types import CodeType, FrameType
from typing import Any

from perflint.tracer import simulation
from perflint.tracer.events import Place
from perflint.tracer.identity import ByIdentity
from perflint.tracer.modules import tensors
from perflint.tracer.places import Owner
from perflint.tracer.recording import Where
from perflint.tracer.witnesses._around import wrap
from perflint.tracer.witnesses._graphs import Fate, Marks, graph_of, nodes_of, saved_bytes
from perflint.tracer.witnesses._roots import roots
from perflint.tracer.witnesses.base import Witness

WATCHED = 32
"""Calls of one place that are all watched, at some ten microseconds each. Of the later ones, each `SAMPLED`-th is."""
SAMPLED = 16
MEASURED = 4
"""Calls of one place whose memory is measured, which takes longer."""
OUTER_LIMIT = 6
"""Functions around a call that its outcome counts in."""
OUTPUT_LIMIT = 16
USED_LIMIT = 4096
"""Calls of which it is decided at the end whether an optimizer read their gradients."""
KEPT_LIMIT = 256
"""Outputs without a graph that are remembered."""


class Mode(Enum):
    """The mode of the layers that behave differently in training."""

    TRAINING = "training"
    EVAL = "eval"
    NONE = "none"
    """There are no such layers."""
    UNKNOWN = "unknown"
    """Classes of the program's ask for the mode."""


@dataclass(slots=True)
class _Running:
    """A call that runs, or whose graph is alive."""

    module: str
    """Its class."""
    wheres: tuple[Where, ...]
    mode: Mode | None
    layer: str
    """A layer in the mode."""
    grad: bool
    inference: bool
    inputs: tuple[Any, ...]
    """Those of its arguments that are results of calls without autograd; empty when it has returned."""
    is_measured: bool
    stands_for: int
    """The number of calls that it counts as, since later ones are sampled."""
    parameters: frozenset[int]
    """Those that require gradients, by identity, if no input does; empty otherwise, and inside of other modules."""
    bytes: int = 0


class Forwards(Witness):
    """Watches calls of modules that the program makes."""

    stays = True

    def start(self) -> None:
        import torch

        self._undo = ExitStack()
        self._seen: Counter[tuple[CodeType, int]] = Counter()
        self._marks = Marks()
        self._recorded: dict[int, tuple[Fate, _Running]] = {}
        self._layers: ByIdentity[_Layers] = ByIdentity()
        self._used: list[_Running] = []
        """Calls whose graph was reached, while no optimizer was known to read the gradients."""
        self._kept: OrderedDict[int, tuple[weakref.ref[Any], tuple[Where, ...]]] = OrderedDict()
        self._thread = threading.local()
        self._enter = self._guarded(self._entered)
        self._leave = self._guarded(self._left)
        wrap(self._undo, torch.nn.Module, "__call__", self._begin, self._end)

    def end_step(self) -> None:
        self._resolve()

    def restart(self) -> None:
        for call in (*self._used, *(call for _, call in self._recorded.values())):
            call.wheres = tuple(replace(where, step=None) for where in call.wheres)

    def stop(self) -> None:
        self._undo.close()
        self._resolve()
        for call in self._used:
            is_unread = roots.is_read(call.parameters) is False
            self._observe("forward.graph-unread" if is_unread else "forward.graph-reached", call)
        self._used.clear()
        roots.clear()
        for _, call in self._recorded.values():
            self._observe("forward.graph-held", call)
            self._observe_mode(call, is_used=False)
        self._recorded.clear()
        self._kept.clear()
        self._marks.forget()

    def _begin(self, args: tuple[Any, ...], named: Mapping[str, Any], frame: FrameType) -> list[_Running] | None:
        """Decide whether to watch a call: this runs for each call of a module, so it has to be short."""
        depth = getattr(self._thread, "depth", 0)
        owner = self.locator.owner(frame.f_code.co_filename)
        if owner is Owner.SYSTEM:
            if depth or (caller := _caller(frame)) is None:
                return None
            frame, owner = caller, self.locator.owner(caller.f_code.co_filename)
        if owner is not Owner.USER and (depth or owner is Owner.SYSTEM):
            return None
        self._thread.depth = depth + 1
        begun: list[_Running] = []
        key = (frame.f_code, frame.f_lasti)
        count = self._seen[key] = self._seen[key] + 1
        if count <= WATCHED or count % SAMPLED == 0:
            stands_for = 1 if count <= WATCHED else SAMPLED
            self._enter(begun, args, named, frame, depth == 0, depth == 0 and count <= MEASURED, stands_for)
        return begun

    def _end(self, begun: list[_Running], result: Any) -> None:
        self._thread.depth -= 1
        if begun and result is not None:
            self._leave(begun[0], result)

    def _entered(
        self,
        begun: list[_Running],
        args: tuple[Any, ...],
        named: Mapping[str, Any],
        frame: FrameType,
        is_root: bool,
        is_measured: bool,
        stands_for: int,
    ) -> None:
        import torch

        self._resolve()
        wheres = tuple(self._places(frame, is_root))
        if not wheres or _is_transformed():
            return
        module = args[0]
        parameters = roots.add(module) if is_root else frozenset()
        mode, layer = self._mode(module) if is_root else (None, "")
        grad = torch.is_grad_enabled()
        given = list(tensors((args[1:], dict(named))))
        begun.append(
            _Running(
                type(module).__name__,
                wheres,
                mode,
                layer,
                grad,
                torch.is_inference_mode_enabled(),
                tuple(filter(self._is_kept, given)) if grad and self._kept else (),
                is_measured,
                stands_for,
                frozenset() if any(each.requires_grad for each in given) else parameters,
            )
        )

    def _left(self, call: _Running, result: Any) -> None:
        outputs = [tensor for _, tensor in zip(range(OUTPUT_LIMIT), _outputs(result), strict=False)]
        inputs, call.inputs = call.inputs, ()
        if not outputs:
            return
        if not call.grad:
            self._ran_without(call, outputs)
            return
        nodes = graph_of(outputs) if any(tensor.requires_grad for tensor in outputs) else []
        fate = self._marks.put(nodes) if nodes else None
        if fate is None:
            self._observe("forward.no-graph", call)
            return
        for tensor in inputs:
            for where in self._kept.pop(id(tensor))[1]:
                self.observe("forward.result-recorded", where, detail=call.module, count=call.stands_for)
        if call.is_measured:
            # Not what the allocator gained: the first product of matrices allocates a workspace, too.
            call.bytes = saved_bytes(nodes_of(nodes))
        self._recorded[id(fate)] = fate, call

    def _ran_without(self, call: _Running, outputs: list[Any]) -> None:
        """Autograd was off."""
        self._observe("forward.inference" if call.inference else "forward.no-grad", call)
        self._observe_mode(call, is_used=False)
        if call.inference:
            return
        if (is_busy := _is_gpu_busy(outputs[0])) is not None:
            self._observe("forward.gpu-busy" if is_busy else "forward.gpu-done", call)
        for tensor in outputs:
            self._kept[id(tensor)] = weakref.ref(tensor), call.wheres
        while len(self._kept) > KEPT_LIMIT:
            self._kept.popitem(last=False)

    def _mode(self, module: Any) -> tuple[Mode, str]:
        known = self._layers.get(module)
        if known is None:
            known = self._layers[module] = _layers_of(module)
        return known.mode()

    def _is_kept(self, tensor: Any) -> bool:
        known = self._kept.get(id(tensor))
        return known is not None and known[0]() is tensor

    def _resolve(self) -> None:
        """Record the outcomes of the graphs that were reached or freed."""
        for fate in self._marks.ended():
            _, call = self._recorded.pop(id(fate))
            if not fate.is_reached:
                self._observe("forward.graph-dropped", call)
            elif not call.parameters or len(self._used) >= USED_LIMIT or roots.is_read(call.parameters):
                self._observe("forward.graph-reached", call)
            else:
                # The optimizer may step later.
                self._used.append(call)
            self._observe_mode(call, is_used=fate.is_reached)

    def _observe(self, fact: str, call: _Running) -> None:
        for where in call.wheres:
            self.observe(fact, where, bytes=call.bytes, detail=call.module, count=call.stands_for)

    def _observe_mode(self, call: _Running, is_used: bool) -> None:
        if call.mode is None or call.mode is Mode.UNKNOWN:
            return
        training = "forward.training-used" if is_used else "forward.training-unused"
        facts = {Mode.TRAINING: training, Mode.EVAL: "forward.eval", Mode.NONE: "forward.modeless"}
        for where in call.wheres:
            self.observe(facts[call.mode], where, detail=call.layer or call.module, count=call.stands_for)

    def _places(self, frame: FrameType, is_root: bool) -> Iterator[Where]:
        """The place of a call and, outside of other modules, those of the calls around it."""
        found: set[Place | None] = set()
        outer: FrameType | None = frame
        while outer is not None and len(found) <= OUTER_LIMIT:
            if outer is frame or self.locator.owner(outer.f_code.co_filename) is Owner.USER:
                where = self.where(outer)
                if where is not None and where.place not in found:
                    found.add(where.place)
                    yield where
            outer = outer.f_back if is_root else None


def _caller(frame: FrameType) -> FrameType | None:
    """The caller of a module that torch has wrapped, such as a compiled one; None for other code of torch."""
    inner: FrameType | None = frame
    while inner is not None and inner.f_code.co_name in ("__call__", "call_wrapped"):
        inner = inner.f_back
    return None if inner is frame else inner


def _outputs(result: Any) -> Iterable[Any]:
    return tensors(vars(result) if is_dataclass(result) and not isinstance(result, dict) else result)


@dataclass(frozen=True, slots=True)
class _Layers:
    """The layers of a module that the mode matters for."""

    layers: tuple[weakref.ref[Any], ...]
    asks: str
    """A class of the program's that may ask for the mode; empty if there is none."""

    def mode(self) -> tuple[Mode, str]:
        """The mode of the layers now, and the class of one."""
        alive = [layer for each in self.layers if (layer := each()) is not None]
        if training := next((layer for layer in alive if layer.training), None):
            return Mode.TRAINING, type(training).__name__
        if self.asks:
            return Mode.UNKNOWN, self.asks
        return (Mode.EVAL, type(alive[0]).__name__) if alive else (Mode.NONE, "")


def _layers_of(module: Any) -> _Layers:
    layers = list(module.modules())
    depend = [layer for layer in layers if _depends_on_mode(layer)]
    kinds: set[Any] = {type(layer) for layer in layers} - {type(layer) for layer in depend}
    asks = next((kind.__name__ for kind in kinds if _asks_for_mode(kind)), "")
    return _Layers(tuple(map(weakref.ref, depend)), asks)


def _depends_on_mode(layer: Any) -> bool:
    """True for layers of torch that behave differently in training."""
    from torch.nn.modules import activation, batchnorm, dropout, instancenorm, rnn

    if isinstance(layer, dropout._DropoutNd):
        return bool(layer.p > 0)
    if isinstance(layer, instancenorm._InstanceNorm):
        return bool(layer.track_running_stats)
    if isinstance(layer, batchnorm._BatchNorm):
        return layer.running_mean is not None
    if isinstance(layer, rnn.RNNBase):
        return bool(layer.dropout > 0 and layer.num_layers > 1)
    if isinstance(layer, activation.MultiheadAttention):
        return bool(layer.dropout > 0)
    return isinstance(layer, activation.RReLU)


@cache
def _asks_for_mode(kind: Any) -> bool:
    """True for a class that is not of torch, if its `forward` may use the mode."""
    if kind.__module__.startswith("torch.nn."):
        return False
    code = getattr(getattr(kind, "forward", None), "__code__", None)
    return code is None or "training" in code.co_names


def _is_transformed() -> bool:
    """True inside `torch.func` and while a graph is traced: tensors are not the program's own there."""
    import torch

    core: Any = torch._C
    depth = getattr(getattr(core, "_functorch", None), "maybe_current_level", None)
    return bool(core._get_tracing_state()) or (depth is not None and depth() is not None)


def _is_gpu_busy(tensor: Any) -> bool | None:
    """True if work of the current stream is not finished; None without a GPU, and while work is captured."""
    import torch

    if not tensor.is_cuda or simulation.is_on() or torch.cuda.is_current_stream_capturing():
        return None
    return not torch.cuda.current_stream(tensor.device).query()
