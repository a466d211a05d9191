"""Checking many files: what the cache has is read, the rest is checked here or by workers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from perflint.config.settings import Settings
from perflint.engine.cache.caches import Caches
from perflint.engine.projects import Projects
from perflint.engine.summaries import await_checks, groups, summary_before_checks, users_first
from perflint.findings import Report
from perflint.frozen import dataclass
from perflint.rules.registry import RuleSet
from perflint.semantics.model import LAST
from perflint.source.files import STANDARD_INPUT
from perflint.source.reading import Text, Unreadable, read, read_standard_input
from perflint.source.text import Source

if TYPE_CHECKING:
    from perflint.engine.cache.caches import Caches
    from perflint.engine.file import Judge
    from perflint.engine.timings import Timings

_WORTH_A_WORKER = 100_000
"""Characters of source that take longer to check than a worker takes to start."""


@dataclass(frozen=True, slots=True)
class Means:
    """How a run may save time; by default it does not."""

    cache: Path | None = None
    """The folder of the cache."""
    jobs: int = 1
    """Processes that check files."""
    cluster: str | None = None
    """The address of the scheduler of a Dask cluster, which checks files in place of processes."""
    shard: tuple[int, int] = (1, 1)
    """The part of the files that this run checks, and the number of parts."""
    timings: Timings | None = None
    """Counts the time, in one process and without reading results."""
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
    """Check files one by one, in their order; each comes with its report.

    "-" is standard input, which is reported as `stdin_filename`. Only one file's text and trees are
    held at a time, besides what the project keeps of files that import each other. The text of
    a file that cannot be read is empty. Reports do not depend on `means`.
    """
    projects = Projects(settings)
    part, parts = means.shard
    files = sorted(files)[part - 1 :: parts] if parts > 1 else files
    if judge is None and means.timings is None and files != [STANDARD_INPUT]:
        yield from _Run(projects, rules, settings, means).reports(files)
        return
    from perflint.engine.file import check_source

    with closing(Caches(projects, settings, rules, means.cache)) as caches:
        for file in files:
            source, problem = _source(file, stdin_filename)
            path = stdin_filename or "stdin.py" if file == STANDARD_INPUT else file
            # The text, or the verdicts, are not those of the disk, but the cache has the calls of other files.
            caches.of(path)
            yield (
                source,
                problem or check_source(source, projects.of(path), rules, settings, judge=judge, timings=means.timings),
            )


def listing(files: Sequence[str]) -> str:
    """A digest of the names of files: parts of runs over others would leave some out."""
    names = sorted(os.path.relpath(file).replace(os.sep, "/") for file in files)
    return hashlib.blake2b("\0".join(names).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class _Run:
    """A run over files on the disk, whose reports the cache may have."""

    def __init__(self, projects: Projects, rules: RuleSet, settings: Settings, means: Means) -> None:
        self._projects = projects
        self._rules = rules
        self._settings = settings
        self._means = means
        self._caches = Caches(projects, settings, rules, means.cache)

    def reports(self, files: Sequence[str]) -> Iterator[tuple[Source, Report]]:
        """Each file with its report, in order."""
        with ExitStack() as stack:
            stack.callback(self._caches.close)
            known = {file: self._caches.report(file) for file in files}
            sizes = {file: _size(file) for file, report in known.items() if report is None}
            progress = _Progress(self._means.progress, sum(sizes.values()))
            made = self._made(sizes, stack)
            for file in files:
                while known[file] is None:
                    done, report = next(made)
                    known[done] = report
                    progress.add(sizes[done])
                source, problem = _source(file, None)
                yield source, problem or known[file] or Report()
            # All reports are there, so this only ends the processes that made them.
            next(made, None)

    def _made(self, sizes: Mapping[str, int], stack: ExitStack) -> Iterator[tuple[str, Report]]:
        """The reports of some files, as they come."""
        if self._means.cluster is not None and sizes:
            return self._by_cluster(self._means.cluster, sizes)
        sizes = {file: sizes[file] for file in users_first(self._projects, sizes)}
        return self._by_workers(sizes, stack) if self._is_worth_workers(sizes) else self._here(sizes)

    def _is_worth_workers(self, sizes: Mapping[str, int]) -> bool:
        return min(self._means.jobs, len(sizes)) > 1 and sum(sizes.values()) > _WORTH_A_WORKER

    def _here(self, sizes: Mapping[str, int]) -> Iterator[tuple[str, Report]]:
        """Check files in this process."""
        is_one_of_many = len(sizes) > 1
        # It has the memory of two processes for itself.
        for group in groups(sizes, processes=2):
            if is_one_of_many:
                await_checks(self._projects, group)
            for file in group:
                source, problem = _source(file, None)
                project = self._projects.of(file)
                if problem is None and is_one_of_many:
                    summary_before_checks(project, file, LAST)
                yield file, problem or self._caches.make(source, project)

    def _by_workers(self, sizes: Mapping[str, int], stack: ExitStack) -> Iterator[tuple[str, Report]]:
        """Check files in other processes; those of a process that dies are checked here."""
        from perflint.engine.workers import Worker, checked_by_workers

        folder = self._means.cache
        if folder is None:
            # Workers share summaries through a cache.
            from tempfile import TemporaryDirectory

            folder = Path(stack.enter_context(TemporaryDirectory(prefix="perflint-")))
            self._caches = Caches(self._projects, self._settings, self._rules, folder)
            stack.callback(self._caches.close)
        left = dict(sizes)
        worker = Worker(self._settings, folder, self._caches.handles(sizes), self._projects)
        for file, report in checked_by_workers(worker, sizes, self._means.jobs):
            del left[file]
            yield file, report
        yield from self._here(left)

    def _by_cluster(self, address: str, sizes: Mapping[str, int]) -> Iterator[tuple[str, Report]]:
        """Check files on other machines; those that they leave out are checked here."""
        from perflint.engine.cluster import checked_by_cluster

        left = dict(sizes)
        for file, report, record, code in checked_by_cluster(address, self._settings, self._projects, sizes):
            self._caches.keep_result(file, report, record, code)
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
    return Source(name, text.text, notebook=text.notebook), None


def _read(file: str, stdin_filename: str | None) -> tuple[str, Text]:
    if file != STANDARD_INPUT:
        return file, read(file)
    name = stdin_filename or STANDARD_INPUT
    return name, read_standard_input(name)
