"""Random layers, losses and loops as source, each with what runs it with a pattern and without."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timing import Run


@dataclass(frozen=True)
class Case:
    """A source whose line `line` has the pattern of a rule, and what runs it with and without.

    `device_time` says that the message speaks of kernels, not of a whole step.
    """

    name: str
    rule: str
    source: str
    line: int
    make: Callable[[], tuple[Run, Run]]
    device_time: bool = False


def cases(seed: int) -> list[Case]:
    """The cases of a seed, always the same."""
    draw = random.Random(seed)
    return [case for family in FAMILIES for case in family(draw)]


# Sources

_HEAD = "import torch\nfrom torch import nn\n\n"
_LOOP = """
def train(model, batches, optimizer):
    for x, y in batches:
        {context}loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""


def _source(layer: str, around: tuple[str, str], format: str) -> tuple[str, int]:
    """A sequence of modules with a layer in it, trained in a format; and the layer's line."""
    context = ""
    head = _HEAD
    if format == "tf32":
        head += "torch.backends.cuda.matmul.allow_tf32 = True\n"
    elif format != "float32":
        context = f"with torch.autocast('cuda', dtype=torch.{format}):\n            "
    before, after = around
    text = f"{head}model = nn.Sequential(\n    {before}\n    {layer}\n    {after}\n)\n{_LOOP.format(context=context)}"
    return text, text[: text.index(layer)].count("\n") + 1


def _size(draw: random.Random, low: int, high: int, multiple: int | None = None) -> int:
    """A size, uniform in its logarithm; of a multiple, or of none of 8."""
    while True:
        size = round(math.exp(draw.uniform(math.log(low), math.log(high))))
        if multiple is not None:
            return max(multiple, size // multiple * multiple)
        if size % 8:
            return size


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


# Layers


def linears(draw: random.Random) -> Iterator[Case]:
    """Linear layers of odd sizes, any number of rows."""
    for number in range(10):
        format = draw.choice(["bfloat16", "bfloat16", "float16", "tf32"])
        misfit = draw.choice(["inner", "outer", "both"])
        multiple = 4 if format == "tf32" else 8
        sizes = {}
        for name in ("inner", "outer"):
            while True:
                sizes[name] = _size(draw, 64, 5000, None if misfit in (name, "both") else 8)
                if sizes[name] % multiple or misfit not in (name, "both"):
                    break
        inner, outer = sizes["inner"], sizes["outer"]
        rows = _size(draw, 4096, 32768, 64)
        around = (f"nn.Embedding(1000, {inner}),", f"nn.LayerNorm({outer}),")
        source, line = _source(f"nn.Linear({inner}, {outer}),", around, format)

        def make(r: int = rows, i: int = inner, o: int = outer, f: str = format) -> tuple[Run, Run]:
            from sizes import trained_linear

            return trained_linear(r, i, o, f), trained_linear(r, _up(i, 8), _up(o, 8), f)

        name = f"linear {number}: {rows} × {inner} to {outer}, {format}"
        yield Case(name, "TPF351", source, line, make, device_time=True)


def heads(draw: random.Random) -> Iterator[Case]:
    """Output heads with their losses."""
    for number in range(5):
        format = draw.choice(["bfloat16", "bfloat16", "tf32"])
        width = _size(draw, 256, 2048, 64)
        vocabulary = 0
        while not vocabulary % (4 if format == "tf32" else 8):
            vocabulary = _size(draw, 8200, 130000)
        rows = _size(draw, 2048, 8192, 64)
        around = (f"nn.Embedding({vocabulary}, {width}),", "nn.Identity(),")
        source, line = _source(f"nn.Linear({width}, {vocabulary}, bias=False),", around, format)

        def make(r: int = rows, w: int = width, v: int = vocabulary, f: str = format) -> tuple[Run, Run]:
            from sizes import trained_head

            return trained_head(r, w, v, f), trained_head(r, w, _up(v, 64), f)

        name = f"head {number}: {rows} × {width} to {vocabulary}, {format}"
        yield Case(name, "TPF352", source, line, make, device_time=True)


def convolutions(draw: random.Random) -> Iterator[Case]:
    """Convolutions of odd channels in a stack of ten with norms, trained."""
    for number in range(4):
        format = draw.choice(["bfloat16", "float32"])
        last = draw.random() < 0.5
        channels, size = _size(draw, 40, 300), draw.choice([14, 28, 56])
        while not channels % 4:
            channels = _size(draw, 40, 300)
        around = ("nn.BatchNorm2d(3),", f"nn.BatchNorm2d({channels}),")
        source, line = _source(f"nn.Conv2d({channels}, {channels}, 3, padding=1, bias=False),", around, format)

        def make(c: int = channels, s: int = size, f: str = format, cl: bool = last) -> tuple[Run, Run]:
            from layers import convolutional_step

            return convolutional_step(c, f, cl, 3, s), convolutional_step(_up(c, 8), f, cl, 3, s)

        layout = ", channels_last" if last else ""
        yield Case(f"conv {number}: {channels} of {size} × {size}, {format}{layout}", "TPF351", source, line, make)


def biases(draw: random.Random) -> Iterator[Case]:
    """A bias before BatchNorm in a stack of ten convolutions, trained."""
    for number in range(4):
        format, last = draw.choice([("float32", False), ("bfloat16", False), ("bfloat16", True)])
        channels, size, kernel = _size(draw, 32, 256, 8), draw.choice([14, 28, 56]), draw.choice([1, 3])
        layer = f"nn.Conv2d({channels}, {channels}, {kernel}, padding={kernel // 2}),"
        source, line = _source(layer, (f"nn.BatchNorm2d({channels}),", f"nn.BatchNorm2d({channels}),"), format)
        if last:
            source += "\nmodel = model.to(memory_format=torch.channels_last)\n"

        def make(
            c: int = channels, k: int = kernel, s: int = size, f: str = format, cl: bool = last
        ) -> tuple[Run, Run]:
            from layers import convolutional_step

            return convolutional_step(c, f, cl, k, s, True), convolutional_step(c, f, cl, k, s)

        layout = ", channels_last" if last else ""
        name = f"bias {number}: {kernel} × {kernel}, {channels} of {size} × {size}, {format}{layout}"
        yield Case(name, "TPF301", source, line, make)


_ATTENTION = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention({width}, {heads}, batch_first=True)

    def forward(self, x: torch.Tensor):
        y, _ = self.attention(x, x, x{option})
        return x + y

def train(model: Block, batches, optimizer):
    for x, y in batches:
        {context}loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
"""


def attentions(draw: random.Random) -> Iterator[Case]:
    """Attention whose weights nobody reads, and attention of odd widths, trained."""
    for number in range(4):
        format = draw.choice(["bfloat16", "float32"]) if number < 2 else "bfloat16"
        heads, tokens, batch = draw.choice([4, 8]), draw.choice([128, 256, 512, 1024, 1536]), draw.choice([4, 8, 16])
        each = _size(draw, 32, 96, 8) if number < 2 else _size(draw, 33, 95)
        width, better = heads * each, heads * _up(each, 8)
        context = "" if format == "float32" else "with torch.autocast('cuda', dtype=torch.bfloat16):\n            "
        option = "" if number < 2 else ", need_weights=False"
        text = _HEAD + _ATTENTION.format(width=width, heads=heads, context=context, option=option)
        marker = "self.attention(x" if number < 2 else "nn.MultiheadAttention"
        line = text[: text.index(marker)].count("\n") + 1

        def make(
            w: int = width, h: int = heads, g: int = better, b: int = batch, t: int = tokens, f: str = format
        ) -> tuple[Run, Run]:
            return _encoder(w, h, b, t, f, w == g), _encoder(g, h, b, t, f, False)

        what = "weights" if number < 2 else "width"
        name = f"attention {what} {number}: {heads} heads, width {width}, {batch} × {tokens}, {format}"
        yield Case(name, "TPF302" if number < 2 else "TPF351", text, line, make)


def _encoder(width: int, heads: int, batch: int, tokens: int, format: str, weights: bool) -> Run:
    """A training step of six attention layers."""
    import torch
    from layers import whole_step
    from timing import OPTIONS, tensor
    from torch import nn

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
            self.norm = nn.LayerNorm(width)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """(batch, tokens, width) to the same."""
            y: torch.Tensor = self.attention(x, x, x, need_weights=weights)[0]
            return self.norm(x + y)  # type: ignore[no-any-return]

    model = nn.Sequential(*[Layer() for _ in range(1 if OPTIONS.quick else 6)])
    given = tensor(batch, 16 if OPTIONS.quick else tokens, width)
    run: Run = whole_step(model, given, None if format == "float32" else torch.bfloat16)
    return run


_INT8 = """
class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear({outer}, {inner})
        self.down = nn.Linear({inner}, {outer})

    def forward(self, x):
        return torch._int_mm(x, self.down.weight)
"""


def eight_bits(draw: random.Random) -> Iterator[Case]:
    """INT8 products."""
    for number in range(3):
        inner, outer, rows = _size(draw, 600, 4000, 8), _size(draw, 512, 4096, 64), _size(draw, 1024, 16384, 64)
        inner += 8 if inner % 32 == 0 else 0
        text = _HEAD + _INT8.format(inner=inner, outer=outer)
        line = text[: text.index("self.down =")].count("\n") + 1

        def make(i: int = inner, o: int = outer, r: int = rows) -> tuple[Run, Run]:
            return _integers(r, i, o), _integers(r, _up(i, 32), o)

        yield Case(f"int8 {number}: {rows} × {inner} to {outer}", "TPF374", text, line, make, device_time=True)


def _integers(rows: int, inner: int, outer: int) -> Run:
    import torch
    from timing import OPTIONS

    rows = 64 if OPTIONS.quick else rows
    left = torch.randint(-9, 9, (rows, inner), device=OPTIONS.device, dtype=torch.int8)
    right = torch.randint(-9, 9, (outer, inner), device=OPTIONS.device, dtype=torch.int8).t()
    return lambda: torch._int_mm(left, right)


# Loops

_TRAINING = """
def train(model: nn.Module, loader, optimizer):
    mask = torch.rand(8192, device="cuda") > 0.5
    values = torch.randn(8192, device="cuda")
    labels = torch.randint(0, 10, (8192,), device="cuda")
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        {line}
"""
_PATTERNS = {
    "scalar-read-in-loop": ("TPF101", "last = loss.item()"),
    "nan-check-per-step": ("TPF107", "assert not torch.isnan(loss)"),
    "eager-format": ("TPF108", 'print(f"{loss}")'),
    "nonzero-family": ("TPF110", "chosen = values[mask]"),
    "scalar-to-cuda": ("TPF116", "one = torch.tensor(1.0, device='cuda')"),
    "explicit-synchronize": ("TPF122", "torch.cuda.synchronize()"),
    "create-then-move": ("TPF204", "one = torch.ones(1024, 1024).cuda()"),
    "truth-of-tensor": ("TPF105", "stop = bool(mask.all())"),
}


def loops(draw: random.Random) -> Iterator[Case]:
    """Training loops of a random network with a pattern at the end of each step, and CPU work after it."""
    for number in range(8):
        pattern = draw.choice(sorted(_PATTERNS))
        rule, code = _PATTERNS[pattern]
        width, depth, batch = _size(draw, 512, 4096, 64), draw.randint(4, 12), _size(draw, 512, 32768, 64)
        ms = round(draw.choice([0.0, draw.uniform(0, 4)]), 1)
        text = _HEAD + _TRAINING.format(line=code)
        line = text[: text.index(code)].count("\n") + 1

        def make(p: str = pattern, w: int = width, d: int = depth, b: int = batch, m: float = ms) -> tuple[Run, Run]:
            return _loop(p, w, d, b, m)

        name = f"loop {number}: {pattern}, {depth} × {width}, batch {batch}, {ms} ms of CPU work"
        yield Case(name, rule, text, line, make)


def _loop(pattern: str, width: int, depth: int, batch: int, ms: float) -> tuple[Run, Run]:
    import torch
    from programs import host_work
    from syncs import PATTERNS, Fixed
    from timing import OPTIONS, tensor
    from torch import nn

    width, depth, batch = (64, 2, 64) if OPTIONS.quick else (width, depth, batch)
    planted = next(each for family in PATTERNS for each in family() if each.name == pattern)
    fixed = Fixed()
    body = [each for _ in range(depth) for each in (nn.Linear(width, width), nn.GELU())]
    model = nn.Sequential(*body, nn.Linear(width, 10)).to(OPTIONS.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    states, targets = tensor(batch, width), torch.randint(0, 10, (batch,), device=OPTIONS.device)

    def step(action: Callable[[Fixed, torch.Tensor], object]) -> Run:
        def run() -> None:
            with torch.autocast(OPTIONS.device, torch.bfloat16):
                loss = nn.functional.cross_entropy(model(states), targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            action(fixed, loss.detach())
            if ms:
                host_work(ms)

        return run

    return step(planted.bad), step(planted.good)


_EVALUATION = """
def evaluate(model: nn.Module, loader):
    model.eval()
    correct = torch.zeros((), device="cuda")
    for x, y in loader:
        out = model(x)
        correct += (out.argmax(1) == y).sum()
    return correct
"""


def evaluations(draw: random.Random) -> Iterator[Case]:
    """Evaluation with autograd on."""
    for number in range(3):
        width, depth, batch = _size(draw, 128, 2048, 64), draw.randint(4, 24), _size(draw, 1, 8192, 1)
        text = _HEAD + _EVALUATION
        line = text[: text.index("out = model")].count("\n") + 1

        def make(w: int = width, d: int = depth, b: int = batch) -> tuple[Run, Run]:
            return _evaluation(w, d, b, True), _evaluation(w, d, b, False)

        yield Case(f"evaluation {number}: {depth} × {width}, batch {batch}", "TPF501", text, line, make)


def _evaluation(width: int, depth: int, batch: int, recorded: bool) -> Run:
    import torch
    from timing import OPTIONS, tensor
    from torch import nn

    batch = min(batch, 64) if OPTIONS.quick else batch
    body = [each for _ in range(depth) for each in (nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU())]
    model, states = nn.Sequential(*body).to(OPTIONS.device).eval(), tensor(batch, width)

    def run() -> None:
        with torch.enable_grad() if recorded else torch.inference_mode():
            model(states)

    return run


FAMILIES = (linears, heads, convolutions, biases, attentions, eight_bits, loops, evaluations)
