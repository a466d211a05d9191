"""Whether a project turns the validation of torch.distributions off for all of them."""

from __future__ import annotations

import re
from pathlib import Path
from weakref import WeakKeyDictionary

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
            known[path] = _switches(path)
        if known[path]:
            return True
    return False


def _switches(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        # What cannot be read tells nothing; it is reported where it is checked itself.
        return False
    return _SWITCH.search(text) is not None
