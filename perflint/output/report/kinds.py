"""The kinds of work that kernels do, by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from perflint.output.report.facts import finite
from perflint.tracer.events import Kernel

_KINDS = (
    ("collectives", r"nccl|rccl|all_?reduce|all_?gather|reduce_?scatter"),
    ("copies and fills", r"^mem(cpy|set)|memcpy|memset|copy_kernel|FillFunctor|direct_copy"),
    ("layout conversions", r"nchwToNhwc|nhwcToNchw|transpose|permute|convertTensor|im2col|col2im"),
    ("attention", r"flash|fmha|attention|sdpa"),
    ("optimizer", r"adam|sgd|multi_tensor_apply|foreach|lamb"),
    ("normalization", r"norm|bn_fw|bn_bw|batch_norm|welford"),
    ("convolutions", r"conv|cudnn|winograd|dgrad|wgrad|fprop"),
    ("matrix products", r"gemm|cutlass|cublas|nvjet|splitK|matmul|gemv|xmma"),
    ("losses and softmax", r"softmax|nll_loss|cross_entropy"),
    ("reductions", r"reduce|argmax|cumsum|scan|sort|topk|radix"),
    ("indexing", r"index|gather|scatter|embedding"),
    ("element by element", r"elementwise|vectorized|triton_poi|pointwise|dropout|unrolled"),
)
"""A kind and the names of its kernels, the more special kinds first. Names are those of cuDNN, cuBLAS, CUTLASS,
NCCL and of torch's own kernels."""
_OTHER = "other kernels"
LAYOUT = "layout conversions"


def kind_of(name: str) -> str:
    """The kind of a kernel's work."""
    return next((kind for kind, pattern in _KINDS if re.search(pattern, name, re.IGNORECASE)), _OTHER)


def by_kind(kernels: Iterable[Kernel]) -> list[tuple[str, float, int]]:
    """The kinds of work with their milliseconds and numbers of kernels, the longest first."""
    found: dict[str, tuple[float, int]] = {}
    for kernel in kernels:
        ms, count = found.get(kind_of(kernel.name), (0.0, 0))
        found[kind_of(kernel.name)] = (ms + finite(kernel.ms), count + kernel.count)
    return sorted(((kind, *each) for kind, each in found.items()), key=lambda row: -row[1])
