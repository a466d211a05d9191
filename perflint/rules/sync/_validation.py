"""Whether a project turns the validation of torch.distributions off for all of them."""

from __future__ import annotations

import re
from pathlib import Path
from weakref import WeakKeyDictionary

from perflint.semantics.importers import text_of
from perflint.semantics.model import Model
from perflint.semantics.project import Project

_SWITCH = re.compile(r"\bset_default_validate_args\(\s*(?:value\s*=\s*)?False\b")

_KNOWN: WeakKeyDictionary[Project, dict[Path, bool]] = WeakKeyDictionary()
"""Which files of a project turn it off; each is read once, and not parsed."""


def is_switched_off(model: Model) -> bool:
    """Whether some file of the project calls `set_default_validate_args(False)`."""
    if _SWITCH.search(model.source.text):
        return True
    known = _KNOWN.setdefault(model.project, {})
    for path in list(model.project.files.values()):
        if path not in known:
            known[path] = _SWITCH.search(text_of(path)) is not None
        if known[path]:
            return True
    return False
