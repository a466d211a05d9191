"""The baseline: findings that are known, so that a check shows only new ones.

An entry is the fingerprint of a finding (`engine/fingerprints.py`), its rule, its path and how often it occurs there.
So it survives if lines move, and, if the path is gone, if the file was renamed.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from perflint.config.errors import ConfigurationError
from perflint.config.regular import read_regular
from perflint.config.settings import Profile
from perflint.engine.fingerprints import fingerprint
from perflint.findings import Report, Silenced, Silencer
from perflint.frozen import dataclass, field
from perflint.source.strict_json import parsed
from perflint.source.text import Source
from perflint.source.writing import written

VERSION = 1
Entries = Counter[tuple[str, str]]
"""How often each pair of code and fingerprint occurs in a file."""


@dataclass(slots=True)
class Baseline:
    """The known findings of a project, by paths relative to the folder of the file."""

    path: Path
    profile: Profile = Profile.DEFAULT
    """The profile of the check that found the entries."""
    known: dict[str, Entries] = field(default_factory=dict)
    left: dict[str, Entries] = field(default_factory=dict)
    """The entries that no finding has matched yet."""
    matched: dict[str, Entries] = field(default_factory=dict)
    """The entries that matched, by the path of the finding."""
    new: dict[str, Entries] = field(default_factory=dict)
    """The findings that no entry matched."""
    checked: set[str] = field(default_factory=set)
    """The paths of the files that were checked."""

    def sift(self, source: Source, report: Report) -> None:
        """Move the findings of a file that are known from those that are shown to those that are silenced."""
        path = self.relative(source.path)
        if path in self.checked and path in self.known:
            # flake8 checks a file once for each of its spellings on the command line.
            self.left[path] = Counter(self.known[path])
            self.matched.pop(path, None)
        if not report.problems:
            self.checked.add(path)
        shown = []
        for finding in report.findings:
            if self._takes(path, (finding.code, fingerprint(finding, source))):
                report.silenced.append(Silenced(finding, Silencer.BASELINE))
            else:
                shown.append(finding)
        report.findings = shown

    def _takes(self, path: str, key: tuple[str, str]) -> bool:
        """True if an entry of the file matches a finding, or one of a file that is gone if this one has no entries."""
        places = [path] if path in self.known else [gone for gone in self.left if self._is_gone(gone)]
        for place in places:
            left = self.left.get(place)
            if left is not None and left[key] > 0:
                left[key] -= 1
                self.matched.setdefault(path, Counter())[key] += 1
                return True
        self.new.setdefault(path, Counter())[key] += 1
        return False

    def _is_gone(self, path: str) -> bool:
        return path not in self.checked and not os.path.lexists(self.path.parent / path)

    def relative(self, path: str) -> str:
        """A path as entries have it."""
        try:
            relative = os.path.relpath(os.path.abspath(path), self.path.parent)
        except ValueError:  # pragma: no cover - on Windows, for another drive
            relative = os.path.abspath(path)
        return relative.replace(os.sep, "/")

    def stale(self, codes: Collection[str]) -> int:
        """How many entries of some rules match no finding any more, in files that were checked or are gone."""
        return sum(
            +count
            for path, entries in self.left.items()
            if path in self.checked or self._is_gone(path)
            for (code, _), count in entries.items()
            if code in codes
        )

    def updated(self, codes: Collection[str], add: bool) -> Baseline:
        """The baseline after the check: without stale entries, and with the new findings if `add` is set.

        Entries of rules that are off and of files that were not checked stay.
        """
        now: dict[str, Entries] = {path: Counter(entries) for path, entries in self.matched.items()}
        for path, entries in self.left.items():
            is_known_here = path in self.checked or self._is_gone(path)
            kept = {key: count for key, count in entries.items() if count and not (is_known_here and key[0] in codes)}
            if kept:
                now.setdefault(path, Counter()).update(kept)
        for path, entries in self.new.items() if add else ():
            now.setdefault(path, Counter()).update(entries)
        return Baseline(self.path, self.profile, now)

    def size(self) -> int:
        """How many findings are known."""
        return sum(sum(entries.values()) for entries in self.known.values())

    def write(self) -> None:
        """Write the file, sorted, an entry in each line, so that a change of one entry is one line of a diff."""
        files = [
            f"    {json.dumps(path)}: [\n{self._lines(entries)}\n    ]"
            for path, entries in sorted(self.known.items())
            if +entries
        ]
        head = f'{{\n  "version": {VERSION},\n  "profile": "{self.profile.value}",\n'
        body = "{\n" + ",\n".join(files) + "\n  }" if files else "{}"
        with written(self.path) as file:
            file.write(f'{head}  "findings": {body}\n}}\n')

    @staticmethod
    def _lines(entries: Entries) -> str:
        objects = [
            {"code": code, "fingerprint": digest, **({"count": count} if count > 1 else {})}
            for (code, digest), count in sorted(entries.items())
            if count
        ]
        return ",\n".join(f"      {json.dumps(each)}" for each in objects)


def read_baseline(path: Path) -> Baseline:
    """The baseline in a file. Raises ConfigurationError if there is none."""
    try:
        data = read_regular(path)
    except OSError as error:
        message = f"the baseline {path} cannot be read: {error.strerror or error}"
        raise ConfigurationError(message, "`perflint baseline` writes it") from None
    try:
        document = parsed(data or b"")
        known = _entries(document)
        profile = Profile(document.get("profile", Profile.DEFAULT.value))
    except (ValueError, KeyError, TypeError, AttributeError):
        message = f"{path} is not a baseline of perflint, version {VERSION}"
        raise ConfigurationError(message, "remove it, and write it anew with `perflint baseline`") from None
    return Baseline(path, profile, known, {name: Counter(entries) for name, entries in known.items()})


def _entries(document: Any) -> dict[str, Entries]:
    if document["version"] != VERSION:
        raise ValueError(document["version"])
    return {
        path: Counter({(each["code"], each["fingerprint"]): each.get("count", 1) for each in map(_entry, listed)})
        for path, listed in document["findings"].items()
    }


def _entry(entry: Any) -> Any:
    """An entry as it is. Raises ValueError if a person has put in values of other types."""
    texts, count = (entry["code"], entry["fingerprint"]), entry.get("count", 1)
    if not all(isinstance(text, str) for text in texts) or type(count) is not int or count < 1:
        raise ValueError(entry)
    return entry
