"""Replays of CUDA graphs: what the program did while one was captured happens at each replay, without any Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any

from perflint.tracer import simulation
from perflint.tracer.identity import ByIdentity

_captured: ByIdentity[list[Callable[[], object]]] = ByIdentity()
_EAGER = 3
"""The calls that a graph is not made of."""
_WATCHED = 5
"""The calls after these whose effects are looked for."""
_calls: ByIdentity[int] = ByIdentity()
_changed: ByIdentity[set[str]] = ByIdentity()
"""The Python values that the last call of a function changed."""
_open: dict[int, list[Callable[[], object]]] = {}
"""By thread, the list of the graph that it captures."""


def in_graph(do: Callable[[], object]) -> bool:
    """True if this thread captures a CUDA graph. Then `do` is called after each replay of it."""
    if (actions := _open.get(get_ident())) is None:
        return False
    actions.append(do)
    return True


def run_whole(function: Callable[..., Any], inputs: tuple[Any, ...]) -> Any:
    """The result of a function that is observed as if a graph replayed it: its actions follow its end.

    Raises ValueError for inputs and results that a graph would treat differently.
    """
    import torch
    from torch.nn.modules.module import register_module_forward_pre_hook
    from torch.utils._pytree import tree_flatten

    from perflint.tracer.held import Held

    tensors = [each for each in tree_flatten(inputs)[0] if isinstance(each, torch.Tensor)]
    if any(each.requires_grad for each in tensors):
        raise ValueError("an input of the step needs a gradient, and a graph gets copies of its inputs")
    versions = [each._version for each in tensors]
    actions = _open[get_ident()] = []
    modules: dict[int, tuple[Any, dict[str, Any]]] = {}

    def note(module: Any, _: Any) -> None:
        if id(module) not in modules:
            modules[id(module)] = module, _attributes(module)

    # The first calls are eager anyway, and may fill caches.
    calls = _calls[function] = (_calls.get(function) or 0) + 1
    held = Held(function) if _EAGER < calls <= _EAGER + _WATCHED else None
    hook = register_module_forward_pre_hook(note)
    try:
        result = function(*inputs)
    finally:
        _open.pop(get_ident(), None)
        hook.remove()
    for module, before in modules.values() if calls > _EAGER else ():
        after = _attributes(module)
        changed = next((name for name in {**before, **after} if before.get(name) != after.get(name)), None)
        if changed is not None:
            kind = type(module).__name__
            raise ValueError(f"each call of a {kind} changes its `{changed}`, which a graph does not repeat")
    if held is not None:
        found = held.changed(Held(function))
        again = sorted(found & (_changed.get(function) or set()))
        if again:
            raise ValueError(f"each step changes `{again[0]}`, which a graph does not repeat")
        _changed[function] = found
    if versions != [each._version for each in tensors]:
        raise ValueError("the step writes to one of its inputs, and a graph gets copies of them")
    for each in tree_flatten(result)[0]:
        if not isinstance(each, (torch.Tensor, bool, int, float, str, type(None))):
            raise ValueError(f"a result of the step is a {type(each).__name__}, which each replay would write over")
    for do in actions:
        do()
    return result


def _attributes(module: Any) -> dict[str, Any]:
    """The attributes of a module, as values that differ once code assigns one or makes a list longer.

    A tensor that needs a gradient is left out: each call computes it from the parameters, as a normalized weight.
    """
    found: dict[str, Any] = {}
    for name, value in (*vars(module).items(), *module._buffers.items()):
        if getattr(value, "grad_fn", None) is None:
            is_number = isinstance(value, (bool, int, float, str))
            found[name] = value if is_number else (id(value), len(value) if isinstance(value, (list, dict)) else 0)
    return found


@functools.cache
def watch() -> None:
    """See captures and replays from here on. Needs torch."""
    if simulation.is_on():
        # It has none.
        return
    from torch.cuda.graphs import CUDAGraph

    graph_class: Any = CUDAGraph
    begin, end, replay = graph_class.capture_begin, graph_class.capture_end, graph_class.replay

    @functools.wraps(begin)
    def begun(graph: Any, *arguments: Any, **keywords: Any) -> None:
        begin(graph, *arguments, **keywords)
        _captured[graph] = _open[get_ident()] = []

    @functools.wraps(end)
    def ended(graph: Any) -> None:
        _open.pop(get_ident(), None)
        end(graph)

    @functools.wraps(replay)
    def replayed(graph: Any) -> None:
        replay(graph)
        for do in _captured.get(graph) or ():
            do()

    graph_class.capture_begin, graph_class.capture_end, graph_class.replay = begun, ended, replayed
