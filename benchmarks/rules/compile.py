"""What graph breaks, recompilations, and compiling or recording in each step cost on this machine's GPU.

Prints the rows of `perflint/rules/worth.toml`: medians of interleaved runs, in milliseconds.
Usage: python benchmarks/rules/compile.py [--device cpu --quick] [PREFIX …]  (only the rows whose name starts so)
"""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import random
import time
import warnings
from collections.abc import Callable, Iterator

import torch
from timing import OPTIONS, Pair, Run, main, tensor
from torch import nn

Hook = Callable[[torch.Tensor], torch.Tensor]
LOGGER = logging.getLogger(__name__)
SHAPE = "eight pre-norm MLP blocks of width 512, 256 rows, forward, compiled"


class Block(nn.Module):
    """An MLP with what torch.compile fuses around it: a norm, an activation, a residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(rows, width) to the same."""
        return x + torch.tanh(self.down(nn.functional.gelu(self.up(self.norm(x))))) * 0.5


class Stack(nn.Module):
    """Eight blocks; `middle` runs once between them, `each` after each of them."""

    def __init__(self, middle: Hook | None = None, each: Hook | None = None) -> None:
        super().__init__()
        width = 32 if OPTIONS.quick else 512
        self.first = nn.Sequential(*[Block(width) for _ in range(4)])
        self.second = nn.ModuleList(Block(width) for _ in range(4))
        self.middle, self.each, self.steps = middle, each, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(rows, width) to the same."""
        x = self.first(x)
        if self.middle is not None:
            x = self.middle(x)
        for block in self.second:
            x = block(x)
            if self.each is not None:
                x = self.each(x)
        return x


def inputs() -> torch.Tensor:
    """A batch of rows."""
    return tensor(8 if OPTIONS.quick else 256, 32 if OPTIONS.quick else 512)


def forward(model: nn.Module, mode: str | None = None, backend: str = "inductor") -> Run:
    """The compiled forward of a model, warmed up, without autograd."""
    # Each side is compiled for itself, as in a program of its own.
    compiled, x = torch.compile(model.to(OPTIONS.device).eval(), mode=mode, backend=backend), inputs()

    def run() -> None:
        with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
            compiled(x)

    for _ in range(3):
        run()
    return run


def pair(name: str, rule: str, pattern: str, make: Callable[[], tuple[Run, Run]]) -> Pair:
    """A pair whose sides are compiled with nothing left of those before: the limit of 8 is for each function."""

    def anew() -> tuple[Run, Run]:
        torch._dynamo.reset()
        return make()

    return Pair(name, rule, pattern, "float32", SHAPE, anew, "step")


def printed(x: torch.Tensor) -> torch.Tensor:
    """Prints a text."""
    print("block")
    return x


def logged(x: torch.Tensor) -> torch.Tensor:
    """Logs at a level that nobody listens to."""
    LOGGER.debug("block")
    return x


def sized(x: torch.Tensor, by_shape: bool = False) -> torch.Tensor:
    """Takes a size from a tensor, or the same from the shape."""
    rows = (x[:, 0] > -1e9).sum()
    return x + torch.arange(len(x) if by_shape else rows, device=x.device)[:, None] * 1e-6 + rows * 0


def chosen(x: torch.Tensor) -> torch.Tensor:
    """Scales by a number that the device chooses."""
    return x * torch.where(x[0, 0] > 100, 1.0, 0.99)


BREAKS: tuple[tuple[str, str, Hook, Hook | None], ...] = (
    ("item", "TPF701", lambda x: x * (1.0 if x[0, 0].item() > 100 else 0.99), chosen),
    ("branch", "TPF702", lambda x: x / 2 if x[0, 0] > 100 else x * 0.99, chosen),
    ("print", "TPF703", printed, None),
    ("debug", "TPF703", logged, None),
    ("mask", "TPF704", lambda x: x * x[x > 0].mean(), lambda x: x * (torch.where(x > 0, x, 0).sum() / (x > 0).sum())),
    ("clock", "TPF708", lambda x: x + time.time() * 0, None),
    ("random", "TPF708", lambda x: x + random.random() * 0, None),
    ("deepcopy", "TPF708", copy.deepcopy, torch.clone),
    ("size", "TPF709", sized, lambda x: sized(x, by_shape=True)),
)
"""What ends a graph, by name, with the rule and what does the same without ending it."""


def breaks() -> Iterator[Pair]:
    """One break between the halves of a model, and one in each turn of a loop over layers."""
    for name, rule, bad, good in BREAKS:
        yield pair(
            f"break-once-{name}",
            rule,
            f"one graph break ({name}) in a compiled forward against none",
            lambda b=bad, g=good: (forward(Stack(middle=b)), forward(Stack(middle=g))),  # type: ignore[misc]
        )
        yield pair(
            f"break-in-loop-{name}",
            "TPF705",
            f"a graph break ({name}) in a loop over four layers of a compiled forward against none",
            lambda b=bad, g=good: (forward(Stack(each=b)), forward(Stack(each=g))),  # type: ignore[misc]
        )


class Counting(Stack):
    """Counts its calls in Python."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(rows, width) to the same."""
        self.steps += 1
        return super().forward(x)


class Buffered(Stack):
    """Counts its calls in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(rows, width) to the same."""
        self.count += 1
        return super().forward(x)


def after_limit(model: nn.Module) -> Run:
    """A compiled forward that has been called more often than it is compiled again."""
    run = forward(model)
    for _ in range(10):
        run()
    return run


def compiled_each() -> tuple[Run, Run]:
    """torch.compile in each call against once."""
    model, x = Stack().to(OPTIONS.device), inputs()

    def anew() -> None:
        with torch.no_grad():
            torch.compile(model)(x)

    once = forward(model)
    anew()
    return anew, once


def eager(model: nn.Module) -> Run:
    """The forward as it is."""
    model, x = model.to(OPTIONS.device).eval(), inputs()

    def run() -> None:
        with torch.no_grad():
            model(x)

    return run


class Cached(nn.Module):
    """Writes into its argument, or into a buffer."""

    def __init__(self, own: bool) -> None:
        super().__init__()
        self.body, self.own = Stack(), own
        self.register_buffer("cache", torch.zeros_like(inputs()))

    def forward(self, x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        """(rows, width), twice, to the same."""
        (self.cache if self.own else cache).copy_(x)
        return self.body(x)


def cached(own: bool) -> Run:
    """The forward with CUDA graphs."""
    model = torch.compile(Cached(own).to(OPTIONS.device), mode="reduce-overhead")
    x, cache = inputs(), inputs()

    def run() -> None:
        with torch.no_grad():
            model(x, cache)

    for _ in range(5):
        run()
    return run


def scripted() -> tuple[Run, Run]:
    """A block that TorchScript compiles in the middle, against the block itself."""

    def with_block(script: bool) -> Run:
        block = Block(32 if OPTIONS.quick else 512).to(OPTIONS.device).eval()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return forward(Stack(middle=torch.jit.script(block) if script else block))

    return with_block(True), with_block(False)


def gelu(x: torch.Tensor) -> torch.Tensor:
    """What helpers are scripted for."""
    return x * 0.5 * (1.0 + torch.erf(x / 1.41421))


def helper(how: str) -> Run:
    """The eager forward with a helper after each block, scripted or compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = torch.jit.script(gelu) if how == "script" else torch.compile(gelu)
    run = eager(Stack(each=made))
    for _ in range(5):
        run()
    return run


def recorded(each_step: bool) -> Run:
    """A replay of the eager forward, recorded in each step or once."""
    model, x = Stack().to(OPTIONS.device).eval(), inputs()

    def record() -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            model(x)
        return graph

    with torch.no_grad():
        for _ in range(3):
            model(x)
    known = record()

    def run() -> None:
        (record() if each_step else known).replay()

    return run


def growing(mode: str | None) -> Run:
    """A compiled forward whose input has another row in each call."""
    compiled, x = torch.compile(Stack().to(OPTIONS.device).eval(), mode=mode), inputs()[:16]

    def run() -> None:
        nonlocal x
        with torch.no_grad():
            x = torch.cat([x, compiled(x)[-1:]])

    for _ in range(4):
        run()
    return run


def others() -> Iterator[Pair]:
    """What compiles or records again, or never."""
    yield Pair(
        "capture-each-step",
        "TPF815",
        "a CUDA graph that is recorded in each step against one that is recorded once",
        "float32",
        SHAPE.replace(", compiled", ", eager"),
        lambda: (recorded(each_step=True), recorded(each_step=False)),
        "step",
    )
    yield pair("scripted-block", "TPF901", "a scripted block in a compiled forward against the block itself", scripted)
    yield Pair(
        "scripted-helper",
        "TPF901",
        "a helper under torch.jit.script against torch.compile, after four blocks of an eager forward",
        "float32",
        SHAPE.replace(", compiled", ", eager"),
        lambda: (helper("script"), helper("compile")),
        "step",
    )
    words = "a counter in Python in a compiled forward, after the limit, against a buffer"
    yield pair("counter-recompiles", "TPF712", words, lambda: (after_limit(Counting()), after_limit(Buffered())))
    yield pair("compile-each-call", "TPF711", "torch.compile in each call against once", compiled_each)
    words = "a forward whose compiled self is never called against torch.compile"
    yield pair("compile-dropped", "TPF710 TPF716", words, lambda: (eager(Stack()), forward(Stack())))
    words = "the same against torch.compile(mode='reduce-overhead')"
    yield pair(
        "compile-dropped-graphs", "TPF710 TPF716", words, lambda: (eager(Stack()), forward(Stack(), "reduce-overhead"))
    )
    words = "torch.compile(backend='aot_eager') against the default"
    yield pair("debug-backend", "TPF715", words, lambda: (forward(Stack(), backend="aot_eager"), forward(Stack())))
    words = "one more row in each call, with mode='reduce-overhead' against the default mode"
    yield pair("growing-graph-input", "TPF814", words, lambda: (growing("reduce-overhead"), growing(None)))
    words = "a compiled forward with CUDA graphs that writes to its argument against one that writes to a buffer"
    yield pair("mutated-argument", "TPF807", words, lambda: (cached(own=False), cached(own=True)))


if __name__ == "__main__":
    main("compile", __doc__, (breaks, others))
