"""The origin of the weights of a file's models, and their number formats, by its words and those of its importers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perflint.semantics.model import Model
from perflint.semantics.texts import FileText

_PUBLISHED = re.compile(
    r"pretrained|load_state_dict_from_url|model_zoo|hf_hub|\bhub\.load|WeightsEnum|model_urls", re.IGNORECASE
)
_DOWNLOADS = re.compile(r"load_state_dict_from_url|model_zoo|hf_hub_download|model_urls")
"""Fetches weights for models, those of the file or those that it imports."""
_LOADS = re.compile(r"load_state_dict|torch\.load\b|load_weights|safetensors")
_FORMATS = re.compile(
    r"autocast|GradScaler|\.half\(\)|\.bfloat16\(\)|precision|\b(?:bf16|fp16)\s*=|allow_tf32|_int_mm",
)


def has_published_weights(model: Model) -> bool:
    """True if a file's models come with weights that others trained, whose shapes are given."""
    return model.matches(_PUBLISHED)


def loads_weights(model: Model) -> bool:
    """True if a file loads weights, published or its own."""
    return model.matches(_LOADS) or has_published_weights(model)


def running(model: Model) -> Iterator[FileText]:
    """The files that import a file's module, or its package, and say something of number formats."""
    around = {file.path for file in model.view.around(model.module.name)}
    yield from (file for file in model.view.matching(_FORMATS) if file.path in around)


def is_published(model: Model) -> bool:
    """True if a file's models come with published weights, by its own words or those of a file that imports it."""
    around = model.view.around(model.module.name)
    return has_published_weights(model) or any(model.view.finds(file.path, _DOWNLOADS) for file in around)
