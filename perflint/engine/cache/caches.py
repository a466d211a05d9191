"""The caches of the projects of one run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from perflint.config.settings import Settings
from perflint.engine.active import rules_for_file
from perflint.engine.projects import Projects
from perflint.findings import Report
from perflint.frozen import fields
from perflint.rules.registry import RuleSet
from perflint.semantics.project import Project
from perflint.source.files import STANDARD_INPUT
from perflint.source.text import Source

if TYPE_CHECKING:
    from perflint.engine.cache.cache import Cache, Handle
    from perflint.semantics.model import Model
    from perflint.semantics.view import Record

_OF_OUTPUT = frozenset({"selections", "exclude", "per_file_ignores", "output_format", "rule_url", "baseline", "root"})
"""Settings that change no report, and those by which the rules of a file are selected."""


class Caches:
    """Opens the cache of each project when its first file is asked about."""

    def __init__(
        self,
        projects: Projects,
        settings: Settings,
        rules: RuleSet,
        folder: Path | None,
        handles: Mapping[Path, Handle] | None = None,
        noqa: bool = True,
    ) -> None:
        """`folder` is None for no cache. `handles` are the caches that another process has brought up to date.

        Without `noqa`, comments of that name are left to the caller.
        """
        self._projects = projects
        self._settings = settings
        self._rules = rules
        self._folder = folder
        self._handles = handles or {}
        self._noqa = noqa
        self._open: dict[Path, Cache | None] = {}
        self._codes = _codes(rules)
        values = {field.name: getattr(settings, field.name) for field in fields(settings)}
        self._values = repr({name: value for name, value in values.items() if name not in _OF_OUTPUT} | {"noqa": noqa})

    def report(self, path: str) -> Report | None:
        """The report of a file, if it is known."""
        cache = self.of(path)
        return None if cache is None or path == STANDARD_INPUT else cache.report(Path(path).absolute(), self._key(path))

    def check(self, source: Source, project: Project) -> Report:
        """The report of a file whose text was just read, known or made now."""
        return self.report(source.path) or self.make(source, project)

    def make(self, source: Source, project: Project) -> Report:
        """The report of a file that the cache does not have, which it keeps."""
        # Importing it takes longer than reading all that is known of a small project.
        from perflint.engine.file import check_source

        return check_source(source, project, self._rules, self._settings, self._noqa, keep=self.keep)

    def keep(self, report: Report, model: Model) -> None:
        """Add the report of a file, and the model that it rests on."""
        if self.of(model.source.path) is not None:
            self.keep_result(model.source.path, report, model.record, model.module.code)

    def keep_result(self, path: str, report: Report, record: Record, code: str) -> None:
        """Add the report of a file; `code` is the digest of its code."""
        cache = self.of(path)
        if cache is not None:
            cache.keep_report(Path(path).absolute(), self._key(path), report, record, code)

    def of(self, path: str) -> Cache | None:
        """The cache of the project of a file."""
        top = self._projects.top_of(path)
        if top not in self._open:
            self._open[top] = self._opened(top)
        return self._open[top]

    def _opened(self, top: Path) -> Cache | None:
        if self._folder is None:
            return None
        # A run without a cache does not pay for these imports.
        from perflint.engine.cache.cache import joined, opened
        from perflint.engine.cache.places import file_of

        project = self._projects.at(top)
        handle = self._handles.get(top)
        if handle is not None:
            return joined(handle, project)
        # Summaries of files rest on what the settings declare.
        settings = "\0".join([*self._settings.exclude, project.declared.key])
        return opened(file_of(self._folder, top, settings), project)

    def handles(self, files: Iterable[str]) -> dict[Path, Handle]:
        """The caches of some files, for other processes."""
        found = {self._projects.top_of(file): self.of(file) for file in files}
        handles = ((top, None if cache is None else cache.handle) for top, cache in found.items())
        return {top: handle for top, handle in handles if handle is not None}

    def flush(self) -> None:
        """Write what was added."""
        for cache in self._open.values():
            if cache is not None:
                cache.flush()

    def close(self) -> None:
        """Write what was added, and close the files."""
        for cache in self._open.values():
            if cache is not None:
                cache.close()
        self._open.clear()

    def _key(self, path: str) -> bytes:
        """A digest of all that a report depends on besides texts: the name of the file, rules, and settings."""
        rules = rules_for_file(self._rules, self._settings, path)
        codes = self._codes if rules is self._rules else _codes(rules)
        return hashlib.blake2b(
            f"{path}\0{codes}\0{self._values}".encode("utf-8", "surrogatepass"), digest_size=16
        ).digest()


def _codes(rules: RuleSet) -> str:
    """The rules with the versions of their code; that of perflint's own is in the name of the cache."""
    return " ".join(rule.code + rule.content for rule in rules.rules)
