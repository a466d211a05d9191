"""Checking many files: what the cache has is read, the rest is checked here or by workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from perflint.config.settings import Settings
from perflint.engine.file import Judge, check_source
from perflint.engine.projects import Projects
from perflint.findings import Report
from perflint.frozen import dataclass
from perflint.rules.registry import RuleSet
from perflint.source.files import STANDARD_INPUT
from perflint.source.reading import Text, Unreadable, read, read_standard_input
from perflint.source.text import Source

if TYPE_CHECKING:
    from perflint.engine.cache.caches import Caches

_WORTH_A_WORKER = 100_000
"""Characters of source that take longer to check than a worker takes to start."""


@dataclass(frozen=True, slots=True)
class Means:
    """How a run may save time; by default it does not."""

    cache: Path | None = None
    """The folder of the cache."""
    jobs: int = 1
    """Processes that check files."""
    progress: Callable[[int, int], None] | None = None
    """Is told after each file how much of the work is done, in characters: the part, and all of it."""


PLAIN = Means()


def check_files(
    files: Sequence[str],
    rules: RuleSet,
    settings: Settings,
    stdin_filename: str | None = None,
    judge: Judge | None = None,
    means: Means = PLAIN,
) -> Iterator[tuple[Source, Report]]:
    """Check files one by one, in their order; each comes with what it says.

    "-" is standard input, which goes by `stdin_filename`. Only one file's text and trees are
    held at a time, besides what the project keeps of files that import each other. The text of
    a file that cannot be read is empty. Reports do not depend on `means`.
    """
    projects = Projects(settings)
    if judge is not None or means == PLAIN:
        for file in files:
            source, problem = _source(file, stdin_filename)
            project = projects.of(_path(file, stdin_filename))
            yield source, problem or check_source(source, project, rules, settings, judge=judge)
        return
    yield from _Run(projects, rules, settings, stdin_filename, means).reports(files)


class _Run:
    """A run with a cache or workers."""

    def __init__(
        self, projects: Projects, rules: RuleSet, settings: Settings, stdin_filename: str | None, means: Means
    ) -> None:
        self._projects = projects
        self._rules = rules
        self._settings = settings
        self._stdin_filename = stdin_filename
        self._means = means
        self._caches: Caches | None = None

    def reports(self, files: Sequence[str]) -> Iterator[tuple[Source, Report]]:
        """Each file with its report, in order."""
        with ExitStack() as stack:
            if self._means.cache is not None:
                self._open(self._means.cache, stack)
            known: dict[str, Report] = {}
            sizes: dict[str, int] = {}
            for file in dict.fromkeys(files):
                report = None if file == STANDARD_INPUT or self._caches is None else self._caches.report(file)
                if report is not None:
                    known[file] = report
                elif file != STANDARD_INPUT:
                    sizes[file] = _size(file)
            progress = _Progress(self._means.progress, sum(sizes.values()))
            made = self._by_workers(sizes, stack) if self._is_worth_workers(sizes) else self._here(sizes)
            for file in files:
                while file in sizes and file not in known:
                    done, report = next(made)
                    known[done] = report
                    progress.add(sizes[done])
                source, problem = _source(file, self._stdin_filename)
                if problem is not None:
                    yield source, problem
                elif file in known:
                    yield source, known[file]
                else:
                    project = self._projects.of(_path(file, self._stdin_filename))
                    yield source, check_source(source, project, self._rules, self._settings)

    def _open(self, folder: Path, stack: ExitStack) -> Caches:
        from perflint.engine.cache.caches import Caches

        self._caches = stack.enter_context(closing(Caches(self._projects, self._settings, self._rules, folder, {})))
        return self._caches

    def _is_worth_workers(self, sizes: Mapping[str, int]) -> bool:
        return min(self._means.jobs, len(sizes)) > 1 and sum(sizes.values()) > _WORTH_A_WORKER

    def _here(self, files: Iterable[str]) -> Iterator[tuple[str, Report]]:
        """Check files in this process, in order."""
        for file in files:
            source, problem = _source(file, None)
            if problem is None:
                keep = None if self._caches is None else self._caches.keep
                problem = check_source(source, self._projects.of(file), self._rules, self._settings, keep=keep)
            yield file, problem

    def _by_workers(self, sizes: Mapping[str, int], stack: ExitStack) -> Iterator[tuple[str, Report]]:
        """Check files in other processes, the largest first; those of a process that dies are checked here."""
        from perflint.engine.workers import Worker, checked_by_workers

        folder = self._means.cache
        if folder is None:
            # Workers share summaries through a cache.
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="perflint-")))
        caches = self._caches or self._open(folder, stack)
        handles = caches.handles(sizes)
        left = dict(sizes)
        worker = Worker(self._settings, folder, handles, self._projects)
        for file, report in checked_by_workers(worker, sizes, self._means.jobs):
            del left[file]
            yield file, report
        yield from self._here(left)


class _Progress:
    def __init__(self, tell: Callable[[int, int], None] | None, size: int) -> None:
        self._tell = tell
        self._size = size
        self._done = 0

    def add(self, size: int) -> None:
        self._done += size
        if self._tell is not None:
            self._tell(self._done, self._size)


def _size(file: str) -> int:
    try:
        return os.stat(file).st_size
    except OSError:
        # It is reported when it is read.
        return 0


def _source(file: str, stdin_filename: str | None) -> tuple[Source, Report | None]:
    """The text of a file; empty, with a report of the problem, if it cannot be read."""
    try:
        name, text = _read(file, stdin_filename)
    except Unreadable as error:
        return Source(file, ""), Report(problems=[error.problem])
    return Source(name, text.text), None


def _path(file: str, stdin_filename: str | None) -> Path:
    return Path(stdin_filename or "stdin.py") if file == STANDARD_INPUT else Path(file)


def _read(file: str, stdin_filename: str | None) -> tuple[str, Text]:
    if file != STANDARD_INPUT:
        return file, read(file)
    name = stdin_filename or STANDARD_INPUT
    return name, read_standard_input(name)
