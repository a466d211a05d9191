"""The deprecated context for kernels of attention."""

import torch
import torch.backends.cuda as backends
from torch.backends.cuda import sdp_kernel
from torch.nn import functional as F


def flash(q, k, v):
    with torch.backends.cuda.sdp_kernel(enable_flash=True, enable_math=False, enable_mem_efficient=False):  # error: TPF903
        return F.scaled_dot_product_attention(q, k, v)


def positional(q, k, v):
    with sdp_kernel(False, True, False, enable_cudnn=False):  # audit: TPF903
        return F.scaled_dot_product_attention(q, k, v)


def decided_elsewhere(q, k, v, flash: bool):
    with backends.sdp_kernel(enable_flash=flash):  # audit: TPF903
        return F.scaled_dot_product_attention(q, k, v)


def nothing_allowed(q, k, v):
    with torch.backends.cuda.sdp_kernel(False, False, False, False):  # audit: TPF903
        return F.scaled_dot_product_attention(q, k, v)


# Look-alikes


def modern(q, k, v):
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, k, v)


def switches() -> bool:
    torch.backends.cuda.enable_flash_sdp(True)
    return torch.backends.cuda.flash_sdp_enabled()


def of_others(kernels, q):
    return kernels.sdp_kernel(q)


class Kernels:
    def sdp_kernel(self, enable_flash: bool = True) -> bool:
        return enable_flash


def plain(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def named() -> str:
    return "torch.backends.cuda.sdp_kernel"
