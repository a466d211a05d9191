"""Checks by the workers of a Dask cluster."""

from __future__ import annotations

import gc
import json
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from perflint.config.errors import ConfigurationError
from perflint.config.settings import Profile, Settings
from perflint.engine import cluster as engine
from perflint.engine import workers
from perflint.engine.active import active_rules
from perflint.engine.cluster import OtherVersion, Parcel, Summaries
from perflint.engine.files import check_files
from perflint.engine.projects import Projects
from perflint.output.json import document
from perflint.source.files import below
from tests.cli.command import ROOT, Ran, python

SAMPLE = Path(__file__).parent / "order_sample"
BAD = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n"
SETTINGS = """\
[tool.perflint]
extend-exclude = ["vendored"]
[tool.perflint.per-file-ignores]
"quiet/*" = ["ALL"]
"""
FILES: dict[str, str | bytes] = {
    "pyproject.toml": SETTINGS,
    "__init__.py": "",
    "quiet/a.py": BAD,
    "broken.py": "if",
    "odd.py": b"\xff\n",
    "mark.py": b"\xef\xbb\xbffrom order_sample.net import ops\n" + BAD.encode(),
    "latin.py": b"# coding: latin-1\nname = '\xe9'\n" + BAD.encode(),
    "vendored/tool.py": "def move(x):\n    return x.cuda()\n",
    "use.py": "import torch\nfrom .vendored.tool import move\n\n\ndef forward(loader):\n    for x in loader:\n"
    "        y = move(x)\n        print(y.item())\n",
}


def write_project(folder: Path) -> Path:
    """A project with files of all kinds."""
    shutil.copytree(SAMPLE, folder / "order_sample", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


class Cluster(NamedTuple):
    """A running cluster."""

    address: str
    workers: tuple[int, ...]
    """The process ids of its workers."""
    process: subprocess.Popen[str]


def started() -> Cluster:
    """A new cluster of two workers."""
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("cluster.py"))]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    assert process.stdout is not None
    address, *ids = process.stdout.readline().split()
    return Cluster(address, tuple(map(int, ids)), process)


def ended(cluster: Cluster) -> None:
    """End a cluster with all its processes."""
    with cluster.process as process:
        os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster that tests share."""
    pytest.importorskip("distributed")
    running = started()
    yield running
    ended(running)


def check(folder: Path, *options: str, **environment: str) -> Ran:
    """Check a folder from within."""
    command = ("-m", "perflint", "check", "--profile", "audit", "--output-format", "json", *options)
    return python(*command, cwd=folder, **environment)


def test_a_cluster_finds_the_same(cluster: Cluster, tmp_path: Path) -> None:
    folder = write_project(tmp_path / "project")
    local, there = check(folder), check(folder, "--dask", cluster.address)
    assert json.loads(local.out)["summary"]["findings"] > 20
    assert there == local
    # The results are in the cache, so a cluster that does not exist is not asked.
    cached = {"PERFLINT_NO_CACHE": "", "PERFLINT_CACHE_DIR": str(tmp_path / "cache")}
    for name in ("broken.py", "odd.py", "quiet/a.py"):  # they have no results
        (folder / name).unlink()
    local = check(folder)
    assert check(folder, "--dask", cluster.address, **cached) == local
    assert check(folder, "--dask", "tcp://127.0.0.1:1", **cached) == local


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["one worker", "all workers", "cluster"])
def test_lost_workers_cost_their_files_again(killed: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    folder = tmp_path / "project"
    for number in range(12):
        write_project(folder / f"part{number}")
    (folder / "pyproject.toml").write_text(SETTINGS)
    cluster = started()
    try:
        command = [sys.executable, "-u", "-m", "perflint", "check", "--dask", cluster.address]
        ran = subprocess.Popen(
            [*command, "--profile", "audit", "--output-format", "jsonl"],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with ran:
            assert ran.stdout is not None
            first = ran.stdout.readline()
            if killed == "cluster":
                os.killpg(cluster.process.pid, signal.SIGKILL)
            else:
                for worker in cluster.workers[: 1 if killed == "one worker" else 2]:
                    os.kill(worker, signal.SIGKILL)
            found = first + ran.stdout.read()
    finally:
        ended(cluster)
    local = check(folder, "--output-format", "jsonl")
    assert (found, ran.returncode) == (local.out, local.code)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nothing://here", "here"])
def test_a_cluster_that_is_none(address: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    (tmp_path / "a.py").write_text(BAD)
    ran = check(tmp_path, "--dask", address)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: there is no Dask scheduler at {address}: ")


def test_without_distributed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BAD)
    (tmp_path / "distributed.py").write_text("raise ImportError('it is broken')\n")
    command = ("-m", "perflint", "check", "a.py", "--dask", "tcp://x:1")
    ran = python(*command, cwd=tmp_path, PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert (ran.code, ran.out) == (2, "")
    assert (
        ran.err
        == "error: `--dask` needs distributed: it is broken\n  help: `pip install distributed` beside perflint\n"
    )


def test_a_parcel_is_all_that_a_check_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_project(tmp_path / "project")
    settings = Settings(profile=Profile.AUDIT, root=str(folder), per_file_ignores=(("quiet/*", ("ALL",)),))
    monkeypatch.chdir(folder)
    files = [*below("order_sample", settings), "mark.py", "latin.py", "use.py"]
    local = {source.path: document(report) for source, report in check_files(files, active_rules(settings), settings)}
    parcel = Parcel(settings, Projects(settings), files)
    there = pickle.loads(pickle.dumps(parcel))
    shutil.rmtree(folder)
    monkeypatch.chdir(tmp_path)
    known = dict(engine._summarize(there, files))
    found = engine._check(pickle.loads(pickle.dumps(there)), Summaries(known), files)
    assert len(known) > 3
    assert {each.file: document(each.report) for each in found} == local
    assert not any(parcel.lacks(each.record) for each in found)


def test_a_check_that_missed_a_file_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_project(tmp_path / "project")
    settings = Settings(profile=Profile.AUDIT, exclude=("vendored",), root=str(folder))
    monkeypatch.chdir(folder)
    parcel = Parcel(settings, Projects(settings), ["use.py", "mark.py"])
    found = engine._check(parcel, Summaries({}), ["use.py", "mark.py"])
    assert {each.file: parcel.lacks(each.record) for each in found} == {"use.py": True, "mark.py": False}


def test_other_versions_do_not_check(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BAD)
    file = str(tmp_path / "a.py")
    parcel = Parcel(Settings(), Projects(Settings()), [file])
    parcel._versions = "perflint 0.0.1 on Python 3.11"
    with pytest.raises(OtherVersion, match=r"a worker has perflint \d"):
        engine._check(parcel, Summaries({}), [file])


def test_batches_of_lost_workers_are_left_out() -> None:
    def work(task: list[str]) -> list[str]:
        if "lost" in task:
            raise ConnectionError
        return task

    tasks = [["a"], ["lost"], ["b", "c"]]
    with ThreadPoolExecutor(2) as pool:
        assert sorted(workers.mapped(pool, work, tasks, lost=(ConnectionError,))) == ["a", "b", "c"]
        with pytest.raises(ConnectionError):
            list(workers.mapped(pool, work, tasks))


def test_a_pool_without_workers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Empty(ThreadPoolExecutor):
        def submit(self, *arguments: object, **named: object) -> Future[list[str]]:  # type: ignore[override]
            return Future()

    monkeypatch.setattr(workers, "_PATIENCE", 0.01)
    alive = iter([True, True, False])
    assert list(workers.mapped(Empty(), list, [["a"]], is_alive=lambda: next(alive))) == []


class Client(nullcontext[Any]):
    """The client of a cluster whose workers are threads."""

    def __init__(self, pool: ThreadPoolExecutor, *workers: int) -> None:
        super().__init__()
        self.pool = pool
        self.workers = list(workers)

    def nthreads(self) -> dict[str, int]:
        """The workers that are left, each time one fewer but for the last."""
        count = self.workers.pop(0) if len(self.workers) > 1 else self.workers[0]
        return {f"worker {number}": 1 for number in range(count)}

    def get_executor(self, pure: bool) -> ThreadPoolExecutor:
        return self.pool

    def scatter(self, value: object, broadcast: bool, hash: bool) -> object:
        return value


def checked_by(client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that the workers of a client check."""
    monkeypatch.setattr(engine, "_connected", lambda address: nullcontext(client))
    settings = Settings(profile=Profile.AUDIT)
    sizes = {str(folder / name): 100 for name in ("mark.py", "latin.py", "odd.py")}
    found = engine.checked_by_cluster("tcp://x:1", settings, Projects(settings), sizes)
    return sorted(Path(each.file).name for each in found)


def test_what_becomes_of_the_work_of_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    from distributed.comm.core import CommClosedError

    class Lost(ThreadPoolExecutor):
        def submit(self, *arguments: object, **named: object) -> Future[list[str]]:  # type: ignore[override]
            raise CommClosedError("the scheduler has gone")

    class Silent(ThreadPoolExecutor):
        def submit(self, *arguments: object, **named: object) -> Future[list[str]]:  # type: ignore[override]
            return Future()

    folder = write_project(tmp_path / "project")
    with ThreadPoolExecutor(2) as pool:
        # Who runs a check with the garbage collector has it again after it.
        gc.enable()
        try:
            assert checked_by(Client(pool, 2), folder, monkeypatch) == ["latin.py", "mark.py"]
            assert gc.isenabled()
        finally:
            gc.disable()
        monkeypatch.setattr(workers, "_PATIENCE", 0.01)
        assert checked_by(Client(Lost(), 2), folder, monkeypatch) == []
        assert checked_by(Client(Silent(), 2, 2, 0), folder, monkeypatch) == []
        monkeypatch.setattr(engine, "_VERSIONS", "perflint 0.0.1 on Python 3.11")
        parcel = Parcel.__init__

        def older(self: Parcel, *arguments: Any) -> None:
            parcel(self, *arguments)
            self._versions = "perflint 0.0.0"

        monkeypatch.setattr(Parcel, "__init__", older)
        with pytest.raises(ConfigurationError, match=r"the workers of tcp://x:1 cannot check: a worker has"):
            checked_by(Client(pool, 2), folder, monkeypatch)


def test_a_cluster_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "Client", lambda *_, **__: Client(ThreadPoolExecutor(1), 0))
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ConfigurationError, match="has no workers"), engine._connected(address):
            pass


def test_files_that_vanish_before_they_are_sent(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "project")
    projects = Projects(Settings())
    files = [str(folder / name) for name in ("mark.py", "latin.py")]
    assert len(list(projects.of(files[0]).files)) > 3
    (folder / "latin.py").unlink()
    (folder / "broken.py").unlink()
    parcel = Parcel(Settings(), projects, files)
    assert [parcel.has(file) for file in files] == [True, False]
    # The client says what is wrong with such a file.
    (folder / "latin.py").write_bytes(b"\xff")
    parcel = Parcel(Settings(), Projects(Settings()), files)
    assert [each.file for each in engine._check(parcel, Summaries({}), files)] == files[:1]
