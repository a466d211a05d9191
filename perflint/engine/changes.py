"""The lines that changed since a git revision."""

from __future__ import annotations

import os
from collections.abc import Mapping

from perflint.config.errors import ConfigurationError
from perflint.engine.effects import Effects, Past
from perflint.engine.fingerprints import fingerprint
from perflint.engine.git import Repository, can_be_checked, is_same
from perflint.findings import Report, Span
from perflint.frozen import dataclass
from perflint.source.repository import repository_of
from perflint.source.text import Source


@dataclass(frozen=True, slots=True)
class _Difference:
    """The files of a working tree that differ from a commit: their changed lines, None for all, and their past."""

    lines: Mapping[str, list[range] | None]
    past: Past


class Changes:
    """The changed lines of the files of some repositories, in the working tree."""

    def __init__(self, revision: str, effects: Effects | None = None) -> None:
        """With `effects`, findings that the change causes on other lines count, too."""
        self._revision = revision
        self._effects = effects
        self._by_repository: dict[str, _Difference] = {}

    def sift(self, source: Source, report: Report) -> None:
        """Leave the findings of a file that the change is about. Raises ConfigurationError."""
        kept = {id(finding) for finding in report.findings if self._touches(source, finding.span)}
        others = [finding for finding in report.findings if id(finding) not in kept]
        if others and self._effects is not None:
            known = self._effects.before(source, self._difference(source.path)[0].past)
            for finding in others:
                key = (finding.code, fingerprint(finding, source))
                known[key] -= 1
                if known[key] < 0:
                    kept.add(id(finding))
        report.unchanged += len(report.findings) - len(kept)
        report.findings = [finding for finding in report.findings if id(finding) in kept]

    def _touches(self, source: Source, span: Span) -> bool:
        changed = self.of(source.path)
        first, last = span.line, span.end_line
        if source.notebook is not None:
            first, last = source.notebook.document_line(first), source.notebook.document_line(last)
        lines = range(first, last + 1)
        return changed is None or any(each.start < lines.stop and lines.start < each.stop for each in changed)

    def of(self, path: str) -> list[range] | None:
        """The changed lines of a file; None for all lines of a new one. Raises ConfigurationError."""
        difference, root = self._difference(path)
        return difference.lines.get(os.path.relpath(os.path.realpath(path), root).replace(os.sep, "/"), [])

    def _difference(self, path: str) -> tuple[_Difference, str]:
        """The difference of the repository that a file is in, and its root. Raises ConfigurationError."""
        root = repository_of(os.path.dirname(os.path.realpath(path)))
        if root is None:
            raise ConfigurationError(f"`--since` needs a git repository, and {path} is in none")
        if root not in self._by_repository:
            self._by_repository[root] = _difference(root, self._revision)
        return self._by_repository[root], root


def _difference(root: str, revision: str) -> _Difference:
    """The difference between the working tree and the commit at which the history left a revision.

    Raises ConfigurationError.
    """
    repository = Repository(root)
    committed, tracked = repository.committed(repository.base(revision)), repository.tracked()
    old = {name: blob for name, blob in committed.items() if can_be_checked(name)}
    new: dict[str, bytes] = {}
    for name in filter(can_be_checked, tracked):
        text = repository.content(name)
        # Files outside of a sparse checkout are unchanged, though they are not there.
        is_unchanged = tracked[name] if text is None else name in old and is_same(text, old[name])
        if is_unchanged:
            old.pop(name, None)
        elif text is not None:
            new[name] = text
    texts = repository.texts(old)
    # A checkout may have other line endings than the commit, and Python ends a line at a lone `\r`, which git does not.
    found = repository.compared(_with_newlines(texts), _with_newlines(new))
    added = [*found.new, *repository.untracked()]
    lines = found.lines | dict.fromkeys(added[len(found.new) :])
    past = {name: text for name, text in {**dict.fromkeys(added, b""), **texts}.items() if name.endswith(".py")}
    names = {os.path.join(root, new): os.path.join(root, old) for new, old in found.renamed.items()}
    return _Difference(lines, Past({os.path.join(root, name): text for name, text in past.items()}, names))


def _with_newlines(texts: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") for name, text in texts.items()}
