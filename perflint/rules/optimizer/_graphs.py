"""Texts of files that capture or compile their code: optimizers and gradients then obey other rules."""

from __future__ import annotations

from perflint.semantics.regions import compiled

CAPTURES = r"(?i:CUDAGraph|cuda\.graph\b|make_graphed_callables|cuda_graph|cudagraph)"
"""A regular expression for CUDA graphs."""
COMPILES = rf"{compiled.COMPILES.pattern}|\bcompile\s*\(|reduce-overhead"
"""A regular expression for the compiler."""
