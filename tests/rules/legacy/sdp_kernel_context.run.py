"""Attention under the deprecated context, and under today's."""

import warnings

import torch
from torch.nn import functional as F

warnings.simplefilter("ignore")


def case_math_only():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 8, 16, requires_grad=True) for _ in range(3))
    with torch.backends.cuda.sdp_kernel(enable_flash=False, enable_math=True, enable_mem_efficient=False):
        y = F.scaled_dot_product_attention(q, k, v)
    y.sum().backward()
    return y, q.grad, k.grad, v.grad


def case_switches():
    with torch.backends.cuda.sdp_kernel(False, True, False, False):
        return [
            torch.backends.cuda.flash_sdp_enabled(),
            torch.backends.cuda.math_sdp_enabled(),
            torch.backends.cuda.mem_efficient_sdp_enabled(),
            torch.backends.cuda.cudnn_sdp_enabled(),
        ]


def switches():
    return [
        torch.backends.cuda.flash_sdp_enabled(),
        torch.backends.cuda.math_sdp_enabled(),
        torch.backends.cuda.mem_efficient_sdp_enabled(),
        torch.backends.cuda.cudnn_sdp_enabled(),
    ]


def case_defaults():
    found = []
    with torch.backends.cuda.sdp_kernel():
        found.append(switches())
    with torch.backends.cuda.sdp_kernel(enable_flash=False):
        found.append(switches())
    with torch.backends.cuda.sdp_kernel(enable_math=False, enable_cudnn=False):
        found.append(switches())
    with torch.backends.cuda.sdp_kernel(enable_mem_efficient=False, enable_flash=True):
        found.append(switches())
    found.append(switches())
    return found


def case_decorator():
    @torch.backends.cuda.sdp_kernel(enable_math=False)
    def decorated():
        return switches()

    return decorated(), decorated(), switches()


def kept_a_variable(flash=False):
    with torch.backends.cuda.sdp_kernel(enable_flash=flash):
        return torch.backends.cuda.flash_sdp_enabled()
