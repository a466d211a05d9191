"""Texts of files that capture or compile their code: optimizers and gradients then obey other rules."""

from __future__ import annotations

CAPTURES = r"(?i:CUDAGraph|cuda\.graph\b|make_graphed_callables|cuda_graph|cudagraph)"
"""A regular expression for CUDA graphs."""
COMPILES = r"\bcompile\s*\(|torch\.compile|reduce-overhead"
"""A regular expression for the compiler."""
