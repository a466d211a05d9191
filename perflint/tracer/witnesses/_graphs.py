"""Watches whether a backward pass reaches a part of an autograd graph, and how much memory the graph holds."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cache
from typing import Any

NODE_LIMIT = 4000
"""Nodes of a graph that are looked at."""
_SAVED = "_raw_saved_"


class Fate:
    """The state of the marked nodes of a graph. It refers to no tensor and to no node."""

    __slots__ = ("_told", "is_alive", "is_reached", "tell")

    def __init__(self, tell: Callable[[Fate], None]) -> None:
        self.tell = tell
        self.is_reached = False
        self.is_alive = True
        self._told = False

    def reach(self) -> None:
        """A backward pass came to a marked node."""
        self.is_reached = True
        self._end()

    def drop(self) -> None:
        """The marked nodes were freed."""
        self.is_alive = False
        self._end()

    def _end(self) -> None:
        if not self._told:
            self._told = True
            self.tell(self)


class _Hook:
    """Runs before a backward pass goes through a node. It lives as long as the nodes that it was given to."""

    __slots__ = ("__weakref__", "_fate")

    def __init__(self, fate: Fate) -> None:
        self._fate = fate

    def __call__(self, gradients: Any) -> None:
        self._fate.reach()


class Marks:
    """The marked graphs whose fate is not known yet.

    Backward passes run on other threads, and graphs are freed at any time: their ends are only put into a queue.
    """

    def __init__(self) -> None:
        self._alive: dict[int, tuple[Fate, weakref.ref[_Hook]]] = {}
        self._ended: deque[Fate] = deque()

    def put(self, nodes: Iterable[Any]) -> Fate | None:
        """Mark nodes of one graph; None if there are none that take a mark."""
        fate = Fate(self._ended.append)
        hook = _Hook(fate)
        count = 0
        for node in nodes:
            if hasattr(node, "register_prehook"):
                node.register_prehook(hook)
                count += 1
        if not count:
            return None
        key, alive = id(fate), self._alive

        def freed(_: object) -> None:
            alive.pop(key, None)
            fate.drop()

        alive[key] = fate, weakref.ref(hook, freed)
        return fate

    def ended(self) -> Iterator[Fate]:
        """The graphs that were reached or freed since the last time."""
        while self._ended:
            yield self._ended.popleft()

    def forget(self) -> None:
        """Watch the graphs that are left no longer."""
        self._alive.clear()
        self._ended.clear()


def graph_of(tensors: Iterable[Any]) -> list[Any]:
    """The nodes that made some tensors, each once.

    A write to a view makes a new node for it, and keeps only that of its base.
    """
    found: dict[int, Any] = {}
    for tensor in tensors:
        for each in (tensor, tensor._base):
            if each is not None and (node := each.grad_fn) is not None:
                found[id(node)] = node
    return list(found.values())


def nodes_of(roots: Iterable[Any]) -> list[Any]:
    """The nodes that a backward pass from some nodes can reach, at most `NODE_LIMIT` of them."""
    pending = list(roots)
    # Without a reference, Python makes another object for a node the next time.
    found = {id(node): node for node in pending}
    while pending and len(found) < NODE_LIMIT:
        for node, _ in pending.pop().next_functions:
            if node is not None and id(node) not in found:
                found[id(node)] = node
                pending.append(node)
    return list(found.values())


@cache
def _saved_names(kind: Hashable) -> tuple[str, ...]:
    return tuple(name for name in dir(kind) if name.startswith(_SAVED))


def saves(node: Any) -> bool:
    """True if a node keeps tensors for its backward pass, so that a pass that does not retain the graph frees them."""
    kind: Any = type(node)
    return bool(_saved_names(kind))


def saved_bytes(nodes: Iterable[Any]) -> int:
    """The memory that the nodes of a graph hold, without parameters; 0 in versions of torch that do not show it.

    What a hook packed is left out: to unpack it would copy it, or compute it again.
    """
    sizes: dict[int, int] = {}
    parameters: set[int] = set()
    for node in nodes:
        kind: Any = type(node)
        if kind.__name__ == "AccumulateGrad" and (leaf := _strided(node.variable)) is not None:
            # A linear layer saves a view of its weight, which is not a leaf.
            parameters.add(leaf.untyped_storage()._cdata)
        for name in _saved_names(kind):
            held = getattr(node, name, None)
            for saved in held if isinstance(held, (list, tuple)) else (held,):
                tensor = _plain(saved)
                if tensor is not None and not (tensor.is_leaf and tensor.requires_grad):
                    storage = tensor.untyped_storage()
                    sizes[storage._cdata] = storage.nbytes()
    return sum(size for storage, size in sizes.items() if storage not in parameters)


def _plain(saved: Any) -> Any:
    """The tensor that a node saved, if no hook packed it."""
    return _strided(saved.data) if hasattr(saved, "unpack_hook") and saved.unpack_hook is None else None


def _strided(value: Any) -> Any:
    """The value if it is a strided tensor, else None."""
    import torch

    return value if isinstance(value, torch.Tensor) and value.layout is torch.strided else None
