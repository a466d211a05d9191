"""Backward passes: whether a retained graph was used again, and whether a graph outlived its step."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from perflint.tracer.events import Place
from perflint.tracer.modules import tensors
from perflint.tracer.recording import Where
from perflint.tracer.witnesses._graphs import Fate, Marks, nodes_of, saved_bytes, saves
from perflint.tracer.witnesses.base import Call, Handler, Witness

RETAINED = 16
"""Calls of one place whose retained graph is watched: to mark all its nodes takes a millisecond or two."""
KEPT = 64
"""Calls of one place after which it is watched whether the graph of the loss is freed."""
LATER = 3
"""Further calls of the same place, and two steps, after which a graph that is still there counts as kept. A name
that holds a loss is bound again in the next step."""
_SCALES = ("MulBackward0", "DivBackward0")
_LEAF = "AccumulateGrad"


class Backwards(Witness):
    """Watches calls of `backward`."""

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch

        yield torch.Tensor, "backward", self._ran
        yield torch.autograd, "backward", self._ran

    def start(self) -> None:
        self._uses = Marks()
        self._retained: dict[int, tuple[Fate, Where, int]] = {}
        self._ends = Marks()
        self._waiting: dict[Place | None, deque[tuple[Where, Fate | None]]] = {}
        self._seen: Counter[Place | None] = Counter()

    def end_step(self) -> None:
        self._resolve()

    def restart(self) -> None:
        self._waiting.clear()
        for key, (fate, where, size) in self._retained.items():
            self._retained[key] = fate, replace(where, step=None), size

    def stop(self) -> None:
        self._resolve()
        now = self._recording.now(None)
        for _, where, size in self._retained.values():
            if _is_later(where, now):
                self.observe("backward.graph-not-used-again", where, bytes=size)
        self._retained.clear()
        self._waiting.clear()
        self._uses.forget()
        self._ends.forget()

    def _ran(self, call: Call) -> None:
        self._resolve()
        roots = [node for tensor in tensors(call.args[0]) if (node := tensor.grad_fn) is not None]
        self._seen[call.where.place] += 1
        count = self._seen[call.where.place]
        if roots and count <= KEPT:
            self._watch_end(call.where, roots)
        if roots and count <= RETAINED and call.argument(2, "retain_graph"):
            self._watch_use(call.where, roots)

    def _watch_use(self, where: Where, roots: list[Any]) -> None:
        """Mark the nodes that keep tensors: a pass that needs the retained graph comes to one of them."""
        nodes = [node for node in nodes_of(roots) if saves(node)]
        if (fate := self._uses.put(nodes)) is not None:
            self._retained[id(fate)] = fate, where, saved_bytes(nodes)

    def _watch_end(self, where: Where, roots: list[Any]) -> None:
        """Mark the last node of the loss, and look at the mark of an earlier call."""
        # The program may keep `loss` of `(loss / 4).backward()`, or of a gradient scaler's product.
        scaled = [node for root in roots if root.name() in _SCALES for node, _ in root.next_functions]
        inner = [node for node in scaled if node is not None and type(node).__name__ != _LEAF]
        waiting = self._waiting.setdefault(where.place, deque())
        waiting.append((where, self._ends.put([*roots, *inner])))
        while len(waiting) > LATER and _is_later(waiting[0][0], where):
            then, fate = waiting.popleft()
            if fate is not None:
                self.observe("backward.graph-kept" if fate.is_alive else "backward.graph-freed", then)

    def _resolve(self) -> None:
        """Record the outcomes of the retained graphs that were used again or freed."""
        for fate in self._uses.ended():
            _, where, size = self._retained.pop(id(fate))
            fact = "backward.graph-used-again" if fate.is_reached else "backward.graph-not-used-again"
            self.observe(fact, where, bytes=size)
        # The ends of the others are seen when their time has come.
        for _ in self._ends.ended():
            pass


def _is_later(then: Where, now: Where) -> bool:
    """True if two steps have ended in between, or outside of recorded steps."""
    return then.step is None or now.step is None or now.step - then.step >= 2
