"""Processes that check files. They share summaries through the cache, if there is one.

`mapped` shares the work over any executor; `cluster.py` does so over the machines of a Dask cluster.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TypeVar

from perflint.config.disk import absolute
from perflint.config.settings import Settings
from perflint.engine.active import active_rules
from perflint.engine.cache.cache import Handle
from perflint.engine.cache.caches import Caches
from perflint.engine.crashes import Crash, contained
from perflint.engine.file import check_source
from perflint.engine.projects import Projects
from perflint.findings import Report
from perflint.semantics.callers.summary import Summary
from perflint.semantics.depth import deep_stack
from perflint.semantics.model import summary_of
from perflint.semantics.project import Project
from perflint.semantics.test_files import is_test_path
from perflint.source.reading import Unreadable, read
from perflint.source.text import Source

_TASKS_PER_WORKER = 12
"""Tasks are about equal in size, and small enough that no worker is the last for long."""

_PATIENCE = 30
"""Seconds without a result after which the executor is looked after."""

_Result = TypeVar("_Result")


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
            if self._caches.of(file) is not None:
                summary_before_checks(self._projects.of(file), file)
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


def summary_before_checks(project: Project, file: str) -> Summary | None:
    """The summary of a file if checks of other files may need it."""
    path = absolute(file)
    if not project.texts.has_calls(path) or is_test_path(path):
        return None
    with contained([], file, _crash), deep_stack():
        return summary_of(project, path)
    return None


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
    is_done = False
    try:
        for work in (_summarize, _check):
            yield from mapped(pool, work, tasks(sizes, jobs), lost=(BrokenProcessPool,))
        is_done = True
    except BrokenProcessPool:
        return
    finally:
        # Idle processes end at once. If they are not waited for, the end of the interpreter may use a pipe of the pool
        # that is just being closed.
        pool.shutdown(wait=is_done, cancel_futures=True)


def mapped(
    pool: Executor,
    work: Callable[..., list[_Result]],
    tasks: Iterable[list[str]],
    arguments: tuple[object, ...] = (),
    lost: tuple[type[BaseException], ...] = (),
    is_alive: Callable[[], bool] = lambda: True,
) -> Iterator[_Result]:
    """The results of work on batches of files, as they come.

    A batch is left out if its task is cancelled or ends with an error of `lost`. If no result comes for a while and
    the pool is not alive any more, the rest is left out.
    """
    waiting = {pool.submit(work, *arguments, task) for task in tasks}
    while waiting:
        done, waiting = wait(waiting, _PATIENCE, FIRST_COMPLETED)
        if not done and not is_alive():
            return
        for future in done:
            if not future.cancelled() and not isinstance(future.exception(), lost):
                yield from future.result()


def tasks(sizes: Mapping[str, int], jobs: int) -> Iterator[list[str]]:
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
