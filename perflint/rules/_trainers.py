"""The trainers of frameworks, by their full names."""

from __future__ import annotations

LIGHTNING = ("lightning.Trainer", "lightning.pytorch.Trainer", "pytorch_lightning.Trainer")
