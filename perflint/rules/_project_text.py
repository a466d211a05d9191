"""Searches in the texts of a project's files, which are not parsed."""

from __future__ import annotations

import re

from perflint.semantics.model import Model


def some_file_says(model: Model, pattern: re.Pattern[str]) -> bool:
    """Whether the text of a file of the project matches a pattern somewhere; its own file comes first."""
    return pattern.search(model.source.text) is not None or bool(model.view.matching(pattern))
