"""True if a file captures or compiles what it runs: optimizers and gradients then obey other rules."""

from __future__ import annotations

import re

from perflint.rules._says import says

_CAPTURES = re.compile(r"CUDAGraph|cuda\.graph\b|make_graphed_callables|cuda_graph|cudagraph", re.IGNORECASE)
_COMPILES = re.compile(r"\bcompile\s*\(|torch\.compile|reduce-overhead")


def captures(text: str) -> bool:
    """True if a file mentions CUDA graphs."""
    return says(text, _CAPTURES)


def compiles(text: str) -> bool:
    """True if a file compiles something."""
    return says(text, _COMPILES)
