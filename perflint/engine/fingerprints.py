"""Names of findings that stay the same if their lines move or their file is renamed."""

from __future__ import annotations

import hashlib
from collections import Counter

from perflint.findings import Finding
from perflint.source.text import Source

_MOST_LINES = 50
"""Lines of a finding that count: a finding may span a whole class."""


def fingerprint(finding: Finding, source: Source) -> str:
    """A digest of the rule and of the text of the finding's lines, without indentation and line ends.

    It depends neither on the path nor on the number of the line. Two places with the same text have the same digest.
    """
    first = finding.span.line
    last = min(finding.span.end_line, first + _MOST_LINES - 1)
    lines = [" ".join(line.split()) for line in source.lines[first - 1 : last]]
    text = "\n".join([finding.code, *lines])
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:24]


class Fingerprints:
    """The fingerprints of a run, numbered where several findings of a file have the same."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str]] = Counter()

    def of(self, finding: Finding, source: Source) -> str:
        """The fingerprint of the next finding, with its number among those of the file that have the same."""
        digest = fingerprint(finding, source)
        self._seen[finding.path, digest] += 1
        return f"{digest}:{self._seen[finding.path, digest]}"
