"""True if a project turns the validation of torch.distributions off for all of them."""

from __future__ import annotations

import re

from perflint.rules._project_text import some_file_says
from perflint.semantics.model import Model

_SWITCH = re.compile(
    r"\b(?:set_default_validate_args\(\s*(?:value\s*=\s*)?|Distribution\._validate_args\s*=\s*)False\b"
)


def is_switched_off(model: Model) -> bool:
    """True if a file that may run in the same process calls `set_default_validate_args(False)`, or does the same by
    hand: `Distribution._validate_args = False`.
    """
    return some_file_says(model, _SWITCH)
