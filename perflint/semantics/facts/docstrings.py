"""The types that docstrings give to parameters."""

from __future__ import annotations

import re

TENSOR = "Tensor"
"""The type of a parameter that a sentence calls a tensor."""


def types(text: str) -> dict[str, str]:
    """The types of parameters by their names, as a docstring writes them."""
    found: dict[str, str] = {}
    for match in _GOOGLE.finditer(text):
        found.setdefault(match.group(1), match.group(2))
    for match in _BEHIND_COLON.finditer(text):
        found.setdefault(match.group(1), TENSOR if match.group(2) == "tensor" else match.group(2))
    for match in _SENTENCE.finditer(text):
        if _calls_tensor(match.group(2)):
            found.setdefault(match.group(1), TENSOR)
    for match in _NUMPY.finditer(text):
        found.setdefault(match.group(1), match.group(2))
    for match in _SPHINX.finditer(text):
        name, kind = (match.group(1), match.group(2)) if match.group(1) else (match.group(4), match.group(3))
        found[name] = kind if found.get(name) == TENSOR else found.get(name, kind)
    return found


_GOOGLE = re.compile(r"^\s*\*{0,2}(\w+)\s*\(([^()]*(?:\([^()]*\))?[^()]*)\)\s*:", re.MULTILINE)
_BEHIND_COLON = re.compile(r"^\s*(?:[:@]?params?\s+|[-*]\s+)?`{0,2}(\w+)`{0,2}\s*:\s*\(([\w.\[\], |]+)\)", re.MULTILINE)
_NUMPY = re.compile(r"^\s*(\w+)\s*:\s*([\w.\[\], |`~:]+?)(?:, optional.*)?\s*$", re.MULTILINE)
_SPHINX = re.compile(r":type\s+(\w+):\s*([^\n]+)|:param\s+([\w.]+)\s+(\w+):")
_SENTENCE = re.compile(r"^\s*(?:[:@]?params?\s+|[-*]\s+)?`{0,2}(\w+)`{0,2}\s*:\s*(\S.*)$", re.MULTILINE)


def _calls_tensor(sentence: str) -> bool:
    """True if a sentence about a parameter begins with a noun phrase for one tensor: `input tensor of shape (n, 3)`."""
    phrase, *more = _AFTER_NOUN.split(sentence, maxsplit=2)
    *words, last = phrase.lower().replace("`", "").split() or [""]
    if last not in ("tensor", "torch.tensor") or len(words) > _MOST_WORDS or not _NO_NOUN.isdisjoint(words):
        return False
    return not (more and more[0] == "," and _OTHER_TYPE.search(more[1]))


_AFTER_NOUN = re.compile(
    r"([,.;:()\[\]](?!tensor\b)|\s(?:of|with|in|that|which|containing|holding|from|for|where|whose)\s)", re.IGNORECASE
)
_OTHER_TYPE = re.compile(
    r"\b(?:float|int|bool|str|number|scalar|list|tuple|dict|array|ndarray|module|none)\b", re.IGNORECASE
)
_MOST_WORDS = 6
_NO_NOUN = frozenset(
    """whether if when return returns use convert make makes compute to into or and as is be should must can may not no
    per each this same list tuple dict sequence iterable array number scalar function name size shape dimension dtype
    device type index""".split()
)
"""Words before `tensor` in sentences about other things, or about other types, too."""
