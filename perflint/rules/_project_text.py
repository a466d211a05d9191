"""Searches in the texts of a project's files, which are not parsed."""

from __future__ import annotations

import re

from perflint.semantics.model import Model


def some_file_says(model: Model, pattern: re.Pattern[str]) -> bool:
    """True if a pattern matches in a file, or in one that may run in the same process."""
    return model.matches(pattern) or bool(model.view.beside(model.module, pattern))


# Patterns that begin with letters are searched thirty times as fast as those that begin with `\b`.
_TRACES = re.compile(r"jit\.trace\w*\("), re.compile(r"onnx\.export\(")


def may_be_traced(model: Model) -> bool:
    """True if some code makes a graph of a run: `x.type_as(y)` follows its input there, `device=` is a constant."""
    return any(some_file_says(model, pattern) for pattern in _TRACES)
