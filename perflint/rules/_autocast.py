"""The names of autocast."""

from __future__ import annotations

AUTOCAST = ("torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast")
AUTOCAST_OF_MODULE = (*AUTOCAST, "torch.amp.autocast_mode.autocast")
"""Also by the module that defines it."""
