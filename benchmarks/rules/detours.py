"""What longer ways to the same result cost: whole sorts for a few values, all differences for distances, gradients
one by one, images read by the process that trains, convolutions in the layout that tensor cores do not read, rows in
Python loops, and copies that nothing needs.

Prints the rows of `perflint/rules/worth.toml`.
Usage: python benchmarks/rules/detours.py [--device cpu --quick] [PREFIX …]  (only the rows whose name starts so)
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import torch
from programs import GPT, gpt_step, ids, images, policy_step, resnet50, resnet_step, train
from timing import OPTIONS, Pair, Run, main, tensor
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

HALF = "bfloat16 autocast"
GPT_SHAPE = "GPT-2 of 124 M parameters, batch 8 of 1024 tokens, AdamW fused"
Of = Callable[[torch.Tensor], torch.Tensor]
OfTwo = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def gradients() -> Iterator[Pair]:
    """Gradients that are scaled between the backward pass and the optimizer's step."""

    def training(scale: Callable[[list[torch.Tensor]], object]) -> Run:
        model, batch = GPT().to(OPTIONS.device), ids(8, 1024)

        def backward(loss: torch.Tensor) -> None:
            loss.backward()
            scale([p.grad for p in model.parameters() if p.grad is not None])

        return train(model, lambda: model(batch), backward=backward)

    def one_by_one(grads: list[torch.Tensor]) -> None:
        for grad in grads:
            grad.mul_(0.5)

    yield Pair(
        "gradients-scaled-one-by-one-gpt",
        "TPF603",
        "gradients scaled one by one against torch._foreach_mul_",
        HALF,
        GPT_SHAPE,
        lambda: (training(one_by_one), training(lambda grads: torch._foreach_mul_(grads, 0.5))),
        "step",
    )


def sorts() -> Iterator[Pair]:
    """Whole sorts of which the first few are kept, against `topk`."""
    few = 10
    count = 1000 if OPTIONS.quick else 100_000

    def sort(scores: torch.Tensor) -> torch.Tensor:
        return scores.argsort(dim=-1, descending=True)[:, :few]

    def top(scores: torch.Tensor) -> torch.Tensor:
        return scores.topk(few, dim=-1).indices

    def alone() -> tuple[Run, Run]:
        scores = tensor(64, count)
        return lambda: sort(scores), lambda: top(scores)

    words = "argsort(descending=True)[:, :10] against topk(10)"
    yield Pair("argsort-for-ten", "TPF309", words, "float32", f"64 × {count}", alone)

    def retrieval(choose: Of) -> Run:
        body = [each for _ in range(8) for each in (nn.Linear(512, 512), nn.GELU())]
        encoder, corpus, queries = nn.Sequential(*body).to(OPTIONS.device), tensor(count, 512), tensor(256, 512)

        @torch.inference_mode()
        def step() -> None:
            choose(encoder(queries) @ corpus.T)

        return step

    yield Pair(
        "argsort-for-ten-retrieval",
        "TPF309",
        "all scores of a query sorted for the best ten against topk",
        "float32",
        f"8 × Linear(512, 512) with GELU, 256 queries, {count} documents",
        lambda: (retrieval(sort), retrieval(top)),
        "step",
    )

    def decoding(choose: Of) -> Run:
        model, prompt = GPT().to(OPTIONS.device).bfloat16(), ids(8, 128)

        @torch.inference_mode()
        def step() -> None:
            logits = model.head(model.features(prompt)[:, -1]).float()
            torch.multinomial(choose(logits).softmax(-1), 1)

        return step

    yield Pair(
        "sort-for-fifty-gpt-decoding",
        "TPF309",
        "logits sorted for the first 50 against topk",
        "bfloat16",
        "GPT-2 of 124 M parameters, one token for batch 8 of 128 tokens",
        lambda: (
            decoding(lambda logits: logits.sort(dim=-1, descending=True).values[:, :50]),
            decoding(lambda logits: logits.topk(50, dim=-1).values),
        ),
        "step",
    )


def distances() -> Iterator[Pair]:
    """Distances of all pairs through all differences, against `torch.cdist`."""

    def differences(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.norm(x[:, None] - y[None], dim=-1)

    count, width = (64, 8) if OPTIONS.quick else (2048, 128)

    def alone() -> tuple[Run, Run]:
        x, y = tensor(count, width), tensor(count, width)
        return lambda: differences(x, y), lambda: torch.cdist(x, y)

    words = "norm(x[:, None] - y[None]) against torch.cdist"
    yield Pair("differences-for-distances", "TPF310", words, "float32", f"{count} and {count} points of {width}", alone)

    def metric_learning(far: OfTwo) -> Run:
        points = 32 if OPTIONS.quick else 1024
        body = [each for _ in range(8) for each in (nn.Linear(512, 512), nn.GELU())]
        model = nn.Sequential(*body, nn.Linear(512, 128)).to(OPTIONS.device)
        states = tensor(points, 512)
        same = torch.randint(0, 64, (points,), device=OPTIONS.device)
        alike = same[:, None] == same

        def loss() -> torch.Tensor:
            x = model(states)
            apart = far(x, x)
            return torch.where(alike, apart, (1 - apart).clamp(min=0)).mean()

        return train(model, loss, None)

    yield Pair(
        "differences-for-distances-metric-learning",
        "TPF310",
        "distances of all pairs of a batch through all differences against torch.cdist, forward and backward",
        "float32",
        "8 × Linear(512, 512) with GELU, batch 1024 of 128 numbers",
        lambda: (metric_learning(differences), metric_learning(torch.cdist)),
        "step",
    )

    def quantising(far: OfTwo) -> Run:
        tokens, codes = (64, 32) if OPTIONS.quick else (4096, 1024)
        around = [nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU()) for _ in range(2)]
        down, up = nn.Linear(512, 64), nn.Linear(64, 512)
        table = nn.Embedding(codes, 64)
        model = nn.ModuleList([*around, down, up, table]).to(OPTIONS.device)
        states = tensor(tokens, 512)

        def loss() -> torch.Tensor:
            x = down(around[0](states))
            with torch.no_grad():
                nearest = far(x, table.weight).argmin(1)
            kept = table(nearest)
            return F.mse_loss(around[1](up(x + (kept - x).detach())), states) + F.mse_loss(kept, x.detach())

        return train(model, loss, None)

    yield Pair(
        "differences-for-distances-vector-quantiser",
        "TPF310",
        "the nearest of 1024 codes through all differences against torch.cdist",
        "float32",
        "6 × Linear with GELU, 4096 tokens of 512, codes of 64",
        lambda: (quantising(differences), quantising(torch.cdist)),
        "step",
    )


class Compressed(Dataset[torch.Tensor]):
    """Images that are unpacked, cut and scaled when they are asked for, about as dear as a small JPEG."""

    def __init__(self) -> None:
        made = np.random.default_rng(0)
        # Numbers of few values, so that unpacking has something to do.
        self.packed = [zlib.compress(made.integers(0, 32, (256, 256, 3), np.uint8).tobytes(), 6) for _ in range(64)]

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> torch.Tensor:
        pixels = np.frombuffer(zlib.decompress(self.packed[index % 64]), np.uint8).reshape(256, 256, 3)
        top, left = index % 32, index // 32 % 32
        side = 64 if OPTIONS.quick else 224
        cut = torch.from_numpy(pixels[top : top + side, left : left + side].copy()).permute(2, 0, 1).float()
        return cut.div_(255).sub_(0.45).div_(0.22)


def loaders() -> Iterator[Pair]:
    """A training that unpacks its images itself, and one whose workers do."""

    def training(workers: int) -> Run:
        loader = DataLoader(
            Compressed(), 2 if OPTIONS.quick else 64, num_workers=workers, pin_memory=OPTIONS.device == "cuda"
        )
        batches = iter(loader)
        return resnet_step(
            resnet50(), lambda: next(batches).to(OPTIONS.device, non_blocking=True), torch.bfloat16, True
        )

    words = "images unpacked by the process that trains against eight workers"
    where = "ResNet-50, batch 64 of 3 × 224 × 224, zlib instead of JPEG, channels_last"
    yield Pair(
        "images-without-workers-resnet50", "TPF401", words, HALF, where, lambda: (training(0), training(8)), "step"
    )


class UNet(nn.Module):
    """Convolutions down and up, as segmentation and diffusion have them."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        sizes = [width << level for level in range(4)]
        self.down = nn.ModuleList(self.block(a, b) for a, b in zip([3, *sizes[:-1]], sizes, strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairwise(sizes))
        self.mix = nn.ModuleList(self.block(2 * a, a) for a in sizes[:-1])
        self.out = nn.Conv2d(width, 8, 1)

    @staticmethod
    def block(taken: int, given: int) -> nn.Sequential:
        """Two convolutions with their norms."""
        first, second = nn.Conv2d(taken, given, 3, 1, 1, bias=False), nn.Conv2d(given, given, 3, 1, 1, bias=False)
        return nn.Sequential(first, nn.BatchNorm2d(given), nn.ReLU(), second, nn.BatchNorm2d(given), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, 3, height, width) to (batch, 8, height, width)."""
        kept = []
        for level, down in enumerate(self.down):
            x = down(x if level == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for level in reversed(range(3)):
            x = self.mix[level](torch.cat([kept[level], self.up[level](x)], 1))
        return self.out(x)


def layouts() -> Iterator[Pair]:
    """Networks of convolutions in half precision, with and without channels_last."""

    def training(last: bool, dtype: torch.dtype) -> Run:
        layout = torch.channels_last if last else torch.contiguous_format
        width, batch, side = (8, 2, 32) if OPTIONS.quick else (64, 16, 256)
        model = UNet(width).to(OPTIONS.device).to(memory_format=layout)  # type: ignore[call-overload]
        x = tensor(batch, 3, side, side).contiguous(memory_format=layout)
        wanted = torch.randint(0, 8, (batch, side, side), device=OPTIONS.device)
        return train(model, lambda: F.cross_entropy(model(x), wanted), dtype)

    for name, words, dtype in (("bfloat16", HALF, torch.bfloat16), ("float16", "float16 autocast", torch.float16)):
        yield Pair(
            f"no-channels-last-unet-{name}",
            "TPF354",
            "contiguous against channels_last",
            words,
            "U-Net of 64 to 512 channels, batch 16 of 3 × 256 × 256, AdamW fused",
            lambda dtype=dtype: (training(False, dtype), training(True, dtype)),  # type: ignore[misc]
            "step",
        )

    def inference(batch: int, last: bool) -> Run:
        layout = torch.channels_last if last else torch.contiguous_format
        model = resnet50().eval().bfloat16().to(memory_format=layout)  # type: ignore[call-overload]
        x = images(batch).bfloat16().contiguous(memory_format=layout)

        @torch.inference_mode()
        def step() -> None:
            model(x)

        return step

    for batch in (1, 64):
        yield Pair(
            f"no-channels-last-resnet50-inference-{batch}",
            "TPF354",
            "contiguous against channels_last",
            "bfloat16",
            f"ResNet-50 in inference, batch {batch} of 3 × 224 × 224",
            lambda batch=batch: (inference(batch, False), inference(batch, True)),  # type: ignore[misc]
            "step",
        )


def batches() -> Iterator[Pair]:
    """Images that are normalised one by one, and the rows of a small network's output."""

    def by_image(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = (x[i] - x[i].mean()) / x[i].std()
        return out

    def at_once(x: torch.Tensor) -> torch.Tensor:
        return (x - x.mean((1, 2, 3), keepdim=True)) / x.std((1, 2, 3), keepdim=True)

    def training(normalise: Callable[[torch.Tensor], torch.Tensor]) -> Run:
        batch = images(64)
        return resnet_step(resnet50(), lambda: normalise(batch), torch.bfloat16, True)

    words = "images normalised one by one against all at once"
    where = "ResNet-50, batch 64 of 3 × 224 × 224, channels_last"
    yield Pair(
        "rows-in-a-loop-resnet50", "TPF208", words, HALF, where, lambda: (training(by_image), training(at_once)), "step"
    )

    def by_row(logits: torch.Tensor) -> torch.Tensor:
        return torch.stack([logits[i].softmax(0).max() for i in range(len(logits))])

    yield Pair(
        "rows-in-a-loop-policy",
        "TPF208",
        "the surest action of each row one by one against all at once",
        "float32",
        "8 × Linear(512, 512) with GELU, batch 256",
        lambda: (policy_step(by_row), policy_step(lambda logits: logits.softmax(1).amax(1))),
        "step",
    )


def classes() -> Iterator[Pair]:
    """The overlap of each class in a loss, with its backward."""
    count, side = 21, 8 if OPTIONS.quick else 128

    def by_class(probabilities: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        losses = []
        for c in range(count):
            shared = (probabilities[:, c] * wanted[:, c]).sum((1, 2))
            whole = probabilities[:, c].sum((1, 2)) + wanted[:, c].sum((1, 2))
            losses.append(1 - 2 * shared / (whole + 1e-6))
        return torch.stack(losses).mean()

    def at_once(probabilities: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        shared = (probabilities * wanted).sum((2, 3))
        whole = probabilities.sum((2, 3)) + wanted.sum((2, 3))
        return (1 - 2 * shared / (whole + 1e-6)).mean()

    def training(loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Run:
        features = list(resnet50().children())[:-3]
        model = nn.Sequential(*features, nn.Conv2d(2048, count, 1)).to(OPTIONS.device)
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
        batch = images(16).contiguous(memory_format=torch.channels_last)
        labels = torch.randint(0, count, (len(batch), side, side), device=OPTIONS.device)

        def step() -> None:
            with torch.autocast(OPTIONS.device, torch.bfloat16):
                logits = model(batch)
            logits = F.interpolate(logits.float(), (side, side), mode="bilinear")
            wanted = F.one_hot(labels, count).movedim(-1, 1).float()
            optimizer.zero_grad()
            loss(logits.softmax(1), wanted).backward()
            optimizer.step()

        return step

    yield Pair(
        "classes-in-a-loop-segmentation",
        "TPF208",
        "the Dice loss of 21 classes one by one against all at once",
        HALF,
        "ResNet-50 with a head for 21 classes, batch 16 of 3 × 224 × 224, masks of 128 × 128",
        lambda: (training(by_class), training(at_once)),
        "step",
    )


def masks() -> Iterator[Pair]:
    """A mask of causal blocks that is filled row by row in each step."""
    length, block = (32, 4) if OPTIONS.quick else (1024, 16)

    def by_row(loss: torch.Tensor) -> torch.Tensor:
        mask = torch.full((length, length), float("-inf"), device=loss.device)
        for i in range(length):
            mask[i, : (i // block + 1) * block] = 0
        return mask

    def at_once(loss: torch.Tensor) -> torch.Tensor:
        last = torch.arange(length, device=loss.device) // block
        return torch.zeros(length, length, device=loss.device).masked_fill_(last[None] > last[:, None], float("-inf"))

    def training(fill: Callable[[torch.Tensor], torch.Tensor]) -> Run:
        return gpt_step(GPT().to(OPTIONS.device), ids(8, 1024), end=fill)

    words = "a mask of 1024 rows filled one by one against a comparison"
    yield Pair(
        "mask-row-by-row-gpt", "TPF208", words, HALF, GPT_SHAPE, lambda: (training(by_row), training(at_once)), "step"
    )


def numbers() -> Iterator[Pair]:
    """Tokens of a loader, which come one by one."""
    count = 65 if OPTIONS.quick else 8 * 1024 + 1

    def one_by_one(tokens: deque[int]) -> torch.Tensor:
        scratch = torch.empty(count, dtype=torch.int64)
        for i in range(count):
            scratch[i] = tokens.popleft()
        return scratch

    def at_once(tokens: deque[int]) -> torch.Tensor:
        return torch.tensor([tokens.popleft() for _ in range(count)])

    def training(gather: Callable[[deque[int]], torch.Tensor]) -> Run:
        def fetch(_: torch.Tensor) -> torch.Tensor:
            return gather(deque(range(count))).to(OPTIONS.device)

        return gpt_step(GPT().to(OPTIONS.device), ids(8, 1024), end=fetch)

    yield Pair(
        "numbers-one-by-one-gpt",
        "TPF208",
        "the 8193 tokens of a batch stored one by one against a tensor of their list",
        HALF,
        GPT_SHAPE,
        lambda: (training(one_by_one), training(at_once)),
        "step",
    )


class Layer(nn.Module):
    """A transformer layer with a bias on its attention scores; `keep` makes what is added to its output again."""

    def __init__(self, width: int, heads: int, keep: Of) -> None:
        super().__init__()
        self.heads, self.keep = heads, keep
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """(batch, tokens, width) to the same; the bias is (batch, heads, tokens, tokens)."""
        batch, tokens, width = x.shape
        kept = self.keep(x)
        query, key, value = self.qkv(self.first(x)).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        x = kept + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        kept = self.keep(x)
        return kept + self.down(F.gelu(self.up(self.second(x))))


class Vision(nn.Module):
    """ViT-B/16 of 86 M parameters, or smaller. `start` joins patches with the model's own tokens."""

    def __init__(
        self,
        keep: Of = lambda x: x,
        start: Callable[[Vision, torch.Tensor], torch.Tensor] | None = None,
        spread: Callable[[torch.Tensor, int], torch.Tensor] | None = None,
    ) -> None:
        super().__init__()
        width, heads, layers, tokens = (64, 4, 2, 16) if OPTIONS.quick else (768, 12, 12, 256)
        self.patches = nn.Linear(768, width)
        self.classes = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, tokens + 1, width))
        self.layers = nn.ModuleList(Layer(width, heads, keep) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)
        self.start, self.spread = start or joined_by_expand, spread
        self.bias = torch.randn(1, heads, tokens, tokens, device=OPTIONS.device, dtype=torch.bfloat16)

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        """The classes of (batch, tokens, 768)."""
        x = self.start(self, self.patches(patches))
        for layer in self.layers:
            x = layer(x, None if self.spread is None else self.spread(self.bias, len(x)))
        return self.head(self.norm(x[:, 0]))


def joined_by_repeat(model: Vision, x: torch.Tensor) -> torch.Tensor:
    """The class token in front, positions added, both repeated for each image."""
    x = torch.cat([model.classes.repeat(x.shape[0], 1, 1), x], dim=1)
    return x + model.positions.repeat(x.shape[0], 1, 1)


def joined_by_expand(model: Vision, x: torch.Tensor) -> torch.Tensor:
    """The same of views."""
    x = torch.cat([model.classes.expand(x.shape[0], -1, -1), x], dim=1)
    return x + model.positions.expand(x.shape[0], -1, -1)


def patches_alone(model: Vision, x: torch.Tensor) -> torch.Tensor:
    """Patches with their positions, without a class token: a number of them that attention kernels like."""
    return x + model.positions[:, 1:]


def masked_by_repeat(model: Vision, x: torch.Tensor) -> torch.Tensor:
    """Three quarters of the patches left out by random choice, with an index for each number of a token."""
    x = joined_by_expand(model, x)[:, 1:]
    kept = torch.rand(x.shape[:2], device=x.device).argsort(dim=1)[:, : x.shape[1] // 4]
    return torch.gather(x, dim=1, index=kept.unsqueeze(-1).repeat(1, 1, x.shape[2]))


def masked_by_expand(model: Vision, x: torch.Tensor) -> torch.Tensor:
    """The same with one index for each token."""
    x = joined_by_expand(model, x)[:, 1:]
    kept = torch.rand(x.shape[:2], device=x.device).argsort(dim=1)[:, : x.shape[1] // 4]
    return torch.gather(x, dim=1, index=kept.unsqueeze(-1).expand(-1, -1, x.shape[2]))


def training(model: Vision) -> Run:
    """A training step of batch 64 under bfloat16 autocast."""
    batch, tokens = (2, 16) if OPTIONS.quick else (64, 256)
    model = model.to(OPTIONS.device)
    patches, targets = tensor(batch, tokens, 768), torch.randint(0, 1000, (batch,), device=OPTIONS.device)
    return train(model, lambda: F.cross_entropy(model(patches), targets))


def in_vit(rule: str, name: str, words: str, bad: Callable[[], Vision], good: Callable[[], Vision]) -> Pair:
    """A pair of whole training steps of the vision transformer."""
    shape = "ViT-B/16, batch 64 of 256 patches, AdamW fused"
    return Pair(f"{name}-vit", rule, words, HALF, shape, lambda: (training(bad()), training(good())), "step")


def repeats() -> Iterator[Pair]:
    """Tensors of one row repeated over a batch, against views of them."""

    def alone() -> tuple[Run, Run]:
        x, positions = tensor(64, 256, 768), tensor(1, 256, 768)
        return lambda: x + positions.repeat(64, 1, 1), lambda: x + positions.expand(64, -1, -1)

    words = "x + positions.repeat(64, 1, 1) against expand"
    yield Pair("repeat-positions", "TPF212", words, "float32", "64 × 256 × 768", alone)
    words = "class token and positions repeated over the batch against expand"
    yield in_vit("TPF212", "repeat-tokens", words, lambda: Vision(start=joined_by_repeat), Vision)
    yield in_vit(
        "TPF212",
        "repeat-gather-index",
        "an index repeated for each number of a token, for a gather of a quarter of the patches, against expand",
        lambda: Vision(start=masked_by_repeat),
        lambda: Vision(start=masked_by_expand),
    )
    yield in_vit(
        "TPF212",
        "repeat-bias-each-layer",
        "a bias of the attention scores repeated over the batch in each of 12 layers against expand",
        lambda: Vision(start=patches_alone, spread=lambda bias, count: bias.repeat(count, 1, 1, 1)),
        lambda: Vision(start=patches_alone, spread=lambda bias, count: bias.expand(count, -1, -1, -1)),
    )


def clones() -> Iterator[Pair]:
    """Clones that nothing writes to."""

    def alone() -> tuple[Run, Run]:
        x, y = tensor(64, 3, 224, 224), tensor(64, 3, 224, 224)
        return lambda: x.clone() + y, lambda: x + y

    yield Pair("clone-in-sum", "TPF213", "x.clone() + y against x + y", "float32", "64 × 3 × 224 × 224", alone)
    words = "the input of each residual branch cloned in each of 12 layers against none"
    yield in_vit("TPF213", "clone-each-layer", words, lambda: Vision(keep=torch.clone), Vision)


def arrays() -> Iterator[Pair]:
    """Lists of arrays that torch reads number by number."""

    def fetched(make: Callable[[list[np.ndarray]], torch.Tensor]) -> Run:
        width, count = (32, 8) if OPTIONS.quick else (512, 256)
        states = [np.random.rand(width).astype(np.float32) for _ in range(count)]
        return policy_step(lambda logits: make(states).to(logits.device))

    yield Pair(
        "list-of-arrays-policy",
        "TPF214",
        "torch.tensor(list of 256 arrays of 512) against torch.from_numpy(numpy.stack(list))",
        "float32",
        "8 × Linear(512, 512) with GELU, batch 256",
        lambda: (fetched(torch.tensor), fetched(lambda states: torch.from_numpy(np.stack(states)))),
        "step",
    )


FAMILIES = (gradients, sorts, distances, loaders, layouts, batches, classes, masks, numbers, repeats, clones, arrays)

if __name__ == "__main__":
    main("detours", __doc__, FAMILIES)
