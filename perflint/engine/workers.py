"""Processes that check files. They share summaries through the cache, if there is one.

`mapped` shares the work over any executor; `cluster.py` does so over the machines of a Dask cluster.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent import futures
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from perflint.config.settings import Settings
from perflint.engine.active import active_rules
from perflint.engine.cache.cache import Handle
from perflint.engine.cache.caches import Caches
from perflint.engine.file import check_source
from perflint.engine.projects import Projects
from perflint.engine.summaries import await_checks, groups, summary_before_checks
from perflint.findings import Report
from perflint.semantics.model import LAST
from perflint.source.reading import Unreadable, read
from perflint.source.text import Source

if TYPE_CHECKING:
    from multiprocessing.context import ForkContext, SpawnContext

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

    def summarize(self, files: list[str], round: int) -> list[tuple[str, Report]]:
        """Make the summaries of some files in a round, which the other processes read in the next one.

        Gives no report.
        """
        await_checks(self._projects, files)
        for file in files:
            if self._caches.of(file) is not None:
                summary_before_checks(self._projects.of(file), file, round)
        self._caches.flush()
        return []

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


def checked_by_workers(worker: Worker, sizes: Mapping[str, int], jobs: int) -> Iterator[tuple[str, Report]]:
    """Check files, whose sizes are given, in `jobs` processes, as they come. Ends early if a process dies.

    Under `python -E`, processes are only forked: new ones would import modules from the working directory.
    """
    forks = sys.platform == "linux" and threading.active_count() == 1
    if forks:
        worker.prepare()
    elif sys.flags.ignore_environment and not sys.flags.safe_path:
        # `_safe_path` would have no effect.
        return
    context = multiprocessing.get_context("fork") if forks else multiprocessing.get_context("spawn")
    batches = list(tasks(sizes, jobs))
    processes: list[_Process] = []
    is_done = False
    try:
        with _safe_path():
            processes += [_Process(context, worker) for _ in range(min(jobs, len(sizes)))]
        yield from _shared(processes, batches, sizes)
        is_done = True
    except (EOFError, OSError):
        return
    finally:
        for process in processes:
            process.end(is_idle=is_done)


@contextmanager
def _safe_path() -> Iterator[None]:
    """New processes look for no modules in the working directory, which may be a foreign checkout."""
    name = "PYTHONSAFEPATH"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


_CHECK = LAST + 1
"""The stage of the work on a batch that follows those of its summaries, which are numbered by their rounds."""


class _Process:
    """A process that works on one batch of files at a time."""

    def __init__(self, context: ForkContext | SpawnContext, worker: Worker) -> None:
        self.connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(worker, other, self.connection), daemon=True)
        self._process.start()
        # The process must be the only one that holds this end: then its death ends the connection.
        other.close()

    def work(self, stage: int, files: list[str]) -> None:
        """Begin to work on a batch."""
        self.connection.send((stage, files))

    def end(self, is_idle: bool) -> None:
        """End the process, whose results are not needed any more."""
        if is_idle:
            self.connection.send(None)
        else:
            self._process.terminate()
        self._process.join()
        self.connection.close()


def _serve(worker: Worker, connection: Connection, other: Connection) -> None:
    other.close()
    worker.start()
    while (task := connection.recv()) is not None:
        stage, files = task
        connection.send(worker.check(files) if stage == _CHECK else worker.summarize(files, stage))


def _shared(
    processes: list[_Process], batches: list[list[str]], sizes: Mapping[str, int]
) -> Iterator[tuple[str, Report]]:
    """The results of work on batches of files, as they come.

    A process does all of the work on the batches that it begins, since each stage goes on from the runs of the one
    before. Who has none left checks those of others. Raises EOFError or OSError if a process dies.
    """
    left = list(_turns(batches, sizes, len(processes)))
    busy, owners = dict[object, tuple[_Process, _Turn]](), dict[int, _Process]()
    idle = list(processes)
    while left or busy:
        undone = {turn.round for turn in left} | {turn.round for _, turn in busy.values()}
        now = _ready(undone)
        ready = [turn for turn in left if turn.round in now]
        owned = {owners.get(turn.batch) for turn in ready}
        for process in sorted(idle, key=lambda process: process not in owned):
            own = (turn for turn in ready if owners.get(turn.batch, process) is process)
            others = (turn for turn in reversed(ready) if turn.round.stage == _CHECK)
            turn = next(own, None) or next(others, None)
            if turn is not None:
                left.remove(turn)
                ready.remove(turn)
                owners.setdefault(turn.batch, process)
                process.work(turn.round.stage, batches[turn.batch])
                busy[process.connection] = process, turn
                idle.remove(process)
        for connection in wait([process.connection for process, _ in busy.values()]):
            process, _ = busy.pop(connection)
            idle.append(process)
            yield from process.connection.recv()


class _Round(NamedTuple):
    """A stage of the work on a group of files, which needs what the stage before makes of these and earlier groups."""

    group: int
    stage: int


class _Turn(NamedTuple):
    """The part of a round that works on one batch of files."""

    round: _Round
    batch: int


def _turns(batches: list[list[str]], sizes: Mapping[str, int], processes: int) -> Iterator[_Turn]:
    """The work on batches of files in its order: the rounds of a group of them, then those of the next group."""
    texts = {batch: sum(sizes[file] for file in files) for batch, files in enumerate(batches)}
    for group, members in enumerate(groups(texts, processes)):
        for stage in range(_CHECK + 1):
            yield from (_Turn(_Round(group, stage), batch) for batch in members)


def _ready(undone: set[_Round]) -> set[_Round]:
    """Those of some rounds that need none of the others."""
    return {
        each for each in undone if not any(other.group <= each.group and other.stage < each.stage for other in undone)
    }


def mapped(
    pool: futures.Executor,
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
        done, waiting = futures.wait(waiting, _PATIENCE, futures.FIRST_COMPLETED)
        if not done and not is_alive():
            return
        for future in done:
            if not future.cancelled() and not isinstance(future.exception(), lost):
                yield from future.result()


def tasks(sizes: Mapping[str, int], jobs: int) -> Iterator[list[str]]:
    """Files that are checked together, in their order."""
    share = sum(sizes.values()) / (jobs * _TASKS_PER_WORKER)
    task: list[str] = []
    size = 0
    for file in sizes:
        task.append(file)
        size += sizes[file]
        if size >= share:
            yield task
            task, size = [], 0
    if task:
        yield task
