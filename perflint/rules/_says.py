"""Searches in the text of the file that is checked."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=64)
def says(text: str, pattern: re.Pattern[str]) -> bool:
    """True if a pattern occurs in the text of a file, which is searched once for all of its sites."""
    return pattern.search(text) is not None
