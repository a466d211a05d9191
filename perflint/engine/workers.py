"""Processes that check files. They share summaries through the cache, if there is one."""

from __future__ import annotations

import gc
import multiprocessing
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from perflint.config.settings import Settings
from perflint.engine.active import active_rules
from perflint.engine.cache.cache import Handle
from perflint.engine.cache.caches import Caches
from perflint.engine.crashes import Crash, contained
from perflint.engine.file import check_source
from perflint.engine.projects import Projects
from perflint.findings import Report
from perflint.semantics.depth import deep_stack
from perflint.semantics.model import summary_of
from perflint.semantics.test_files import is_test_path
from perflint.source.reading import Unreadable, read
from perflint.source.text import Source

_TASKS_PER_WORKER = 12
"""Tasks are about equal in size, and small enough that no worker is the last for long."""


class Worker:
    """Checks files in a process of its own. It travels there without its projects, unless the process is forked."""

    def __init__(self, settings: Settings, cache: Path, handles: Mapping[Path, Handle], projects: Projects) -> None:
        self._settings = settings
        self._cache = cache
        self._handles = dict(handles)
        self._projects = projects

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_projects": None}

    def prepare(self) -> None:
        """Load the texts of the projects, so that forked processes share them."""
        for top in self._handles:
            self._projects.at(top).texts.load()

    def start(self) -> None:
        """Get ready in the new process."""
        # The first process ends the others.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.disable()
        self._projects = self._projects or Projects(self._settings)
        self._rules = active_rules(self._settings)
        self._caches = Caches(self._projects, self._settings, self._rules, self._cache, self._handles)

    def summarize(self, files: list[str]) -> None:
        """Make the summaries of some files, so that the processes do not make the same ones while they check."""
        for file in files:
            path, project = Path(file).absolute(), self._projects.of(file)
            if self._caches.of(file) is not None and project.texts.has_calls(path) and not is_test_path(path):
                with contained([], file, _crash), deep_stack():
                    summary_of(project, path)
        self._caches.flush()

    def check(self, files: list[str]) -> list[tuple[str, Report]]:
        """The reports of some files."""
        found = [(file, self._report(file)) for file in files]
        self._caches.flush()
        return found

    def _report(self, file: str) -> Report:
        try:
            source = Source(file, read(file).text)
        except Unreadable as error:
            return Report(problems=[error.problem])
        project = self._projects.of(file)
        return check_source(source, project, self._rules, self._settings, keep=self._caches.keep)


def _crash() -> Crash:
    # It is reported when a check needs the summary.
    return "a summary", None, ""


def checked_by_workers(worker: Worker, sizes: Mapping[str, int], jobs: int) -> Iterator[tuple[str, Report]]:
    """Check files, whose sizes are given, in `jobs` processes, as they come. Ends early if a process dies."""
    forks = sys.platform == "linux" and threading.active_count() == 1
    if forks:
        worker.prepare()
    context = multiprocessing.get_context("fork" if forks else "spawn")
    pool = ProcessPoolExecutor(min(jobs, len(sizes)), context, _start, (worker,))
    try:
        for work in (_summarize, _check):
            waiting = {pool.submit(work, task) for task in _tasks(sizes, jobs)}
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield from future.result()
    except BrokenProcessPool:
        return
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _tasks(sizes: Mapping[str, int], jobs: int) -> Iterator[list[str]]:
    """Files that are checked together, the largest first."""
    share = sum(sizes.values()) / (jobs * _TASKS_PER_WORKER)
    task: list[str] = []
    size = 0
    for file in sorted(sizes, key=lambda file: (-sizes[file], file)):
        task.append(file)
        size += sizes[file]
        if size >= share:
            yield task
            task, size = [], 0
    if task:
        yield task


_worker: Worker | None = None
"""The worker of this process, if it is one."""


def _start(worker: Worker) -> None:
    global _worker
    _worker = worker
    worker.start()


def _summarize(files: list[str]) -> list[tuple[str, Report]]:
    assert _worker is not None
    _worker.summarize(files)
    return []


def _check(files: list[str]) -> list[tuple[str, Report]]:
    assert _worker is not None
    return _worker.check(files)
