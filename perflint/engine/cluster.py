"""A Dask cluster that checks files. The files travel to the workers, which share no disk with the client.

A check on a worker reads files of the parcel alone. Its record says which files it looked for, so the client knows
whether it missed a file that was not in the parcel.
"""

from __future__ import annotations

import gc
import os
import pickle
import socket
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perflint import __version__
from perflint.config.disk import Carried, absolute, reading_from
from perflint.config.errors import ConfigurationError
from perflint.config.regular import read_regular
from perflint.config.settings import Settings
from perflint.engine.active import active_rules
from perflint.engine.file import check_source
from perflint.engine.projects import Projects
from perflint.engine.summaries import summary_before_checks
from perflint.engine.workers import mapped, tasks
from perflint.findings import Report
from perflint.rules.registry import RuleSet
from perflint.semantics.callers.kept import summaries
from perflint.semantics.callers.summary import Summary
from perflint.semantics.declared import Declared
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.view import Record
from perflint.source.reading import Unreadable, read
from perflint.source.text import Source

if TYPE_CHECKING:
    from distributed import Client

_VERSIONS = f"perflint {__version__} on Python {sys.version_info.major}.{sys.version_info.minor}"
"""The versions that findings depend on."""
_SECONDS_TO_CONNECT = 10
_ONE_AT_A_TIME = threading.Lock()
"""A worker of several threads checks one file at a time: recursion limits are those of the process."""


class OtherVersion(Exception):
    """The worker has another version of perflint or Python than the client."""


class Checked(NamedTuple):
    """The report of a file without problems, and what the cache keeps of it."""

    file: str
    report: Report
    record: Record
    code: str


class _Listing(NamedTuple):
    """The files of a project."""

    files: tuple[Path, ...]
    is_whole: bool
    declared: Declared
    settings: tuple[str, ...] | None


class Parcel:
    """Projects with all their files, as they travel to workers."""

    def __init__(self, settings: Settings, projects: Projects, files: Iterable[str]) -> None:
        self._versions = _VERSIONS
        self._settings = settings
        self._tops = {absolute(file).parent: projects.top_of(file) for file in files}
        known = {top: projects.at(top) for top in set(self._tops.values())}
        self._listings = {
            top: _Listing(each.files, each.is_whole, each.declared, each.settings) for top, each in known.items()
        }
        paths = {path for each in known.values() for path in each.files} | {absolute(file) for file in files}
        paths |= {Path(path) for each in known.values() for path in each.settings or ()}
        folders = {folder for path in paths for folder in path.parents}
        # The packages that a file is in give its module the name.
        paths |= {path for path in (folder / "__init__.py" for folder in folders) if os.path.isfile(path)}
        self._carried = Carried(os.getcwd(), {str(path): _contents(path) for path in paths})

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name not in ("projects", "rules")}

    def has(self, file: str) -> bool:
        """True if a file that is to be checked could be read."""
        return self._carried.contents[str(absolute(file))] is not None

    def lacks(self, record: Record) -> bool:
        """True if a check looked for a file that exists, and that is not in the parcel."""
        return any(str(path) not in self._carried.contents and os.path.isfile(path) for path in record.code)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Read its files in place of those of the worker. Raises OtherVersion."""
        if self._versions != _VERSIONS:
            raise OtherVersion(f"a worker has {_VERSIONS}")
        with _ONE_AT_A_TIME, reading_from(self._carried):
            collects = gc.isenabled()
            gc.disable()
            try:
                yield
            finally:
                if collects:
                    gc.enable()

    @cached_property
    def projects(self) -> dict[Path, Project]:
        """The projects by their folders; each worker makes them once."""
        return {
            top: Project(each.files, None if each.is_whole else len(each.files), each.declared, each.settings)
            for top, each in self._listings.items()
        }

    @cached_property
    def rules(self) -> RuleSet:
        """The rules that the settings turn on."""
        return active_rules(self._settings)

    def project(self, file: str) -> Project:
        """The project of a file that is to be checked."""
        return self.projects[self._tops[absolute(file).parent]]

    def check(self, file: str) -> list[Checked]:
        """The report of a file; none if there is a problem, or if no rule holds for it. The client then checks it."""
        kept: list[Checked] = []

        def keep(report: Report, model: Model) -> None:
            kept.append(Checked(file, report, model.record, model.module.code))

        try:
            source = Source(file, read(file).text)
        except Unreadable:
            return kept
        check_source(source, self.project(file), self.rules, self._settings, keep=keep)
        return kept


class Summaries:
    """The summaries that workers have made, as they travel to all workers."""

    def __init__(self, known: Mapping[Path, bytes]) -> None:
        self._known = known

    def find(self, path: Path, round: int) -> Summary | None:
        """The summary of a file in a round."""
        data = None if round else self._known.get(path)
        found = None if data is None else pickle.loads(data)
        assert found is None or isinstance(found, Summary)
        return found

    def keep(self, summary: Summary) -> None:
        """Nothing: the project keeps it on its worker."""


def checked_by_cluster(
    address: str, settings: Settings, projects: Projects, sizes: Mapping[str, int]
) -> Iterator[Checked]:
    """Check files, whose sizes are given, by the workers of a cluster, as they come.

    Files with problems are left out, as are those of workers that were lost too often. Raises ConfigurationError if
    there is no such cluster or if its workers cannot check.
    """
    with _connected(address) as client:
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        lost = (KilledWorker, CommClosedError, CancelledError, TimeoutError)
        try:
            parcel = Parcel(settings, projects, sizes)
            largest_first = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
            sizes = {file: size for file, size in largest_first if parcel.has(file)}
            jobs = len(client.nthreads())
            pool = client.get_executor(pure=False)
            sent = client.scatter(parcel, broadcast=True, hash=False)

            def is_alive() -> bool:
                return bool(client.nthreads())

            known = dict(mapped(pool, _summarize, tasks(sizes, jobs), (sent,), lost, is_alive))
            shared = client.scatter(Summaries(known), broadcast=True, hash=False)
            for checked in mapped(pool, _check, tasks(sizes, jobs), (sent, shared), lost, is_alive):
                if not parcel.lacks(checked.record):
                    yield checked
        except lost:
            # The caller checks the files that are left.
            return
        except (ImportError, AttributeError, OtherVersion) as error:
            message = f"the workers of {address} cannot check: {error}"
            raise ConfigurationError(message, f"install {_VERSIONS} on the scheduler and on all workers") from None


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    """The client of a cluster with workers. Raises ConfigurationError."""
    try:
        from distributed import Client
        from distributed.comm.addressing import get_address_host_port
    except ImportError as error:
        raise ConfigurationError(
            f"`--dask` needs distributed: {error}", "`pip install distributed` beside perflint"
        ) from None
    try:
        # A client that fails to connect takes ten seconds more to end.
        host, port = get_address_host_port(address)
        socket.create_connection((host, port), _SECONDS_TO_CONNECT).close()
        client = Client(address, timeout=_SECONDS_TO_CONNECT, set_as_default=False, name="perflint")
    except (OSError, ValueError, TimeoutError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        help = "name the address that the scheduler prints, such as `--dask tcp://scheduler:8786`"
        raise ConfigurationError(f"there is no Dask scheduler at {address}: {reason}", help) from None
    with client:
        if not client.nthreads():
            raise ConfigurationError(f"the cluster at {address} has no workers", f"dask worker {address} --nthreads 1")
        yield client


def _contents(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except OSError:
        return None


def _summarize(parcel: Parcel, files: list[str]) -> list[tuple[Path, bytes]]:
    """The summaries of some files that checks of other files may need, on a worker."""
    found: list[tuple[Path, bytes]] = []
    with parcel.opened():
        for file in files:
            summary = summary_before_checks(parcel.project(file), file, 0)
            # Types may be nested too deep for pickle; the check that needs such a summary makes it.
            with suppress(RecursionError):
                found += [] if summary is None else [(summary.path, pickle.dumps(summary, protocol=5))]
    return found


def _check(parcel: Parcel, shared: Summaries, files: list[str]) -> list[Checked]:
    """The reports of some files, on a worker."""
    with parcel.opened():
        for project in parcel.projects.values():
            summaries(project).store = shared
        return [checked for file in files for checked in parcel.check(file)]
