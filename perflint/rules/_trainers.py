"""The trainers of frameworks, by their full names."""

from __future__ import annotations

LIGHTNING = ("lightning.Trainer", "lightning.pytorch.Trainer", "pytorch_lightning.Trainer")
TRAINING_ARGUMENTS = tuple(
    f"transformers.{home}{name}TrainingArguments"
    for home in ("", "training_args.", "training_args_seq2seq.")
    for name in ("", "Seq2Seq")
)
