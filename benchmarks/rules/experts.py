"""What habits cost that the catalogues of experts name: attention, decoding, compiled code, evaluation, loading.

Prints the rows of `perflint/rules/worth.toml`, or the peaks of memory.
Usage: python benchmarks/rules/experts.py [--device cpu --quick] [--memory] [PREFIX …]  (rows whose name starts so)
Some rows need pandas, torchao, bitsandbytes, or transformers or diffusers with accelerate, and fail without.
"""

from __future__ import annotations

import itertools
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from compile import SHAPE as STACK
from compile import Block as Mixing
from compile import Stack
from detours import Compressed
from programs import GPT, Attend, causal, ids, resnet50, resnet_step, train
from sizes import captured
from timing import OPTIONS, Pair, Run, main, tensor
from torch import nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.utils.rnn import pad_sequence
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

FULL, HALF, HALVED = "float32", "bfloat16 autocast", "bfloat16"
TRAINING = "GPT-2 of 124 M parameters, batch 8 of 1024 tokens, AdamW fused"
PREFILL = "GPT-2 of 124 M parameters, forward of 8 × 1024 tokens"
LARGE = "a decoder of 16 layers of width 2048 with 128256 words"
LAYERS = "12 transformer layers of width 768"


def step(
    name: str, rule: str, words: str, dtype: str, shape: str, make: Callable[[bool], Run], scope: str = "step"
) -> Pair:
    """A pair of whole steps; `make(True)` is the bad one."""
    return Pair(name, rule, words, dtype, shape, lambda: (make(True), make(False)), scope)


def small() -> GPT:
    """GPT-2 in training."""
    return GPT().to(OPTIONS.device)


def large(layers: int = 16) -> GPT:
    """A decoder of 1.3 billion parameters."""
    with torch.device(OPTIONS.device):
        return GPT(2048, 32, layers, 128256)


def attending(model: GPT, make: Callable[[], Attend]) -> GPT:
    """The model with another attention in each layer."""
    for block in model.blocks:
        block.attend = make()
    return model


def evaluated(model: nn.Module, result: Callable[[], object]) -> Run:
    """What computes a result in evaluation."""
    model.eval()
    return torch.inference_mode()(result)


def prefill(attend: Attend) -> Run:
    """The features of 8 × 1024 tokens."""
    model, prompt = attending(small().bfloat16(), lambda: attend), ids(8, 1024)
    return evaluated(model, lambda: model.features(prompt))


def training(attend: Attend) -> Run:
    """A training step of GPT-2."""
    model, batch = attending(small(), lambda: attend), ids(8, 1024)
    return train(model, lambda: model(batch))


def attention() -> Iterator[Pair]:
    """Forms of attention that a fast kernel does not take, or that work for nothing."""
    lower = torch.ones(1024, 1024, dtype=torch.bool, device=OPTIONS.device).tril()

    def masked(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        tokens = query.shape[-2]
        return F.scaled_dot_product_attention(query, key, value, attn_mask=lower[:tokens, :tokens])

    words = "a causal mask as a tensor against is_causal=True"
    for name, dtype, shape, run in (("gpt", HALF, TRAINING, training), ("prefill", HALVED, PREFILL, prefill)):
        make = partial(lambda bad, run: run(masked if bad else causal), run=run)
        yield step(f"causal-mask-tensor-{name}", "TPF311", words, dtype, shape, make)

    def dropping(bad: bool) -> Run:
        return prefill(partial(F.scaled_dot_product_attention, is_causal=True, dropout_p=0.1 if bad else 0.0))

    words = "dropout of attention in evaluation against none"
    yield step("dropout-in-evaluation-gpt", "TPF505", words, HALVED, PREFILL, dropping)


def grouped() -> Iterator[Pair]:
    """A head of keys and values for four heads of queries: repeated, or shared."""

    def attend(bad: bool, query: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        causal, few = query.shape[2] > 1, others
        if bad:
            few = tuple(each.repeat_interleave(4, 1) for each in others)
        return F.scaled_dot_product_attention(query, *few, is_causal=causal, enable_gqa=not bad)

    def trained(bad: bool) -> Run:
        return training(lambda query, key, value: attend(bad, query, key[:, ::4], value[:, ::4]))

    words = "keys and values repeated for four heads of queries against enable_gqa=True"
    yield step("repeated-heads-gpt", "TPF312", words, HALF, TRAINING, trained)

    def decoded(bad: bool) -> Run:
        model, last = large().bfloat16(), ids(16, 1)[:, :1]
        heads, size = model.blocks[0].heads, model.norm.normalized_shape[0] // model.blocks[0].heads

        def remembering() -> Attend:
            kept = [tensor(len(last), heads // 4, 4096, size, dtype=torch.bfloat16) for _ in range(2)]
            return lambda query, *_: attend(bad, query, *kept)

        attending(model, remembering)
        return evaluated(model, lambda: model.features(last))

    where = f"{LARGE}, one token after 4096, batch 16, 32 heads of queries"
    yield step("repeated-heads-decoding", "TPF312", words, HALVED, where, decoded)


def flexible() -> Iterator[Pair]:
    """`flex_attention` and its masks."""
    fast, tokens = torch.compile(flex_attention), 128 if OPTIONS.quick else 8192

    def near(batch: object, head: object, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        return (i >= j) & (i - j <= 1024)

    def mask() -> Any:
        return create_block_mask(near, None, None, tokens, tokens, device=OPTIONS.device)

    def flex(bad: bool, what: str) -> Run:
        kept, attend = mask(), flex_attention if bad and what == "call" else fast
        model = attending(small().bfloat16(), lambda: lambda *heads: attend(*heads, block_mask=kept))
        layers = nn.Sequential(*model.blocks)
        x = tensor(1, tokens, model.norm.normalized_shape[0], dtype=torch.bfloat16)

        def result() -> None:
            nonlocal kept
            kept = mask() if bad and what == "mask" else kept
            layers(x)

        return evaluated(model, result)

    where = f"{LAYERS}, forward of 1 × 8192 tokens, a window of 1024"
    words = "flex_attention uncompiled against compiled"
    yield step("flex-uncompiled", "TPF315", words, HALVED, where, partial(flex, what="call"))
    words = "create_block_mask in each step against a mask that is kept, flex_attention compiled"
    yield step("block-mask-each-step", "TPF316", words, HALVED, where, partial(flex, what="mask"))


class Cache:
    """Keys and values of a layer: joined with those of each token, or in a buffer, written where `position` says."""

    def __init__(self, position: torch.Tensor | None = None, kept: tuple[torch.Tensor, ...] = ()) -> None:
        self.position, self.kept = position, kept

    def __call__(self, query: torch.Tensor, *new: torch.Tensor) -> torch.Tensor:
        """Attention to all tokens so far."""
        if self.position is None:
            pairs = zip(self.kept, new, strict=True)
            self.kept = tuple(torch.cat(pair, 2) for pair in pairs) if self.kept else new
            return F.scaled_dot_product_attention(query, *self.kept, is_causal=query.shape[2] > 1)
        for buffer, rows in zip(self.kept, new, strict=True):
            buffer.index_copy_(2, self.position, rows)
        seen = torch.arange(self.kept[0].shape[2], device=query.device)[None] <= self.position
        return F.scaled_dot_product_attention(query, *self.kept, attn_mask=seen)


def decoding() -> Iterator[Pair]:
    """Tokens one after the other."""
    count = 4 if OPTIONS.quick else 64

    def generated(bad: bool, make: Callable[[], GPT]) -> Run:
        model, prompt = make().bfloat16(), ids(8, 512)

        def result() -> None:
            given = prompt
            attending(model, (lambda: causal) if bad else Cache)
            for _ in range(count):
                token = model.head(model.features(given)[:, -1:]).argmax(-1)
                given = torch.cat([given, token], 1) if bad else token

        return evaluated(model, result)

    words = "the whole sequence computed again for each token against a cache"
    models = (("gpt", "GPT-2 of 124 M parameters", small), ("decoder", LARGE, large))
    for name, where, maker in models:
        run = partial(generated, make=maker)
        yield step(f"decoding-without-cache-{name}", "TPF317", words, HALVED, f"{where}, 64 tokens after 8 × 512", run)

    def continued(bad: bool, graph: bool, make: Callable[[], GPT], batch: int, before: int) -> Run:
        model, last = make().bfloat16(), ids(batch, 1)[:, :1]
        heads, width = model.blocks[0].heads, model.norm.normalized_shape[0]
        rows = before if bad else before + 512
        known = torch.randn(len(last), heads, rows, width // heads, device=OPTIONS.device).bfloat16()
        position = None if bad else torch.tensor([before], device=OPTIONS.device)
        token = evaluated(
            attending(model, lambda: Cache(position, (known, known.clone()))), lambda: model.features(last)
        )
        token = captured(token) if graph and not bad else token

        def result() -> None:
            if bad:
                attending(model, lambda: Cache(None, (known, known)))
            for _ in range(count):
                token()

        return result

    for (name, where, maker), batch, before in zip(models, (8, 16), (512, 4096), strict=True):
        for end, graph, more in (("", False, ""), ("-graph", True, ", replayed as a CUDA graph")):
            words = f"a cache that grows by torch.cat against a buffer with room for 512 more{more}"
            place = f"{where}, 64 tokens after {batch} × {before}, without these"
            run = partial(continued, graph=graph, make=maker, batch=batch, before=before)
            yield step(f"growing-cache-{name}{end}", "TPF318", words, HALVED, place, run)


def vocabularies() -> Iterator[Pair]:
    """Scores of all words for all tokens."""

    def last(bad: bool) -> Run:
        model, prompt = large().bfloat16(), ids(8, 1024)
        if bad:
            return evaluated(model, lambda: model.logits(prompt)[:, -1])
        return evaluated(model, lambda: model.head(model.features(prompt)[:, -1]))

    where = f"{LARGE}, forward of 8 × 1024 tokens"
    words = "the head over all positions, of which the last is used, against the last alone"
    yield step("logits-of-all-positions", "TPF313", words, HALVED, where, last)

    def loss(bad: bool) -> Run:
        model, batch = large(4), ids(8, 1024)

        def part(hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            return F.cross_entropy(model.head(hidden), targets, reduction="sum") / batch.numel()

        def result() -> torch.Tensor:
            hidden, targets = model.features(batch).flatten(0, 1), batch.flatten()
            if bad:
                return part(hidden, targets)
            pairs = zip(hidden.chunk(8), targets.chunk(8), strict=True)
            return torch.stack([checkpoint(part, *pair, use_reentrant=False) for pair in pairs]).sum()

        return train(model, result)

    where = "4 transformer layers of width 2048, 128256 words, 8 × 1024 tokens, AdamW fused"
    words = "cross_entropy of all scores against eight chunks that are computed again in the backward pass"
    yield step("loss-of-large-vocabulary", "TPF319", words, HALF, where, loss)


def formats() -> Iterator[Pair]:
    """Where autocast ends, and whether it begins."""

    def trained(bad: bool, backward: Callable[[torch.Tensor], object], dtype: torch.dtype | None) -> Run:
        model, batch = small(), ids(8, 1024)
        if not bad:
            return train(model, lambda: model(batch))
        return train(model, lambda: model(batch), dtype, backward=backward)

    def inside(loss: torch.Tensor) -> None:
        with torch.autocast(OPTIONS.device, torch.bfloat16):
            loss.backward()

    words, make = "a backward pass under autocast against one after it", partial(trained, backward=inside)
    yield step("backward-in-autocast-gpt", "TPF360", words, HALF, TRAINING, partial(make, dtype=torch.bfloat16))
    words, make = "training in float32 against autocast to bfloat16", partial(trained, backward=torch.Tensor.backward)
    yield step("trainer-in-float32-gpt", "TPF950", words, FULL, TRAINING, partial(make, dtype=None))


class Moved(Compressed):
    """Images that the data set moves to the device."""

    def __getitem__(self, index: int) -> torch.Tensor:
        return super().__getitem__(index).to(OPTIONS.device)


class Rows(Dataset[torch.Tensor]):
    """A thousand rows of a table of 16 columns, or of a tensor."""

    def __init__(self, is_table: bool) -> None:
        import pandas

        table = pandas.DataFrame(np.random.rand(10_000, 16), columns=[f"column {each}" for each in range(16)])
        self.rows = table if is_table else torch.tensor(table.to_numpy(dtype="float32"))

    def __len__(self) -> int:
        return 1_000

    def __getitem__(self, index: int) -> torch.Tensor:
        if isinstance(self.rows, torch.Tensor):
            return self.rows[index]
        return torch.tensor(self.rows.iloc[index].values.astype("float32"))


def loading() -> Iterator[Pair]:
    """What data sets and checkpoints put on the GPU, and tables that give rows."""

    def trained(bad: bool) -> Run:
        batch, pin = 2 if OPTIONS.quick else 64, OPTIONS.device == "cuda" and not bad
        loader = DataLoader(Moved() if bad else Compressed(), batch, num_workers=0 if bad else 8, pin_memory=pin)
        batches = iter(loader)

        def fetch() -> torch.Tensor:
            return next(batches).to(OPTIONS.device, non_blocking=True)

        return resnet_step(resnet50(), fetch, torch.bfloat16, True)

    where = "ResNet-50, batch 64 of 3 × 224 × 224, zlib instead of JPEG, channels_last"
    words = "items that the data set moves to the GPU, so without workers, against batches of eight workers"
    yield step("items-on-device-resnet50", "TPF405", words, HALF, where, trained)

    def read(bad: bool) -> Run:
        loader = DataLoader(Rows(bad), 100)
        return lambda: [None for _ in loader]

    words = "an epoch over rows of a table by iloc against rows of a tensor, on the CPU, without workers"
    where = "ten batches of 100 rows of 16 columns"
    yield step("frame-row-each-item", "TPF408", words, FULL, where, read, "operation")

    def restored(bad: bool) -> Run:
        model, folder = small(), tempfile.TemporaryDirectory()
        path, options = Path(folder.name) / "model.pt", {"map_location": OPTIONS.device}
        torch.save(model.state_dict(), path)

        def run() -> None:
            assert folder, "it lives as long as the run"
            model.load_state_dict(torch.load(path, **(options if bad else {"map_location": "cpu", "mmap": True})))

        return run

    words = "load_state_dict(torch.load(path, map_location='cuda')) against map_location='cpu', mmap=True"
    where = "GPT-2 of 124 M parameters"
    yield step("checkpoint-twice-on-gpu", "TPF964", words, FULL, where, restored, "operation")


def apart(bad: bool, body: Callable[..., torch.Tensor], **options: Any) -> Callable[..., torch.Tensor]:
    """A function, compiled for itself: what was compiled is counted by the code, of which each side has its own."""
    if bad:
        torch._dynamo.reset()
        return torch.compile(lambda *given: body(*given), **options)
    return torch.compile(lambda *given: body(*given), **options)


def warm(what: str, run: Run, times: int) -> None:
    """Run the first times, which compile, and print their seconds as a comment."""
    begun = time.perf_counter()
    for _ in range(times):
        run()
    print(f"# {what}: the first {times} runs take {time.perf_counter() - begun:.1f} s", flush=True)


def compiling() -> Iterator[Pair]:
    """Numbers and sizes that change, memory of graphs, and code that is not compiled."""
    rows, width = (8, 32) if OPTIONS.quick else (256, 512)

    def numbered(bad: bool) -> Run:
        model = nn.Sequential(Mixing(width), Mixing(width)).to(OPTIONS.device)
        scaled = apart(bad, lambda x, number: model(x) * (1 + 1e-6 * number), dynamic=False if bad else None)
        x, numbers = tensor(rows, width), itertools.count()
        run = evaluated(model, lambda: scaled(x, next(numbers)))
        warm(f"changing-number, dynamic={'False' if bad else 'None'}", run, 12)
        return run

    words = "a number that changes in a forward compiled with dynamic=False, after the limit, against the default"
    where = "two pre-norm MLP blocks of width 512, 256 rows, forward, compiled"
    yield step("changing-number", "TPF717", words, FULL, where, numbered)

    def ragged(bad: bool) -> Run:
        model = Stack().to(OPTIONS.device)
        forward = apart(bad, model, mode="reduce-overhead")
        batches = [tensor(size, width) for size in ((rows, rows // 2 + 1) if bad else (rows,))]
        warm(f"ragged-last-batch, {len(batches)} sizes", evaluated(model, lambda: [forward(x) for x in batches]), 4)
        return evaluated(model, lambda: forward(batches[0]))

    words = "full batches after a smaller one, with mode='reduce-overhead', against full batches alone"
    yield step("ragged-last-batch", "TPF407", words, FULL, STACK, ragged)

    def graphs(bad: bool) -> Run:
        model, kept = small().bfloat16(), []
        pool = torch.cuda.graph_pool_handle() if OPTIONS.device == "cuda" and not bad else None
        for power in range(6) if bad else range(5, -1, -1):
            prompt = ids(2**power, 256)
            run = evaluated(model, lambda given=prompt: model.head(model.features(given)[:, -1]))  # type: ignore[misc]
            kept.append(captured(run, pool))
        return lambda: [replay() for replay in kept]

    where = "GPT-2 of 124 M parameters, graphs for 1, 2, 4, 8, 16 and 32 × 256 tokens"
    words = "CUDA graphs with a pool each against one pool, largest first"
    yield step("pool-per-graph-gpt", "TPF813", words, HALVED, where, graphs)

    def quantized(bad: bool) -> Run:
        from torchao.quantization import Float8DynamicActivationFloat8WeightConfig, Int8WeightOnlyConfig, quantize_

        size, on_gpu = 64 if OPTIONS.quick else 4096, OPTIONS.device == "cuda"
        model = nn.Sequential(*[Mixing(size) for _ in range(8)]).to(OPTIONS.device, torch.bfloat16)
        x = tensor(size, size, dtype=torch.bfloat16)
        quantize_(model, Float8DynamicActivationFloat8WeightConfig() if on_gpu else Int8WeightOnlyConfig())
        return evaluated(model, partial(model if bad else torch.compile(model), x))

    words = "a forward pass that torchao quantized to float8, eager against compiled"
    where = "eight pre-norm MLP blocks of width 4096, 4096 rows"
    yield step("quantized-uncompiled", "TPF947", words, "float8", where, quantized)

    def packed(bad: bool, rows: int) -> Run:
        from bitsandbytes.nn import Linear4bit

        size, dtype = 64 if OPTIONS.quick else 4096, torch.float32 if bad else torch.bfloat16
        layers = [Linear4bit(size, size, bias=False, compute_dtype=dtype, quant_type="nf4") for _ in range(16)]
        model = nn.Sequential(*layers).to(OPTIONS.device)
        return evaluated(model, partial(model, tensor(rows, size, dtype=torch.bfloat16)))

    words = "weights of four bits (bitsandbytes, nf4) that compute in float32 against bfloat16"
    for rows in (1, 512):
        where, make = f"16 × Linear(4096, 4096), {rows} rows", partial(packed, rows=rows)
        yield step(f"four-bit-in-float32-{rows}", "TPF945", words, HALVED, where, make)


def libraries() -> Iterator[Pair]:
    """Pipelines."""
    draw = random.Random(0)
    texts = [[draw.randrange(500) for _ in range(draw.randint(16, 30))] for _ in range(4 if OPTIONS.quick else 64)]

    def classified(bad: bool) -> Run:
        model, size = small().bfloat16(), 1 if bad else 64

        def result() -> None:
            for first in range(0, len(texts), size):
                batch = pad_sequence([torch.tensor(text) for text in texts[first : first + size]], batch_first=True)
                model.features(batch.to(OPTIONS.device))[:, 0].argmax(-1).tolist()

        return evaluated(model, result)

    words = "texts one at a time against one batch, their classes read"
    where = f"{LAYERS}, 64 texts of 16 to 30 tokens"
    yield step("one-item-at-a-time", "TPF946", words, HALVED, where, classified)

    def denoised(bad: bool, offload: bool) -> Run:
        from accelerate import cpu_offload
        from diffusers import UNet2DConditionModel

        widths = (32, 32, 32, 32) if OPTIONS.quick else (320, 640, 1280, 1280)
        with torch.device(OPTIONS.device):
            model = UNet2DConditionModel(block_out_channels=widths, cross_attention_dim=768).bfloat16()
        if bad and offload:
            cpu_offload(model.cpu(), torch.device(OPTIONS.device))
        elif bad:
            model.set_attention_slice("auto")
        side = 8 if OPTIONS.quick else 64
        latents, text = tensor(2, 4, side, side, dtype=torch.bfloat16), tensor(2, 77, 768, dtype=torch.bfloat16)
        return evaluated(model, lambda: model(latents, 500, text))

    def assessed(bad: bool) -> Run:
        from transformers import EvalPrediction, GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

        sizes = {"vocab_size": 512, "n_embd": 64, "n_layer": 2, "n_head": 2} if OPTIONS.quick else {}
        with torch.device(OPTIONS.device):
            model = GPT2LMHeadModel(GPT2Config(**sizes))
        rows = [{"input_ids": text, "labels": text} for text in ids(8, 1024, model.config.vocab_size).cpu()]
        cpu = OPTIONS.device == "cpu"
        settings = {"bf16": not cpu, "use_cpu": cpu, "report_to": [], "disable_tqdm": True}
        arguments = TrainingArguments(tempfile.gettempdir(), per_device_eval_batch_size=4, **settings)

        def accuracy(result: EvalPrediction) -> dict[str, float]:
            best = result.predictions.argmax(-1) if bad else result.predictions
            return {"accuracy": (best[:, :-1] == result.label_ids[:, 1:]).mean()}

        best = None if bad else lambda logits, _: logits.argmax(-1)
        trainer = Trainer(model, arguments, compute_metrics=accuracy, preprocess_logits_for_metrics=best)
        return partial(trainer.predict, rows)

    words = "an evaluation that keeps the logits of all words against preprocess_logits_for_metrics with argmax"
    where = "GPT-2 of 124 M parameters (transformers), two batches of 4 × 1024 tokens"
    yield step("all-logits-kept", "TPF949", words, HALF, where, assessed)

    where = "the UNet of Stable Diffusion 1, 860 M parameters, one denoising step of 2 × 4 × 64 × 64"
    for words, offload in (("attention slicing", False), ("sequential offloading to the CPU", True)):
        make = partial(denoised, offload=offload)
        yield step(f"denoising-{words.split()[0]}", "TPF951", f"{words} against none", HALVED, where, make)


FAMILIES = (attention, grouped, flexible, decoding, vocabularies, formats, loading, compiling, libraries)

if __name__ == "__main__":
    main("experts", __doc__, FAMILIES)
