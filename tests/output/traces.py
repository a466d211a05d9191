"""Traces to write reports of."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from perflint.tracer.events import (
    Activity,
    AllocatorChurn,
    Compilation,
    CudagraphSkip,
    Experiment,
    Failure,
    Gap,
    GraphBreak,
    Header,
    HeldMemory,
    Hits,
    Idle,
    Kernel,
    ModuleCall,
    PageableCopy,
    Place,
    Recompile,
    Record,
    Step,
    Sync,
    TensorFacts,
)
from perflint.tracer.places import source_file
from perflint.tracer.trace import Trace

CODE = """import torch


def train(model, loader, optimizer):
    total = 0.0
    for images, labels in loader:
        scores = model(images.cuda(non_blocking=True))
        loss = torch.nn.functional.cross_entropy(scores, labels.cuda())
        loss.backward()
        optimizer.step()
        total += loss.item() + float(loss)
        print(total, loss.item())
    return total
"""
HOSTILE = "</title><script>alert(1)</script>\"'&amp;<img src=x onerror=y>`\u202e\udc80\x00\x1b[31m\n]]>"
"""Text that does harm where it is not escaped."""


def header(**changes: Any) -> Header:
    """A header of a run on a GPU."""
    facts: dict[str, Any] = {
        "perflint": "0.1.0", "python": "3.12.3", "torch": "2.11.0", "devices": ("NVIDIA H200",),
        "program": ("train.py", "--epochs", "1"), "root": "/project", "started": "2026-11-21T21:14:05+00:00",
        "step_source": "optimizer", "warmup": 5, "steps": 12, "steps_per_window": 1, "ended": "finished",
        "lines_recorded": True,
    }  # fmt: skip
    return Header(**facts | changes)


def place(line: int, expression: str = "loss.item()", file: str = "train.py") -> Place:
    """An expression of `CODE`."""
    text = CODE.splitlines()[line - 1]
    column = text.index(expression) + 1
    return Place(file, line, column, line, column + len(expression), "train", text.strip())


ITEM, FLOAT, PRINTED = place(11), place(11, "float(loss)"), place(12)
_INPUT = TensorFacts((64, 3, 224, 224), "float32", "cuda:0", "channels_last")
RECORDS: tuple[Record, ...] = (
    source_file("train.py", CODE.splitlines(keepends=True)),
    Step(0, 1, 50.0),
    *(Step(index, 1, 9.1) for index in range(1, 10)),
    Step(10, 1, 9.5, True, 7.0, 2.5, 2, 1),
    Step(11, 1, 9.5, True, 7.0, 2.5, 2, 1),
    Sync(ITEM, "implicit", Hits(12), stack=("train.py:10 train", "train.py:40 main"), inner="torch/_tensor.py:9"),
    Sync(FLOAT, "implicit", Hits(12)),
    Sync(PRINTED, "explicit", Hits(24), thread="Logger"),
    Sync(place(13, "total"), "implicit", Hits(1), allowed="once an epoch"),
    PageableCopy(place(7, "images.cuda(non_blocking=True)"), "host-to-device", 38_535_168, Hits(12)),
    *(Gap(step, "sync", ITEM, 1, 1.2, 8.0, 0.3) for step in (10, 11)),
    *(Gap(step, "loader", None, 1, 0.4) for step in (10, 11)),
    *(Gap(step, "host", None, 3, 0.6) for step in (10, 11)),
    Kernel("void gemm<float>(float*)", "kernel", 4, 13.0),
    Kernel("void at::native::" + "elementwise_kernel<" * 9, "kernel", 2, 0.9),
    *(
        Activity(10 + number, start + number * 9500, us, 7, kind, name)
        for number in range(2)
        for start, us, kind, name in ((0.0, 4000.0, "kernel", "gemm"), (4400.0, 2900.0, "kernel", "add"),
                                      (7300.0, 100.0, "copy", "Memcpy DtoH"))
    ),
    Idle(10, 7400.0, 1200.0, "sync", ITEM),
    Idle(10, 4000.0, 400.0, "loader", None),
    Idle(11, 16900.0, 1200.0, "sync", ITEM),
    ModuleCall("conv", "torch.nn.modules.conv.Conv2d", "3, 64", place(7, "model"), (_INPUT,), (), True, True, False,
               "bfloat16", 2, 2),
    GraphBreak(ITEM, "Tensor.item() called", 3),
    Recompile("train.py", 4, "train", "size mismatch", 2),
    Compilation("train.py", 4, "train", 3, 12.34),
    CudagraphSkip("cpu device", 1),
    AllocatorChurn(0, 10, 1349, 12, 3, 0, 93_499_392),
    HeldMemory(0, None, "before", 50_000_000, 0),
    HeldMemory(0, ITEM, "step", 30_000_000, 2),
    HeldMemory(0, None, "step", 13_499_392, 7),
    Experiment("bias-before-norm", ("TPF301",), "layer", place(7, "model"), "conv Conv2d(3, 64)", "bias=False",
               ((64, 3, 224, 224),), "bfloat16", "cuda:0", 0.412, 0.301, 1.37, 1.33, 1.41, 20, 2.0, 0.0),
    Experiment("compile", (), "model", None, "Net", "torch.compile", (), "float32", "cuda:0", 9.0, 9.1, 0.99, 0.97,
               1.02, 20, 1.0, None, "The outputs are compared elsewhere."),
    Failure("compilation", "no counters"),
)  # fmt: skip
TRACE = Trace(header(), RECORDS)


def without(*kinds: type) -> Trace:
    """The trace without some kinds of records."""
    return replace(TRACE, records=tuple(record for record in RECORDS if not isinstance(record, kinds)))


def project(folder: Path, code: str = CODE) -> Path:
    """A folder with the traced file."""
    (folder / "train.py").write_text(code, encoding="utf-8")
    return folder


def poisoned(value: Any, kept: frozenset[str] = frozenset()) -> Any:
    """A record whose texts are hostile, but for those of some fields."""
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, tuple):
        return tuple(poisoned(item, kept) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if field.name not in kept]
        return replace(value, **{name: poisoned(getattr(value, name), kept) for name in names})
    return value
