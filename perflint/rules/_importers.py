"""The files of a project that import a module, and their texts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perflint.rules._weights import DOWNLOADS, has_published_weights
from perflint.semantics.model import Model
from perflint.semantics.texts import FileText

_FORMATS = re.compile(
    r"autocast|GradScaler|\.half\(\)|\.bfloat16\(\)|precision|\b(?:bf16|fp16)\s*=|allow_tf32|_int_mm",
)


def running(model: Model) -> Iterator[FileText]:
    """The files that import a file's module, or its package, and say something of number formats."""
    around = {file.path for file in model.view.around(model.module.name)}
    yield from (file for file in model.view.matching(_FORMATS) if file.path in around)


def is_published(model: Model) -> bool:
    """True if a file's models come with published weights, by its own words or those of a file that imports it."""
    if has_published_weights(model):
        return True
    return any(model.view.finds(file.path, DOWNLOADS) for file in model.view.around(model.module.name))
