"""The gain of a CPU-bound model from compilation, or from a CUDA graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from perflint.tracer import syncs
from perflint.tracer.experiments.base import NotPossible, Pair, Run, difference
from perflint.tracer.experiments.models import Subject
from perflint.tracer.modules import tensors

if TYPE_CHECKING:
    import torch


class CudaGraph:
    """The model's forward, and backward where it trains, captured once and replayed."""

    name = "cuda-graph"
    codes: tuple[str, ...] = ()
    seconds = 0.0

    def change(self, subject: Subject) -> str:
        """The change, if the GPU waits for launches; else empty."""
        what = "forward and backward" if subject.mode.backward else "forward"
        return f"{what} in one CUDA graph" if subject.is_launch_bound else ""

    def build(self, subject: Subject) -> Pair:
        """Capture the same module. Raises NotPossible where it could not be, since a failed capture does harm."""
        import torch

        run = subject.run(subject.module)
        cuda: Any = torch.cuda
        check_capturable(run)
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            for _ in range(3):
                run()
        cuda.current_stream().wait_stream(side)
        given = list(tensors((run.arguments, run.named)))
        fresh = [tensor.detach().clone() for tensor in given]
        graph = cuda.CUDAGraph()
        run.clear()
        # Other threads of the program may allocate pinned memory meanwhile.
        with cuda.graph(graph, capture_error_mode="thread_local"):
            output = run()

        def replay() -> object:
            overwrite(given, fresh, run.mode.inference)
            graph.replay()
            return output

        def compared() -> float | None:
            if draws(subject):
                return None
            replayed = [tensor.detach().clone() for tensor in tensors(replay())]
            return difference(list(tensors(run.forward())), replayed)

        return Pair(run, replay, compared, "an upper bound for torch.cuda.make_graphed_callables")


def overwrite(static: Sequence[torch.Tensor], fresh: Sequence[torch.Tensor], inference: bool) -> None:
    """Copy new values into the inputs of a graph. Tensors made in inference mode can be written only there."""
    import torch

    with torch.inference_mode(inference), torch.no_grad():
        for old, new in zip(static, fresh, strict=True):
            old.copy_(new)


def check_capturable(run: Run) -> None:
    """Raise NotPossible for what cannot be captured."""
    import threading

    from torch.utils import _python_dispatch

    mode: Any = _python_dispatch.TorchDispatchMode

    class Copies(mode):  # type: ignore[misc]
        found = ""

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            devices = {tensor.device.type for tensor in tensors((args, kwargs, result))}
            if len(devices) > 1 and str(function).startswith(("aten.copy_", "aten._to_copy")):
                self.found = "it copies between host and GPU"
            return result

    this = threading.get_ident()
    seen: list[str] = []

    def note(kind: str, _: Any) -> None:
        if threading.get_ident() == this:
            seen.append(kind)

    if any(not tensor.is_cuda for tensor in tensors((run.arguments, run.named))):
        raise NotPossible("the model takes CPU tensors, which a CUDA graph cannot read")
    run()
    end = syncs.listen(note)
    try:
        copies: Any = Copies()
        with copies:
            run()
    finally:
        end()
    reason = "it synchronizes" if seen else copies.found
    if reason:
        raise NotPossible(f"the model cannot be captured: {reason}")


DRAWN = 1e-3
"""The difference of outputs above which another seed, and not another order of sums, is the reason."""
IN_PLACE = "compiled in place"
"""The note of an experiment that called the `compile` method of the module."""
GRAPHS_MODE = "reduce-overhead"
"""The mode of torch.compile that uses CUDA graphs."""


class Compile:
    """`torch.compile` with its defaults."""

    name = "compile"
    codes: tuple[str, ...] = ()
    seconds = 0.15
    mode: str | None = None

    def change(self, subject: Subject) -> str:
        """The change, if the model is on a GPU; else empty."""
        return "torch.compile" if subject.is_on_gpu else ""

    def build(self, subject: Subject) -> Pair:
        """Another copy, compiled when it is first called: in place if torch can do that for its class."""
        import torch

        before = subject.run(subject.module)
        in_place = compiles_in_place(subject.module)
        if in_place:
            after = subject.run(subject.other())
            after.module.compile(mode=self.mode)
        else:
            after = subject.run(torch.compile(subject.module, mode=self.mode))

        def compared() -> float | None:
            # Compiled code draws other random numbers.
            return None if draws(subject) else difference(before.forward(), after.forward())

        return Pair(before, after, compared, IN_PLACE if in_place else "")


class CompileWithGraphs(Compile):
    """`torch.compile` with CUDA graphs."""

    name = "compile-with-graphs"
    mode = GRAPHS_MODE

    def change(self, subject: Subject) -> str:
        """The change, if the GPU waits for launches; else empty."""
        return f'torch.compile(mode="{GRAPHS_MODE}")' if subject.is_launch_bound else ""


def compiles_in_place(module: Any) -> bool:
    """True if `module.compile()` compiles the code of a module.

    The compiler does not enter the `forward` of torch's own classes from there, but that of DataParallel calls
    another module. A class may have a method of its own by that name.
    """
    import torch

    kind: Any = type(module)
    base: Any = torch.nn.Module
    is_own = getattr(kind, "compile", None) is getattr(base, "compile", object())
    of_torch = str(getattr(kind.forward, "__module__", "")).startswith("torch.nn.")
    return is_own and (not of_torch or kind.__name__ in ("DataParallel", "DistributedDataParallel"))


def draws(subject: Subject) -> bool:
    """True if the model draws random numbers, as dropout does, also by a function."""
    import torch

    if any("Drop" in type(module).__name__ and module.training for module in subject.module.modules()):
        return True
    run, outputs = subject.run(subject.module), []
    for seed in (0, 1):
        torch.manual_seed(seed)
        outputs.append([tensor.detach().clone() for tensor in tensors(run.forward())])
    return (difference(*outputs) or 0.0) > DRAWN
