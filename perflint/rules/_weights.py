"""The origin of the weights of a file's models, by its words."""

from __future__ import annotations

import re

from perflint.semantics.model import Model

_PUBLISHED = re.compile(
    r"pretrained|load_state_dict_from_url|model_zoo|hf_hub|\bhub\.load|WeightsEnum|model_urls", re.IGNORECASE
)
DOWNLOADS = re.compile(r"load_state_dict_from_url|model_zoo|hf_hub_download|model_urls")
"""Fetches weights for models, those of the file or those that it imports."""
_LOADS = re.compile(r"load_state_dict|torch\.load\b|load_weights|safetensors")


def has_published_weights(model: Model) -> bool:
    """True if a file's models come with weights that others trained, whose shapes are given."""
    return model.matches(_PUBLISHED)


def loads_weights(model: Model) -> bool:
    """True if a file loads weights, published or its own."""
    return model.matches(_LOADS) or has_published_weights(model)
