"""What sizes that tensor cores cannot tile cost linear layers and output heads, over a grid of sizes.

Device time of forward and backward: a linear layer with bias whose input wants a gradient too, and
an output head with its cross entropy. Each cell is the time with a size that is 1, 2 or 4 less than
a multiple of 8, over the time with the multiple. Prints the grids of `perflint/rules/worth.toml`.
Usage: python benchmarks/rules/sizes.py [--device cpu --quick] [PREFIX …]  (only the grids whose name starts so)
"""

from __future__ import annotations

import gc
import itertools
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from timing import OPTIONS, Run, header, options, seconds, tensor
from torch import nn
from torch.nn import functional as F

WIDTHS = (48, 96, 192, 384, 768, 1536, 3072, 6144)
HEAD_WIDTHS = (256, 512, 1024, 2048)
VOCABULARIES = (8192, 16384, 32768, 65536, 131072)
ROWS = (4096, 16384)
HEAD_ROWS = (4096, 8192)
FORMATS = {"bfloat16": torch.bfloat16, "float16": torch.float16, "tf32": torch.float32}


def trained_linear(rows: int, inner: int, outer: int, format: str) -> Run:
    """Forward and backward of a linear layer, under autocast where the format asks for it."""
    dtype, rows = FORMATS[format], min(rows, 64) if OPTIONS.quick else rows
    layer = nn.Linear(inner, outer).to(OPTIONS.device)
    batch = tensor(rows, inner, dtype=dtype).requires_grad_()
    gradient = tensor(rows, outer, dtype=dtype)
    wanted = (batch, *layer.parameters())

    def run() -> None:
        with torch.autocast(OPTIONS.device, dtype, enabled=dtype is not torch.float32, cache_enabled=False):
            out = layer(batch)
        torch.autograd.grad(out, wanted, gradient)

    return run


def trained_head(rows: int, width: int, vocabulary: int, format: str) -> Run:
    """Forward and backward of an output head with its cross entropy."""
    dtype, rows = FORMATS[format], min(rows, 64) if OPTIONS.quick else rows
    head = nn.Linear(width, vocabulary, bias=False).to(OPTIONS.device)
    batch = tensor(rows, width, dtype=dtype).requires_grad_()
    targets = torch.randint(0, vocabulary, (rows,), device=OPTIONS.device)
    wanted = (batch, *head.parameters())

    def run() -> None:
        with torch.autocast(OPTIONS.device, dtype, enabled=dtype is not torch.float32, cache_enabled=False):
            loss = F.cross_entropy(head(batch), targets)
        torch.autograd.grad(loss, wanted)

    return run


def captured(run: Run, pool: tuple[int, int] | None = None) -> Run:
    """The same as a CUDA graph, so that the host's launches are not timed."""
    if OPTIONS.device != "cuda":
        return run
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        run()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        run()

    def replay(kept: Run = run) -> None:
        """Replay the graph, which does not keep alive what `run` reads."""
        graph.replay()

    return replay


def device_times(runs: list[Run]) -> list[float]:
    """Median seconds of each, measured by turns."""
    graphs = [captured(run) for run in runs]
    for graph in graphs:
        graph()
    slowest = max(seconds(graph, 1) for graph in graphs)
    times = max(1, min(20, int(1e-3 / slowest)))
    rounds = 2 if OPTIONS.quick else 3 if slowest > 0.02 else 5
    measured = [[seconds(graph, times) for graph in graphs] for _ in range(rounds)]
    return [statistics.median(each) for each in zip(*measured, strict=True)]


@dataclass(frozen=True)
class Kind:
    """Grids that share their cells' good sides. `bad` gives the sizes of a misfit that is `less` too small."""

    name: str
    rule: str
    pattern: str
    make: Callable[[int, int, int, str], Run]
    rows: tuple[int, ...]
    inner: tuple[int, ...]
    outer: tuple[int, ...]
    misfits: tuple[str, ...]


LINEAR = "a linear layer, forward and backward, against the next multiple of 8"
HEAD = "an output head with its cross entropy, forward and backward, against the next multiple of 64"
KINDS = (
    Kind("linear", "TPF351", LINEAR, trained_linear, ROWS, WIDTHS, WIDTHS, ("inner", "outer", "both")),
    Kind("head", "TPF352", HEAD, trained_head, HEAD_ROWS, HEAD_WIDTHS, VOCABULARIES, ("outer",)),
)


def grids(kind: Kind, format: str) -> Iterator[str]:
    """The grids of a kind in a format, one for each misfit and power of two in the size."""
    powers = (1, 2) if format == "tf32" else (1, 2, 4)
    cases = list(itertools.product(kind.misfits, powers))
    ratios: dict[tuple[str, int], list[float]] = {case: [] for case in cases}
    rows, inner, outer = ((each[:2] if OPTIONS.quick else each) for each in (kind.rows, kind.inner, kind.outer))
    for count, width, columns in itertools.product(rows, inner, outer):
        gc.collect()
        runs = [kind.make(count, width, columns, format)]
        for misfit, less in cases:
            taken = width - (less if misfit != "outer" else 0)
            given = columns - (less if misfit != "inner" else 0)
            runs.append(kind.make(count, taken, given, format))
        good, *bad = device_times(runs)
        for case, time in zip(cases, bad, strict=True):
            ratios[case].append(time / good)
    for (misfit, power), values in ratios.items():
        cells = [f"{value:.2f}" for value in values]
        step = len(outer)
        lines = [", ".join(cells[start : start + step]) for start in range(0, len(cells), step)]
        yield "\n".join(
            [
                f"[grids.{kind.name}-{misfit}-{power}-{format}]",
                'run = "sizes"',
                f'rules = ["{kind.rule}"]',
                f'pattern = "{kind.pattern}"',
                f'dtype = "{"float32 with TF32" if format == "tf32" else format + " autocast"}"',
                f"rows = {list(rows)}",
                f"inner = {list(inner)}",
                f"outer = {list(outer)}",
                "ratios = [",
                *(f"    {line}," for line in lines),
                "]",
                "",
            ]
        )


def main() -> None:
    """Measure the grids, and print them."""
    prefixes = tuple(options(__doc__))
    print(header("sizes"), flush=True)
    for kind in KINDS:
        for format in ("bfloat16", "tf32"):
            if not f"{kind.name}-{format}".startswith(prefixes):
                continue
            torch.backends.cuda.matmul.allow_tf32 = format == "tf32"
            for grid in grids(kind, format):
                print(grid, flush=True)


if __name__ == "__main__":
    main()
