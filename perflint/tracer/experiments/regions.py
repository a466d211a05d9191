"""The gain of a CPU-bound model from `torch.cuda.make_graphed_callables` for parts of it."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from perflint.tracer.experiments.base import Mode, NotPossible, Pair, Run, difference
from perflint.tracer.experiments.launches import check_capturable, draws
from perflint.tracer.experiments.models import Subject
from perflint.tracer.modules import tensors

LEAST = 3
"""The fewest layers of a region: fewer launches gain nothing."""


class GraphedCallables:
    """The model, or the largest parts of it that can be captured, as CUDA graphs."""

    name = "graphed-callables"
    codes: tuple[str, ...] = ()
    seconds = 0.0

    def change(self, subject: Subject) -> str:
        """The change, if the GPU waits for launches; else empty."""
        return "torch.cuda.make_graphed_callables" if subject.is_launch_bound else ""

    def build(self, subject: Subject) -> Pair:
        """Another copy, with its regions captured. Raises NotPossible where it has none."""
        import torch

        changed = subject.other()
        before, after = subject.run(subject.module), subject.run(changed)
        names = {id(module): name for name, module in changed.named_modules()}
        found = list(_regions(changed, _arguments(after), subject.mode))
        if not found:
            raise NotPossible("no part of the model can be captured")
        with _for_capture(subject.mode):
            torch.cuda.make_graphed_callables(tuple(each.module for each in found), tuple(e.arguments for e in found))

        def compared() -> float | None:
            return None if draws(subject) else difference(before.forward(), after.forward())

        regions = [names[id(each.module)] or "the whole model" for each in found]
        more = f" and {len(regions) - 3} more" if len(regions) > 3 else ""
        return Pair(before, after, compared, f"of {', '.join(regions[:3])}{more}")


def _arguments(run: Run) -> dict[int, tuple[Any, ...]]:
    """The arguments of each module, by its id: of modules that are called once, with tensors only."""
    calls: Counter[int] = Counter()
    seen: dict[int, tuple[Any, ...]] = {}

    def note(module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        calls[id(module)] += 1
        if arguments and not named and len(list(tensors(arguments))) == len(arguments):
            kept = [tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in tensors(arguments)]
            seen[id(module)] = tuple(kept)

    with ExitStack() as stack:
        for module in run.module.modules():
            stack.callback(module.register_forward_pre_hook(note, with_kwargs=True).remove)
        run()
    return {number: arguments for number, arguments in seen.items() if calls[number] == 1}


def _regions(module: Any, known: dict[int, tuple[Any, ...]], mode: Mode) -> Iterator[Run]:
    """The largest modules that can be captured, with what they are called with."""
    leaves = sum(1 for inner in module.modules() if not next(inner.children(), None))
    if leaves < LEAST:
        return
    run = Run(module, replace(mode, training=module.training), known.get(id(module), ()))
    if run.arguments:
        try:
            check_capturable(run)
        except NotPossible:
            pass
        else:
            yield run
            return
    for child in module.children():
        yield from _regions(child, known, mode)


@contextmanager
def _for_capture(mode: Mode) -> Iterator[None]:
    import torch

    cuda: Any = torch.cuda
    with ExitStack() as stack:
        stack.enter_context(torch.set_grad_enabled(mode.backward))
        if mode.autocast:
            dtype = getattr(torch, mode.autocast)
            stack.enter_context(torch.autocast("cuda", dtype=dtype, cache_enabled=False))
        # Other threads of the program may allocate pinned memory meanwhile.
        stack.callback(setattr, cuda, "graph", cuda.graph)
        cuda.graph = functools.partial(cuda.graph, capture_error_mode="thread_local")
        yield
